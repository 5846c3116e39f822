"""Exports of crowd platforms and forms: tables of cells, recognised by their header."""

from __future__ import annotations

import contextlib
import json
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from annotation.imports.columns import by_name
from annotation.imports.matching import group_numbers
from annotation.imports.tables import AND_ALSO, CellTable, coded, merged, renamed
from annotation.imports.tool_exports import NO_ANSWERS, SHORT, short_answer
from annotation.questions.wordings import packaged
from plumbline.spreadsheets import text_of
from plumbline.words import count, count_words

_WORDS = packaged("imports/words.yaml")
_FORMS = _WORDS["forms"]
_OF_WORK = ("unused", "rater", "time", "started", "seconds", "status", "submission")  # roles that are no answers
_UNWRITTEN = "Click to write "  # what Qualtrics shows where its user wrote no words
_WEIGHTS = {"major": 5.0, "minor": 1.0}
_TURN = re.compile(r"^(?P<before>.*?[A-Za-z])[ _.-]?(?P<turn>\d{1,2})(?P<after>(?:\..*)?)$")
_ASSIGNED = re.compile(r"^(?P<question>.+?)(?P<mark>\.|:::)(?P<label>[^.:]+)$")


class SheetForm(ABC):
    """A table that a platform writes: recognised by its columns, and given those of long rows."""

    @classmethod
    @abstractmethod
    def fits(cls, names: Collection[str], table: CellTable) -> bool:
        """Return whether a table with these columns is of this form."""

    @classmethod
    @abstractmethod
    def read(cls, table: CellTable) -> CellTable:
        """Return the table with the roles of its columns, and columns that are answers."""


def spread(table: CellTable) -> CellTable:
    """Give a table the columns of its form; a table of an unknown form stays as it is."""
    names = list(map(str, table.cells.columns))
    form = next((form for form in SheetForm.__subclasses__() if form.fits(names, table)), None)
    return form.read(table) if form else table


class MTurkResults(SheetForm):
    """MTurk's results: `Input.` columns hold the texts shown, `Answer.` columns the answers."""

    @classmethod
    def fits(cls, names: Collection[str], table: CellTable) -> bool:
        return "WorkerId" in names and any(name.startswith("Answer.") or name == "AssignmentStatus" for name in names)

    @classmethod
    def read(cls, table: CellTable) -> CellTable:
        table = _unfolded(_with_task_answers(table))
        table = _ticked(table, [name for name in map(str, table.cells.columns) if name.startswith("Answer.")])
        roles, renamed = dict[str, str](), dict[str, str]()
        for name in map(str, table.cells.columns):
            if name.startswith("Answer."):
                renamed[name] = re.sub(r"\.(label|choice|value|answer|on)$", "", name.removeprefix("Answer.")) or name
                role = by_name(renamed[name]) if table.values(name) else "unused"
                roles[renamed[name]] = "unused" if role in _OF_WORK else role if role == "comment" else "answer"
            elif not name.startswith("Input."):
                roles[name] = _FORMS["mturk"].get(name, "unused")
        if "WorkTimeInSeconds" in roles:
            roles["AcceptTime"] = "unused"
        comments = [name for name, role in roles.items() if role == "comment"]
        roles |= dict.fromkeys(comments[1:], "unused")
        return replace(table, form="MTurk's results", cells=table.cells.rename(columns=renamed), roles=roles)


class ProlificSubmissions(SheetForm):
    """Prolific's list of submissions."""

    @classmethod
    def fits(cls, names: Collection[str], table: CellTable) -> bool:
        return {"Submission id", "Participant id"} <= set(names)

    @classmethod
    def read(cls, table: CellTable) -> CellTable:
        roles = {name: role for name, role in _FORMS["prolific"].items() if name in table.cells}
        return replace(table, form="Prolific's submissions", roles=roles)


class PotatoTable(SheetForm):
    """Potato's table: a column `question:::label` for each label."""

    @classmethod
    def fits(cls, names: Collection[str], table: CellTable) -> bool:
        return any(":::" in name for name in names)

    @classmethod
    def read(cls, table: CellTable) -> CellTable:
        names = list(map(str, table.cells.columns))
        table = _ticked(table, [name for name in names if ":::" in name])
        answers = [name for name in map(str, table.cells.columns) if name not in names]
        return replace(table, form="Potato", roles=dict.fromkeys(answers, "answer"))


