"""Pages that are made of the code: keys of a study file, commands, records, the Python API."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import pkgutil
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from plumbline import commands
from plumbline.records import Record
from plumbline.study import Study
from plumbline.study.engines import EngineSpec, HttpSettings, RecordedSettings, VllmSettings
from plumbline.study.evaluation import MODEL_SETTINGS, ModelSpec

_OWN_COMMAND = re.compile(r"^    ([a-z-]+)  ", re.MULTILINE)  # in the help of a command that has commands of its own
_PLAIN = {str: "text", int: "integer", float: "number", bool: "boolean"}
_ROOMS = ("plumbline", "generation", "annotation", "evaluation")


def study() -> str:
    """Every key of a study file."""
    lines = [
        "# Study files",
        "A study is one YAML file. These are all of its keys, as `plumbline.study` reads them; one that is unknown is"
        " refused with the nearest that there is. A commented example is [studies/demo.yaml](../../studies/demo.yaml).",
    ]
    waiting: list[tuple[str, type[BaseModel]]] = [("A study", Study)]
    seen: set[type[BaseModel]] = set()
    while waiting:
        title, model = waiting.pop(0)
        if model in seen or _is_absence(model):
            continue
        seen.add(model)
        parts = [part for field in study_fields(model).values() for part in _models(field.annotation)]
        lines += [f"## {title} {{#{model.__name__.lower()}}}", *_described(model), _keys(model)]
        for settings in _SETTINGS.get(model, ()):
            lines += [*_described(settings), _keys(settings)]
        waiting += [(_title(part), part) for part in parts]
    return "\n\n".join(lines) + "\n"


_SETTINGS = {
    EngineSpec: (HttpSettings, VllmSettings, RecordedSettings),
    ModelSpec: tuple(dict.fromkeys(MODEL_SETTINGS.values())),
}


def study_fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """What a study's file may say of a part: without what only Plumbline's own files say."""
    said = model.model_json_schema().get("properties", {})
    return {name: part for name, part in model.model_fields.items() if name in said}


def _is_absence(one: type) -> bool:
    """Whether a model stands for what a study does not name."""
    return issubclass(one, BaseModel) and one.__name__.startswith("No")


def _described(model: type[BaseModel]) -> list[str]:
    first = (model.__doc__ or "").strip().partition("\n\n")[0]
    return [" ".join(first.split())] if first else []


def _title(model: type[BaseModel]) -> str:
    kind = model.model_fields.get("kind")
    said = _words(model.__name__.removeprefix("_").removesuffix("Spec"))
    if kind is not None and len(typing.get_args(kind.annotation)) == 1:
        return f"{said} (`kind: {typing.get_args(kind.annotation)[0]}`)"
    return said


def _words(name: str) -> str:
    made = "".join(f" {one.lower()}" if one.isupper() and index else one for index, one in enumerate(name))
    return made.replace("open a i", "OpenAI").replace("Open a i", "OpenAI ").replace("  ", " ").strip()


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a type names, in its order."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _models(part)


def _keys(model: type[BaseModel]) -> str:
    rows = ["| key | takes | default | meaning |", "|---|---|---|---|"]
    for name, field in study_fields(model).items():
        what = _cell(field.description or "which of several this is")
        rows.append(f"| `{name}` | {_takes(field.annotation)} | {_default(field)} | {what} |")
    return "\n".join(rows)


def _takes(annotation: Any) -> str:
    """A type in the words of a YAML file."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return ", ".join(f"`{one}`" for one in parts)
    if origin in (typing.Union, types.UnionType):
        named = (one for one in parts if not (isinstance(one, type) and _unnamed(one)))
        return " or ".join(dict.fromkeys(map(_takes, named)))
    before = {typing.Annotated: "", tuple: "a list of: ", list: "a list of: ", dict: "a mapping, each value: "}
    if origin in before:
        return f"{before[origin]}{_takes(parts[1] if origin is dict else parts[0])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{_title(annotation)}](#{annotation.__name__.lower()})"
    return _PLAIN.get(annotation, "a value")


def _unnamed(one: type) -> bool:
    return one is type(None) or _is_absence(one)


def _default(field: FieldInfo) -> str:
    if field.is_required():  # some are filled in from elsewhere, which their description says
        return "-" if "default: " in (field.description or "") else "**needed**"
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, BaseModel) and not _is_absence(type(value)):
        return "see its keys"
    if value in (None, "", (), {}) or isinstance(value, BaseModel):
        return "-"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("{", "&#123;")


def command_pages() -> str:
    """Every command with its options."""
    lines = [
        "# Commands",
        "`plumbline COMMAND --help` prints the same with an example. Most commands take `--study FILE`, `--exports DIR` (where"
        " records are written: a folder or an address such as s3://bucket/x; default: exports/) and, where they need the local"
        " Argilla, `--data DIR` (its folder; default: .argilla/).",
        "Each command is also a module: `plumbline evaluate` is `python -m evaluation.run`, `plumbline accept` is"
        " `python -m annotation accept`.",
    ]
    for section, found in commands.SECTIONS.items():
        lines.append(f"## {section[0].upper()}{section[1:]}")
        for one in found:
            told = _help(one.module, *one.word.split())
            lines += [f"### plumbline {one.name}", f"{one.text[0].upper()}{one.text[1:]}. `{one.spelled}`"]
            subs = _OWN_COMMAND.findall(told) if told.partition("\n")[0].endswith(("COMMAND ...", "ACTION ...")) else []
            lines += [_options(told)] if not subs else []
            for sub in subs:
                helped = _help(one.module, *one.word.split(), sub)
                lines += [f"#### plumbline {one.name} {sub}", _description(helped), _options(helped)]
    return "\n\n".join(line for line in lines if line) + "\n"


