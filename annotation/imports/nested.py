"""JSON exports of annotation tools as rows: one for each answer, or for each rater and item.

The keys show which tool wrote the file. Spans, boxes and relations, which answer no question, are listed.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from annotation.imports.columns import SINGLE, by_name
from annotation.imports.tables import AND_ALSO, ENTRY, CellTable, TableBuilder, UnplacedRow, refuse_wide, text_of
from plumbline.errors import DataError
from plumbline.reading import MalformedError, decoded, parse_json, read_bytes

Entry = tuple[int, Any]  # the line or number of a record, and its content
_ANSWERS = {"rater": "rater", "question": "question", "answer": "answer", "time": "time", "seconds": "seconds",
            "status": "status", "item": "item", "candidate text": "text"}  # fmt: skip
_DEEPEST = 6
_DOT = "\x1d"  # in a path, in place of a full stop within a key
_ANSWERS_OF = re.compile(
    r"(?i)individual|human|scores?$|ratings?$|votes?$|judge?ments?$|responses?$"
)  # names of lists of people's answers
_SPLITS = ("__", "||", "|", "::", "@@")


def read_json(path: Path) -> list[CellTable]:
    """Read the tables of a JSON or JSON lines file."""
    entries, whole = _entries(path)
    if isinstance(whole, dict):
        return [_of_mapping(path, whole)]
    first = next((entry for _, entry in entries if isinstance(entry, dict)), None)
    if first is None:
        raise DataError(f"{path}: contains no JSON objects to read as records; export it again")
    for form, keys, read in _FORMS:
        if any(all(key in first for key in names) for names in keys):
            return [_read_records(path, form, entries, read)]
    if _from_hub(first):
        return [_read_records(path, "Argilla records", entries, _argilla_columns)]
    return [_generic(path, entries)]


def _read_records(
    path: Path, form: str, entries: Sequence[Entry], read: Callable[[_Rows, int, Any], None]
) -> CellTable:
    """Return the answers of records as a table; records in another form than the tool's are listed."""
    rows = _Rows(path)
    for number, record in entries:
        before = len(rows.rows)
        try:
            read(rows, number, record)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            del rows.rows[before:]
            rows.list(number, f"is not a valid record of {form}")
    names = {name for _, cells in rows.rows for name in cells}
    roles = {name: role for name, role in _ANSWERS.items() if name in names}
    notes = tuple(f"{note}: {number}" for note, number in rows.notes.items())
    return _table(path, form, rows.rows, roles, tuple(rows.unplaced), notes, frozenset(rows.lower))


def _entries(path: Path) -> tuple[list[Entry], Any]:
    """Return the records of a file, and the whole if it is one object."""
    try:
        content = decoded(read_bytes(path))
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except MalformedError as error:
        raise DataError(f"{path}: {error}") from None
    start = content.lstrip()[:1]
    if start == "[" or (start == "{" and path.suffix.lower() == ".json"):
        try:
            whole = parse_json(content)
        except MalformedError as error:
            if start == "[":
                raise DataError(f"{path}: not valid JSON ({error}); export it again") from None
        else:
            if isinstance(whole, list):
                return list(enumerate(whole, 1)), None
            return [(1, whole)], whole
    entries = []
    for line, text in enumerate(content.splitlines(), 1):
        if not text.strip():
            continue
        try:
            entries.append((line, parse_json(text)))
        except MalformedError as error:
            raise DataError(f"{path}, line {line}: not valid JSON ({error}); export it again") from None
    if not entries:
        raise DataError(f"{path} is empty; export it again")
    return entries, None


