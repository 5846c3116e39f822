"""The role of each column of a file: set by its form, by the user, or by its name; shown; corrected by the user.

Each column has one of ROLES. If two columns have a role that only one can have, or a required role is missing, the
proposal has a doubt, and nothing is imported until the user has named the column.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from annotation.imports.tables import CellTable
from annotation.questions.wordings import packaged
from plumbline.errors import StudyError, nearest

#: docs/import.md says what each is.
ROLES = (
    *("original", "output", "text", "beside", "item", "system", "compared", "rater", "question", "answer", "by_rater"),
    *("slot", "by_item", "time", "started", "seconds", "status", "submission", "comment", "truth", "language"),
    "unused",
)
_SEVERAL = ("beside", "item", "system", "compared", "answer", "by_rater", "slot", "by_item", "unused")
SINGLE = tuple(role for role in ROLES if role not in _SEVERAL)
_WORDS = packaged("imports/words.yaml")
_BY_NAME: dict[str, str] = {name: role for role, names in _WORDS["columns"].items() for name in names.split()}
_FILLERS = frozenset(_WORDS["left_out"]["fillers"].split())
_LEFT_OUT: dict[str, str] = {
    name: reason for reason, names in _WORDS["left_out"].items() if reason != "fillers" for name in names.split()
}
_METRICS = tuple(name for name, reason in _LEFT_OUT.items() if reason == "is a metric" and len(name) > 3)
_TICKED = frozenset(_WORDS["ticked"])
_LOG = re.compile(r"Mozilla/\d|AppleWebKit|^\{\s*\"")  # a browser's name, or an object of JSON
_PERSON = re.compile(
    r"[^@\s]+@[^@\s]+\.[a-zA-Z]+|A[0-9A-Z]{11,14}|[0-9a-f]{24}"
)  # a mail address, Amazon's, Prolific's
_RATER_WORD = (
    r"(?:rater|annotator|worker|judge|coder|expert|turker|evaluator|assessor|participant|person|user|reviewer)"
)
_NUMBERED = re.compile(
    rf"(?i)^(?P<before>.*?)[ _.\-:/]*(?P<rater>{_RATER_WORD}[ _.-]*\w{{1,3}})(?![^\W_])[ _.\-:/]*(?P<after>.*)$"
)
_LEADING = re.compile(r"^(?P<before>)(?P<rater>[AREJWPCarejwpc]\d{1,2})[ _.\-:]+(?P<after>[^\W\d].+)$")  # A1_fluency
_ENDING = re.compile(r"^(?P<before>.*?)[ _.-]*(?P<rater>\d{1,3}|(?<=[ _.-])[A-Za-z])$")
_CANDIDATE = _WORDS["preferences"]["candidates"].replace(" ", "|")
_CANDIDATE_COLUMN = re.compile(
    rf"(?i)^(?P<stem>(?:.*[ _.])?(?P<noun>{_CANDIDATE}))[ _.-]?(?P<one>[a-h1-8])(?P<rest>[ _.-].+)?$"
)
_ANSWERING = {"answer", "by_rater", "by_item", "slot"}
_PARTS = re.compile(r"\.|:(?=\S)")  # between the parts of a name
_PREFERENCES = frozenset(_WORDS["preferences"]["names"].split())
_SYSTEM_NOUNS = ("system", "model", "sys")
OF_KEYS = ("system", "rater", "item", "question")  # what keys of objects may be
_COUNTED = re.compile(r"(?<=\w)[ _.-]*(?:\d{1,4}|(?<=[ _.-])[A-Za-z])$")  # the end of annotator1, model_b
_GRID = re.compile(r"(?s)\[(?!\s*[-+]?\d+\s*(?:\W|to)\s*[-+]?\d+\s*\]).+\]\s*$")  # no scale: Fluency [1-5]
_POINT = re.compile(r"-?\d|10")  # of a usual scale
_FEW = 0.1  # share of items, and of raters, in which a fact of theirs may differ by mistake
_NO_ROLE = "its name shows no role"
_SHOWN = 24  # characters of a cell
_LISTED = 50  # columns in an error: a screen of them


@dataclass(frozen=True)
class Proposal:
    """The role of each column, the reason for it, and the decisions left to the user."""

    roles: Mapping[str, str]
    reasons: Mapping[str, str]
    fixed: frozenset[str]  #: columns whose role the user or the form set
    full: frozenset[str]  #: columns without an empty cell
    faults: tuple[str, ...] = ()  #: doubts that the cells raise

    @cached_property
    def raters(self) -> Mapping[str, tuple[str, str]]:
        """The question and rater of columns of one rater."""
        return _raters(name for name, role in self.roles.items() if role in ("by_rater", "slot"))

    @property
    def doubts(self) -> list[str]:
        """What is missing, named twice, or may be something else."""
        unlike = [*self._unlike_ways(), *self._unlike_others()]
        return [*self._missing(), *self._repeated(), *unlike, *self._either(), *self.faults]

    @property
    def has_answers(self) -> bool:
        """Whether the table contains answers, and not only facts about items."""
        return bool(_ANSWERING & set(self.roles.values()))

    @property
    def rates(self) -> bool:
        """Whether the table says who rated, as far as it is known."""
        return bool({"rater", "by_rater", "slot"} & set(self.roles.values()))

    @property
    def has_wide_answers(self) -> bool:
        """Whether a column holds the answers of one rater, or about one item."""
        return bool({"by_rater", "slot", "by_item"} & set(self.roles.values()))

    def named(self, role: str) -> list[str]:
        """Return the columns of a role, in the file's order."""
        return [column for column, of_column in self.roles.items() if of_column == role]

    def first(self, role: str) -> str:
        """Return the first column of a role; empty if no column has it."""
        return next(iter(self.named(role)), "")

    def _missing(self) -> Iterator[str]:
        has = set(self.roles.values())
        if not self.has_answers:
            numbered = list(_raters(self.named("unused")))
            slots = f", or {' and '.join(map(repr, numbered[:3]))} with --column by_rater=NAME if each is one person's,"
            slots += " and with --column slot=NAME if different people filled it"
            unknown = without_role(self)
            those = f" (of no role: {_each_named(unknown)})" if unknown else ""
            yield (
                f"no column was recognised as answers; name one with --column answer=NAME{those}"
                f"{slots if numbered else ''}"
            )
        if not {"original", "output", "text", "item", "by_item"} & has:
            yield "no column identifies the item of a row; name one with --column item=NAME or --column text=NAME"

    def _repeated(self) -> Iterator[str]:
        for role in SINGLE:
            if len(several := self.named(role)) > 1:
                nested = all("." in name for name in several)
                as_list = "write the objects under such keys as a list, each with its key as a field, or "
                yield (
                    f"{_each_named(several, ' and ')} have the same role, {role};"
                    f" {as_list if nested else ''}set all but one to unused (--column unused=NAME)"
                )
        answers, question = self.named("answer"), self.first("question")
        if question and len(answers) > 1:
            yield (
                "a file with a column of questions must have exactly one column of answers; set the others to unused"
                " (--column unused=NAME)"
            )
        systems = [name for name in self.named("system") if name not in self.fixed]
        if len(systems) > 1:
            yield (
                f"{_each_named(systems, ' and ')} may all be the system; set all but one to unused (--column"
                " unused=NAME), or name each with --column system=NAME if they make it together"
            )
        by_name_alone = [name for name in answers if self.reasons[name] == "its name"]
        if len(by_name_alone) > 1 and not question:
            listed = _each_named(by_name_alone, " and ")
            yield f"{listed} may all be answers; name those that are (--column answer=NAME)"

    def _unlike_ways(self) -> Iterator[str]:
        """Yield two columns that only one way of reading a row can take: an answer, one for each rater or item."""
        first = dict[str, int]()
        for number, role in enumerate(self.roles.values(), 1):
            first.setdefault("by_rater" if role == "slot" else role, number)
        for pair in (("answer", "by_rater"), ("answer", "by_item"), ("by_rater", "by_item"), ("text", "by_item")):
            if first.keys() >= {*pair}:
                columns = " and ".join(f"column {first[role]} ({role})" for role in pair)
                unused = f"--column 'unused=column {first[pair[0]]}'"
                yield f"{columns} cannot both be read; set all of one kind to unused ({unused})"

    def _unlike_others(self) -> Iterator[str]:
        """Yield the first column of a rater whose name shows no question, if others' names do."""
        unnamed = [n for n, (name, role) in enumerate(self.roles.items(), 1)
                  if role == "by_rater" and name not in self.raters]  # fmt: skip
        if unnamed and any(question for question, _ in self.raters.values()):
            column = f"column {unnamed[0]}"
            yield (
                f"the name of {column} shows no question and rater, but others do; rename it like them (fluency_1,"
                f" fluency_2, meaning_1, meaning_2), or set it to unused (--column 'unused={column}')"
            )

    def _either(self) -> Iterator[str]:
        """Yield each column of texts, known by its name alone, that may as well have another role."""
        names = {role: name for name, role in self.roles.items() if name not in self.fixed}
        has = set(self.roles.values())
        if "text" in names and ("original" in has) != ("output" in has):
            role = "output" if "original" in has else "original"
            yield (
                f"{names['text']!r} may be the {role} or a text by itself; name it with --column {role}=NAME or"
                " --column text=NAME"
            )
        if names.get("comment") in self.full and not {"text", "output", "by_item"} & has:
            yield (
                f"{names['comment']!r} has a text in each row and may be the rated text or raters' comments; name it"
                " with --column text=NAME, --column output=NAME or --column comment=NAME"
            )


