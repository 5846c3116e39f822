"""Files read by their form, recognised by content: tables of cells, and JSON of any shape as rows.

JSON gives a row for each answer, or for each rater and item; exports of tools are read by their own classes.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from annotation.imports.columns import SINGLE, are_numbers, by_name, role_of_keys
from annotation.imports.keys import KEY, shape_of
from annotation.imports.sheets import spread
from annotation.imports.tables import (
    ENTRY,
    MARK,
    CellTable,
    ObjectKeys,
    UnplacedRow,
    coded_rows,
    read_csv,
    read_excel,
    refuse_no_header,
    refuse_wide,
)
from annotation.imports.tool_exports import ANSWERS_OF, DOT, TOOLS, Entry, flat, singular, table_of
from plumbline.errors import DataError
from plumbline.reading import MalformedError, encoding_of, list_in, parse_json, read_bytes, refuse_no_file
from plumbline.spreadsheets import EXCEL, text_of, unpacked

JSON = (".json", ".jsonl", ".ndjson")
_DEEPEST = 6
_NUMERAL = re.compile(r"[-+]?\d{1,3}([.,]\d+)?")
_UNREAD = "a list of lists, or of values and objects, is not read"
_NO_ANSWERS = "a list of counts, places or vectors, or of other length than the raters, is not read"
_ABOUT = re.compile(
    r"(?i)(?:counts?|dist|distributions?|prob(?:s|abilit(?:y|ies))?|logits?|embeddings?|vectors?|offsets?|index|indices"
    r"|ids|positions?|lengths?|coords?|coordinates?|b?box(?:es)?|polygons?|ranges?)$"
)
_OF_ANSWERS = ("rater", "time", "started", "seconds", "status", "comment", "unused")  # roles of lists beside answers
_SPLITS = ("__", "||", "|", "::", "@@")


def read_file(path: Path, sheet: str = "") -> list[CellTable]:
    """Read a file as tables of cells. Raises DataError for an unreadable file."""
    try:
        refuse_no_file(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    with unpacked(path) as files:
        if files != [path]:
            top = Path(os.path.commonpath([file.parent for file in files]))
            return [
                replace(table, path=path / file.relative_to(top)) for file in files for table in read_file(file, sheet)
            ]
    kind = path.suffix.lower()
    if kind in EXCEL:
        plain = read_excel(path, sheet)
        table = spread(plain)
        return [_with_lists(plain) if table is plain else table]
    if kind in JSON or _begins_like_json(path):
        return read_json(path)
    plain = read_csv(path)
    table = spread(plain)
    if table is plain:  # a tool's own names are no cells, though Qualtrics writes them thrice
        refuse_no_header(table)
        table = _with_lists(table)
    return [table]


def _with_lists(table: CellTable) -> CellTable:
    """Return a table whose cells hold lists, such as `[4, 5, 3]`, as JSON with the same lists is read."""
    lists = {name: _listed(table.values(name)) for name in map(str, table.cells.columns)}
    if not any(lists.values()):
        return table
    columns = [table.cells[name].astype(object).fillna("") for name in lists]
    entries = [
        (int(line), {name: (lists[name] or {}).get(cell, cell) for name, cell in zip(lists, row, strict=True)})
        for line, row in zip(table.lines, zip(*columns, strict=True), strict=True)
    ]
    note = f"lists in the cells of {', '.join(name for name, values in lists.items() if values)} are read as in JSON"
    read = _generic(table.path, entries, (*table.notes, note))
    return replace(read, form=f"{table.form}, lists in cells", listed=(*table.listed, *read.listed))


def _listed(texts: Sequence[str]) -> dict[str, list[Any]] | None:
    """Return the lists that a column's texts are; None if one is another text."""
    lists = dict[str, list[Any]]()
    for text in texts:
        value = list_in(text)
        if value is None:
            return None
        lists[text] = value
    return lists


def read_frame(name: str, frame: pd.DataFrame) -> CellTable:
    """Return a frame as a table; a row's number in it is its line."""
    columns = list(map(str, frame.columns))
    if len(set(columns)) < len(columns):
        raise DataError(f"{name}: two columns have the same name; rename one")
    values = frame.astype(object).where(frame.notna(), None)
    rows = ([text_of(cell) for cell in row] for row in values.itertuples(index=False, name=None))
    cells, lines = coded_rows(columns, enumerate(rows, 1))
    if not len(lines):
        raise DataError(f"{name}: has no rows")
    plain = CellTable(Path(name), "a frame", cells, lines)
    table = spread(plain)
    return _with_lists(table) if table is plain else table