class _Rows:
    """Collects rows, and records that cannot become rows."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows, self.unplaced = path, list[tuple[int, dict[str, str]]](), list[UnplacedRow]()
        self.notes, self.lower = Counter[str](), set[str]()

    def add(self, line: int, about: Mapping[str, Any], **answers: Any) -> None:
        self.rows.append((line, {name: text_of(cell) for name, cell in {**about, **answers}.items()}))

    def list(self, line: int, reason: str, column: str = "") -> None:
        self.unplaced.append(UnplacedRow(self.path.name, line, reason, column))


def _table(  # noqa: PLR0913 (facts that a form gives about a file)
    path: Path,
    form: str,
    rows: Iterable[tuple[int, Mapping[str, str]]],
    roles: Mapping[str, str],
    unplaced: tuple[UnplacedRow, ...] = (),
    notes: tuple[str, ...] = (),
    lower: frozenset[str] = frozenset(),
) -> CellTable:
    builder = TableBuilder()
    for line, row in rows:
        builder.add({name.replace(_DOT, "."): cell for name, cell in row.items()}, line)
    cells, lines = builder.frame()
    if not len(lines):
        raise DataError(f"{path}: contains no answers ({form}{', ' + unplaced[0].reason if unplaced else ''})")
    return CellTable(path, form, cells, lines, unplaced, roles, notes, lower)


def _flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Return the scalars of nested objects by path, and lists of texts as one text."""
    cells: dict[str, str] = {}
    for key, inner in value.items() if isinstance(value, dict) else ():
        name = f"{prefix}{str(key).replace('.', _DOT)}"
        if isinstance(inner, dict):
            cells |= _flat(inner, f"{name}.")
        elif isinstance(inner, list):
            if inner and all(isinstance(entry, str) for entry in inner) and not _ANSWERS_OF.search(str(key)):
                cells[name] = AND_ALSO.join(inner)
        else:
            cells[name] = text_of(inner)
    return cells


def _label_studio(rows: _Rows, number: int, task: dict[str, Any]) -> None:
    """Read a task of Label Studio's JSON with its annotations; cancelled ones and drafts are not submitted."""
    data = {f"data.{name}": cell for name, cell in _flat(task.get("data", {})).items()}
    base = {**data, "item": task.get("id", number)}
    if task.get("predictions"):
        rows.notes["predictions of models are not ratings; tasks that have them"] += 1
    annotations = task.get("annotations") or task.get("completions") or []
    for annotation in annotations:
        status = "cancelled" if annotation.get("was_cancelled") else "submitted"
        _one_annotation(rows, number, task, base, annotation, status)
    drafts = [draft for draft in task.get("drafts", ()) if isinstance(draft, dict)]
    for draft in drafts:
        _one_annotation(rows, number, task, base, draft, "draft")
    if not annotations and not drafts:
        rows.list(number, "nobody annotated the task")


def _one_annotation(
    rows: _Rows, number: int, task: Any, base: Mapping[str, Any], annotation: Mapping[str, Any], status: str
) -> None:
    by = annotation.get("completed_by", annotation.get("user", ""))
    rater = by.get("email") or by.get("id", "") if isinstance(by, dict) else by
    about = {**base, "rater": rater, "status": status, "time": annotation.get("created_at", ""),
             "seconds": annotation.get("lead_time", "")}  # fmt: skip
    results = annotation.get("result", [])
    if annotation.get("ground_truth"):
        rows.list(number, "an annotation is marked as the right answer, so it is not a rating")
        return
    if not results:
        rows.list(number, f"a {status} annotation has no answers")
    for result in results:
        name, kind = str(result.get("from_name", result.get("type", ""))), str(result.get("type", ""))
        value = result.get("value", {})
        if "ranker" in value:
            rows.lower.add(name)
            _ranked_rows(rows, number, task, about, name, value["ranker"])
        elif (answer := _label_studio_answer(value)) is not None:
            rows.add(number, about, question=name, answer=answer)
        else:
            rows.list(
                number,
                f"a result of type {kind or 'unknown'} is not an answer (it may be a span, a box or a relation)",
                name,
            )


def _label_studio_answer(value: Mapping[str, Any]) -> str | None:
    """Return a result as the text of an answer; None for a result that is no answer, such as a span."""
    if not isinstance(value, dict) or {"start", "x", "ranges"} & set(value):
        return None
    if "choices" in value:
        return AND_ALSO.join(map(str, value["choices"]))
    if "taxonomy" in value:
        return AND_ALSO.join(" / ".join(map(str, path)) for path in value["taxonomy"])
    for name in ("rating", "number", "selected", "datetime"):
        if name in value:
            return text_of(value[name])
    if "text" in value:
        text = value["text"]
        return "\n".join(map(str, text)) if isinstance(text, list) else str(text)
    return None


