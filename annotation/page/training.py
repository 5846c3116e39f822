"""Known pairs for raters' training: read from the study's file, shown with right answers and reasons, never counted.

Answers to them are in their own file (`training.json`), which nothing that judges transformations reads.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.campaign.subjects import right_answer
from annotation.questions.entries import ENGLISH, worded
from annotation.questions.question import Question
from annotation.questions.wordings import packaged, words_in
from annotation.sampling.queues import Queue
from generation.datasets.tables import read_frame, row_of
from plumbline.errors import DataError, StudyError, nearest, read_each
from plumbline.fields import expected_of
from plumbline.identity import identity
from plumbline.journal import json_lines
from plumbline.languages import language_code
from plumbline.manifest import RecordFile
from plumbline.records import Pair, Record, nfc
from plumbline.study import Study
from plumbline.study.subject import VerdictUnit
from plumbline.study.transformations import EIGHT

WORDS = "training_words.yaml"
POOL = "training"  # the pool of its datasets, instead of a pool of transformations
_RIGHT, _WHY = "right_", "why_"  # beginnings of columns; a question's name follows, or a language's code
_UNSHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_TEXTS = ("original", "transformed")
_NEEDED = (*_TEXTS, "transformation", "language")


class TrainingResult(Record):
    """A rater's result on a known pair (`training.json`)."""

    KEY = ("rater_id", "item_id")
    rater_id: str = Field(description="pseudonym")
    item_id: str = Field(description="hash of the known pair, its right answers and their reasons")
    simulated: bool = Field(description="true for a simulated rater")
    answered: bool = Field(description="whether the rater submitted an answer")
    judged: int = Field(description="number of answered questions with a known right answer")
    right: int = Field(
        description="number of these answers that are right: a rating may differ by its tolerance from the right"
        " answer, any other answer must equal it"
    )


@dataclass(frozen=True)
class TrainingItem:
    """A known pair."""

    pair: Pair  #: with its right answers; its id is a hash of this whole item
    reasons: Mapping[str, str]  #: why they are right, by language

    @property
    def languages(self) -> frozenset[str]:
        """The languages that its raters must read."""
        return Queue.of(self.pair).languages

    @classmethod
    def of_row(
        cls,
        kinds: Mapping[str, VerdictUnit],
        questions: Mapping[str, Question],
        cells: Mapping[str, Any],
        location: str,
    ) -> TrainingItem:
        """Return the known pair in a row's cells. Raises DataError."""
        kind = kinds.get(cells["transformation"])
        if kind is None:
            hint = nearest(cells["transformation"], list(kinds))
            raise DataError(f"{location}: the study has no transformation {cells['transformation'][:60]!r}; {hint}")
        try:
            language = language_code(cells["language"])
            output_language = language_code(str(cells.get("output_language") or cells["language"]))
        except StudyError as error:
            raise DataError(f"{location}: {error}") from None
        answers = {
            name: right_answer(cells.get(f"{_RIGHT}{name}"), question, f"{location}, {_RIGHT}{name}")
            for name, question in questions.items()
            if question.asked_in(kind.pool)
        }
        right = {name: answer for name, answer in answers.items() if answer is not None}
        if not right:
            raise DataError(
                f"{location}: no right answer; fill one of {', '.join(_RIGHT + name for name in questions)}"
            )
        reasons = {name.removeprefix(_WHY): str(text) for name, text in cells.items() if name.startswith(_WHY) and text}
        texts = {name: cells[name] for name in _TEXTS}
        key = identity("training-v1", cells["transformation"], language, output_language, texts, right, reasons)
        pair = Pair(
            pair_id=key, key=key, transformation=cells["transformation"], axis=kind.axis, pool=kind.pool,
            dataset=POOL, task_type="", language=language, output_language=output_language, seed=0, control="known",
            **texts, model="", generator_hash="", prompt_hash="", expected=json.dumps(right),
        )  # fmt: skip
        return cls(pair, reasons)


def read_items(study: Study, rubric: Rubric) -> list[TrainingItem]:
    """Return the study's training pairs; none if it names no file.

    Raises DataError or StudyError with file, row and field.
    """
    if not study.training:
        return []
    study.refuse_unfit("training")
    if POOL in {kind.pool for kind in study.kinds.values()}:
        raise StudyError(f"{study.file}: the name {POOL!r} is reserved for raters' training; rename the transformation")
    path = study.resolve(study.training)
    if not path.is_file():
        raise DataError(f"training: no file {path}; correct `training` in the study")
    questions = {question.name: question for question in rubric.asked() if not question.free_text}
    frame, items = read_frame(path), dict[str, TrainingItem]()
    _refuse_wrong([str(name) for name in frame.columns], questions, path)
    # One file may serve studies of other transformations.
    elsewhere = EIGHT.keys() - set(study.transformations)

    def read(row: tuple[Any, dict[Any, Any]]) -> None:
        location = row_of(path, row[0])
        item = TrainingItem.of_row(study.kinds, questions, _content(row[1], location), location)
        if items.setdefault(item.pair.pair_id, item) is not item:
            raise DataError(f"{location}: repeats the known pair of an earlier row; keep one")

    rows = zip(frame.index, frame.to_dict("records"), strict=True)
    read_each((row for row in rows if str(row[1]["transformation"]) not in elsewhere), read)
    if not items:
        raise DataError(f"{path}: has no known pair of this study's transformations; add one, or leave out `training`")
    return list(items.values())


