"""JSON exports of annotation tools: a class for each, which gives a row for each answer of a rater.

The keys of records show which tool wrote a file. Spans, boxes and relations, which answer no question, are listed.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from annotation.imports.columns import by_name, role_of_keys
from annotation.imports.tables import AND_ALSO, CellTable, UnplacedRow, coded_rows
from plumbline.errors import DataError
from plumbline.spreadsheets import text_of
from plumbline.words import count_words

Entry = tuple[int, Any]  # the line or number of a record, and its content
DOT = "\x1d"  # in a path, in place of a full stop within a key
ANSWERS_OF = re.compile(
    r"(?i)individual|human|scores?$|ratings?$|votes?$|judge?ments?$|responses?$"
)  # names of lists of people's answers
_ROLES = {"rater": "rater", "question": "question", "answer": "answer", "time": "time", "seconds": "seconds",
          "status": "status", "item": "item", "candidate text": "text"}  # fmt: skip
_TEXT = 4  # words of what is a text rather than an answer
NO_ANSWERS = "spans and boxes are not imported as answers"
_SPANS = "spans are not imported as answers"
_CANDIDATE = ("body", "text", "html", "title")  # what a candidate of a ranking shows
_UNREAD = "a list is not read here"


def flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Return the scalars of nested objects by path, and lists of texts as one text."""
    cells: dict[str, str] = {}
    for key, inner in value.items() if isinstance(value, dict) else ():
        name = f"{prefix}{str(key).replace('.', DOT)}"
        if isinstance(inner, dict):
            cells |= flat(inner, f"{name}.")
        elif isinstance(inner, list):
            if inner and _is_texts(inner) and not ANSWERS_OF.search(str(key)):
                cells[name] = AND_ALSO.join(inner)
        else:
            cells[name] = text_of(inner)
    return cells


def unread_lists(value: Any, prefix: str = "") -> Iterator[str]:
    """Yield the paths of lists that `flat` leaves out."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, dict):
            yield from unread_lists(inner, f"{prefix}{key}.")
        elif isinstance(inner, list) and inner and (ANSWERS_OF.search(str(key)) or not _is_texts(inner)):
            yield f"{prefix}{key}"


def _is_texts(value: Sequence[Any]) -> bool:
    return all(isinstance(entry, str) for entry in value)


def singular(path: str) -> str:
    """Return the role that the name of a list shows: `annotator_ids` are raters."""
    return by_name(path) or by_name(re.sub("s$", "", path))


def joined(labels: Any) -> str:
    """Return a list of labels as one cell; anything else as its text."""
    return AND_ALSO.join(map(text_of, labels)) if isinstance(labels, list) else text_of(labels)


def table_of(path: Path, form: str, rows: Iterable[tuple[int, Mapping[str, str]]], **facts: Any) -> CellTable:
    """Return rows as a table; `facts` are further fields of `CellTable`. Raises DataError without any row."""
    named = [(line, {name.replace(DOT, "."): cell for name, cell in row.items()}) for line, row in rows]
    header = list(dict.fromkeys(name for _, row in named for name in row))
    cells, lines = coded_rows(header, ((line, [row.get(name, "") for name in header]) for line, row in named))
    if not len(lines):
        unplaced = facts.get("listed", ())
        raise DataError(f"{path}: contains no answers ({form}{', ' + unplaced[0].reason if unplaced else ''})")
    return CellTable(path, form, cells, lines, **facts)


class ToolExport(ABC):
    """One file of a tool; `read` turns each of its records into rows."""

    title: ClassVar[str]  #: the tool's name
    keys: ClassVar[tuple[frozenset[str], ...]] = ()  #: a record has one of these sets of keys

    def __init__(self, path: Path) -> None:
        self.path, self.number = path, 0  #: number or line of the record being read
        self._rows, self._unplaced = list[tuple[int, dict[str, str]]](), list[UnplacedRow]()
        self._notes, self._lower = Counter[str](), set[str]()

    @classmethod
    def wrote(cls, record: Mapping[str, Any]) -> bool:
        """Return whether a record is of this tool."""
        return any(keys <= record.keys() for keys in cls.keys)

    @classmethod
    def cannot_write(cls, record: Mapping[str, Any]) -> bool:
        """Return whether a record, which may lack keys, shows that another tool wrote the file."""
        return False

    @abstractmethod
    def read(self, record: dict[str, Any]) -> None:
        """Add a record's answers, and list what is none."""

    def table(self, entries: Sequence[Entry]) -> CellTable:
        """Return the answers of all records; those in another form than the tool's are listed."""
        for self.number, record in entries:
            n_rows = len(self._rows)
            try:
                self.read(record)
            except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                del self._rows[n_rows:]
                self.list(f"is not a valid record of {self.title}")
        names = {name for _, cells in self._rows for name in cells}
        return table_of(
            self.path, self.title, self._rows, listed=tuple(self._unplaced), lower=frozenset(self._lower),
            roles={name: role for name, role in _ROLES.items() if name in names},
            notes=tuple(f"{note}: {number}" for note, number in self._notes.items()),
        )  # fmt: skip

    def add(self, about: Mapping[str, Any], **answers: Any) -> None:
        """Add a row."""
        self._rows.append((self.number, {name: text_of(cell) for name, cell in {**about, **answers}.items()}))

    def list(self, reason: str, column: str = "") -> None:
        """Note that the record, or a part of it, gives no row."""
        self._unplaced.append(UnplacedRow(self.path.name, self.number, reason, column))


