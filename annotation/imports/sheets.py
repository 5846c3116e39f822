"""Exports of crowds and forms, which are tables of cells whose header says what they are."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from annotation.imports.tables import AND_ALSO, CellTable, UnplacedRow, coded, text_of

_MTURK = {"WorkerId": "rater", "SubmitTime": "time", "AcceptTime": "started", "WorkTimeInSeconds": "seconds",
          "AssignmentStatus": "status"}  # fmt: skip
_PROLIFIC = {"Participant id": "rater", "Status": "status", "Started at": "started", "Completed at": "time",
             "Time taken": "seconds"}  # fmt: skip
_TRUTHS = {"true", "1", "yes", "on", "x", "checked"}
_FALSE = {"false", "0", "no", "off", "", "unchecked"}
_ASSIGNED = re.compile(r"^(?P<question>.+?)(?P<mark>\.|:::)(?P<label>[^.:]+)$")


def spread(table: CellTable) -> CellTable:
    """A table with the columns that its form says; what is no form we know stays as it is."""
    names = set(map(str, table.cells.columns))
    if {"HITId", "WorkerId"} <= names or (any(name.startswith("Answer.") for name in names) and "WorkerId" in names):
        return _mturk(table)
    if {"Submission id", "Participant id"} <= names:
        roles = {name: _PROLIFIC.get(name, "unused") for name in map(str, table.cells.columns)}
        return replace(table, form="Prolific's submissions", roles=roles)
    if any(":::" in name for name in names):
        return replace(_ticked(table, [name for name in map(str, table.cells.columns) if ":::" in name]), form="Potato")
    return _without_imported_header(table)


def _mturk(table: CellTable) -> CellTable:
    """Amazon's results: what workers saw is in Input., what they answered in Answer.."""
    table = _with_task_answers(table)
    columns = [str(name) for name in table.cells.columns]
    table = _ticked(table, [name for name in columns if name.startswith("Answer.")])
    roles, renamed = dict[str, str](), dict[str, str]()
    for name in map(str, table.cells.columns):
        if name.startswith("Answer."):
            renamed[name] = re.sub(r"\.(label|choice|value|answer)$", "", name.removeprefix("Answer.")) or name
            roles[renamed[name]] = "answer"
        elif not name.startswith("Input."):
            roles[name] = _MTURK.get(name, "unused")
    if "WorkTimeInSeconds" in roles:
        roles["AcceptTime"] = "unused"
    return replace(table, form="MTurk's results", cells=table.cells.rename(columns=renamed), roles=roles)


def _with_task_answers(table: CellTable) -> CellTable:
    """Answers that stand as JSON in one cell, as columns of their own."""
    name = "Answer.taskAnswers"
    if name not in table.cells:
        return table
    parsed, unplaced = list[dict[str, str]](), list(table.listed)
    for text in table.values(name):
        try:
            value = json.loads(text)
        except ValueError:
            parsed.append({})
            continue
        parsed.append(_answers_of(value[0] if isinstance(value, list) and value else value))
    codes = table.cells[name].cat.codes.to_numpy()
    wrong = [code for code, answers in enumerate(parsed) if not answers]
    for row in np.flatnonzero(np.isin(codes, wrong)):
        unplaced.append(UnplacedRow(table.path.name, int(table.lines[row]), "its answers are no JSON", name))
    questions = list(dict.fromkeys(key for answers in parsed for key in answers))
    cells = table.cells.drop(columns=name)
    for question in questions:
        texts = [answers.get(question, "") for answers in parsed]
        index = list(dict.fromkeys(text for text in texts if text))
        numbers = np.array([index.index(text) if text else -1 for text in texts] + [-1], np.int32)
        cells[f"Answer.{question}"] = coded(numbers[codes], index)
    return replace(table, cells=cells, listed=tuple(unplaced))


def _answers_of(value: Any) -> dict[str, str]:
    """`{q: {a: true, b: false}}` as {q: a}."""
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
    """Columns of one question, a label each, that are ticked or not, as one column."""
    groups = defaultdict[str, dict[str, str]](dict)
    for name in names:
        match = _ASSIGNED.match(name)
        values = {value.casefold() for value in table.values(name)}
        if match and (values <= _TRUTHS | _FALSE or match["mark"] == ":::"):
            groups[match["question"]][match["label"]] = name
    cells = table.cells
    for question, labels in groups.items():
        if len(labels) < 2 and ":::" not in next(iter(labels.values())):
            continue
        whole = np.full(len(cells), "", object)
        for label, name in labels.items():
            ticked = np.array([value.casefold() not in _FALSE for value in table.values(name)] + [False])
            on = ticked[cells[name].cat.codes.to_numpy()]
            whole[on] = [f"{text}{AND_ALSO}{label}" if text else label for text in whole[on]]
        codes, index = pd.factorize(whole)
        numbers = np.array([-1 if text == "" else number for number, text in enumerate(index)], np.int32)
        cells = cells.drop(columns=list(labels.values())).assign(**{question: coded(numbers[codes], list(index))})
    return replace(table, cells=cells)


def _without_imported_header(table: CellTable) -> CellTable:
    """Qualtrics' export without its second and third line, which are names of columns too."""
    first = table.cells.head(2)
    marked = [row for row in range(len(first)) if any("ImportId" in str(cell) for cell in first.iloc[row])]
    if not marked:
        return table
    start = marked[0] + 1
    cells = table.cells.iloc[start:].reset_index(drop=True)
    cells = cells.apply(lambda column: column.cat.remove_unused_categories())
    note = f"{start} lines below the header name the columns again, and are no rows"
    return replace(table, form="Qualtrics", cells=cells, lines=table.lines[start:], notes=(*table.notes, note))
