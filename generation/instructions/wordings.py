"""Records of instructions: the raw replies, the wordings for people, and those removed.

The wordings to label come from replies and people's file; of equal and nearly equal ones one is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from rapidfuzz.distance import Levenshtein

from generation.datasets.tables import read_frame, row_number
from generation.instructions.calls import DatasetDescription, InvalidReplyError, wording
from plumbline.errors import DataError, nearest
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.records import Record
from plumbline.store import read_records
from plumbline.study import Study
from plumbline.study.subject import INSTRUCTIONS

REPLIES, REMOVED = "instructions/replies.parquet", "instructions/removed.json"


class Reply(Record):
    """The generator's reply to one call (`instructions/replies.parquet`)."""

    KEY = ("key",)
    key: str = Field(description="hash of the generator, the message, the number of wordings and the seed")
    context: str = Field(description="the generator's context: task_type, description or language")
    task: str = Field(description="the wordings' data set; empty if they are for all data sets of its type")
    task_type: str = Field(description="type of the task")
    raw: str = Field(description="the last answer, unchanged")
    status: Literal["ok", "failed", "unanswered"] = Field(
        description="failed: no valid reply after all attempts; unanswered: no answer, so the next run asks again"
    )
    reason: str = Field(description="why there are no wordings; empty otherwise")
    attempts: int = Field(description="number of answers received")
    model: str = Field(description="the generator's model")
    finished_at: datetime = Field(description="when the last answer was received, UTC")


class Instruction(Record):
    """One wording of an instruction (`instructions/prompts.parquet`): people label it, models read it."""

    KEY = ("prompt_id",)
    prompt_id: str = Field(description="hash of the wording and of its data set or task type")
    text: str = Field(description="the exact wording, in NFC, without blanks around it")
    group: str = Field(
        description="group of wordings with a common verdict: from_ and the generator's context; from_people"
    )
    task: str = Field(description="the wording's data set; empty if the wording is for all data sets of its type")
    task_type: str = Field(description="type of the task, such as sts; always given, also if `task` is empty")
    task_words: str = Field(description="description of the task that raters read beside the wording")
    generator: str = Field(description="the generator's model; empty for people's")
    right: str = Field(default="", description="right label of a known item, which only serves to check raters")

    @property
    def source(self) -> Literal["machine", "human"]:
        """The author of the wording."""
        return "machine" if self.generator else "human"

    @property
    def context(self) -> str:
        """The generator's context, as in `Reply`; empty for people's."""
        return self.group.removeprefix("from_") if self.generator else ""

    def serves(self, task: str, task_type: str) -> bool:
        """Return whether a data set is evaluated under it."""
        return self.task == task if self.task else self.task_type == task_type


class RemovedWording(Record):
    """A wording removed in favour of another (`instructions/removed.json`)."""

    text: str = Field(description="the wording")
    group: str = Field(description="the group that the wording would belong to")
    task: str = Field(description="the wording's data set; empty if the wording was for all data sets of its type")
    kept: str = Field(description="prompt_id of the wording that was kept instead")


def prompt_id(text: str, task: str, task_type: str) -> str:
    """Return the identity of a wording for a data set, or, if `task` is empty, for all of a type."""
    return identity("instruction-v1", "task" if task else "type", task or task_type, text)[:16]