def propose(table: CellTable, corrections: Mapping[str, str]) -> Proposal:
    """Return the roles of a table's columns; `corrections` are the user's, by column.

    Raises StudyError for unknown columns and roles.
    """
    columns = [str(name) for name in table.cells.columns]
    _refuse_unknown(table, columns, corrections)
    draft = _Draft(table, {name: role for name, role in table.roles.items() if name in columns}, corrections)
    for name in columns:
        draft.set_role(name)
    draft.set_compared()
    draft.set_entry()
    for name in sorted(table.keys):
        draft.set_keys(name)
    draft.leave_out()
    draft.set_original()
    draft.set_points()
    draft.set_respondent()
    full = frozenset(name for name in columns if table.cells[name].notna().all())
    faults = (*draft.faults, *draft.faults_of_entries(), *draft.ids_of_answers(), *draft.ticks())
    return Proposal(draft.roles, draft.reasons, frozenset(draft.fixed), full, faults)


def _refuse_unknown(table: CellTable, columns: list[str], corrections: Mapping[str, str]) -> None:
    for column, role in corrections.items():
        if column not in columns:
            raise StudyError(f"{table.path}: no column {column!r}; {nearest(column, columns)}")
        if role not in ROLES:
            raise StudyError(f"--column: unknown role {role!r}; {nearest(role, list(ROLES))}")


