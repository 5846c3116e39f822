"""From replies and people's file to the wordings that are labelled: equal and nearly equal ones are one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from generation.datasets.tables import read_frame, row_number
from generation.instructions.calls import InvalidReplyError, wording
from generation.instructions.records import Instruction, RemovedWording, prompt_id
from generation.instructions.tasks import DatasetDescription
from plumbline.errors import DataError, nearest
from plumbline.manifest import refuse_replaced_table
from plumbline.store import read_records
from plumbline.study import Study
from plumbline.study.subject import INSTRUCTIONS


def distances(texts: Sequence[str]) -> NDArray[np.float64]:
    """Normalised Levenshtein distance of each with each: edits over the length of the longer one, from 0 to 1."""
    made = np.zeros((len(texts), len(texts)))
    for row, one in enumerate(texts):
        for column in range(row):
            made[row, column] = made[column, row] = Levenshtein.normalized_distance(one, texts[column])
    return made


def clusters(apart: NDArray[np.float64], near: float) -> list[list[int]]:
    """Clusters of average linkage (UPGMA) whose members merged at a distance of at most `near`; each in its order.

    `apart` has the distance of each with each. Of equally near clusters the first two merge.

    >>> clusters(distances(["Find texts", "Find text", "Sort this"]), 0.1)
    [[0, 1], [2]]
    """
    between, members = apart.astype(np.float64), [[place] for place in range(len(apart))]
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
    """For each text the place of the one that stands for it: its own where it is kept.

    A cluster's medoid is kept, the one with the least sum of distances to the others, the first of several. The first
    `stays` texts are kept in any case: where a cluster has some of them, the nearest stands for each of the others.
    """
    apart, stand = distances(texts), list(range(len(texts)))
    for members in clusters(apart, near):
        fixed = [place for place in members if place < stays]
        within = apart[np.ix_(members, members)].sum(axis=1)
        kept = fixed or [members[int(within.argmin())]]
        for place in members:
            if place not in kept:
                stand[place] = kept[int(apart[place, kept].argmin())]
    return stand


COMMAND = "generation.instructions"


@dataclass(frozen=True)
class WordingSet:
    """The wordings that are kept, and those that another stands for."""

    kept: Sequence[Instruction]
    removed: Sequence[RemovedWording]


def one_of_each(found: Sequence[Instruction], near: float) -> WordingSet:
    """The wordings without those that are nearly another of the same task, machine's and people's apart.

    What all data sets of a type share is looked at first, and then stands for what is nearly the same among a data
    set's own. A machine's wording that a person wrote too, for the same data set or its type, is the person's.
    """
    kept, removed = list[Instruction](), list[RemovedWording]()
    for source in ("human", "machine"):
        for task_type in dict.fromkeys(one.task_type for one in found):
            of_type = [one for one in found if (one.source, one.task_type) == (source, task_type)]
            theirs = [one for one in kept if one.source != source and one.task_type == task_type]
            of_type = [one for one in of_type if not _theirs(one, theirs, removed)]
            shared = _thinned([], [one for one in of_type if not one.task], near, removed)
            kept += shared
            for task in dict.fromkeys(one.task for one in of_type if one.task):
                kept += _thinned(shared, [one for one in of_type if one.task == task], near, removed)
    order = {one.prompt_id: place for place, one in reversed(list(enumerate(found)))}
    return WordingSet(sorted(kept, key=lambda one: order[one.prompt_id]), removed)


def read_wordings(study: Study) -> list[Instruction]:
    """A study's wordings, known items aside. Raises DataError where they are not there, or not as they were written."""
    found = read_records(study.folder / INSTRUCTIONS, Instruction, study.command(COMMAND))
    refuse_replaced_table(study, INSTRUCTIONS, study.command(COMMAND))
    return [one for one in found if not one.right]


def wordings_for(wordings: Sequence[Instruction], task: DatasetDescription) -> list[Instruction]:
    """Those that a data set is evaluated under."""
    return [one for one in wordings if one.serves(task.name, task.task_type)]


def _theirs(one: Instruction, others: Sequence[Instruction], removed: list[RemovedWording]) -> bool:
    """Whether another source has the same wording for the same texts; then it is noted."""
    same = next((other for other in others if other.text == one.text and other.task in ("", one.task)), None)
    if same is not None:
        removed.append(_removed(one, same))
    return same is not None