def distances(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the normalised Levenshtein distance of each pair: edits over the longer text's length, from 0 to 1."""
    matrix = np.zeros((len(texts), len(texts)))
    for row, text in enumerate(texts):
        for column in range(row):
            matrix[row, column] = matrix[column, row] = Levenshtein.normalized_distance(text, texts[column])
    return matrix


def clusters(apart: NDArray[np.float64], near: float) -> list[list[int]]:
    """Cluster by average linkage (UPGMA), merging at a distance of at most `near`; return each cluster's members.

    `apart` is the matrix of distances. Of equally near clusters the first two merge.

    >>> clusters(distances(["Find texts", "Find text", "Sort this"]), 0.1)
    [[0, 1], [2]]
    """
    between, members = apart.astype(np.float64), [[index] for index in range(len(apart))]
    np.fill_diagonal(between, np.inf)
    while len(members) > 1:
        first, second = sorted(divmod(int(between.argmin()), len(members)))
        if between[first, second] > near:
            break
        sizes = len(members[first]), len(members[second])
        merged = (sizes[0] * between[first] + sizes[1] * between[second]) / sum(sizes)
        between[first], between[:, first] = merged, merged
        between[first, first] = np.inf
        between = np.delete(np.delete(between, second, axis=0), second, axis=1)
        members[first] = sorted(members[first] + members.pop(second))
    return members


def stand_ins(texts: Sequence[str], near: float, stays: int = 0) -> list[int]:
    """Return for each text the index of the one that replaces it: its own if it is kept.

    A cluster keeps its medoid, the text with the least sum of distances to the others, the first of several. The first
    `stays` texts are always kept: in a cluster with some of them, the nearest replaces each of the others.
    """
    apart, stand = distances(texts), list(range(len(texts)))
    for members in clusters(apart, near):
        fixed = [member for member in members if member < stays]
        within = apart[np.ix_(members, members)].sum(axis=1)
        standing = fixed or [members[int(within.argmin())]]
        for member in members:
            if member not in standing:
                stand[member] = standing[int(apart[member, standing].argmin())]
    return stand


COMMAND = "instructions"


@dataclass(frozen=True)
class WordingSet:
    """The kept wordings, and those removed in favour of others."""

    wordings: Sequence[Instruction]
    removed: Sequence[RemovedWording]


def one_of_each(candidates: Sequence[Instruction], near: float) -> WordingSet:
    """Remove wordings that are nearly another of the same task, the machine's and people's apart.

    Wordings shared by all data sets of a type come first, and replace nearly equal ones of single data sets. A
    machine's wording that a person wrote too, for the same data set or its type, is removed in favour of the person's.
    """
    wordings, removed = list[Instruction](), list[RemovedWording]()
    for source in ("human", "machine"):
        for task_type in dict.fromkeys(instruction.task_type for instruction in candidates):
            of_type = [
                instruction
                for instruction in candidates
                if (instruction.source, instruction.task_type) == (source, task_type)
            ]
            theirs = [
                instruction
                for instruction in wordings
                if instruction.source != source and instruction.task_type == task_type
            ]
            of_type = [instruction for instruction in of_type if not _theirs(instruction, theirs, removed)]
            shared = _thinned([], [instruction for instruction in of_type if not instruction.task], near, removed)
            wordings += shared
            for task in dict.fromkeys(instruction.task for instruction in of_type if instruction.task):
                wordings += _thinned(
                    shared, [instruction for instruction in of_type if instruction.task == task], near, removed
                )
    order = {instruction.prompt_id: index for index, instruction in reversed(list(enumerate(candidates)))}
    return WordingSet(sorted(wordings, key=lambda instruction: order[instruction.prompt_id]), removed)


def read_wordings(study: Study) -> list[Instruction]:
    """Return a study's wordings without known items. Raises DataError if they are missing or were changed."""
    wordings = read_records(study.folder / INSTRUCTIONS, Instruction, study.command(COMMAND))
    Manifest.of(study).refuse_replaced(INSTRUCTIONS, study.command(COMMAND))
    return [instruction for instruction in wordings if not instruction.right]


def _theirs(instruction: Instruction, others: Sequence[Instruction], removed: list[RemovedWording]) -> bool:
    """Return whether the other source has the same wording for the same texts; if so, add it to `removed`."""
    same = next(
        (
            candidate
            for candidate in others
            if candidate.text == instruction.text and candidate.task in ("", instruction.task)
        ),
        None,
    )
    if same is not None:
        removed.append(_removed(instruction, same))
    return same is not None


def _thinned(
    shared: Sequence[Instruction], instructions: Sequence[Instruction], near: float, removed: list[RemovedWording]
) -> list[Instruction]:
    """Return those of `instructions` that are kept, given `shared`, which are all kept."""
    both, wordings = [*shared, *instructions], list[Instruction]()
    for index, stand_in in enumerate(stand_ins([instruction.text for instruction in both], near, len(shared))):
        if stand_in != index:
            removed.append(_removed(both[index], both[stand_in]))
        elif index >= len(shared):
            wordings.append(both[index])
    return wordings


def _removed(instruction: Instruction, stand_in: Instruction) -> RemovedWording:
    return RemovedWording(
        **{name: getattr(instruction, name) for name in ("text", "group", "task")},
        kept=stand_in.prompt_id,
    )


def worded(text: str, group: str, **fields: object) -> Instruction:
    """Return a wording with its id; `fields` are the other columns."""
    identified = prompt_id(text, str(fields["task"]), str(fields["task_type"]))
    return Instruction.model_validate({"prompt_id": identified, "text": text, "group": group, **fields})


COLUMNS = ("task", "prompt")
Label = Literal["acceptable", "irrelevant", "unnatural"]  # arXiv 2605.22544
LABELS: tuple[Label, ...] = get_args(Label)
MOST = 1000  # wordings of one task: each is compared with each


@dataclass(frozen=True)
class PeopleWording:
    """A wording for a data set, or, if `task` is empty, for all of a type."""

    text: str
    task: str
    task_type: str
    right: str = ""  #: the right label of a known item


def by_people(file: Path, key: str, tasks: Sequence[DatasetDescription]) -> Iterator[PeopleWording]:
    """Yield the rows of a file that a key of the subject names, in order; rows of `known` have their right label.

    Raises DataError with file and row for an unusable row.
    """
    columns = (*COLUMNS, *(["label"] if key == "known" else []))
    if not file.is_file():
        raise DataError(f"no file {file}; correct `subject.{key}` in the study")
    frame = read_frame(file)
    for column in columns:
        if column not in frame.columns:
            raise DataError(f"{file}: no column {column!r}; {nearest(column, list(map(str, frame.columns)))}")
    if frame.empty:
        raise DataError(f"{file}: no rows; add wordings, or remove `subject.{key}` from the study")
    name, most = frame["task"].astype(str).str.strip().value_counts().agg(["idxmax", "max"])
    if most > MOST:
        raise DataError(
            f"{file}: {most:,} wordings for {name[:60]!r}; give at most {MOST:,}, as people must label each"
        )
    for row, cells in zip(frame.index, frame.to_dict("records"), strict=True):
        yield _worded(cells, f"{file}: row {row_number(row)}", {task.name: task for task in tasks})


def _worded(cells: Mapping[object, object], where: str, tasks: Mapping[str, DatasetDescription]) -> PeopleWording:
    name, types = str(cells["task"]).strip(), {task.task_type for task in tasks.values()}
    if name not in tasks and name not in types:
        raise DataError(
            f"{where}, field 'task': the study has no data set or task type {name[:60]!r};"
            f" {nearest(name, [*tasks, *types])}"
        )
    try:
        text = wording(str(cells["prompt"]))
    except InvalidReplyError as error:
        raise DataError(f"{where}, field 'prompt': {error}") from None
    right = str(cells["label"]).strip() if "label" in cells else ""
    if "label" in cells and right not in LABELS:
        raise DataError(f"{where}, field 'label': {right[:60]!r} is not a label; {nearest(right, list(LABELS))}")
    return (
        PeopleWording(text, name, tasks[name].task_type, right)
        if name in tasks
        else PeopleWording(text, "", name, right)
    )