@dataclass
class _Draft:
    """The roles of a table's columns as they are found, one kind of column after another."""

    table: CellTable
    by_form: Mapping[str, str]
    corrections: Mapping[str, str]  #: the user's
    roles: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @cached_property
    def fixed(self) -> Mapping[str, str]:
        """The roles that the form or the user set."""
        return {**self.by_form, **self.corrections}

    def named(self, *roles: str) -> list[str]:
        """Return the columns of these roles."""
        return [name for name, role in self.roles.items() if role in roles]

    def set_role(self, name: str) -> None:
        """Give a column the role that the user, the form or its name sets."""
        if name in self.corrections:
            role, reason = self.corrections[name], "set by you"
        elif name in self.by_form:
            role, why = self.by_form[name], left_out(name)
            reason = f"its name {why}" if role == "unused" and why else f"set by the format, {self.table.form}"
        else:
            role, reason = _role_by_name(name, set(self.fixed.values()))
        self.roles[name], self.reasons[name] = role, reason

    def set_compared(self) -> None:
        """Give `system_a` and `output_a` ... their roles as what a row compares, and `winner` that of its answer."""
        sets = [
            names for names in candidate_columns(self.roles) if all(self.reasons[name] == _NO_ROLE for name in names)
        ]
        compared = [names for names in sets if _noun(names[0]) in _SYSTEM_NOUNS]
        for names in sets if compared and not self.named("compared") else ():
            for name in names:
                self.roles[name] = "compared" if names in compared else "beside"
                self.reasons[name] = "its name"
        if self.named("compared") and not self.named(*_ANSWERING):
            for name in self.roles:
                if self.reasons[name] == _NO_ROLE and name.casefold() in _PREFERENCES:
                    self.roles[name], self.reasons[name] = "answer", "its name"

    def set_entry(self) -> None:
        """Make an entry's number the item if nothing else tells the entries apart."""
        name = self.table.entry
        if not name or self.roles[name] != "unused" or name in self.fixed:
            return
        self.reasons[name] = "the number of the entry in the file"
        texts = self.named("original", "output", "text")
        several = len(self.table.cells[[name, *texts]].drop_duplicates()) > self.table.cells[name].nunique()
        self.roles[name] = "unused" if several or self.named("item") else "item"

    def set_keys(self, name: str) -> None:
        """Give the keys above JSON's objects the role that they show; else ask for it."""
        if name in self.corrections:
            return
        cells, values = self.table.cells[name], self.table.values(name)
        alike = [column for column in self.roles if column != name and cells.equals(self.table.cells[column])]
        if alike:
            self.roles[name], self.reasons[name] = "unused", f"the same as {alike[0]!r}"
        elif are_numbers(values) and cells.is_unique:
            self.roles[name], self.reasons[name] = "unused", "the number of the object in the file"
        elif role := role_of_keys(values) or self._of_holder(name) or self._identifying(name):
            self.roles[name], self.reasons[name] = role, "the keys of the objects"
        else:
            self.roles[name], self.reasons[name] = "unused", "the keys of the objects"
            offered = " or ".join(f"--column {shlex.quote(f'{role}={name}')}" for role in OF_KEYS)
            self.faults.append(
                f"{name!r} is the key of each object and may be a system, a rater, an item or a question; name it with"
                f" {offered}, or set it to unused (--column {shlex.quote(f'unused={name}')})"
            )

    def _of_holder(self, name: str) -> str:
        """Return the role that the name of the field with the objects shows: `annotators` holds a rater's each."""
        role = by_name(re.sub("s$", "", self.table.keys[name].holder))
        return role if role in OF_KEYS else ""

    def _identifying(self, name: str) -> str:
        """Return `item` if keys are numbered, and each is that of one text within its object."""
        texts = [text for text in self.named("original", "output", "text") if text in self.table.keys[name].within]
        of_texts = self.table.cells[[name, *texts]].drop_duplicates()
        one_each = bool(texts) and of_texts[name].is_unique and not of_texts[texts].duplicated().any()
        return "item" if one_each and all(re.search(r"\d", key) for key in self.table.values(name)) else ""

    def leave_out(self) -> None:
        """Take logs, and what an entry has once beside several answers, from the answers."""
        for name in self.named(*_ANSWERING):
            if name in self.corrections:
                continue
            if any(map(_LOG.search, self.table.values(name)[:50])):
                self.roles[name], self.reasons[name] = "unused", "a log of the page, or a browser's name"
            elif self.roles[name] == "answer" and name in self.table.copies:
                self.roles[name], self.reasons[name] = "unused", "one value for each entry, beside several answers"

    def set_original(self) -> None:
        """Take the texts beside outputs as the originals where the column of that name holds only their ids."""
        names = [self.named(role) for role in ("original", "text", "output")]
        if [len(columns) for columns in names] != [1, 1, 1] or self.fixed.keys() & {names[0][0], names[1][0]}:
            return
        ids, texts = names[0][0], names[1][0]
        if not any(re.search(r"\s", cell) for cell in self.table.values(ids)) and any(
            re.search(r"\s", cell) for cell in self.table.values(texts)
        ):
            self.roles[ids], self.reasons[ids] = "unused", f"ids, and {texts!r} holds the texts"
            self.roles[texts], self.reasons[texts] = "original", f"texts, and {ids!r} holds ids"

    def set_points(self) -> None:
        """Take columns of a few whole numbers as answers, where raters and items are named and answers are not.

        They differ within an item, as no fact about it does, and a rater repeats them, as no position in a list.
        """
        raters, items = self.named("rater"), self.named("item", "original", "output", "text", "system")
        if self.named(*_ANSWERING) or not raters or not items:
            return
        for name in without_role(self):
            values = set(self.table.values(name))
            if not (len(values) > 2 and all(_POINT.fullmatch(value) for value in values)):  # two are flags
                continue
            rows = self.table.cells[[*raters, *items, name]].dropna(subset=[name])
            groups = [rows.groupby(keys, observed=True, dropna=False)[name] for keys in (items, raters)]
            counts = [group.agg(["nunique", "size"]).query("size > 1") for group in groups]
            vary = all((number["nunique"] > 1).mean() > _FEW for number in counts)
            if vary and (counts[1]["size"] > counts[1]["nunique"]).any():
                self.roles[name], self.reasons[name] = "answer", "few whole numbers, in which raters differ"

    def set_respondent(self) -> None:
        """Take the id of a row as its rater's where each row has one person's answers about all items."""
        for name in self.named("item") if self.named("by_item") else ():
            has_rater = bool(self.named("rater"))
            if name not in self.fixed and (has_rater or self.table.cells[name].is_unique):
                self.roles[name], self.reasons[name] = "unused" if has_rater else "rater", "a row is one rater's"

    def ids_of_answers(self) -> Iterator[str]:
        """Yield an id that differs in each row where different raters answer about the same texts."""
        texts, raters, cells = self.named("original", "output", "text"), self.named("rater"), self.table.cells
        unique = [name for name in self.named("item") if name not in self.fixed and cells[name].is_unique]
        if not unique or not texts or not self.named("answer"):
            return
        facts = [*texts, *self.named("system", "question", "compared", "beside")]
        again = cells.duplicated(facts, keep=False)
        if not again.mean() > 0.5 or (raters and cells.duplicated([*facts, *raters]).mean() > _FEW):
            return
        for name in unique:
            unused, item = (f"--column {shlex.quote(f'{role}={name}')}" for role in ("unused", "item"))
            yield (
                f"{name!r} differs in each row, but {again.sum():,} of {len(again):,} rows have the texts of"
                f" another; add {unused} if it numbers the answers, or {item} if each row is an item of its own"
            )

    def ticks(self) -> Iterator[str]:
        """Yield answers of the form's own choice that are one tick in each row, as consent is."""
        answers = self.named("answer")
        for name in answers if len(answers) > 1 else ():
            texts, full = self.table.values(name), self.table.cells[name].notna().all()
            if full and len(texts) == 1 and texts[0].casefold() in _TICKED and name not in self.corrections:
                yield (
                    f"{name!r} is {texts[0]!r} in each row; name it with --column unused={name} if raters ticked it"
                    f" beside their answers, or with --column answer={name}"
                )

    def faults_of_entries(self) -> Iterator[str]:
        """Yield what is unclear where an entry has several rows: an id of two entries, an answer to no item."""
        table, copies = self.table, self.table.copies
        none = np.zeros(len(table.cells), bool)
        items = [name for name in self.named("item", "original", "output", "text") if name != table.entry]
        of_rater = any(name in copies for name in self.named("rater"))
        ids = [name for name in items if self.roles[name] == "item" and name not in self.fixed and name in copies]
        for name in ids if not of_rater else ():
            of_entries = table.cells[name][~copies[name]]
            if len(twice := of_entries[of_entries.duplicated(keep=False) & of_entries.notna()]):
                lines = table.lines[twice.index[twice == twice.iloc[0]][:2]]
                yield (
                    f"{table.path.name}, lines {lines[0]} and {lines[1]}: {name} {str(twice.iloc[0])[:40]!r} is used"
                    f" twice; add --column item={name} if it is one item, or --column item={table.entry} if these are"
                    " two"
                )
        for name in [name for name in self.named("answer") if name in copies]:
            if any((copies[name] & ~copies.get(of_item, none)).any() for of_item in items):
                yield f"{name!r} is one value for several items; set it to unused (--column unused={name})"