def _help(module: str, *words: str) -> str:
    found = importlib.import_module(module)
    main = importlib.import_module(f"{module}.__main__" if hasattr(found, "__path__") else module).main
    out = io.StringIO()
    with (
        mock.patch.object(sys, "argv", [module, *words, "--help"]),
        mock.patch.dict("os.environ", {"COLUMNS": "200"}),
        contextlib.redirect_stdout(out),
        contextlib.suppress(SystemExit),
    ):
        main()
    return out.getvalue().strip()


def _description(told: str) -> str:
    """The first paragraph below the usage line."""
    said = told.split("\n\n")[1]
    return f"{said[0].upper()}{said[1:].rstrip('.')}."


def _options(told: str) -> str:
    """The options of a command as a list, without those that the page's beginning names."""
    parts = [part.splitlines()[1:] for part in told.split("\n\n") if part.startswith(("options:", "positional "))]
    entries: list[str] = []
    for line in (line for part in parts for line in part):
        if line.startswith("  ") and line[2] != " ":
            entries.append(line.strip())
        elif entries:
            entries[-1] += f"  {line.strip()}"
    split = [re.split(r" {2,}", entry, maxsplit=1) for entry in entries]
    rows = [(name, " ".join("".join(text).split())) for name, *text in split]
    return "\n".join(f"- `{name}`: {_cell(text)}" for name, text in rows if name not in _COMMON)


_COMMON = ("-h, --help", "--study FILE", "--exports DIR", "--data DIR")


def records() -> str:
    """Every record with its fields."""
    for room in _ROOMS:
        package = importlib.import_module(room)
        for one in pkgutil.walk_packages(package.__path__, f"{room}."):
            if "record" in one.name.rpartition(".")[2] and ".plugin" not in one.name:
                importlib.import_module(one.name)
    lines = [
        "# Records",
        "What stages hand on, field by field; [which file holds which](../../exports/README.md). Frozen, typed, one"
        " word for one thing. A field that is undefined is NaN, in JSON null.",
    ]
    for model in sorted(_below(Record), key=lambda one: (one.__module__, one.__name__)):
        if model.__name__.startswith("_") or model.__module__.partition(".")[0] not in _ROOMS:
            continue
        key = f" A row is named by {', '.join(f'`{name}`' for name in model.KEY)}." if model.KEY else ""
        said = " ".join(_described(model))
        lines += [f"## {model.__name__}", f"`{model.__module__}`. {_cell(said)}{key}", _fields(model)]
    return "\n\n".join(lines) + "\n"


def _below(base: type[Record]) -> Iterator[type[Record]]:
    for one in base.__subclasses__():
        yield one
        yield from _below(one)


def _fields(model: type[BaseModel]) -> str:
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for name, field in model.model_fields.items():
        rows.append(f"| `{name}` | {_plain_type(field.annotation)} | {_cell(field.description or '')} |")
    return "\n".join(rows)


def _plain_type(annotation: Any) -> str:
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{_title(annotation)}](study.md#{annotation.__name__.lower()})"
    if getattr(annotation, "__name__", "") in ("datetime", "AwareDatetime"):
        return "time"
    if typing.get_origin(annotation) in (tuple, list):
        return f"list of {_plain_type(typing.get_args(annotation)[0])}"
    if typing.get_origin(annotation) is typing.Annotated:
        return _plain_type(typing.get_args(annotation)[0])
    return _takes(annotation)


def api() -> str:
    """What `plumbline`, `annotation` and `evaluation` hand out: how it is called and what it does."""
    lines = [
        "# Python API",
        "`help(name)` prints arguments with units, what comes back, what is refused, the source and an example that the"
        " tests run. [How the functions go together](../api.md).",
    ]
    for package in ("plumbline", "annotation", "evaluation"):
        found = importlib.import_module(package)
        lines.append(f"## {package}")
        for name in found.__all__:
            thing = getattr(found, name)
            first = (inspect.getdoc(thing) or "").partition("\n\n")[0]
            lines += [f"### {name}", f"`{name}{_signature(thing)}`", " ".join(first.split())]
            if isinstance(thing, type) and issubclass(thing, BaseModel):
                lines.append(f"[Its keys](study.md#{name.lower()}) are those of a study file.")
    return "\n\n".join(lines) + "\n"


def _signature(thing: Any) -> str:
    """The names of its parameters; a model's keys stand in a table."""
    if isinstance(thing, type) and issubclass(thing, BaseModel):
        return "(...)"
    parts = [
        one.name if one.default is one.empty else f"{one.name}=..."
        for one in inspect.signature(thing).parameters.values()
    ]
    return f"({', '.join(parts)})"


PAGES: dict[str, Callable[[], str]] = {
    "reference/study.md": study,
    "reference/commands.md": command_pages,
    "reference/records.md": records,
    "reference/api.md": api,
}