def _ranked_rows(rows: _Rows, number: int, task: Any, about: Mapping[str, Any], name: str, ranker: Any) -> None:
    """Add an order of candidates: each is an item, and its rank the answer."""
    candidates = {
        str(entry["id"]): next(
            (entry[key] for key in ("body", "text", "html", "title") if entry.get(key)), str(entry["id"])
        )
        for listed in task.get("data", {}).values()
        if isinstance(listed, list)
        for entry in listed
        if isinstance(entry, dict) and "id" in entry
    }
    buckets = ranker if isinstance(ranker, dict) else {"_order": ranker}
    if len([key for key in buckets if key != "_"]) == 1:
        order = next(ids for key, ids in buckets.items() if key != "_")
        buckets = {str(rank): [candidate] for rank, candidate in enumerate(order, 1)}
    for bucket, ids in buckets.items():
        for candidate in ids:
            text = candidates.get(str(candidate), str(candidate))
            if not str(bucket).isdecimal():
                rows.list(number, "a candidate is not ranked", name)
                continue
            whole = {**about, "candidate": candidate, "candidate text": text, "item": f"{about['item']} | {candidate}"}
            rows.add(number, whole, question=name, answer=bucket)


def _argilla(rows: _Rows, number: int, record: dict[str, Any]) -> None:
    """Read a record of Argilla, version 1 or 2."""
    fields = _flat(record.get("fields", {}))
    base = {**fields, "item": record.get("external_id") or record.get("id") or number}
    if record.get("suggestions"):
        rows.notes["suggestions are not ratings; records that have them"] += 1
    responses = record.get("responses") or []
    if not responses:
        rows.list(number, "nobody answered the record")
    if isinstance(responses, dict):  # version 2: by question
        for question, answers in responses.items():
            for answer in answers:
                _argilla_answer(rows, number, base, answer, question, answer.get("value"))
        return
    for response in responses:
        values = response.get("values") or {}
        if not values:
            rows.list(number, f"a {response.get('status', 'submitted')} response has no answers")
        for question, value in values.items():
            plain = value.get("value") if isinstance(value, dict) else value
            _argilla_answer(rows, number, base, response, question, plain)


def _argilla_answer(
    rows: _Rows, number: int, base: Mapping[str, Any], response: Mapping[str, Any], question: str, value: Any
) -> None:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        if "rank" not in value[0]:
            rows.list(number, "spans are not imported as answers", question)
            return
        places = defaultdict[int, list[str]](list)
        for entry in value:
            places[int(entry.get("rank") or 0)].append(str(entry["value"]))
        value = " > ".join(" = ".join(sorted(places[rank])) for rank in sorted(places))
    answer = AND_ALSO.join(map(str, value)) if isinstance(value, list) else value
    about = {"rater": response.get("user_id", ""), "status": response.get("status") or "submitted",
             "time": response.get("updated_at") or response.get("inserted_at") or ""}  # fmt: skip
    rows.add(number, {**base, **about}, question=question, answer=answer)


def _doccano(rows: _Rows, number: int, record: dict[str, Any]) -> None:
    """Read a line of doccano: labels of a text; a file is one annotator's, unless its annotations name users."""
    by_user = defaultdict[str, list[str]](list)
    annotations = record.get("annotations")
    spans = [a for a in annotations or () if "start_offset" in a]
    for annotation in annotations or ():
        if "start_offset" not in annotation:
            label = annotation.get("label", annotation.get("text"))
            by_user[text_of(annotation.get("user", ""))].append(f"label {label}" if isinstance(label, int) else label)
    for name in ("label", "labels", "cats"):
        labels = record.get(name) or []
        labels = list(labels) if isinstance(labels, (list, dict)) else [labels]
        spans += [label for label in labels if isinstance(label, (list, dict))]
        by_user[rows.path.stem] += [text_of(label) for label in labels if not isinstance(label, (list, dict))]
    text = record.get("text", record.get("data", ""))
    about = {key: cell for key, cell in record.items() if key not in _DOCCANO and key not in ("text", "data", "id")}
    for key, cell in about.items():
        if isinstance(cell, list) and any(isinstance(entry, (list, dict)) for entry in cell):
            rows.list(number, "a list beside the labels is not read", key)
    for user, labels in by_user.items():
        if labels:
            about = {**_flat(about), "text": text, "item": record.get("id", number), "rater": user}
            rows.add(number, about, question="label", answer=AND_ALSO.join(labels))
    if spans:
        rows.list(number, f"spans are not imported as answers (the text has {len(spans)})", "label")
    elif not any(by_user.values()):
        rows.list(number, "the text has no label")