def _role_by_name(name: str, used: Collection[str]) -> tuple[str, str]:
    """Return the role that a column's name shows, and the reason; unused if another column has it already."""
    role = "by_rater" if _PERSON.fullmatch(name) else by_name(name)
    if role in used and role not in ("by_rater", "unused"):
        return "unused", f"another column is the {role}"
    if role == "unused":
        return role, f"its name {left_out(name)}"
    return (role, "its name") if role else ("unused", _NO_ROLE)


def by_name(name: str) -> str:
    """Return the role that a column's name shows, a grid's or the last part of `Input.source` or `INPUT:source`."""
    if _GRID.search(name):
        role = "" if by_name(name.rpartition("[")[2].rstrip("] ")) == "comment" else "by_item"  # LimeSurvey's [comment]
        return "unused" if left_out(name) else role
    parts = [re.sub(r"[\W_]+", "", part).casefold() for part in _PARTS.split(name)]
    role = _BY_NAME.get(parts[-1], "")
    if parts[0] == "golden" and role == "answer":
        return "truth"  # Toloka's GOLDEN:rating; alone the word may mark controls
    return role or ("unused" if left_out(name) else "")


def candidate_columns(columns: Iterable[str]) -> list[list[str]]:
    """Return sets of columns that name candidates of a row: `output_a` and `output_b`, `summary1` and `summary2`."""
    sets = defaultdict[tuple[str, str], dict[str, str]](dict)
    for name in columns:
        match = _CANDIDATE_COLUMN.match(name)
        if match and by_name(name) not in ("original", "output"):  # the two texts of a pair
            sets[match["stem"].casefold(), (match["rest"] or "").casefold()][match["one"].casefold()] = name
    return [list(names.values()) for names in sets.values() if {"a", "b"} <= names.keys() or {"1", "2"} <= names.keys()]