def _begins_like_json(path: Path) -> bool:
    """Return whether a file of any name holds JSON: its first sign is a bracket that no header begins with."""
    with path.open("rb") as file:
        start = file.read(200).removeprefix(b"\xef\xbb\xbf").lstrip()
    return start[:2] in (b'{"', b"[{", b"[\n", b"[\r") or start[:1] == b"{"


def read_json(path: Path) -> list[CellTable]:
    """Read the tables of a JSON or JSON lines file."""
    entries, root = _entries(path)
    if isinstance(root, dict):
        return [_of_mapping(path, root)]
    records = [entry for _, entry in entries if isinstance(entry, dict)]
    if not records:
        raise DataError(f"{path}: contains no JSON objects to read as records; export it again")
    tool = next((tool for tool in TOOLS if tool.wrote(records[0]) and not any(map(tool.cannot_write, records))), None)
    return [tool(path).table(entries) if tool else _generic(path, entries)]


def _entries(path: Path) -> tuple[list[Entry], Any]:
    """Return the records of a file, and the whole if it is one object."""
    try:
        content = read_bytes(path).decode(encoding_of(path)[0])
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    start = content.lstrip()[:1]
    if start == "[" or (start == "{" and path.suffix.lower() == ".json"):
        try:
            root = parse_json(content)
        except MalformedError as error:
            if start == "[":
                raise DataError(f"{path}: not valid JSON ({error}); export it again") from None
        else:
            if isinstance(root, list):
                return list(enumerate(root, 1)), None
            return [(1, root)], root
    entries = []
    for line, text in enumerate(io.StringIO(content, newline=None), 1):
        if not text.strip():
            continue
        try:
            entries.append((line, parse_json(text)))
        except MalformedError as error:
            raise DataError(f"{path}, line {line}: not valid JSON ({error}); export it again") from None
    if not entries:
        raise DataError(f"{path} is empty; export it again")
    return entries, None


def _of_mapping(path: Path, root: dict[str, Any]) -> CellTable:
    """Read a JSON object: objects under keys, answers by rater and item, or a list of records with shared facts."""
    if _is_by_column(root):
        raise DataError(
            f'{path}: its records are not in a list; write them as [{{"id": ...}}, ...], in pandas with'
            " to_json(orient='records')"
        )
    if _is_by_rater(root):
        return _by_rater(path, root)
    shape = shape_of([root])
    if shape.depth:
        return _generic(path, list(enumerate(shape.listed(root), 1)))
    lists = {
        name: value for name, value in root.items() if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    if not lists:
        return _generic(path, [(1, root)])
    name = max(lists, key=lambda key: len(json.dumps(lists[key])))
    facts = {key: cell for key, cell in root.items() if _scalar(cell) and by_name(key) not in ("item", "answer")}
    passed_over = [key for key in root if key != name and key not in facts]
    note = (f"read from {name!r}; not read: {', '.join(passed_over)}",) if passed_over else ()
    records = [{**facts, **record} if isinstance(record, dict) else record for record in lists[name]]
    return _generic(path, list(enumerate(records, 1)), note)


def _is_by_column(root: Mapping[str, Any]) -> bool:
    """Return whether an object holds records by column, as pandas writes them."""
    inner = [value for value in root.values() if isinstance(value, dict)]
    if not inner or len(inner) < len(root):
        return set(root) == {"columns", "index", "data"}
    shared = set.intersection(*map(set, inner))
    kinds = {all(isinstance(cell, (int, float, type(None))) for cell in value.values()) for value in inner}
    numbered = bool(shared) and shared == set(map(str, range(len(shared))))
    return numbered and (len(kinds) > 1 or any(by_name(name) in SINGLE for name in root))


def _is_by_rater(root: Mapping[str, Any]) -> bool:
    """Return whether an object holds objects of answers by id: none of their keys is the name of a field."""
    inner = [value for value in root.values() if isinstance(value, dict)]
    if not inner or len(inner) < len(root) or not all(_scalar(cell) for value in inner for cell in value.values()):
        return False
    shared = set.intersection(*map(set, inner))
    return not are_numbers(root) and not any(map(by_name, shared)) and role_of_keys(root) in ("rater", "")


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))


def _by_rater(path: Path, root: Mapping[str, Mapping[str, Any]]) -> CellTable:
    """Read answers by rater, then by an id that may name item, system and question."""
    keys = list(next(iter(root.values())))
    mark = next((mark for mark in _SPLITS if keys and all(mark in key for key in keys)), "")
    parts = {key: key.split(mark) for key in {key for value in root.values() for key in value}} if mark else {}
    sizes = {len(split) for split in parts.values()}
    whole_ids = len(sizes) != 1

    def rows() -> Iterator[tuple[int, dict[str, str]]]:
        number = 0
        for rater, answers in root.items():
            for name, cell in answers.items():
                number += 1
                cells = {"id": name} if whole_ids else _id_parts(parts[name])
                yield number, {key: rater, **cells, "answer": text_of(cell)}

    key = "key" if whole_ids and not role_of_keys(root) else "rater"  # ids of item and question leave nothing else
    roles = {"id": "item", **{name: name for name in ("rater", "answer", "question", "system", "item")}}
    return table_of(
        path, "JSON (answers by key and id)", rows(), roles=roles, keys={} if key == "rater" else {key: ObjectKeys()}
    )


