"""The role of each column of a file: proposed by content, then by name; shown; corrected by the user.

Each column has one of ROLES. If two columns fit one role, or no column fits a required role, the proposal has a doubt,
and nothing is imported until the user has named the column.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from annotation.imports.nested import ENTRY
from annotation.imports.options import ROLES
from annotation.imports.tables import CellTable
from annotation.imports.times import as_seconds, looks_like_times
from plumbline.errors import StudyError, nearest
from plumbline.words import count_words

SINGLE = ("original", "output", "text", "rater", "question", "time", "started", "seconds", "status", "comment", "truth",
          "language")  # fmt: skip
_WORDS: Mapping[str, str] = {  # without accents; for other languages the commonest words of forms and sheets
    "original": "original orig source src input article document complex text1 sentence1 texta sentencea premise before"
    " reference sourcetext quelle ausgangstext quelltext fuente origen 原文 源文",
    "output": "output out simp simple simplified simplification hyp hypothesis candidate target tgt translation mt"
    " summary text2 sentence2 textb sentenceb paraphrase generated generation response transformed after rewritten"
    " rewrite ausgabe ubersetzung sortie traduction salida traduccion 译文",
    "text": "text sentence content instance title passage body utterance message satz texte texto testo 文本",
    "system": "system sys model method generator transformation condition variant approach engine systeme sistema 系统",
    "rater": "rater annotator worker workerid user username judge coder participant evaluator assessor labeler labeller"
    " email e-mail mail respondent prolific pid annotatorid raterid expert reviewer completedby person bewerter"
    " annotatorin teilnehmer adresse evaluateur annotateur evaluador anotador valutatore 评分者 标注者",
    "question": "question criterion dimension aspect metric attribute property measure kriterium critere criterio",
    "answer": "answer rating score value label response judgement judgment choice vote grade annotation bewertung"
    " punktzahl urteil puntuacion 评分",
    "time": "time timestamp date submitted submit submittime submittedat answeredat finished completed completedat end"
    " updated updatedat created createdat recordeddate zeit zeitstempel horodateur fecha 时间",
    "started": "start started startedat accepttime accepted begin began startdate",
    "seconds": "seconds secs duration leadtime worktime worktimeinseconds elapsed took latency rt dauer duree duracion",
    "status": "status state assignmentstatus",
    "comment": "comment comments feedback remark remarks note notes explanation justification rationale reason"
    " kommentar anmerkung bemerkung commentaire comentario 备注",
    "unused": "consent agree age gender sex ethnicity nationality country education occupation captcha attention ip"
    " session sessionid study studyid submissionid approval trial browser",  # of a person or a session
    "truth": "truth gold goldlabel correct groundtruth expected",
    "language": "language lang locale",
    "item": "id item itemid sent sentid sentence sentenceid segment segid doc docid example exampleid instance"
    " instanceid hit hitid idx index pair pairid row task taskid key number nr no question questionid",
}
_BY_WORD: dict[str, list[str]] = defaultdict(list)
for _role, _words in _WORDS.items():
    for _word in _words.split():
        _BY_WORD[_word].append(_role)
_CRITERIA = re.compile(
    "(?i)fluen|gramm|adequa|mean|coher|consist|relev|clar|simpl|readab|natural|inform|faith|style|overall|quality|tox"
    "|accura|complet|correct|length|similar|entail|help|tone|use"
)  # names of qualities, which are questions and not raters
_PERSON = re.compile(
    r"[^@\s]+@[^@\s]+\.[a-zA-Z]+|A[0-9A-Z]{11,14}|[0-9a-f]{24}"
)  # a mail address, Amazon's, Prolific's
# Words in names of columns that summarise answers.
_SUMMED = {"mean", "avg", "average", "median", "std", "stdev", "count", "n"}
_MOST_ANSWERS = 101  # distinct answers to a question: 0 to 100
_MOST_LABELS = 30
_MOST_QUESTIONS = 60
_TEXT_WORDS = 3  # words of a text, on average
_RATER_WORD = (
    r"(?:rater|annotator|worker|judge|coder|expert|turker|evaluator|assessor|participant|person|user|reviewer)"
)
_NUMBERED = re.compile(
    rf"(?i)^(?P<before>.*?)[ _.\-:/]*(?P<rater>{_RATER_WORD}[ _.-]*\w{{1,3}})(?![^\W_])[ _.\-:/]*(?P<after>.*)$"
)
_LEADING = re.compile(r"^(?P<before>)(?P<rater>[AREJWPCarejwpc]\d{1,2})[ _.\-:]+(?P<after>[^\W\d].+)$")  # A1_fluency
_ITEM_COLUMN = re.compile(r"(?i)(item|text|sentence|sent|pair|example|stimulus)[ _.-]?\d+")
_SHOWN = 24  # characters of a cell
_GRID = re.compile(r"\[.+\]\s*$")
_ENDING = re.compile(r"^(?P<before>.*?)[ _.-]*(?P<rater>\d{1,3}|(?<=[ _.-])[A-Za-z])$")


@dataclass(frozen=True)
class Proposal:
    """The proposed role of each column, the reason for it, and the decisions left to the user."""

    roles: Mapping[str, str]
    reasons: Mapping[str, str]
    doubts: tuple[str, ...] = ()
    raters: Mapping[str, tuple[str, str]] = field(default_factory=dict)  #: of a `by_rater` column: question, rater

    @property
    def has_answers(self) -> bool:
        """Whether the table contains answers, and not only facts about items."""
        return bool({"answer", "by_rater", "by_item"} & set(self.roles.values()))

    @property
    def rates(self) -> bool:
        """Whether the table names raters."""
        return bool({"rater", "by_rater"} & set(self.roles.values()))

    def named(self, role: str) -> list[str]:
        """Return the columns of a role, in the file's order."""
        return [column for column, of_column in self.roles.items() if of_column == role]

    def first(self, role: str) -> str:
        """Return the first column of a role; empty if no column has it."""
        return next(iter(self.named(role)), "")