def _thinned(
    shared: Sequence[Instruction], own: Sequence[Instruction], near: float, removed: list[RemovedWording]
) -> list[Instruction]:
    """Of `own` those that stand for themselves, beside `shared`, which all stay."""
    both, kept = [*shared, *own], list[Instruction]()
    for place, stand_in in enumerate(stand_ins([one.text for one in both], near, len(shared))):
        if stand_in != place:
            removed.append(_removed(both[place], both[stand_in]))
        elif place >= len(shared):
            kept.append(both[place])
    return kept


def _removed(one: Instruction, kept: Instruction) -> RemovedWording:
    apart = Levenshtein.normalized_distance(one.text, kept.text)
    return RemovedWording(
        text=one.text, group=one.group, task=one.task, task_type=one.task_type, kept=kept.prompt_id,
        kept_text=kept.text, distance=apart,
    )  # fmt: skip


def machine_wording(text: str, group: str, **found: object) -> Instruction:
    """A wording of the generator's; `found` are the other columns."""
    return _wording(text, group, "machine", found)


def human_wording(text: str, group: str, **found: object) -> Instruction:
    """A wording of a person's."""
    nothing = {"context": "", "generator": "", "generator_kind": "", "prompt_hash": "", "seed": 0}
    return _wording(text, group, "human", {**nothing, **found})


def _wording(text: str, group: str, source: str, found: dict[str, object]) -> Instruction:
    identified = prompt_id(text, str(found["task"]), str(found["task_type"]))
    return Instruction.model_validate(
        {"prompt_id": identified, "text": text, "group": group, "source": source, **found}
    )


COLUMNS = ("task", "prompt")
Label = Literal["acceptable", "irrelevant", "unnatural"]  # arXiv 2605.22544
LABELS: tuple[Label, ...] = get_args(Label)
MOST = 1000  # wordings of one task: each is compared with each


@dataclass(frozen=True)
class PeopleWording:
    """A wording for a data set, or, where `task` is empty, for all of a type."""

    text: str
    task: str
    task_type: str
    right: str = ""  #: the label that is certain, of a known item


def by_people(study: Study, key: str, tasks: Sequence[DatasetDescription]) -> Iterator[PeopleWording]:
    """The rows of the file that a key of the subject names, in its order; those of `known` have their right label.

    Raises DataError with file and row for what cannot be used.
    """
    file, columns = study.resolve(getattr(study.subject, key)), (*COLUMNS, *(["label"] if key == "known" else []))
    if not file.is_file():
        raise DataError(f"no file {file}; correct `subject.{key}` in the study")
    frame = read_frame(file)
    for column in columns:
        if column not in frame.columns:
            raise DataError(f"{file}: no column {column!r}; {nearest(column, list(map(str, frame.columns)))}")
    if frame.empty:
        raise DataError(f"{file}: has no rows; give it wordings, or take `subject.{key}` out")
    name, most = frame["task"].astype(str).str.strip().value_counts().agg(["idxmax", "max"])
    if most > MOST:
        raise DataError(f"{file}: {most:,} wordings for {name[:60]!r}; {MOST:,} are enough, for people label each")
    for row, cells in zip(frame.index, frame.to_dict("records"), strict=True):
        yield _worded(cells, f"{file}: row {row_number(row)}", {one.name: one for one in tasks})


def _worded(cells: Mapping[object, object], where: str, tasks: Mapping[str, DatasetDescription]) -> PeopleWording:
    name, types = str(cells["task"]).strip(), {one.task_type for one in tasks.values()}
    if name not in tasks and name not in types:
        raise DataError(
            f"{where}, field 'task': the study has no data set, and no type of task, {name[:60]!r};"
            f" {nearest(name, [*tasks, *types])}"
        )
    try:
        text = wording(str(cells["prompt"]))
    except InvalidReplyError as error:
        raise DataError(f"{where}, field 'prompt': {error}") from None
    right = str(cells["label"]).strip() if "label" in cells else ""
    if "label" in cells and right not in LABELS:
        raise DataError(f"{where}, field 'label': no label {right[:60]!r}; {nearest(right, list(LABELS))}")
    return (
        PeopleWording(text, name, tasks[name].task_type, right)
        if name in tasks
        else PeopleWording(text, "", name, right)
    )