def _id_parts(parts: Sequence[str]) -> dict[str, str]:
    """Return the parts of an id: the last is the question, the one before it the system."""
    if len(parts) == 2:
        return {"item": parts[0], "question": parts[1]}
    return {"item": "__".join(parts[:-2]), "system": parts[-2], "question": parts[-1]}


def _generic(path: Path, entries: Sequence[Entry], notes: tuple[str, ...] = ()) -> CellTable:
    """Read any records: nested objects give columns, lists of objects and of answers give rows."""
    shape = shape_of([entry for _, entry in entries if isinstance(entry, dict)])
    listed = ((line, shape.listed(entry)) for line, entry in entries)
    return _Records(path, [(line, {"objects": e} if isinstance(e, list) else e) for line, e in listed]).table(notes)


@dataclass(frozen=True)
class _Records:
    """Records of a file, with objects under keys as lists, and the rows that they give."""

    path: Path
    entries: Sequence[Entry]

    @cached_property
    def rows(self) -> list[tuple[int, _EntryRow]]:
        """The rows of all records."""
        stem = self.path.stem
        return [(line, row) for line, entry in self.entries for row in _expanded(entry, f"{stem} {line}")]

    @cached_property
    def roles(self) -> dict[str, str]:
        """The roles of lists with a value for each answer, by path; not of lists that are texts in most records."""
        records = [entry for _, entry in self.entries if isinstance(entry, dict)]
        by_path = dict[str, list[str | None]]()
        for path, role in itertools.chain.from_iterable(map(_listed_answers, records)):
            by_path.setdefault(path, []).append(role)
        return {path: next(filter(None, roles), "") for path, roles in by_path.items()
                if 2 * roles.count(None) <= len(roles)}  # fmt: skip

    @cached_property
    def columns(self) -> dict[str, str]:
        """The names of columns by path; the number of the entry is none if each entry is a row."""
        counts = Counter(name for _, row in self.rows for name in row.cells)
        refuse_wide(self.path, len(counts))
        names = _short_names(set(counts), set(self.roles))
        fields = {name.replace(MARK, "") for name in names.values() if MARK in name} & set(names.values())
        short = {path: names[path].replace(DOT, ".").replace(MARK, "outer " if fields else "") for path in counts}
        return {path: name for path, name in short.items() if path != ENTRY or self.is_nested}

    @property
    def is_nested(self) -> bool:
        """Whether an entry gives several rows."""
        return len(self.rows) > len(self.entries)

    def _around(self, path: str) -> ObjectKeys:
        """Return what stands around keys: what holds their objects, and what is within these."""
        holder, dot, _ = path.rpartition(".")
        inner = [inner for inner in self.columns if inner.startswith(f"{holder}{dot}")]
        return ObjectKeys(holder, frozenset(map(self.columns.__getitem__, inner)))

    def table(self, notes: tuple[str, ...]) -> CellTable:
        """Return the rows as a table."""
        columns, kind = self.columns, "JSON lines" if self.path.suffix.lower() != ".json" else "JSON"
        short = [(line, {columns[key]: cell for key, cell in row.cells.items() if key in columns})
                 for line, row in self.rows]  # fmt: skip
        copied = {path for _, row in self.rows for path in row.copied}
        copies = {columns[path]: np.array([path in row.copied for _, row in self.rows]) for path in copied}
        keys = {columns[path]: self._around(path) for path in columns if KEY in path.rpartition(".")[2]}
        return table_of(
            self.path, f"{kind} (nested)" if self.is_nested else kind, short, notes=notes, copies=copies, keys=keys,
            entry=columns.get(ENTRY, ""),
            roles={columns[path]: role for path, role in self.roles.items() if role and path in columns},
            listed=tuple(UnplacedRow(self.path.name, line, reason, name.replace(DOT, "."))
                         for line, entry in self.entries for name, reason in _unread(entry)),
        )  # fmt: skip


@dataclass(frozen=True)
class _EntryRow:
    """A row of an entry, and the columns in which it repeats what an earlier row of the entry says."""

    cells: dict[str, str]
    copied: frozenset[str] = frozenset()