class LabelStudio(ToolExport):
    """Label Studio's JSON: a task with its annotations; cancelled ones and drafts are not submitted."""

    title = "Label Studio"
    keys = (frozenset({"annotations", "data"}), frozenset({"completions", "data"}))

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._candidates = set[str]()  #: lists of the task's data whose entries were ranked

    def read(self, record: dict[str, Any]) -> None:
        data = {f"data.{name}": cell for name, cell in flat(record.get("data", {})).items()}
        base = {**data, "item": record.get("id", self.number)}
        if record.get("predictions"):
            self._notes["predictions of models are not ratings; tasks that have them"] += 1
        annotations = record.get("annotations") or record.get("completions") or []
        self._candidates.clear()
        drafts = [draft for draft in record.get("drafts", ()) if isinstance(draft, dict)]
        for annotation in annotations:
            status = "cancelled" if annotation.get("was_cancelled") else "submitted"
            self._annotation(record, base, annotation, status)
        for draft in drafts:
            self._annotation(record, base, draft, "draft")
        for name in unread_lists({"data": record.get("data")}):
            if name.removeprefix("data.") not in self._candidates:
                self.list(_UNREAD, name)
        if not annotations and not drafts:
            self.list("nobody annotated the task")

    def _annotation(self, task: Any, base: Mapping[str, Any], annotation: Mapping[str, Any], status: str) -> None:
        by = annotation.get("completed_by", annotation.get("user", ""))
        rater = by.get("email") or by.get("id", "") if isinstance(by, dict) else by
        about = {**base, "rater": rater, "status": status, "time": annotation.get("created_at", ""),
                 "seconds": annotation.get("lead_time", "")}  # fmt: skip
        results = annotation.get("result", [])
        if annotation.get("ground_truth"):
            self.list("an annotation is marked as the right answer, so it is not a rating")
            return
        if not results:
            self.list(f"a {status} annotation has no answers")
        for result in results:
            name, kind = str(result.get("from_name", result.get("type", ""))), str(result.get("type", ""))
            value = result.get("value", {})
            if "ranker" in value:
                self._lower.add(name)
                self._ranks(task, about, name, value["ranker"])
            elif (answer := answer_of(value)) is not None:
                self.add(about, question=name, answer=answer)
            else:
                fault = f"a result of type {kind or 'unknown'} is not an answer"
                self.list(f"{fault} (it may be a span, a box or a relation)", name)

    def _ranks(self, task: Any, about: Mapping[str, Any], name: str, ranker: Any) -> None:
        """Add an order of candidates: each is an item, and its rank the answer."""
        candidates = self._ranked_in(task.get("data", {}))
        buckets = ranker if isinstance(ranker, dict) else {"_order": ranker}
        if len([key for key in buckets if key != "_"]) == 1:
            order = next(ids for key, ids in buckets.items() if key != "_")
            buckets = {str(rank): [candidate] for rank, candidate in enumerate(order, 1)}
        for bucket, ids in buckets.items():
            for candidate in ids:
                if not str(bucket).isdecimal():
                    self.list("a candidate is not ranked", name)
                    continue
                text, item = candidates.get(str(candidate), str(candidate)), f"{about['item']} | {candidate}"
                ranked = {**about, "candidate": candidate, "candidate text": text, "item": item}
                self.add(ranked, question=name, answer=bucket)

    def _ranked_in(self, data: Mapping[str, Any]) -> dict[str, str]:
        """Return the texts of candidates by id, from the lists of a task's data."""
        texts = dict[str, str]()
        for name, listed in data.items():
            entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
            ids = [str(entry["id"]) for entry in entries if "id" in entry]
            if ids and len(ids) == len(listed):
                self._candidates.add(name)
            named = (next(filter(None, map(entry.get, _CANDIDATE)), entry["id"]) for entry in entries if "id" in entry)
            texts |= dict(zip(ids, map(str, named), strict=True))
        return texts