class LabelStudioTable(SheetForm):
    """Label Studio's CSV, an annotation a row; several choices, and ratings, are JSON in a cell."""

    @classmethod
    def fits(cls, names: Collection[str], table: CellTable) -> bool:
        return {"annotation_id", "annotator", "lead_time"} <= set(names)

    @classmethod
    def read(cls, table: CellTable) -> CellTable:
        cells, unplaced = table.cells.copy(), list(table.listed)
        for name in (name for name in map(str, cells.columns) if name not in SHORT):
            texts = list[str | None](table.values(name))
            for number, text in enumerate(table.values(name)):
                with contextlib.suppress(ValueError):  # a text that begins with a bracket
                    texts[number] = short_answer(json.loads(text)) if text[:1] in "[{" else text
            unplaced += table.listing(name, [text is None for text in texts], NO_ANSWERS)
            cells[name] = renamed(cells[name].array, [text or "" for text in texts])
        roles = {name: role for name, role in _FORMS["label_studio"].items() if name in cells}
        return replace(table, form="Label Studio (CSV)", cells=cells, listed=tuple(unplaced), roles=roles)


class ErrorTable(SheetForm):
    """WMT's MQM, an error in each row, as a score for each rater and segment: the sum of the errors' weights.

    The weights are Freitag et al.'s (2021): major 5, minor 1 (punctuation 0.1), non-translation 25, at most 25.
    """

    @classmethod
    def fits(cls, names: Collection[str], table: CellTable) -> bool:
        return {"system", "rater", "category", "severity", "target"} <= {name.casefold() for name in names}

    @classmethod
    def read(cls, table: CellTable) -> CellTable:
        names = {str(name).casefold(): str(name) for name in table.cells.columns}
        target, category, severity = names["target"], names["category"], names["severity"]
        cells = table.cells.assign(
            **{target: renamed(table.cells[target].array, [re.sub("</?v>", "", text) for text in table.values(target)])}
        )
        weights = np.array([
            25.0 if "non-translation" in str(kind).casefold() else
            0.1 if str(grade).casefold() == "minor" and "punctuation" in str(kind).casefold() else
            _WEIGHTS.get(str(grade).casefold(), 0.0)
            for kind, grade in zip(cells[category], cells[severity], strict=True)
        ])  # fmt: skip
        keys = [name for plain, name in names.items() if plain not in ("category", "severity", "metadata", "timestamp")]
        numbers, first = group_numbers([cells[name].array for name in keys])
        scores = np.minimum(np.bincount(numbers, weights), 25)
        column = pd.Categorical([f"{score:g}" for score in scores])
        scored = cells[keys].iloc[first].reset_index(drop=True).assign(mqm=column)
        roles = {names["rater"]: "rater", names["system"]: "system", target: "output", "mqm": "answer"}
        roles |= {names["source"]: "original"} if "source" in names else {}
        note = (
            "each score is the sum of the weights of a rater's errors in a segment, at most 25: non-translation 25,"
            " major 5, minor 1, minor punctuation 0.1"
        )
        table = replace(table, cells=scored, lines=table.lines[first], roles=roles, notes=(*table.notes, note))
        return replace(table, form="WMT's MQM", lower=frozenset({"mqm"}), scales={"mqm": "25..0"})


class QualtricsResponses(SheetForm):
    """Qualtrics' export: questions' words and ids follow the header; unfinished answers are drafts."""

    @classmethod
    def fits(cls, names: Collection[str], table: CellTable) -> bool:
        return any("ImportId" in str(cell) for row in range(min(2, len(table.cells))) for cell in table.cells.iloc[row])

    @classmethod
    def read(cls, table: CellTable) -> CellTable:
        marked = next(row for row in range(2) if any("ImportId" in str(cell) for cell in table.cells.iloc[row]))
        start, words = marked + 1, table.cells.iloc[0].astype(object).fillna("").astype(str)
        cells = table.cells.iloc[start:].reset_index(drop=True)
        cells = cells.apply(lambda column: column.cat.remove_unused_categories())
        if "Finished" in cells:
            unfinished = cells["Finished"].astype(str).str.casefold().isin(_WORDS["unticked"])
            status = cells["Status"].astype(object) if "Status" in cells else "submitted"
            cells["Status"] = pd.Categorical(np.where(unfinished, "incomplete", status))
        roles = {name: role for name, role in _FORMS["qualtrics"].items() if name in cells}
        if any(by_name(str(name)) == "rater" for name in cells.columns if name not in roles):
            roles["ResponseId"] = "unused"
        texts = {str(name): " ".join(words[name].split()) for name in cells.columns if name not in roles and marked}
        named = _wordings({name: text for name, text in texts.items() if not text.startswith(_UNWRITTEN)})
        named = {name: text for name, text in named.items() if text not in cells}
        note = f"skipped {count(start, 'line')} below the header, with the columns' names again"
        return replace(
            table, form="Qualtrics", cells=cells.rename(columns=named), lines=table.lines[start:], roles=roles,
            notes=(*table.notes, note),
        )  # fmt: skip


