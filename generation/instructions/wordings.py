"""Records of instructions: the raw replies, the wordings for people, and those removed.

The wordings to label come from replies and people's file; of equal and nearly equal ones one is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from generation.datasets.tables import read_frame, row_number
from generation.instructions.calls import DatasetDescription, InvalidReplyError, wording
from plumbline.errors import DataError, nearest, read_each
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

    @classmethod
    def of(cls, wording: Instruction, replacement: Instruction) -> RemovedWording:
        """Return the record of a wording that another replaces."""
        return cls(text=wording.text, group=wording.group, task=wording.task, kept=replacement.prompt_id)


def prompt_id(text: str, task: str, task_type: str) -> str:
    """Return the identity of a wording for a data set, or, if `task` is empty, for all of a type."""
    return identity("instruction-v1", "task" if task else "type", task or task_type, text)[:16]


def distances(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the normalised Levenshtein distance of each pair: edits over the longer text's length, from 0 to 1."""
    return np.asarray(cdist(texts, texts, scorer=Levenshtein.normalized_distance, dtype=np.float64))


def clusters(matrix: NDArray[np.float64], near: float) -> list[list[int]]:
    """Cluster by average linkage (UPGMA), merging at a distance of at most `near`; return each cluster's members.

    `matrix` has the distances. Of equally near clusters those merge first that scipy takes first.

    >>> clusters(distances(["Find texts", "Find text", "Sort this"]), 0.1)
    [[0, 1], [2]]
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # noqa: PLC0415 (half a second)
    from scipy.spatial.distance import squareform  # noqa: PLC0415 (half a second)

    if len(matrix) < 2:
        return [[index] for index in range(len(matrix))]
    labels = fcluster(linkage(squareform(matrix), "average"), near, "distance")
    return [np.flatnonzero(labels == label).tolist() for label in dict.fromkeys(labels)]


def stand_ins(texts: Sequence[str], near: float, stays: int = 0) -> list[int]:
    """Return for each text the index of the one that replaces it: its own if it is kept.

    A cluster keeps its medoid, the text with the least sum of distances to the others, the first of several. The first
    `stays` texts are always kept: in a cluster with some of them, the nearest replaces each of the others.
    """
    matrix, stand = distances(texts), list(range(len(texts)))
    for members in clusters(matrix, near):
        fixed = [member for member in members if member < stays]
        within = matrix[np.ix_(members, members)].sum(axis=1)
        standing = fixed or [members[int(within.argmin())]]
        for member in members:
            if member not in standing:
                stand[member] = standing[int(matrix[member, standing].argmin())]
    return stand


COMMAND = "instructions"


def one_of_each(candidates: Sequence[Instruction], near: float) -> tuple[list[Instruction], list[RemovedWording]]:
    """Return the wordings without near equals of the same task, and these; the machine's and people's apart.

    Wordings shared by all data sets of a type come first, and replace nearly equal ones of single data sets. A
    machine's wording that a person wrote too, for the same data set or its type, is removed in favour of the person's.
    """
    wordings, removed = list[Instruction](), list[RemovedWording]()

    def thin(shared: Sequence[Instruction], instructions: Sequence[Instruction]) -> list[Instruction]:
        """Return those that are kept, given shared ones, which are all kept."""
        both, stays = [*shared, *instructions], len(shared)
        replacements = stand_ins([instruction.text for instruction in both], near, stays)
        removed.extend(
            RemovedWording.of(both[index], both[stand_in])
            for index, stand_in in enumerate(replacements)
            if index != stand_in
        )
        return [both[index] for index, stand_in in enumerate(replacements) if index == stand_in and index >= stays]

    for source in ("human", "machine"):
        for task_type in dict.fromkeys(instruction.task_type for instruction in candidates):
            of_people = {
                (instruction.text, instruction.task): instruction
                for instruction in wordings
                if source == "machine" and instruction.task_type == task_type
            }
            of_type = list[Instruction]()
            for instruction in candidates:
                if (instruction.source, instruction.task_type) != (source, task_type):
                    continue
                tasks = "", instruction.task
                same = next((theirs for task in tasks if (theirs := of_people.get((instruction.text, task)))), None)
                if same is None:
                    of_type.append(instruction)
                else:
                    removed.append(RemovedWording.of(instruction, same))
            shared = thin([], [instruction for instruction in of_type if not instruction.task])
            wordings += shared
            for task in dict.fromkeys(instruction.task for instruction in of_type if instruction.task):
                wordings += thin(shared, [instruction for instruction in of_type if instruction.task == task])
    order = {instruction.prompt_id: index for index, instruction in reversed(list(enumerate(candidates)))}
    return sorted(wordings, key=lambda instruction: order[instruction.prompt_id]), removed


def read_wordings(study: Study) -> list[Instruction]:
    """Return a study's wordings without known items. Raises DataError if they are missing or were changed."""
    wordings = read_records(study.folder / INSTRUCTIONS, Instruction, study.command(COMMAND))
    Manifest.of(study).refuse_replaced(INSTRUCTIONS, study.command(COMMAND))
    return [instruction for instruction in wordings if not instruction.right]


def worded(text: str, group: str, **fields: object) -> Instruction:
    """Return a wording with its id; `fields` are the other columns."""
    identified = prompt_id(text, str(fields["task"]), str(fields["task_type"]))
    return Instruction.model_validate({"prompt_id": identified, "text": text, "group": group, **fields})


COLUMNS = ("task", "prompt")
Label = Literal["acceptable", "irrelevant", "unnatural"]  # arXiv 2605.22544
LABELS: tuple[Label, ...] = get_args(Label)
MOST = 1000  # wordings of one task: each is compared with each


def by_people(file: Path, key: str, group: str, tasks: Sequence[DatasetDescription]) -> Iterator[Instruction]:
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
    by_type = {task.task_type: ("", task.task_type, task.type_words) for task in tasks}
    tasks_by_name = by_type | {task.name: (task.name, task.task_type, task.words) for task in tasks}

    def read(row: tuple[Any, dict[Any, Any]]) -> Instruction:
        cells = row[1]
        row_name, name = f"{file}: row {row_number(row[0])}", str(cells["task"]).strip()
        if name not in tasks_by_name:
            raise DataError(
                f"{row_name}, field 'task': the study has no data set or task type {name[:60]!r};"
                f" {nearest(name, [*(task.name for task in tasks), *by_type])}"
            )
        try:
            text = wording(str(cells["prompt"]))
        except InvalidReplyError as error:
            raise DataError(f"{row_name}, field 'prompt': {error}") from None
        right = str(cells["label"]).strip() if key == "known" else ""
        if key == "known" and right not in LABELS:
            raise DataError(f"{row_name}, field 'label': {right[:60]!r} is not a label; {nearest(right, list(LABELS))}")
        task, task_type, words = tasks_by_name[name]
        return worded(text, group, generator="", task=task, task_type=task_type, task_words=words, right=right)

    yield from read_each(zip(frame.index, frame.to_dict("records"), strict=True), read)