def answer_of(value: Any) -> str | None:
    """Return a result of Label Studio as the text of an answer; None for one that is no answer, such as a span."""
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


SHORT = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time")


class LabelStudioShort(ToolExport):
    """Label Studio's JSON-MIN: an annotation a record, with the answers among the task's fields."""

    title = "Label Studio (JSON-MIN)"
    keys = (frozenset({"annotation_id", "annotator"}),)

    def read(self, record: dict[str, Any]) -> None:
        cells = {name: short_answer(value) for name, value in record.items() if name not in SHORT}
        about = {"item": record.get("id", self.number), "rater": record.get("annotator", "")}
        about |= {"time": record.get("updated_at") or record.get("created_at", "")}
        about |= {"seconds": record.get("lead_time", "")}
        self.add({name: cell for name, cell in cells.items() if cell is not None}, **about)
        for name in (name for name, cell in cells.items() if cell is None):
            self.list(NO_ANSWERS, name)


def short_answer(value: Any) -> str | None:
    """Return an answer of JSON-MIN or CSV as text; None for a value that is no answer."""
    entries = value if isinstance(value, list) else [value]
    if not any(isinstance(entry, dict) for entry in entries):
        return joined(entries)
    answers = [answer_of(entry) for entry in entries if isinstance(entry, dict)]
    return None if None in answers else AND_ALSO.join(answer for answer in answers if answer)


class ArgillaRecords(ToolExport):
    """Argilla's records, of version 1 or 2."""

    title = "Argilla records"
    keys = (frozenset({"fields", "responses"}),)

    def read(self, record: dict[str, Any]) -> None:
        ids = (record.get("external_id"), record.get("id"), self.number)  # an id may be 0
        base = {**flat(record.get("fields", {})), "item": next(name for name in ids if name not in (None, ""))}
        for path in unread_lists(record.get("fields")):
            self.list(_UNREAD, path)
        if record.get("suggestions"):
            self._notes["suggestions are not ratings; records that have them"] += 1
        responses = record.get("responses") or []
        if not responses:
            self.list("nobody answered the record")
        if isinstance(responses, dict):  # version 2: by question
            for question, answers in responses.items():
                for answer in answers:
                    self._answer(base, answer, question, answer.get("value"))
            return
        for response in responses:
            values = response.get("values") or {}
            if not values:
                self.list(f"a {response.get('status', 'submitted')} response has no answers")
            for question, value in values.items():
                plain = value.get("value") if isinstance(value, dict) else value
                self._answer(base, response, question, plain)

    def _answer(self, base: Mapping[str, Any], response: Mapping[str, Any], question: str, value: Any) -> None:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            if "rank" not in value[0]:
                self.list(_SPANS, question)
                return
            places = defaultdict[int, list[str]](list)
            for entry in value:
                places[int(entry.get("rank") or 0)].append(str(entry["value"]))
            value = " > ".join(" = ".join(sorted(places[rank])) for rank in sorted(places))
        answer = AND_ALSO.join(map(str, value)) if isinstance(value, list) else value
        about = {"rater": response.get("user_id", ""), "status": response.get("status") or "submitted",
                 "time": response.get("updated_at") or response.get("inserted_at") or ""}  # fmt: skip
        self.add({**base, **about}, question=question, answer=answer)


class ArgillaOnHub(ArgillaRecords):
    """Rows of an Argilla dataset as on the Hub: lists of answers, users and statuses by question."""

    @classmethod
    def wrote(cls, record: Mapping[str, Any]) -> bool:
        try:
            return bool(_argilla_record(record)["responses"])
        except (TypeError, ValueError):
            return False

    def read(self, record: dict[str, Any]) -> None:
        super().read(_argilla_record(record))


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