def _unfolded(table: CellTable) -> CellTable:
    """Split rows that hold several items into a row for each: text_1, output_1, rating_1, text_2 and so on."""
    copies = _numbered_copies(list(map(str, table.cells.columns)))
    texts = [stem for stem, names in copies.items() if _has_sentences(table.values(names[0]))]
    number = max(map(len, copies.values()), default=0)
    if not texts or len(texts) == len(copies) or (number < 3 and len(texts) < 2) or set(copies) & set(table.cells):
        return table
    rest = table.cells.drop(columns=[name for names in copies.values() for name in names])
    columns: dict[str, Any] = {str(name): union_categoricals([rest[name]] * number) for name in rest}
    columns |= {stem: union_categoricals([table.cells[name] for name in names]) for stem, names in copies.items()}
    note = (
        f"each row contains {number} items, in numbered copies of the columns {', '.join(copies)}; each item becomes"
        " a row"
    )
    lines = np.tile(table.lines, number)
    return replace(table, cells=pd.DataFrame(columns), lines=lines, notes=(*table.notes, note))


def _numbered_copies(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that stand once for each item of a row, in the items' order, by their name without number."""
    stems = defaultdict[str, dict[int, str]](dict)
    for name in names:
        if match := _TURN.match(name):
            stems[f"{match['before']}{match['after']}"][int(match["turn"])] = name
    turns = max((frozenset(of_stem) for of_stem in stems.values()), key=len, default=frozenset[int]())
    return {stem: [of_stem[turn] for turn in sorted(turns)] for stem, of_stem in stems.items()
            if len(turns) > 1 and set(of_stem) == turns}  # fmt: skip


def _has_sentences(texts: Sequence[str]) -> bool:
    return bool(np.mean([*map(count_words, texts[:50])] or [0]) >= 3)


def _with_task_answers(table: CellTable) -> CellTable:
    """Expand answers in one cell of JSON into columns."""
    name = "Answer.taskAnswers"
    if name not in table.cells:
        return table
    parsed = list[dict[str, str]]()
    for text in table.values(name):
        try:
            value = json.loads(text)
        except ValueError:
            parsed.append({})
            continue
        parsed.append(_answers_of(value[0] if isinstance(value, list) and value else value))
    codes = table.cells[name].cat.codes.to_numpy()
    unplaced = table.listing(name, [not answers for answers in parsed], "no answers can be read from its JSON")
    cells = table.cells.drop(columns=name)
    for question in dict.fromkeys(key for answers in parsed for key in answers):
        cells[f"Answer.{question}"] = merged(codes, [answers.get(question, "") for answers in parsed])
    return replace(table, cells=cells, listed=(*table.listed, *unplaced))


def _answers_of(value: Any) -> dict[str, str]:
    """Return `{q: {a: true, b: false}}` as {q: a}."""
    if not isinstance(value, Mapping):
        return {}
    answers = {}
    for question, answer in value.items():
        if isinstance(answer, Mapping):
            answers[str(question)] = AND_ALSO.join(
                str(label) for label, on in answer.items() if on is True or on == "on"
            )
        else:
            answers[str(question)] = text_of(answer)
    return answers


def _ticked(table: CellTable, names: Sequence[str]) -> CellTable:
    """Join a question's columns, each a label that is ticked or not, to one column."""
    groups, ticks = defaultdict[str, dict[str, str]](dict), {*_WORDS["ticked"], *_WORDS["unticked"]}
    for name in names:
        match = _ASSIGNED.match(name)
        if (
            match
            and match["question"] != "Answer"
            and (match["mark"] == ":::" or ticks.issuperset(map(str.casefold, table.values(name))))
        ):
            groups[match["question"]][re.sub(r"^scale_(?=\d+$)", "", match["label"])] = name
    cells = table.cells
    for question, labels in groups.items():
        columns = list(labels.values())
        if set(labels) <= {"text_box", "bad_text"}:
            cells = cells.rename(columns=dict.fromkeys(columns, question))
        elif len(labels) > 1 or ":::" in columns[0]:
            joint = pd.Series("", cells.index, object)
            for label, name in labels.items():
                ticked = cells[name].isin(
                    [value for value in table.values(name) if value.casefold() not in _WORDS["unticked"]]
                )
                joint[ticked] = joint[ticked].map(lambda text, label=label: f"{text}{AND_ALSO}{label}".strip(AND_ALSO))
            codes, index = pd.factorize(joint.where(joint != ""))
            cells = cells.drop(columns=columns).assign(**{question: coded(codes.astype(np.int32), list(index))})
    return replace(table, cells=cells)


def _wordings(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the words of columns' questions, a grid's items in brackets; none for a column without its own words."""
    heads = Counter(text.rpartition(" - ")[0] for text in texts.values())
    named = {}
    for name, text in texts.items():
        head, _, item = text.rpartition(" - ")
        named[name] = f"{head} [{item}]" if heads[head] > 2 and head else text
    counts = Counter(named.values())
    return {name: text for name, text in named.items() if text and counts[text] == 1}
