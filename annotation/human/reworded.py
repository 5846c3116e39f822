"""Instructions that changed after tasks were drawn: a study's own may not, and Plumbline's change nothing."""

from __future__ import annotations

from annotation.human.records import TASKS, HumanTask
from annotation.human.wording import instructions_hash, own_words, words_now
from plumbline.errors import StudyError
from plumbline.manifest import read_kept
from plumbline.study import Study
from plumbline.study.human import HumanSubject, HumanTaskSpec


def reworded(study: Study, spec: HumanTaskSpec, drawn: HumanTask) -> bool:
    """Whether a study's own instructions, or its languages, changed since a task was drawn.

    Plumbline's change with its version, and the task keeps those that it was drawn with. Records of versions that kept
    a hash alone do not tell whose changed.
    """
    if not drawn.words.own:
        return drawn.instructions_hash != instructions_hash(study, spec, drawn.task_type)
    if set(drawn.words.wordings) != set(study.wordings):
        return True
    return bool(spec.instructions) and drawn.words.own != own_words(study, spec, drawn.task_type)


def reworded_lines(study: Study) -> list[str]:
    """A line where Plumbline's instructions are others by now than those that the study's tasks were drawn with."""
    if not isinstance(study.subject, HumanSubject):
        return []
    specs = {one.name: one for one in study.subject.tasks}
    drawn = [one for one in read_kept(study, TASKS, HumanTask, "") if one.task in specs and one.words.own]
    other = [one.task for one in drawn if not _as_now(study, specs[one.task], one)]
    if not other:
        return []
    asked = (study.folder / "offered.json").exists()  # another sample is never drawn then
    take = "" if asked else f"; to take the others, run `{study.command('annotation sample')}` again"
    return [
        f"prompts/human/ has other instructions by now for {', '.join(other)}; people and models are asked in those"
        f" that the tasks were drawn with{take}"
    ]


def _as_now(study: Study, spec: HumanTaskSpec, drawn: HumanTask) -> bool:
    try:
        return drawn.words == words_now(study, spec, drawn.task_type)
    except StudyError:  # a file or a language is there no more
        return False