class Prodigy(ToolExport):
    """Prodigy's lines: options chosen, what was entered in a block, or a label accepted or rejected.

    Prodigy's own button is an answer only where its page asks nothing else; ignored texts do not count.
    """

    title = "Prodigy"
    keys = (frozenset({"_input_hash", "answer"}), frozenset({"_task_hash", "answer"}))
    _own = ("text", "meta", "options", "accept", "answer", "label", "spans", "tokens", "relations", "config")
    _models = frozenset({"score", "priority"})  # what a model said, where texts are chosen by it
    _unnamed = re.compile(r"(?:.*-)?\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")  # a session's id: when it began

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._entered, self._buttons, self._unsure = set[str](), set[str](), False

    def read(self, record: dict[str, Any]) -> None:
        cells, options = self._cells(record), _options(record)
        entered = self._entered_in(record, cells)
        unsure = record.get("_view_id") == "blocks" and "label" not in record and bool(cells)
        self._entered |= entered | ({"choice"} if options else set())
        self._unsure |= unsure
        rejected, ignored = record["answer"] == "reject", record["answer"] == "ignore"
        if not options and not any(cells.get(name) for name in entered):
            if ignored:
                self.list("the annotator ignored the text")
            if ignored or ("label" not in record and record.get("spans")):
                return
        if rejected and (options or entered or unsure):
            self._notes["texts that were answered, and rejected with Prodigy's button; their answers count"] += 1
        button = {str(record.get("label", "answer")): record["answer"]}
        self._buttons |= button.keys()
        self.add({**self._about(record, cells), **_choice(record, options), "status": "discarded" * ignored}, **button)

    def _about(self, record: Mapping[str, Any], cells: Mapping[str, str]) -> dict[str, Any]:
        """Return what a record says of its text, of the rater and of the time."""
        text = {"text": record["text"]} if "text" in record else {}
        item, time = record.get("_input_hash", self.number), record.get("_timestamp", "")
        meta = flat(record.get("meta") or {}, "meta.")
        return {**meta, **cells, "item": item, **text, **self._session(record), "time": time}

    def _cells(self, record: Mapping[str, Any]) -> dict[str, str]:
        """Return what a recipe keeps in a record beside Prodigy's own fields, and list what is not read."""
        others = {
            key: cell for key, cell in record.items()
            if key[:1] != "_" and (key not in self._own or (key == "options" and isinstance(cell, dict)))
        }  # fmt: skip
        for path in unread_lists(others):
            self.list(_UNREAD, path)
        if record.get("spans"):
            self.list(_SPANS)
        return flat(others)

    def _entered_in(self, record: Mapping[str, Any], cells: Mapping[str, str]) -> set[str]:
        """Return the names of what the annotator entered in blocks; a model's own numbers are not."""
        by_model = self._models <= record.keys() or (record.get("meta") or {}).get("score") is not None
        return {
            name
            for name, cell in cells.items()
            if name.endswith("input") or (by_name(name) == "answer" and count_words(cell) < _TEXT)
        } - (self._models if by_model else set())

    def _session(self, record: Mapping[str, Any]) -> dict[str, str]:
        """Return the rater, and the session if nobody named it."""
        session = text_of(record.get("_annotator_id") or record.get("_session_id"))
        if not self._unnamed.fullmatch(session):
            return {"rater": session or self.path.stem}
        self._notes[
            "texts of sessions that nobody named, which count as one rater's; if each session was another rater's, add"
            " --column rater=session --column unused=rater"
        ] += 1
        return {"rater": self.path.stem, "session": session}

    def table(self, entries: Sequence[Entry]) -> CellTable:
        table = super().table(entries)
        button = "unused" if self._entered or self._unsure else "answer"
        roles = {name: "unused" for name in map(str, table.cells) if name.startswith("meta.")
                 and by_name(name) in ("answer", "rater", "status")} | {"session": "unused"}  # fmt: skip
        roles |= dict.fromkeys(self._buttons, button) | dict.fromkeys(self._entered, "answer")
        roles = {**table.roles, **roles}
        return replace(table, roles={name: role for name, role in roles.items() if name in table.cells})