def _noun(column: str) -> str:
    match = _CANDIDATE_COLUMN.match(column)
    return match["noun"].casefold() if match else ""


def are_numbers(keys: Iterable[str]) -> bool:
    """Return whether keys count objects, from 0 or 1 on."""
    numbers = [int(key) if key.isdecimal() else -1 for key in keys]
    return numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1)))


def role_of_keys(keys: Iterable[str]) -> str:
    """Return what keys of objects are if they show it, as `model1` and `model2` or raters' ids do; else empty."""
    keys = list(keys)
    roles = {"rater" if _PERSON.fullmatch(key) else by_name(_COUNTED.sub("", key)) for key in keys}
    return roles.pop() if len(roles) == 1 and roles <= set(OF_KEYS) else ""


@functools.cache
def left_out(name: str) -> str:
    """Return why what has this name is no answer unless the user says so: it describes raters, for example."""
    head, bracket, inner = name.rstrip("] ").partition("[")
    if bracket:
        return left_out(inner) or left_out(head)
    whole = re.sub(r"(?i)^q\d*[_. ]+", "", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip()))
    for part in (whole, *whole.rpartition(" - ")[::2], whole.rpartition(".")[2] if " " not in name.strip() else ""):
        words = re.findall(r"[^\W_]+", part.casefold())
        for text in ("".join(words), "".join(word for word in words if word not in _FILLERS)):
            if reason := _LEFT_OUT.get(text, "is a metric" if text.startswith(_METRICS) else ""):
                return reason
    return ""