def _prodigy(rows: _Rows, number: int, record: dict[str, Any]) -> None:
    """Read a line of Prodigy's: options chosen, or a label accepted or rejected; ignored ones do not count."""
    options = {str(option["id"]): option.get("text", option["id"]) for option in record.get("options") or ()}
    about = {
        **_flat(record.get("meta") or {}),
        **_flat({key: cell for key, cell in record.items() if key not in _PRODIGY and key[:1] != "_"}),
        "text": record.get("text", ""),
        "item": record.get("_input_hash", number),
    }
    about |= {"rater": record.get("_annotator_id") or record.get("_session_id") or rows.path.stem}
    about |= {"time": record.get("_timestamp", ""), "status": "discarded" if record["answer"] == "ignore" else ""}
    if record.get("spans"):
        rows.list(number, "spans are not imported as answers")
    if options:
        chosen = [text_of(options.get(str(name), name)) for name in record.get("accept") or ()]
        rows.add(number, about, question="choice", answer=AND_ALSO.join(chosen) or "none of them")
    elif record["answer"] == "ignore":
        rows.list(number, "the annotator ignored the text")
    elif "label" in record or not record.get("spans"):
        rows.add(number, about, question=record.get("label", "answer"), answer=record["answer"])


def _argilla_columns(rows: _Rows, number: int, record: dict[str, Any]) -> None:
    """Read a row of an Argilla dataset as on the Hub: lists of answers, users and statuses by question."""
    _argilla(rows, number, _argilla_record(record))


def _argilla_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the Hub as a record of version 2. Raises ValueError if its lists differ in length."""
    responses, fields = dict[str, list[dict[str, Any]]](), dict[str, Any]()
    for name, cell in record.items():
        keys = cell[0] if isinstance(cell, list) and cell and isinstance(cell[0], dict) else cell
        version_1 = isinstance(keys, dict) and {"user_id", "value"} <= set(keys)
        if name.endswith(".responses"):  # version 2
            lists: list[Any] = [cell or [], record.get(f"{name}.users"), record.get(f"{name}.status")]
        elif version_1 and isinstance(cell, dict):
            lists = [cell["value"] or [], cell["user_id"], cell.get("status")]
        elif version_1:
            responses[name] = cell
            continue
        else:
            if not re.search(
                r"[.-](suggestion|responses)\b|^(metadata|_server_id|status|id|external_id|vectors)$", name
            ):
                fields[name] = cell
            continue
        answers = zip(*(column or [None] * len(lists[0]) for column in lists), strict=True)
        responses[name.removesuffix(".responses")] = [
            dict(zip(("value", "user_id", "status"), answer, strict=True)) for answer in answers
        ]
    return {"id": record.get("id") or record.get("external_id"), "fields": fields, "responses": responses}


def _from_hub(record: Mapping[str, Any]) -> bool:
    try:
        return bool(_argilla_record(record)["responses"])
    except (TypeError, ValueError):
        return False


def _label_studio_short(rows: _Rows, number: int, record: dict[str, Any]) -> None:
    """Read a record of Label Studio's JSON-MIN: an annotation, with the answers among the task's fields."""
    cells = {name: short_answer(value) for name, value in record.items() if name not in SHORT}
    about = {"item": record.get("id", number), "rater": record.get("annotator", "")}
    about |= {"time": record.get("updated_at") or record.get("created_at", "")}
    about |= {"seconds": record.get("lead_time", "")}
    rows.add(number, {name: cell for name, cell in cells.items() if cell is not None}, **about)
    for name in (name for name, cell in cells.items() if cell is None):
        rows.list(number, "spans and boxes are not imported as answers", name)


def short_answer(value: Any) -> str | None:
    """Return an answer of JSON-MIN or CSV as text; None for a value that is no answer."""
    entries = value if isinstance(value, list) else [value]
    if not any(isinstance(entry, dict) for entry in entries):
        return AND_ALSO.join(map(text_of, entries))
    answers = [_label_studio_answer(entry) for entry in entries if isinstance(entry, dict)]
    return None if None in answers else AND_ALSO.join(answer for answer in answers if answer)


def _potato(rows: _Rows, number: int, record: dict[str, Any]) -> None:
    """Read an annotated instance of Potato; the user is the folder's name if the record has none."""
    user = record.get("user_id") or record.get("user") or rows.path.parent.name
    base = {"text": record.get("displayed_text", record.get("text", "")), "item": record.get("id", number)}
    if record.get("span_annotations"):
        rows.list(number, "spans are not imported as answers")
    answers = record.get("label_annotations") or record.get("annotations") or {}
    if not answers:
        rows.list(number, "the record has no answers")
    for question, value in answers.items():
        labels = [str(name) for name, on in value.items() if on] if isinstance(value, dict) else [text_of(value)]
        if isinstance(value, dict) and len(labels) == 1 and re.fullmatch(r"text_box|bad_text|scale_\d+", labels[0]):
            labels = [text_of(value[labels[0]])]
        rows.add(number, base, rater=user, question=question, answer=AND_ALSO.join(labels))