def _options(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words of Prodigy's options by id; a recipe's own page may call something else so."""
    listed = record.get("options") or ()
    return (
        {} if isinstance(listed, dict) else {str(option["id"]): option.get("text", option["id"]) for option in listed}
    )


def _choice(record: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, str]:
    chosen = [text_of(options.get(str(name), name)) for name in record.get("accept") or ()]
    return {"choice": AND_ALSO.join(chosen) or "none of them"} if options else {}


class Potato(ToolExport):
    """Potato's annotated instances; the user is the folder's name if the record has none."""

    title = "Potato"
    keys = (frozenset({"label_annotations"}),)
    _own = frozenset({"id", "user", "user_id", "text", "displayed_text", "annotations", "label_annotations",
                      "span_annotations"})  # fmt: skip

    @classmethod
    def cannot_write(cls, record: Mapping[str, Any]) -> bool:
        """Return whether raters stand where Potato has questions, or numbers where it ticks several labels."""
        answers = record.get("label_annotations")
        questions = answers if isinstance(answers, dict) else {}
        ticks = [cell for labels in questions.values() if isinstance(labels, dict) and len(labels) > 1
                 for cell in labels.values()]  # fmt: skip
        return role_of_keys(questions) == "rater" or any(type(cell) in (int, float) and cell > 1 for cell in ticks)

    def read(self, record: dict[str, Any]) -> None:
        user = record.get("user_id") or record.get("user") or self.path.parent.name
        base = {"text": record.get("displayed_text", record.get("text", "")), "item": record.get("id", self.number)}
        for name in sorted(record.keys() - self._own):
            self._notes[f"{name!r} is not read; records that have it"] += 1
        if record.get("span_annotations"):
            self.list(_SPANS)
        answers = record.get("label_annotations") or record.get("annotations") or {}
        if not answers:
            self.list("the record has no answers")
        for question, value in answers.items():
            labels = [str(name) for name, on in value.items() if on] if isinstance(value, dict) else [text_of(value)]
            if isinstance(value, dict) and len(labels) == 1 and re.fullmatch(r"text_box|bad_text|scale_\d+", labels[0]):
                labels = [text_of(value[labels[0]])]
            self.add(base, rater=user, question=question, answer=AND_ALSO.join(labels))


class Doccano(ToolExport):
    """doccano's lines: labels of a text; a file is one annotator's, unless its annotations name users."""

    title = "doccano"
    keys = tuple(frozenset({"text", name}) for name in ("label", "labels", "cats", "annotations"))
    _own = ("label", "labels", "cats", "annotations", "annotation_approver", "Comments", "text", "data", "id")

    @classmethod
    def cannot_write(cls, record: Mapping[str, Any]) -> bool:
        """Return whether raters are named, or their votes stand, where doccano has nothing of that kind."""
        if any(singular(str(key)) == "rater" for key in record):
            return True
        others = [name for name in unread_lists(record) if name not in cls._own]
        lists = [record.get(name) for name in (*others, "annotations")]
        raters = {key for entries in lists if isinstance(entries, list) for entry in entries if isinstance(entry, dict)
                  for key in entry if key != "user" and by_name(str(key)) == "rater"}  # fmt: skip
        return bool(raters) or any(ANSWERS_OF.search(name) for name in others)

    def read(self, record: dict[str, Any]) -> None:
        labels, spans = defaultdict[str, list[str]](list), 0
        for user, label in [*self._annotated(record), *self._listed(record)]:
            if label is None:
                spans += 1
            else:
                labels[user].append(label)
        about = {key: cell for key, cell in record.items() if key not in self._own}
        for path in unread_lists(about):
            self.list("a list beside the labels is not read", path)
        text, item = record.get("text", record.get("data", "")), record.get("id", self.number)
        for user, of_user in labels.items():
            base = {**flat(about), "text": text, "item": item, "rater": user}
            self.add(base, question="label", answer=AND_ALSO.join(of_user))
        if spans:
            self.list(f"{_SPANS} (the text has {spans})", "label")
        elif not labels:
            self.list("the text has no label")

    @staticmethod
    def _annotated(record: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
        """Yield the user and the label of each annotation; None for a span."""
        for annotation in record.get("annotations") or ():
            label, is_span = annotation.get("label", annotation.get("text")), "start_offset" in annotation
            if label is None and not is_span:
                raise ValueError("an annotation has neither a label nor a text")
            label = f"label {label}" if isinstance(label, int) else str(label)
            yield text_of(annotation.get("user", "")), None if is_span else label

    def _listed(self, record: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
        """Yield the file's annotator and each label in a list of labels; None for a span."""
        for name in ("label", "labels", "cats"):
            labels = record.get(name) or []
            for label in labels if isinstance(labels, (list, dict)) else [labels]:
                yield self.path.stem, None if isinstance(label, (list, dict)) else text_of(label)


TOOLS: tuple[type[ToolExport], ...] = (
    LabelStudio, LabelStudioShort, ArgillaRecords, Prodigy, Potato, Doccano, ArgillaOnHub,
)  # fmt: skip