def _expanded(entry: Any, number: str, prefix: str = "", depth: int = 0) -> list[_EntryRow]:
    """Return a record as rows: shared facts stand in each row, with the number of the list entry it comes from."""
    if not isinstance(entry, dict) or depth > _DEEPEST:
        return []
    lists = dict(_lists(entry, prefix))
    columns = {path: lists[path] for path in _parallel(lists)}
    base = {path: cell for path, cell in flat(entry, prefix).items() if path not in columns}
    rows = list[_EntryRow]()
    for path, value in lists.items():
        if any(isinstance(element, dict) for element in value):
            for position, element in enumerate(value, 1):
                inner = _expanded(element, f"{number}.{position}", f"{path}.", depth + 1)
                rows += (replace(row, cells={ENTRY: number} | row.cells) for row in inner)
    for position in range(max(map(len, columns.values()), default=0)):
        answers = {path: text_of(value[position]) for path, value in columns.items() if position < len(value)}
        rows.append(_EntryRow({ENTRY: number} | answers))
    rows = [
        _EntryRow({**base, **row.cells}, row.copied | (base.keys() if turn else set())) for turn, row in enumerate(rows)
    ]
    return rows or [_EntryRow(base)]


def _parallel(lists: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """Return the lists with a value for each answer, and their roles: numbers, votes, and what is listed beside these.

    If raters are listed, a list as long as theirs has a value of each of them, which is an answer if its name or its
    numbers show it, and other lists are the entry's own; so are labels without raters.
    """
    plain = {path: value for path, value in lists.items() if all(map(_scalar, value))}
    named = {path: singular(path) for path in plain}
    raters = {len(plain[path]) for path, role in named.items() if role == "rater"}
    answers = {
        path for path, value in plain.items() if (len(value) in raters or not raters) and named[path] in ("", "answer")
        and not _ABOUT.search(path)
        and (ANSWERS_OF.search(path) or all(map(_numeric, value)) or (named[path] == "answer" and raters))
    }  # fmt: skip
    each = {path for path, value in plain.items() if len(value) in raters and not named[path]} - answers
    sizes = {len(plain[path]) for path in answers}
    beside = {path for path, role in named.items() if role in _OF_ANSWERS and len(plain[path]) in sizes}
    roles = dict.fromkeys(answers, "answer") | {path: named[path] for path in beside} | dict.fromkeys(each, "")
    return {path: roles[path] for path in plain if path in roles}


def _numeric(value: Any) -> bool:
    return not isinstance(value, str) or bool(_NUMERAL.fullmatch(value.strip()))


def _unread(entry: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the paths of lists of which `_expanded` reads nothing, or not all, and the reasons."""
    lists = dict(_lists(entry, prefix)) if isinstance(entry, dict) else {}
    parallel = _parallel(lists)
    for path, value in lists.items():
        objects = [element for element in value if isinstance(element, dict)]
        if not all(map(_scalar, value)):
            yield from [(path, _UNREAD)] if len(objects) < len(value) or depth >= _DEEPEST else []
        elif path not in parallel and not all(isinstance(element, str) for element in value):
            yield path, _NO_ANSWERS
        for element in objects:
            yield from _unread(element, f"{path}.", depth + 1)


def _lists(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, list[Any]]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _lists(inner, f"{prefix}{str(key).replace('.', DOT)}.")
        elif isinstance(inner, list) and inner:
            yield f"{prefix}{str(key).replace('.', DOT)}", inner


def _short_names(paths: set[str], preferred: set[str]) -> dict[str, str]:
    """Shorten columns' paths to their last part, or else to the only part in which they differ."""
    by_last = defaultdict[str, list[str]](list)
    for path in sorted(paths):
        by_last[path.rpartition(".")[2]].append(path)
    names: dict[str, str] = {}
    for last, members in by_last.items():
        split = [path.split(".") for path in members]
        differing = [
            number for number, parts in enumerate(zip(*split, strict=False)) if len(set(parts)) == len(members)
        ]  # fmt: skip
        for path, parts in zip(members, split, strict=True):
            if len(members) == 1:
                inner = len(parts) > 1 and path in preferred and ANSWERS_OF.search(last)
                names[path] = parts[-2] if inner else last
            else:
                names[path] = parts[differing[0]] if len({len(p) for p in split}) == 1 and differing else path
    twice = {name for name, number in Counter(names.values()).items() if number > 1}
    return {path: path if name in twice and path not in preferred else name for path, name in names.items()}


def _listed_answers(entry: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield the paths of lists and their roles, if they have a value for each answer; None for a list of texts."""
    lists = dict(_lists(entry, prefix))
    parallel = _parallel(lists)
    yield from ((path, parallel.get(path)) for path, value in lists.items()
                if path in parallel or all(isinstance(element, str) for element in value))  # fmt: skip
    for path, value in lists.items():
        for element in value:
            if isinstance(element, dict):
                yield from _listed_answers(element, f"{path}.")