SHORT = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time")
_DOCCANO = ("label", "labels", "cats", "annotations", "annotation_approver", "Comments")
_PRODIGY = ("text", "meta", "options", "accept", "answer", "label", "spans", "tokens", "config")
_FORMS = (
    ("Label Studio", (("annotations", "data"), ("completions", "data")), _label_studio),
    ("Label Studio (JSON-MIN)", (("annotation_id", "annotator"),), _label_studio_short),
    ("Argilla records", (("fields", "responses"),), _argilla),
    ("Prodigy", (("_input_hash", "answer"), ("_task_hash", "answer")), _prodigy),
    ("Potato", (("label_annotations",),), _potato),
    ("doccano", (("text", "label"), ("text", "labels"), ("text", "cats"), ("text", "annotations")), _doccano),
)


def _of_mapping(path: Path, whole: dict[str, Any]) -> CellTable:
    """Read a JSON object: answers by rater and item, or a list of records with shared facts."""
    if _lacks_a_list(whole):
        raise DataError(
            f'{path}: its records are not in a list; write them as [{{"id": ...}}, ...], in pandas with'
            " to_json(orient='records')"
        )
    inner = [value for value in whole.values() if isinstance(value, dict)]
    if inner and len(inner) == len(whole) and all(_scalar(cell) for value in inner for cell in value.values()):
        return _by_rater(path, whole)
    lists = {
        name: value for name, value in whole.items() if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    if not lists:
        return _generic(path, [(1, whole)])
    name = max(lists, key=lambda key: len(json.dumps(lists[key])))
    passed_over = [key for key in whole if key != name]
    note = (f"read from {name!r}; not read: {', '.join(passed_over)}",) if passed_over else ()
    return _generic(path, list(enumerate(lists[name], 1)), note)


def _lacks_a_list(whole: Mapping[str, Any]) -> bool:
    """Return whether an object holds records by id, or by column as pandas writes them."""
    inner = [value for value in whole.values() if isinstance(value, dict)]
    if not inner or len(inner) < len(whole):
        return set(whole) == {"columns", "index", "data"}
    shared = set.intersection(*map(set, inner))
    if not all(_scalar(cell) for value in inner for cell in value.values()):
        return len(inner) > 1 and bool(shared)
    if any(by_name(key) in SINGLE for key in shared):
        return True
    kinds = {all(isinstance(cell, (int, float, type(None))) for cell in value.values()) for value in inner}
    numbered = shared == set(map(str, range(len(shared))))
    return numbered and (len(kinds) > 1 or any(by_name(name) in SINGLE for name in whole))


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _by_rater(path: Path, whole: Mapping[str, Mapping[str, Any]]) -> CellTable:
    """Read answers by rater, then by an id that may name item, system and question."""
    keys = list(next(iter(whole.values())))
    mark = next((mark for mark in _SPLITS if keys and all(mark in key for key in keys)), "")
    parts = {key: key.split(mark) for key in {key for value in whole.values() for key in value}} if mark else {}
    sizes = {len(split) for split in parts.values()}
    whole_ids = len(sizes) != 1

    def rows() -> Iterator[tuple[int, dict[str, str]]]:
        number = 0
        for rater, answers in whole.items():
            for key, cell in answers.items():
                number += 1
                cells = {"id": key} if whole_ids else _id_parts(parts[key])
                yield number, {"rater": rater, **cells, "answer": text_of(cell)}

    roles = {"id": "item", **{name: name for name in ("rater", "answer", "question", "system", "item")}}
    return _table(path, "JSON (answers by rater and id)", rows(), roles)


def _id_parts(parts: Sequence[str]) -> dict[str, str]:
    """Return the parts of an id: the last is the question, the one before it the system."""
    if len(parts) == 2:
        return {"item": parts[0], "question": parts[1]}
    return {"item": "__".join(parts[:-2]), "system": parts[-2], "question": parts[-1]}


def _generic(path: Path, entries: Sequence[Entry], notes: tuple[str, ...] = ()) -> CellTable:
    """Read any records: nested objects give columns, lists of objects and of numbers give rows."""
    rows = [(line, row) for line, entry in entries for row in _expanded(entry, f"{path.stem} {line}")]
    counts = Counter(name for _, row in rows for name in row)
    refuse_wide(path, len(counts))
    listed = {path for _, entry in entries if isinstance(entry, dict) for path in _listed_numbers(entry)}
    names = _short_names(set(counts), listed)
    flat = len(rows) == len(entries)
    form = ("JSON lines" if path.suffix.lower() != ".json" else "JSON") + ("" if flat else " (nested)")
    unused = {ENTRY} if flat else set()
    short = ((line, {names[key]: cell for key, cell in row.items() if key not in unused}) for line, row in rows)
    roles = {names[path].replace(_DOT, "."): "answer" for path in listed if path in names}
    return _table(path, form, short, roles, (), notes)


def _expanded(entry: Any, number: str, prefix: str = "", depth: int = 0) -> list[dict[str, str]]:
    """Return a record as rows: shared facts stand in each row, with the number of the list entry it comes from."""
    if not isinstance(entry, dict) or depth > _DEEPEST:
        return []
    base, objects, numbers = _flat(entry, prefix), list[tuple[str, list[Any]]](), dict[str, list[Any]]()
    for path, value in _lists(entry, prefix):
        if any(isinstance(element, dict) for element in value):
            objects.append((path, value))
        elif all(isinstance(element, (int, float)) or element is None for element in value) or _ANSWERS_OF.search(path):
            numbers[path] = value
    rows = [
        row if ENTRY in row else {ENTRY: number, **row}
        for path, value in objects
        for position, element in enumerate(value, 1)
        for row in _expanded(element, f"{number}.{position}", f"{path}.", depth + 1)
    ]
    if numbers:
        longest = max(map(len, numbers.values()))
        rows += [
            {
                ENTRY: number,
                **{path: text_of(value[position]) for path, value in numbers.items() if position < len(value)},
            }
            for position in range(longest)
        ]
    return [{**base, **row} for row in rows] or [base]


def _lists(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, list[Any]]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _lists(inner, f"{prefix}{str(key).replace('.', _DOT)}.")
        elif isinstance(inner, list) and inner:
            yield f"{prefix}{str(key).replace('.', _DOT)}", inner


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
                inner = len(parts) > 1 and path in preferred and _ANSWERS_OF.search(last)
                names[path] = parts[-2] if inner else last
            else:
                names[path] = parts[differing[0]] if len({len(p) for p in split}) == 1 and differing else path
    twice = {name for name, number in Counter(names.values()).items() if number > 1}
    return {path: path if name in twice and path not in preferred else name for path, name in names.items()}


def _listed_numbers(entry: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the paths of lists of numbers, which are more likely answers than facts about items."""
    for path, value in _lists(entry, prefix):
        if isinstance(value[0], dict):
            yield from _listed_numbers(value[0], f"{path}.")
        elif not isinstance(value[0], str) or _ANSWERS_OF.search(path):
            yield path
