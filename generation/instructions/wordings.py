"""From replies and people's file to the wordings that are labelled: equal and nearly equal ones are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from generation.instructions.near import stand_ins
from generation.instructions.records import Instruction, Removed, prompt_id
from generation.instructions.tasks import TaskWords
from plumbline.manifest import refuse_replaced_table
from plumbline.store import read_records
from plumbline.study import Study
from plumbline.study.subject import INSTRUCTIONS

COMMAND = "generation.instructions"


@dataclass(frozen=True)
class Wordings:
    """The wordings that are kept, and those that another stands for."""

    kept: Sequence[Instruction]
    removed: Sequence[Removed]


def one_of_each(found: Sequence[Instruction], near: float) -> Wordings:
    """The wordings without those that are nearly another of the same task, machine's and people's apart.

    What all data sets of a type share is looked at first, and then stands for what is nearly the same among a data
    set's own. A machine's wording that a person wrote too, for the same data set or its type, is the person's.
    """
    kept, removed = list[Instruction](), list[Removed]()
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
    return Wordings(sorted(kept, key=lambda one: order[one.prompt_id]), removed)


def read_wordings(study: Study) -> list[Instruction]:
    """A study's wordings, known items aside. Raises DataError where they are not there, or not as they were written."""
    found = read_records(study.folder / INSTRUCTIONS, Instruction, study.command(COMMAND))
    refuse_replaced_table(study, INSTRUCTIONS, study.command(COMMAND))
    return [one for one in found if not one.right]


def wordings_for(wordings: Sequence[Instruction], task: TaskWords) -> list[Instruction]:
    """Those that a data set is evaluated under."""
    return [one for one in wordings if one.serves(task.name, task.task_type)]


def _theirs(one: Instruction, others: Sequence[Instruction], removed: list[Removed]) -> bool:
    """Whether another source has the same wording for the same texts; then it is noted."""
    same = next((other for other in others if other.text == one.text and other.task in ("", one.task)), None)
    if same is not None:
        removed.append(_removed(one, same))
    return same is not None


def _thinned(
    shared: Sequence[Instruction], own: Sequence[Instruction], near: float, removed: list[Removed]
) -> list[Instruction]:
    """Of `own` those that stand for themselves, beside `shared`, which all stay."""
    both, kept = [*shared, *own], list[Instruction]()
    for place, stand_in in enumerate(stand_ins([one.text for one in both], near, len(shared))):
        if stand_in != place:
            removed.append(_removed(both[place], both[stand_in]))
        elif place >= len(shared):
            kept.append(both[place])
    return kept


def _removed(one: Instruction, kept: Instruction) -> Removed:
    apart = Levenshtein.normalized_distance(one.text, kept.text)
    return Removed(
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