def _raters(columns: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the question and rater of each column of one rater: `fluency_2`, `Rater 2 fluency`, `A2_fluency`."""
    parts = {
        name: match
        for name in columns
        if (match := _NUMBERED.match(name) or _LEADING.match(name) or _ENDING.match(name))
    }
    questions = {
        name: " ".join(filter(None, (match["before"], match.groupdict().get("after")))).strip(" _-.:")
        for name, match in parts.items()
    }
    counts = Counter(questions.values())  # one column of a question is a rater's name that ends in a letter or number
    return {
        name: (question, re.sub(r"[ _.-]+", "", parts[name]["rater"]).casefold())
        for name, question in questions.items()
        if counts[question] > 1
    }


def proposal_rows(table: CellTable, proposal: Proposal) -> tuple[list[str], list[list[str]]]:
    """Return the proposal as a table: a row for each column, with the cells of five rows; raters' ids are hidden."""
    rows: pd.DataFrame = table.cells.head(5)
    header = ["column", "is", "because", *(f"line {line}" for line in table.lines[:5])]
    lines = []
    for column, role in proposal.roles.items():
        if role == "unused":
            continue
        cells = ["" if pd.isna(cell) else str(cell) for cell in rows[column]]
        hidden = ["(an id)" if cell and role in ("rater", "submission") else cell for cell in cells]
        name, reason = (
            (f"column {list(rows.columns).index(column) + 1}", "one rater's answers")
            if role == "by_rater"
            else (column, "")
        )
        lines.append(
            [
                name[:40],
                role,
                reason or proposal.reasons[column],
                *(cell if len(cell) <= _SHOWN else f"{cell[: _SHOWN - 1]}…" for cell in hidden),
            ]
        )
    return header, lines


def _each_named(columns: list[str], between: str = ", ") -> str:
    """Return columns as an error lists them: all, as far as they fit on a screen."""
    more = f"{between}{len(columns) - _LISTED} more" if len(columns) > _LISTED else ""
    return between.join(map(repr, columns[:_LISTED])) + more


def without_role(proposal: Proposal | _Draft) -> list[str]:
    """Return the columns that neither the user nor the form nor a name gives a role."""
    return [name for name in proposal.named("unused") if proposal.reasons[name] == _NO_ROLE]


def unused_lines(proposal: Proposal) -> list[str]:
    """Return a line for each reason why columns are unused."""
    reasons = defaultdict[str, list[str]](list)
    for column in proposal.named("unused"):
        reasons[proposal.reasons[column]].append(column[:40])
    return [f"unused ({reason}): {', '.join(columns)}" for reason, columns in reasons.items()]