def propose(table: CellTable, corrections: Mapping[str, str]) -> Proposal:
    """Propose the roles of a table's columns; `corrections` are the user's, by column.

    Raises StudyError for unknown columns and roles.
    """
    columns = [str(name) for name in table.cells.columns]
    for column, role in corrections.items():
        if column not in columns:
            raise StudyError(f"{table.path}: no column {column!r}; {nearest(column, columns)}")
        if role not in ROLES:
            raise StudyError(f"--column: unknown role {role!r}; {nearest(role, list(ROLES))}")
    fixed = {**{name: role for name, role in table.roles.items() if name in columns}, **corrections}
    return _Proposer(table, fixed, corrections).proposal()


class _Proposer:
    """Assigns roles to a table's columns, the surest first."""

    def __init__(self, table: CellTable, fixed: Mapping[str, str], corrected: Iterable[str]) -> None:
        self._table, self._cells = table, table.cells
        self._roles, self._fixed = dict(fixed), set(fixed)
        self._reasons = dict.fromkeys(fixed, f"set by the format, {table.form}") | dict.fromkeys(
            corrected, "set by you"
        )
        self._doubts = list[str]()
        self._values = {str(name): table.values(str(name)) for name in self._cells.columns}
        self._raters = dict[str, tuple[str, str]]()

    def proposal(self) -> Proposal:
        self._take_constant()
        self._take_times()
        self._take_raters()
        self._take_item_columns()
        self._take_texts()
        self._take_named("system", self._may_be_system)
        self._take_named(
            "language", lambda name: all(re.fullmatch(r"[A-Za-z]{2,3}([-_]\w+)?", v) for v in self._few(name))
        )
        self._take_named("comment", lambda name: not self._numeric(name))
        for name in self._rest():
            if hints(name)[:1] == ["unused"]:
                self._set(name, "unused", "its name is about a person or a session, not an item")
        self._take_named("status", lambda name: len(self._values[name]) <= 12 and not self._numeric(name))
        self._take_questions()
        self._take_truth()
        self._take_items_and_answers()
        order = {name: self._roles.get(name, "unused") for name in map(str, self._cells.columns)}
        reasons = {name: self._reasons.get(name, "neither name nor content shows a role") for name in order}
        self._doubt_what_is_missing(order)
        return Proposal(order, reasons, tuple(self._doubts), self._raters)

    def _set(self, name: str, role: str, why: str) -> None:
        self._roles[name], self._reasons[name] = role, why

    def _rest(self) -> list[str]:
        return [str(name) for name in self._cells.columns if name not in self._roles]

    def _has(self, role: str) -> list[str]:
        return [name for name, of_name in self._roles.items() if of_name == role]

    def _few(self, name: str) -> Sequence[str]:
        return self._values[name][:500]

    def _hinted(self, name: str, role: str) -> bool:
        return role in hints(name)

    def _numeric(self, name: str) -> bool:
        values = self._few(name)
        return bool(values) and sum(_as_number(value) for value in values) >= 0.95 * len(values)

    def _wordy(self, name: str) -> bool:
        values = self._few(name)
        if not values or self._numeric(name):
            return False
        return float(np.mean([count_words(value) for value in values])) >= _TEXT_WORDS

    def _take_constant(self) -> None:
        """Mark uninformative columns as unused: empty ones, and constant ones that are no answers."""
        for name in self._rest():
            values, filled = self._values[name], int(self._cells[name].notna().sum())
            if not values:
                self._set(name, "unused", "empty")
            elif _GRID.search(name) or _NUMBERED.match(name) or _LEADING.match(name) or _ITEM_COLUMN.fullmatch(name):
                continue  # a column of an item or a rater, whose answers may all be equal
            elif len(values) == 1 and len(self._cells) > 1 and not self._hinted(name, "answer"):
                whole = "the same in every row" if filled == len(self._cells) else "the same in all filled cells"
                if not (self._numeric(name) or self._wordy(name)) or filled < len(self._cells):
                    self._set(name, "unused", whole)

    def _take_times(self) -> None:
        timed = [name for name in self._rest() if looks_like_times(self._few(name))]
        for name in timed:
            role = "started" if self._hinted(name, "started") else "time"
            if role in self._roles.values():
                role = "unused"
            self._roles[name] = role if role == "started" else "unused"
            ended = "times, but another column has the time of the answer"
            self._reasons[name] = "its name, and it contains times" if role == "started" else ended
        ends = [name for name in timed if self._roles[name] != "started" and "time" not in self._has_roles()]
        if ends:
            best = min(ends, key=_time_order)
            self._set(best, "time", "times")
        for name in self._rest():
            some = self._few(name) if self._hinted(name, "seconds") and not self._has("seconds") else ()
            if some and np.isfinite(as_seconds(some)).mean() >= 0.9:
                self._set(name, "seconds", "its name, and it contains durations")

    def _has_roles(self) -> set[str]:
        return set(self._roles.values())

    def _take_raters(self) -> None:
        if self._has("rater"):
            return
        hinted = [name for name in self._rest() if self._hinted(name, "rater") and not self._wordy(name)]
        hinted = [name for name in hinted if not (hints(name)[:1] == ["unused"] or re.search(r"(?i)tors$", name))]
        hinted = hinted or [
            name for name in self._rest() if self._few(name) and all(map(_PERSON.fullmatch, self._few(name)))
        ]
        hinted = [name for name in hinted if self._cells[name].notna().mean() > 0.5]
        siblings = {name for names in self._siblings(hinted).values() for name in names}
        hinted = [name for name in hinted if name not in siblings]
        if len(hinted) > 1:  # an id goes before a name, and a full column before a sparse one
            hinted = sorted(
                hinted, key=lambda name: (-self._cells[name].notna().mean(), not re.search(r"(?i)id\b|ID$", name))
            )
        for name in hinted[:1]:
            self._set(name, "rater", f"its name; {len(self._values[name])} raters")
        for name in self._rest():
            some, also = self._few(name), name in hinted[1:] and not self._hinted(name, "answer")
            if some and (also or all(map(_PERSON.fullmatch, some))):
                self._set(name, "unused", "names of people")

    def _take_texts(self) -> None:
        wordy = [name for name in self._rest() if self._wordy(name) and not self._hinted(name, "comment")]
        wordy = [name for name in wordy if len(self._values[name]) > min(10, len(self._cells) // 8)]
        taken = {role: next(iter(self._has(role)), "") for role in ("original", "output", "text")}
        for role in ("original", "output"):
            hinted = [name for name in wordy if self._hinted(name, role) and name not in taken.values()]
            if not taken[role] and len(hinted) == 1:
                taken[role] = hinted[0]
        for role, beside in (("original", "output"), ("output", "original")):
            short = [name for name in self._rest() if self._hinted(name, role) and name not in wordy]
            few = min(10, len(self._cells) // 8)
            short = [name for name in short if sum(" " in text for text in self._values[name]) > few]
            if taken[beside] and not taken[role] and len(short) == 1:  # texts of two words, as phrases are
                taken[role] = short[0]
        taken = self._texts_by_content(taken, [name for name in wordy if name not in taken.values()])
        for role, name in taken.items():
            if name and name not in self._roles:
                self._set(name, role, f"{'its name, and ' * self._hinted(name, role)}{len(self._values[name])} texts")
        for name in wordy:
            if name not in self._roles:
                self._texts_beside(name)

    def _texts_by_content(self, taken: Mapping[str, str], free: Sequence[str]) -> dict[str, str]:
        """Return the texts' columns by content: an original has several outputs, or precedes its output."""
        lacking = [role for role in ("original", "output") if not taken[role]]
        if not any(taken.values()) and len(free) >= 2:
            if len(free) > 2:
                self._doubts.append(
                    f"several columns contain texts ({', '.join(map(repr, free[:4]))}); name the original and the"
                    " output (--column original=NAME --column output=NAME), or the judged text (--column text=NAME)"
                )
            original, output = sorted(free[:2], key=lambda name: len(self._values[name]))
            return {"original": original, "output": output, "text": ""}
        if taken["text"] or not lacking:
            return dict(taken)
        if len(lacking) == 1 and len(free) == 1:
            return {**taken, lacking[0]: free[0]}
        single = taken["original"] or taken["output"] or next(iter(free), "")
        return {"original": "", "output": "", "text": single}

    def _texts_beside(self, name: str) -> None:
        text = next(iter(self._has("text") or self._has("output")), "")
        if text and self._fixed_by(name, [text, *self._has("original")]):
            self._set(name, "beside", "one text for each judged text")
        elif self._distinct_per_rater(name):
            self._set(name, "comment", "texts that differ from rater to rater")

    def _distinct_per_rater(self, name: str) -> bool:
        return "comment" not in self._has_roles() and self._cells[name].notna().mean() < 1

    def _fixed_by(self, name: str, keys: Sequence[str]) -> bool:
        """Return whether rows that are alike in the keys are alike in a column."""
        both = self._cells[[*keys, name]].drop_duplicates()
        return len(both) == len(both.drop_duplicates(list(keys)))

    def _may_be_system(self, name: str) -> bool:
        number, plain = len(self._values[name]), re.sub(r"[\W\d_]|id$", "", name.casefold())
        if self._numeric(name) and "system" not in _BY_WORD[plain]:
            return False
        return 1 < number <= max(200, len(self._cells) // 50) and 2 * number <= len(self._cells)

    def _take_named(self, role: str, fits: Callable[[str], bool]) -> None:
        if role in SINGLE and self._has(role):
            return
        hinted = [name for name in self._rest() if hints(name)[:1] == [role] and fits(name)]
        for name in hinted[:1]:
            self._set(name, role, "its name")

    def _take_questions(self) -> None:
        if self._has("question"):
            return
        for name in self._rest():
            if not self._hinted(name, "question") or not 1 < len(self._values[name]) <= _MOST_QUESTIONS:
                continue
            answers = [answer for answer in self._rest() if self._hinted(answer, "answer")]
            if answers and not self._numeric(name):
                self._set(name, "question", f"its name; {len(self._values[name])} questions")
                for answer in answers[:1]:
                    self._set(answer, "answer", "its name")
                return

    def _take_truth(self) -> None:
        for name in self._rest():
            if self._hinted(name, "truth") and not self._has("truth") and len(self._values[name]) <= _MOST_ANSWERS:
                self._set(name, "truth", "its name")

    def _take_items_and_answers(self) -> None:
        """Assign the remaining roles: what varies within items is an answer, what numbers items is an id."""
        if not self._has("rater") and not self._has("answer"):
            self._take_rater_columns()
        ids = [name for name in self._rest() if name != ENTRY and self._like_an_id(name)]
        for name in ids:
            if not self._has("item") or self._adds_to_items(name):
                self._set(
                    name,
                    "item",
                    "its name, and many different values" if self._hinted(name, "item") else "many different values",
                )
        self._take_crossed()
        if ENTRY in self._rest():  # the number of a nested entry is an id where the file has none
            has_ids = bool(self._has("item"))
            self._set(ENTRY, "unused" if has_ids else "item", "the number of the entry in the file")
        agreed = list[str]()
        for name in self._rest():
            if not self._like_answers(name):
                continue
            if self._has("by_rater"):
                self._reasons[name] = "not the answers of one rater; if it contains answers, add --column answer=NAME"
            elif alike := self._alike(name):
                self._reasons[name] = alike
                agreed.append(name)
            elif self._has("question") and self._has("answer"):
                self._reasons[name] = "another column contains the answers"
            else:
                self._set(name, "answer", f"answers: {', '.join(self._values[name][:5])}")
        if len(agreed) == 1 and not {"answer", "by_rater", "by_item"} & self._has_roles():
            self._set(agreed[0], "answer", "the only column that can contain answers, although all are equal")

    def _alike(self, name: str) -> str:
        """Return why a column cannot be answers: it is constant for an item, a rater, or all rows; empty if it can."""
        keys, rater = self._item_keys(), self._has("rater")
        if keys and self._repeated(keys) and not self._hinted(name, "answer") and self._fixed_by(name, keys):
            return "the same in all rows of an item"
        if len(self._values[name]) == 1:
            return "the same in every row"
        return (
            "the same in all rows of a rater" if rater and self._repeated(rater) and self._fixed_by(name, rater) else ""
        )

    def _take_crossed(self) -> None:
        """Take the only column whose values never repeat within an item as the raters, if no name shows them."""
        keys = self._item_keys()
        if {"rater", "by_rater", "by_item"} & self._has_roles() or not keys or not self._repeated(keys):
            return
        rows = self._cells[keys].drop_duplicates()
        crossed = [
            name
            for name in self._rest()
            if 1 < len(self._values[name]) <= len(self._cells) // 2
            and len(self._cells[[*keys, name]].drop_duplicates()) == len(self._cells)
            and not self._hinted(name, "answer")
        ]
        if len(crossed) == 1 and not self._numeric(crossed[0]):
            self._set(crossed[0], "rater", f"no value repeats within an item; {len(self._values[crossed[0]])} raters")
        elif crossed and len(self._cells) >= 2 * len(rows):
            self._doubts.append(
                f"{' or '.join(map(self._place, crossed))} may name the raters, since no value repeats within an item;"
                " use --column 'rater=column N' or --column 'answer=column N'"
            )

    def _place(self, name: str) -> str:
        """Return a column's number as its name, which may be a person's."""
        return f"column {list(map(str, self._cells.columns)).index(name) + 1}"

    def _item_keys(self) -> list[str]:
        return [name for name, role in self._roles.items() if role in ("original", "output", "text", "item", "system")]

    def _repeated(self, keys: Sequence[str]) -> bool:
        """Return whether several rows are about one item."""
        return len(self._cells[list(keys)].drop_duplicates()) * 2 <= len(self._cells)

    def _like_an_id(self, name: str) -> bool:
        values = self._values[name]
        if len(values) < 2 or (self._wordy(name) and not self._hinted(name, "item")):
            return False
        if self._hinted(name, "item") and not (self._hinted(name, "answer") and len(values) <= _MOST_LABELS):
            return len(values) > 2
        return len(values) > max(_MOST_ANSWERS, len(self._cells) // 40) and not self._fraction(name)

    def _fraction(self, name: str) -> bool:
        return any("." in value for value in self._few(name)) and self._numeric(name)

    def _adds_to_items(self, name: str) -> bool:
        """Return whether an id tells items apart that the columns so far do not, and not single answers."""
        keys = self._item_keys()
        if self._fixed_by(name, keys):
            return False
        rater = self._has("rater")
        return not (
            rater and len(self._cells[[*keys, name]].drop_duplicates()) == len(self._cells) and self._repeated(keys)
        )

    def _like_answers(self, name: str) -> bool:
        values = self._values[name]
        if _SUMMED & set(re.split(r"[\W\d_]+", name.casefold())):
            return False
        if self._numeric(name):
            return len(values) <= _MOST_ANSWERS or self._hinted(name, "answer")
        short = all(len(value) <= 120 for value in values[:_MOST_LABELS])
        return len(values) <= _MOST_LABELS and short

    def _siblings(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return columns that are numbered alike and hold answers of one kind, by the name before the number."""
        stems: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
        for name in names:
            if not self._like_answers(name):
                continue
            match = _NUMBERED.match(name) or _LEADING.match(name) or _ENDING.match(name)
            if match:
                parts = match.groupdict()
                stem = " ".join(part for part in (parts["before"], parts.get("after") or "") if part).strip(" _-.:")
                stems[stem][name] = (stem, re.sub(r"[ _.-]+", "", parts["rater"]).casefold())
        whole = {stem: members for stem, members in stems.items() if len(members) > 1}
        sizes = {len(members) for members in whole.values()}
        if len(sizes) > 1:  # one more question is not one more rater
            whole = {stem: members for stem, members in whole.items() if len(members) == max(sizes)}
        self._raters |= {name: parts for members in whole.values() for name, parts in members.items()}
        return {stem: list(members) for stem, members in whole.items()}

    def _take_rater_columns(self) -> None:
        people = [name for name in self._rest() if _PERSON.fullmatch(name)]
        self._raters |= {name: ("", name) for name in people}
        stems = {"": people} if people else self._siblings(self._rest())
        for names in stems.values():
            for name in names:
                question, rater = self._raters[name]
                self._set(name, "by_rater", f"answers of rater {rater}" + (f" to {question}" if question else ""))

    def _take_item_columns(self) -> None:
        """A form's export: a row for each rater, and a column for each item, whose text or name heads it."""
        columns = [name for name in self._rest() if self._like_answers(name)]
        gridded = [name for name in columns if _GRID.search(name)]
        raters = self._has("rater")
        if raters and not self._cells[raters[0]].dropna().is_unique:
            return
        headed = [name for name in columns if count_words(name) > 2 * _TEXT_WORDS]
        gridded = gridded or [name for name in columns if raters and _ITEM_COLUMN.fullmatch(name)]
        chosen = gridded if len(gridded) > 2 else headed if len(headed) > 2 and len(columns) == len(headed) else []
        for name in chosen:
            self._set(name, "by_item", "each row is a rater, so each column is an item")

    def _doubt_what_is_missing(self, roles: Mapping[str, str]) -> None:
        has = set(roles.values())
        if not has & {"answer", "by_rater", "by_item"}:
            self._doubts.append("no column was recognised as answers; name one with --column answer=NAME")
        if not has & {"original", "output", "text", "item", "by_item"}:
            self._doubts.append(
                "no column identifies the item of a row; name one with --column item=NAME or --column text=NAME"
            )
        for role in SINGLE:
            if len(several := [name for name, of_name in roles.items() if of_name == role]) > 1:
                self._doubts.append(
                    f"{' and '.join(map(repr, several[:3]))} have the same role, {role}; set all but one to"
                    " unused (--column unused=NAME)"
                )
        if "question" in has and len(self._has("answer")) > 1:
            self._doubts.append(
                "a file with a column of questions must have exactly one column of answers; set the others to unused"
                " (--column unused=NAME)"
            )
        alike = [name for name in self._has("answer") if name not in self._fixed]
        alike = [] if any(map(_CRITERIA.search, alike)) else alike
        same_kind = len({self._numeric(name) for name in alike}) == 1 and not self._spread_over(alike)
        if len(alike) > 1 and same_kind and not has & {"rater", "question"}:
            self._doubts.append(
                f"{', '.join(map(self._place, alike))} may be raters or questions; for each, add"
                " --column 'by_rater=column N' or --column 'answer=column N'"
            )

    def _spread_over(self, names: Sequence[str]) -> bool:
        """Return whether columns hold different kinds of answers: too few are common to all of them."""
        shared = set.intersection(*(set(self._values[name]) for name in names))
        return 2 * len(shared) < min(len(self._values[name]) for name in names)


def hints(name: str) -> list[str]:
    """Return the roles that a column's name suggests, the surest first."""
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", name) if not unicodedata.combining(sign))
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    words = [word for word in re.split(r"[\W_]+", plain.casefold()) if word]
    joined = ["".join(words), *("".join(pair) for pair in itertools.pairwise(words))]
    listed = [role for word in (*joined, *reversed(words)) for role in _BY_WORD.get(word, ())]
    return list(dict.fromkeys(listed))


def _time_order(name: str) -> int:
    """Return a sort key that puts the column with the likeliest time of answering first."""
    order = ("submit", "answered", "finish", "complet", "end", "updated", "time", "date", "created")
    return next((number for number, word in enumerate(order) if word in name.casefold()), len(order))


def _as_number(value: str) -> bool:
    try:
        float(value.replace(",", ".") if value.count(",") == 1 and "." not in value else value)
    except ValueError:
        return False
    return True


def proposal_rows(table: CellTable, proposal: Proposal) -> tuple[list[str], list[list[str]]]:
    """Return the proposal as a table: a row for each column, with the cells of five rows; raters' ids are hidden."""
    rows: pd.DataFrame = table.cells.head(5)
    header = ["column", "is", "because", *(f"line {line}" for line in table.lines[:5])]
    lines = []
    for column, role in proposal.roles.items():
        if role == "unused":
            continue
        cells = ["" if pd.isna(cell) else str(cell) for cell in rows[column]]
        hidden = ["(an id)" if cell and role == "rater" else cell for cell in cells]
        name, why = (
            (f"column {list(rows.columns).index(column) + 1}", "one rater's answers")
            if role == "by_rater"
            else (column, "")
        )
        lines.append([name[:40], role, why or proposal.reasons[column], *map(_cut, hidden)])
    return header, lines


def _cut(cell: str) -> str:
    return cell if len(cell) <= _SHOWN else f"{cell[: _SHOWN - 1]}…"


def unused_lines(proposal: Proposal) -> list[str]:
    """Return a line for each reason why columns are unused."""
    reasons = defaultdict[str, list[str]](list)
    for column in proposal.named("unused"):
        reasons[proposal.reasons[column]].append(column[:40])
    return [f"unused ({reason}): {', '.join(columns)}" for reason, columns in reasons.items()]
