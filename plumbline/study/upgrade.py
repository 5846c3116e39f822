"""Studies as earlier versions had them: `modern` reads one, and `plumbline upgrade` rewrites its file."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from plumbline.errors import StudyError
from plumbline.reading import MalformedError, parse_yaml
from plumbline.study.base import StudyPart
from plumbline.study.campaign import AcceptanceSpec, QualitySpec
from plumbline.study.crowd import CrowdSpec
from plumbline.study.engines import SETTINGS, RetrySpec, Sampling
from plumbline.study.evaluation import with_settings
from plumbline.study.subject import InstructionsSubject

_RENAMED = {"tensor_parallel": "tensor_parallel_size", "data_parallel": "data_parallel_size"}
#: The parts of a study that had keys with one value in every study.
_FIXED: tuple[tuple[str, type[StudyPart]], ...] = (
    ("acceptance", AcceptanceSpec),
    ("quality", QualitySpec),
    ("retry", RetrySpec),
    ("crowd", CrowdSpec),
    ("subject", InstructionsSubject),
)
_ENGINE = ("kind", "model", "revision", "path", "base_url", "settings")
_TRAILING = re.compile(r"""^((?:[^"'#]|"[^"]*"|'[^']*'|(?<!\s)['#])*?)\s+(#.*)$""")


class _Dumper(yaml.SafeDumper):
    """YAML as the sample studies have it: nothing by reference, lists indented."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def modern(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an older study file in today's form; faulty parts stay as they are.

    Raises StudyError for `human` beside `subject`.
    """
    data = dict(data)
    if "human" in data:
        if "subject" in data:
            raise StudyError(
                "`human` is the earlier form of `subject`, which the file also has; take one of the two out"
            )
        if not isinstance(data["human"], dict):
            raise StudyError("`human` is not a mapping; write `subject: {kind: human, tasks: [{data: NAME}]}` instead")
        data = {
            "subject" if key == "human" else key: {"kind": "human", **value} if key == "human" else value
            for key, value in data.items()
        }
    if "generator" in data:
        data["generator"] = _engine(data["generator"])
    engines = data["engines"] if isinstance(data.get("engines"), dict) else {}
    judge = functools.partial(_rater, engines=engines, usual={"max_tokens": Sampling().max_tokens})
    annotator = functools.partial(_rater, engines=engines, usual={})
    lists = (("datasets", _dataset), ("transformations", _file), ("candidates", _engine), ("judges", judge))
    for key, change in lists:
        if key in data:
            data[key] = _each(data[key], change)
    if isinstance(scored := data.get("evaluation"), dict) and "models" in scored:
        data["evaluation"] = {**scored, "models": _each(scored["models"], with_settings)}
    subject, judges = data.get("subject"), data.get("judges", [])
    if isinstance(subject, dict) and isinstance(subject.get("models"), list) and isinstance(judges, list):
        data["judges"] = [*judges, *_each(subject["models"], annotator)]
        data["subject"] = {key: value for key, value in subject.items() if key != "models"}
    rule = data.get("acceptance")
    if isinstance(rule, dict) and isinstance(rule.get("judges"), dict) and set(rule["judges"]) == {"use"}:
        data["acceptance"] = {**rule, "judges": rule["judges"]["use"]}
    for name, model in _FIXED:
        if isinstance(section := data.get(name), dict):
            fixed = {key for key in model.FIXED if key in section and section[key] == getattr(model, key)}
            data[name] = {key: value for key, value in section.items() if key not in fixed}
    return data


def advice(file: object, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return advice to upgrade a file of an earlier version; empty if it is up to date."""
    old = [key for key, value in before.items() if value != after.get(key)]
    return (
        f"{file} has the form of an earlier version ({', '.join(old)}); run `plumbline upgrade {file}`" if old else ""
    )


def _each(entries: Any, change: Any) -> Any:
    return [change(entry) for entry in entries] if isinstance(entries, list) else entries


def _dataset(entry: Any) -> Any:
    """A file's `rows` under the name that mteb's tasks have for it."""
    if not isinstance(entry, dict) or "rows" not in entry or "mteb" in entry:
        return entry
    return {"split" if key == "rows" else key: value for key, value in entry.items()}


def _file(entry: Any) -> Any:
    """A transformation in a file of its own by the file's path alone."""
    named = isinstance(entry, dict) and set(entry) == {"path"} and isinstance(entry["path"], str)
    return entry["path"] if named and "." in entry["path"] else entry


def _engine(entry: Any) -> Any:
    """An engine with its kind's own keys under `settings`."""
    if not isinstance(entry, dict) or str(entry.get("kind")) not in SETTINGS:
        return entry
    names = {name: name for name in SETTINGS[entry["kind"]].model_fields}
    if entry["kind"] == "vllm":
        names |= _RENAMED
    settings = {names[key]: value for key, value in entry.items() if key in names}
    rest = {key: value for key, value in entry.items() if key not in names}
    return {**rest, "settings": {**rest.get("settings", {}), **settings}} if settings else entry


def _rater(entry: Any, engines: Mapping[str, Any], usual: Mapping[str, Any]) -> Any:
    """Return a judge or annotator with its engine, sampling, answers and attempts under a key each.

    `usual` holds the defaults of `sampling` for an engine that was defined in the judge itself.
    """
    if not isinstance(entry, dict) or not {"engine", "kind"} & set(entry):
        return entry
    entry = {"questions" if key == "tasks" else key: value for key, value in entry.items()}
    engine, sampling = entry.get("engine"), entry.pop("sampling", {})
    if engine is None:
        retry = {key: entry.pop(key) for key in ("attempts", "temperature") if key in entry}
        names = {*_ENGINE, *_RENAMED, *SETTINGS.get(str(entry["kind"]), Sampling).model_fields}
        engine = _engine({key: value for key, value in entry.items() if key in names})
        rest = {key: value for key, value in entry.items() if key not in names}
        entry = {**{key: rest.pop(key) for key in ("name",) if key in rest}, "engine": engine, **rest}
        entry |= {"retry": retry} if retry else {}
        sampling = {**usual, **sampling} if sampling and isinstance(sampling, dict) else sampling
    named = engines.get(engine) if isinstance(engine, str) else engine
    if not sampling or not isinstance(named, dict) or not isinstance(sampling, dict):
        return {**entry, **({"sampling": sampling} if sampling else {})}
    return {**entry, "engine": {**named, "sampling": {**named.get("sampling", {}), **sampling}}}


def named_engines(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study file's content with each engine under `engines`, once, instead of where it is used."""
    data, engines = dict(data), dict(data.get("engines", {}))
    judges = [judge for judge in data.get("judges") or () if isinstance(judge, dict)]
    users = [data.get("generator"), *(data.get("candidates") or ()), *(judge.get("engine") for judge in judges)]
    unused = {name for name in engines if name not in users}

    def name_of(engine: Any, rater: str = "") -> Any:
        if not isinstance(engine, dict):
            return engine
        for name, defined in engines.items():
            if defined == engine:
                unused.discard(name)
                return name
        for name in unused:  # whose sampling a judge said, who alone named it
            if {**engines[name], "sampling": engine.get("sampling")} == engine:
                unused.discard(name)
                engines[name] = engine
                return name
        stem = rater or str(engine.get("model", "")).rpartition("/")[2].lower()
        stem = re.sub(r"[^a-z0-9_-]+", "-", stem).strip("-_")[:60] or "engine"
        name = next(name for name in (stem, *(f"{stem}-{n}" for n in range(2, 1000))) if name not in engines)
        engines[name] = engine
        return name

    def answering(entry: Any) -> Any:
        if not isinstance(entry, dict) or not isinstance(entry.get("engine"), dict):
            return entry
        return {**entry, "engine": name_of(entry["engine"], str(entry.get("name", "model")))}

    if "generator" in data:
        data["generator"] = name_of(data["generator"])
    if "candidates" in data:
        data["candidates"] = _each(data["candidates"], name_of)
    if "judges" in data:
        data["judges"] = _each(data["judges"], answering)
    return {**data, "engines": engines} if engines else data


def upgraded(text: str) -> str:
    """Return a study file in today's form, with its comments; the same text if it is up to date.

    Raises StudyError if it is not a study file.
    """
    before = parse_yaml(text)
    if not isinstance(before, dict):
        raise StudyError("a study is a mapping of keys to values")
    after = modern(before)
    if after == before:
        return text
    after = named_engines(after)
    blocks, lines = _blocks(text), list[str]()
    names = {"human": "subject"} if "human" in before else {}
    changed = {key for key in blocks if before.get(key) != after.get(names.get(key, key)) or key in names}
    moved = [name for name in after if name not in ("engines", *(names.get(key, key) for key in blocks))]
    for key, block in blocks.items():
        name = names.get(key, key)
        if key in changed and "engines" in after and "engines" not in blocks and "engines:" not in lines:
            lines += [*_dumped("engines", after["engines"], []), ""]
        lines += _dumped(name, after[name], block) if key in changed else block
        if name == "subject":
            lines += [line for key_moved in moved for line in (*_dumped(key_moved, after[key_moved], []), "")]
    whole = "\n".join(lines).rstrip("\n") + "\n"
    whole = _with_comments(whole, [line for key in blocks if key in changed for line in blocks[key]])
    try:
        same = parse_yaml(whole) == after
    except MalformedError:
        same = False
    return whole if same else yaml.dump(after, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _blocks(text: str) -> dict[str, list[str]]:
    """The lines of each top-level key, with the comments above it; a file's first comment is the first key's."""
    lines, node = text.splitlines(), yaml.compose(text, Loader=yaml.SafeLoader)
    starts = [0]
    for key, _ in node.value[1:] if isinstance(node, yaml.MappingNode) else []:
        start = key.start_mark.line
        while start > starts[-1] + 1 and lines[start - 1].startswith("#"):
            start -= 1
        starts.append(start)
    keys = [key.value for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
    ends = [*starts[1:], len(lines)]
    return {key: lines[start:end] for key, start, end in zip(keys, starts, ends, strict=True)}


def _dumped(key: str, value: Any, block: Sequence[str]) -> list[str]:
    """A key's lines, between the comments above it and the blank lines below it that it had."""
    above = []
    for line in block:
        if line.strip() and not line.startswith("#"):
            break
        above.append(line)
    below = len(block) - len("\n".join(block).rstrip().split("\n")) if block else 0
    flow = None if isinstance(value, (dict, list)) else False
    text = yaml.dump(
        {key: value}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=flow
    )
    return [*above, *text.rstrip("\n").split("\n"), *[""] * below]


def _with_comments(text: str, before: Sequence[str]) -> str:
    """A text with the comments that stood within the lines before, each at the first line that has what it was on."""
    lines = text.split("\n")
    above: list[str] = []
    for line in before:
        content = line.strip()
        if content.startswith("#"):
            if line != content:
                above.append(content)
            continue
        if match := _TRAILING.match(content):
            content = match[1]
        plain = content.removeprefix("- ").strip("{} ")
        if not plain:
            continue
        comments = [*above, *([match[2]] if match else [])]
        index = next((number for number, line in enumerate(lines) if plain in line and "#" not in line), None)
        if comments and index is None:  # it stands elsewhere, in other words
            first = plain.partition(",")[0].rpartition(": ")[2]
            index = next((number for number, line in enumerate(lines) if first in line and "#" not in line), None)
        if comments and index is not None:
            indent = " " * (len(lines[index]) - len(lines[index].lstrip()))
            if match:
                lines[index] = f"{lines[index]} {match[2]}"
            lines[index:index] = [f"{indent}{comment}" for comment in above]
            above = []
        elif match:
            above.append(match[2])
    start = lines.index("engines:") if "engines:" in lines else 0
    return "\n".join([*lines[:start], *above, *lines[start:]])
