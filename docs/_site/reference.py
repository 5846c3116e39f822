"""Pages that are made of the code: keys of a study file, commands, records, the Python API."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
import typing
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from plumbline import commands
from plumbline.records import Record
from plumbline.study import Study
from plumbline.study.base import PartOfKinds

_PLAIN = {str: "text", int: "integer", float: "number", bool: "boolean"}
_ROOMS = ("plumbline", "generation", "annotation", "evaluation")


def study() -> str:
    """Every key of a study file."""
    lines = [
        "# Study files",
        "A study is one YAML file. This page lists every key that `plumbline.study` reads; an unknown key is refused,"
        " with the nearest known one. A commented example is [studies/demo.yaml](../../studies/demo.yaml).",
    ]
    waiting: list[tuple[str, type[BaseModel]]] = [("A study", Study)]
    seen: set[type[BaseModel]] = set()
    while waiting:
        title, model = waiting.pop(0)
        if model in seen or _is_absence(model) or not model.model_fields:
            continue
        seen.add(model)
        parts = [part for name in study_fields(model) for one in _annotations(model, name) for part in _models(one)]
        lines += [f"## {title} {{#{model.__name__.lower()}}}", *_described(model), _keys(model)]
        waiting += [(_title(part), part) for part in parts]
    return "\n\n".join(lines) + "\n"


def study_fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """What a study's file may say of a part: without what only Plumbline's own files say."""
    if not issubclass(model, PartOfKinds):
        said = model.model_json_schema().get("properties", {})
        return {name: part for name, part in model.model_fields.items() if name in said}
    return {name: part for one in (*reversed(model.KINDS.values()), model) for name, part in one.model_fields.items()}


def _annotations(model: type[BaseModel], name: str) -> list[Any]:
    """What a key takes: in a part with kinds, what it takes in each."""
    kinds = model.KINDS.values() if issubclass(model, PartOfKinds) else [model]
    return [one.model_fields[name].annotation for one in kinds if name in one.model_fields]


def _is_absence(one: type) -> bool:
    """Whether a model stands for what a study does not name."""
    return issubclass(one, BaseModel) and one.__name__.startswith("No")


def _described(model: type[BaseModel]) -> list[str]:
    first = (model.__doc__ or "").strip().partition("\n\n")[0]
    return [" ".join(first.split())] if first else []


def _is_kind(name: str, field: FieldInfo) -> bool:
    """Whether a field has the one value that the title of its part shows (`kind: texts`)."""
    return name == "kind" and len(typing.get_args(field.annotation)) == 1


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
        if _is_kind(name, field):
            continue
        what = _cell(field.description or "the kind, which determines the other keys")
        takes = dict.fromkeys(_takes(one) for one in _annotations(model, name))
        rows.append(f"| `{name}` | {' or '.join(filter(None, takes))} | {_default(field)} | {what} |")
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
        if not annotation.model_fields:
            return "a mapping" if annotation.model_config.get("extra") == "allow" else ""
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
    """Every command and what it does."""
    lines = [
        "# Commands",
        "`plumbline COMMAND --help` explains options and shows an example."
        " `plumbline evaluate` is also `python -m evaluation.run`.",
    ]
    for section, listed in commands.SECTIONS.items():
        lines.append(f"## {section[0].upper()}{section[1:]}")
        rows = ["| command | does |", "|---|---|"]
        rows += [f"| `plumbline {one.name}` | {_cell(one.text)} |" for one in listed]
        lines.append("\n".join(rows))
    return "\n\n".join(lines) + "\n"


def records() -> str:
    """Every record with its fields."""
    for room in _ROOMS:
        package = importlib.import_module(room)
        for one in pkgutil.walk_packages(package.__path__, f"{room}."):
            if "record" in one.name.rpartition(".")[2] and ".plugin" not in one.name:
                importlib.import_module(one.name)
    models = [
        model
        for model in sorted(_below(Record), key=lambda one: (one.__module__, one.__name__))
        if not model.__name__.startswith("_") and model.__module__.partition(".")[0] in _ROOMS
    ]
    written = Counter((name, field.description) for model in models for name, field in model.model_fields.items())
    shared = {name: text or "" for (name, text), times in written.items() if times > 1}
    lines = [
        "# Records",
        "The fields of the records that stages write; [the files of a study](../../exports/README.md) lists the record"
        " of each file. An undefined number is NaN, in JSON null.",
        "## Fields of several records",
        "\n".join(f"- `{name}`: {_cell(text)}" for name, text in sorted(shared.items())),
    ]
    for model in models:
        key = f" A row is identified by {', '.join(f'`{name}`' for name in model.KEY)}." if model.KEY else ""
        lines += [f"## {model.__name__}", f"{_cell(' '.join(_described(model)))}{key}", _fields(model, shared)]
    return "\n\n".join(lines) + "\n"


def _below(base: type[Record]) -> Iterator[type[Record]]:
    for one in base.__subclasses__():
        yield one
        yield from _below(one)


def _fields(model: type[BaseModel], shared: dict[str, str]) -> str:
    """The fields of a record as a list; those of several records by their names alone."""
    told = [(name, field) for name, field in model.model_fields.items() if shared.get(name) != field.description]
    rows = [f"- `{name}`{_choices(field.annotation)}: {_cell(field.description or '')}" for name, field in told]
    names = [f"`{name}`" for name in model.model_fields if name not in dict(told)]
    return "\n".join([*rows, *([f"- and {', '.join(names)}"] if names else [])])


def _choices(annotation: Any) -> str:
    """The values that a field can have where these are few, or the record that it holds."""
    found = [part for part in (annotation, *typing.get_args(annotation)) if typing.get_origin(part) is typing.Literal]
    if found:
        return f" ({_takes(found[0])})"
    held = [part for part in _models(annotation) if issubclass(part, Record)]
    return f" ([{held[0].__name__}](#{held[0].__name__.lower()}))" if held else ""


def api() -> str:
    """What `plumbline`, `annotation` and `evaluation` hand out: how it is called and what it does."""
    lines = [
        "# Python API",
        "`help(name)` prints the arguments with units, the result, the errors, the source and an example that the tests"
        " run. [How the functions go together](../api.md).",
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