def _refuse_wrong(names: Sequence[str], questions: Collection[str], path: Path) -> None:
    """Raise DataError for answers to no question, missing columns, and NaN, which frames have for empty cells, too."""
    rights = [_RIGHT + name for name in questions]
    if unknown := [name for name in names if name.startswith(_RIGHT) and name not in rights]:
        raise DataError(f"{path}: the column {unknown[0]!r} matches no question; {nearest(unknown[0], rights)}")
    if missing := [name for name in _NEEDED if name not in names]:
        raise DataError(f"{path}: no column {missing[0]!r}; its columns are: {', '.join(names) or 'none'}")
    rows = json_lines(path) if path.suffix == ".jsonl" else ()
    for number, row in rows:
        for name, value in row.items():
            if name.startswith(_RIGHT) and isinstance(value, float) and not math.isfinite(value):
                raise DataError(
                    f"{path}: line {number}, {name!r}: {value} is not an answer; correct it, or leave it out"
                )


def _content(cells: Mapping[Any, Any], location: str) -> dict[str, Any]:
    """Return a row's cells, None for empty ones. Raises DataError for one that cannot be shown, or is no text."""
    content = dict[str, Any]()
    for name, cell in cells.items():
        is_text = isinstance(cell, str)
        is_empty = cell is None or cell != cell or (is_text and not cell.strip())  # noqa: PLR0124 (NaN)
        content[str(name)] = None if is_empty else nfc(cell.strip()) if is_text else cell
        if is_text and _UNSHOWN.search(cell.strip()):
            raise DataError(f"{location}, {str(name)!r}: has a character that no page can show; remove it")
        if name in _NEEDED and (is_empty or not is_text):
            raise DataError(f"{location}, {name!r}: {'is empty' if is_empty else 'holds no text'}")
    return content


def by_queue(items: Sequence[TrainingItem]) -> dict[Queue, list[TrainingItem]]:
    """Return the training pairs of each training dataset, one for each pair of languages."""
    items_by_queue: dict[Queue, list[TrainingItem]] = {}
    for item in items:
        items_by_queue.setdefault(Queue(POOL, item.pair.language, item.pair.output_language), []).append(item)
    return items_by_queue


def training_rubric(rubric: Rubric, items: Sequence[TrainingItem]) -> Rubric:
    """Return the rubric of a training dataset: a question is asked there if any of the items is asked it.

    Its words leave out the meanings that points have for one transformation only; they give the reasons of answers.
    """
    pools = {item.pair.pool for item in items}
    content = rubric.model_dump()
    for question, scale in zip(content["questions"], rubric.asked(), strict=True):
        if scale.pools and pools & set(scale.pools):
            question["pools"] = (*scale.pools, POOL)
            question["required"] = scale.required and pools <= set(scale.pools)
    words = {name: {code: by_code[name] for code, by_code in packaged(WORDS).items()} for name in ("title", "about")}
    content["pools"][POOL] = {"title": words["title"], "asked": words["about"]}
    return Rubric.model_validate(content)


@dataclass(frozen=True)
class Solution:
    """The right answers to a known pair, with the reason, in a rater's language."""

    answers: tuple[tuple[str, str], ...]  #: a question with its right answer, in words
    reason: str  #: empty if none was given
    words: Mapping[str, str]  #: the words shown with known pairs
    language: str


def solution(item: TrainingItem, rubric: Rubric) -> Solution:
    """The item's right answers in the words of its pool, and why, in the language that its raters are addressed in."""
    pair = item.pair
    language = rubric.language_for(pair.language, pair.output_language)
    expected, answers = expected_of(pair), []
    for entry, question in rubric.asked_questions(pair.pool):
        if question.name in expected:
            answer = question.answer_in_words(expected[question.name], rubric.meaning(pair.pool, entry, language)[1])
            answers.append((worded(entry.title, language), answer))
    reason = item.reasons.get(language) or item.reasons.get(ENGLISH) or next(iter(item.reasons.values()), "")
    return Solution(tuple(answers), reason, words_in(WORDS, language), language)


def folded(solution: Solution) -> str:
    """Return a solution as HTML that is folded until opened."""
    return f"<details><summary>{plain(solution.words['open'])}</summary>{solved(solution)}</details>"


def solved(solution: Solution) -> str:
    """A solution as HTML, in which every text is data, and in Markdown too."""
    rows = "".join(f"<li>{plain(title)} <b>{plain(answer)}</b></li>" for title, answer in solution.answers)
    reason = f"<p><b>{plain(solution.words['why'])}</b> {plain(solution.reason)}</p>" if solution.reason else ""
    return f"<p><b>{plain(solution.words['right'])}</b></p><ul>{rows}</ul>{reason}"


def plain(text: str) -> str:
    """A text in one line, of which neither HTML nor Markdown takes any character for its own."""

    def safe(character: str) -> str:
        return (
            character if character.isalnum() or character == " " or not character.isascii() else f"&#{ord(character)};"
        )

    return "<br>".join("".join(map(safe, row)) for row in text.splitlines())


TRAINED = RecordFile("training.json", TrainingResult, "collect")


def read_trained(records: CampaignRecords) -> list[TrainingResult]:
    """Return raters' results on known pairs when answers were last collected.

    Empty before that, or without known pairs.
    """
    return records.models(TRAINED) if records.study.training and records.has(TRAINED) else []


def by_trained(rows: Sequence[TrainingResult]) -> pd.DataFrame:
    """A row for each rater: rater_id, simulated, `items` (asked), `answered`, `judged`, `right`."""
    names = ["rater_id", "simulated", "answered", "judged", "right"]
    frame = pd.DataFrame([[getattr(result, name) for name in names] for result in rows], columns=names)
    frame = frame.astype({"answered": int, "judged": int, "right": int})
    totals = frame.assign(items=1).groupby(["rater_id", "simulated"], as_index=False).sum()
    return totals[["rater_id", "simulated", "items", "answered", "judged", "right"]]
