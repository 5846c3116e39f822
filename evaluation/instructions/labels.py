"""What people decided about each wording: the gate before the evaluation.

A wording is acceptable where more than half of at least `acceptance.min_raters` raters say so; it is irrelevant or
unnatural where more than half say that. Anything else is no label, and is not evaluated either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.ratings.ratings import counting_ratings
from annotation.rubric import Rubric, load_rubric
from annotation.subjects.texts import read_texts
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.verdicts import read_verdicts, refuse_stale
from annotation.verdicts.verification import refuse_edited
from evaluation.instructions.scores import ACCEPTABLE, Label
from generation.instructions.people import LABELS
from generation.instructions.records import Instruction
from generation.instructions.tasks import asked_of
from plumbline.errors import StudyError
from plumbline.study import Study


@dataclass(frozen=True)
class Labelled:
    """What raters said of a wording: the label of most, `reason` where it is not acceptable."""

    label: Label = ""
    n_raters: int = 0
    reason: str = "nobody has labelled it"
    simulated: bool = False

    @property
    def accepted(self) -> bool:
        """Whether it may be evaluated."""
        return self.label == ACCEPTABLE


def decide(answers: Sequence[str], min_raters: int) -> Labelled:
    """The label that more than half of raters gave.

    >>> decide(["acceptable", "acceptable", "unnatural"], 2).label
    'acceptable'
    >>> decide(["acceptable", "unnatural"], 2).reason
    'no label has more than half of its 2 raters'
    """
    n = len(answers)
    if n < min_raters:
        return Labelled(n_raters=n, reason=f"labelled by {n} raters, {min_raters} are needed") if n else Labelled()
    for label in LABELS:
        if 2 * answers.count(label) > n:
            said = "" if label == ACCEPTABLE else f"{label}, say {answers.count(label)} of {n} raters"
            return Labelled(label, n, said)
    return Labelled(n_raters=n, reason=f"no label has more than half of its {n} raters")


def labelled(study: Study, wordings: Sequence[Instruction]) -> Mapping[str, Labelled]:
    """What was decided about each wording, by prompt_id.

    Raises DataError without verdicts, and where they do not follow from the ratings; StudyError for a rubric that does
    not ask for these labels.
    """
    verdicts = read_verdicts(study)
    evidence = Evidence.read(study)
    refuse_stale(study, verdicts, evidence.rubric)
    refuse_edited(study, verdicts, evidence)
    question = _question(study, evidence.rubric)
    counting = counting_ratings(evidence.collected.sample_ratings, study.raters.per_pair)
    own = counting[counting["question"] == question]
    answers: pd.Series = own.groupby("pair_id")["answer"].agg(list)
    simulated: pd.Series = own.groupby("pair_id")["simulated"].any()
    found = {}
    for one, pair_id in zip(wordings, _pair_ids(study, evidence.rubric), strict=True):
        made = decide(list(answers.get(pair_id, [])), study.acceptance.min_raters)
        by_program = bool(simulated.get(pair_id, False))
        found[one.prompt_id] = Labelled(made.label, made.n_raters, made.reason, by_program)
    return found


def unlabelled(study: Study) -> bool:
    """Whether nobody has decided anything about the wordings yet."""
    return not (study.folder / "verdicts.json").exists()


def _pair_ids(study: Study, rubric: Rubric) -> list[str]:
    """The ids under which raters saw the wordings, in the file's order, without known items."""
    items = read_texts(study, asked_of(study), rubric or load_rubric(study))
    return [item.pair(study.kinds[item.group]).pair_id for item in items if not item.expected]


def _question(study: Study, rubric: Rubric) -> str:
    for one in rubric.asked():
        if one.kind == "label" and set(LABELS) <= set(one.labels):
            return one.name
    raise StudyError(
        f"{study.file}: rubric {study.rubric!r} has no question with the labels {', '.join(LABELS)}; write"
        " `rubric: instructions`"
    )
