"""What is scored: each data set under the model's own prompt, under none, and every wording that people accept."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.ratings.ratings import counting_ratings
from annotation.rubric import Rubric, load_rubric
from annotation.subjects import read_texts
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.verdicts import read_verdicts, refuse_stale
from annotation.verdicts.verification import refuse_edited
from evaluation.instructions.scores import ACCEPTABLE, DEFAULT, NONE, Label
from evaluation.planner import content_id
from evaluation.tasks import scoring
from evaluation.tasks.protocols import METRICS
from evaluation.units import Model
from evaluation.work import versions
from generation.datasets.dataset import Dataset
from generation.datasets.loading import iter_datasets
from generation.datasets.mteb_tasks import MtebTask
from generation.instructions.records import Instruction
from generation.instructions.tasks import asked_of
from generation.instructions.wordings import LABELS, read_wordings
from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.study import Study


@dataclass(frozen=True)
class WordingLabel:
    """What raters said of a wording: the label of most, `reason` where it is not acceptable."""

    label: Label = ""
    n_raters: int = 0
    reason: str = "nobody has labelled it"
    simulated: bool = False

    @property
    def accepted(self) -> bool:
        """Whether it may be evaluated."""
        return self.label == ACCEPTABLE


def decide(answers: Sequence[str], min_raters: int) -> WordingLabel:
    """The label that more than half of raters gave.

    >>> decide(["acceptable", "acceptable", "unnatural"], 2).label
    'acceptable'
    >>> decide(["acceptable", "unnatural"], 2).reason
    'no label has more than half of its 2 raters'
    """
    n = len(answers)
    if n < min_raters:
        return (
            WordingLabel(n_raters=n, reason=f"labelled by {n} raters, {min_raters} are needed") if n else WordingLabel()
        )
    for label in LABELS:
        if 2 * answers.count(label) > n:
            why = "" if label == ACCEPTABLE else f"{label}, say {answers.count(label)} of {n} raters"
            return WordingLabel(label, n, why)
    return WordingLabel(n_raters=n, reason=f"no label has more than half of its {n} raters")


def labelled(study: Study, wordings: Sequence[Instruction]) -> Mapping[str, WordingLabel]:
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
    of_question = counting[counting["question"] == question]
    answers: pd.Series = of_question.groupby("pair_id")["answer"].agg(list)
    simulated: pd.Series = of_question.groupby("pair_id")["simulated"].any()
    decisions = {}
    for wording, pair_id in zip(wordings, _pair_ids(study, evidence.rubric), strict=True):
        decision = decide(list(answers.get(pair_id, [])), study.acceptance.min_raters)
        by_program = bool(simulated.get(pair_id, False))
        decisions[wording.prompt_id] = WordingLabel(decision.label, decision.n_raters, decision.reason, by_program)
    return decisions


def unlabelled(study: Study) -> bool:
    """Whether nobody has decided anything about the wordings yet."""
    return not (study.folder / "verdicts.json").exists()


def _pair_ids(study: Study, rubric: Rubric) -> list[str]:
    """The ids under which raters saw the wordings, in the file's order, without known items."""
    items = read_texts(study, rubric or load_rubric(study))
    return [item.pair(study.kinds[item.group]).pair_id for item in items if not item.expected]


def _question(study: Study, rubric: Rubric) -> str:
    for question in rubric.asked():
        if question.kind == "label" and set(LABELS) <= set(question.labels):
            return question.name
    raise StudyError(
        f"{study.file}: rubric {study.rubric!r} has no question with the labels {', '.join(LABELS)}; write"
        " `rubric: instructions`"
    )


@dataclass(frozen=True)
class PromptChoice:
    """A prompt as it is to be evaluated. `text` is None for the model's own, empty for none at all."""

    prompt_id: str
    text: str | None
    source: str = ""
    generator: str = ""
    context: str = ""
    label: Label = ""
    simulated: bool = False


OWN = PromptChoice(DEFAULT, None)
NOTHING = PromptChoice(NONE, "")


@dataclass(frozen=True)
class PromptUnit:
    """One data set under one prompt; `reason` says why it is not scored, and is empty where it is."""

    dataset: Dataset
    content_id: str
    wanted: PromptChoice
    reason: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Where it stands among a model's: data set and prompt."""
        return self.dataset.name, self.wanted.prompt_id

    @property
    def parts(self) -> list[tuple[str, str]]:
        """The splits and subsets that are scored, as mteb names them."""
        if isinstance(self.dataset, MtebTask):
            return [(self.dataset.loaded.split, subset) for subset in self.dataset.loaded.task.dataset]
        return [("test", "default")]

    def unit_id(self, study: Study, model: Model) -> str:
        """Identity of its scores: the data, the model, the exact prompt and template, protocol and libraries."""
        text = self.wanted.text
        prompt = DEFAULT if text is None else hashlib.sha256(text.encode()).hexdigest()
        template = "" if text is None else model.spec.instruction_template
        measure = [study.evaluation.protocol, METRICS[self.dataset.task], _versions()]
        return identity("prompt-score-v1", self.content_id, model.model_id, template, *measure, prompt)


def run_id(study: Study) -> str:
    """What makes scores comparable beside model and data, whenever they were made: libraries, protocol, precision."""
    return identity("prompt-run-v1", _versions(), study.evaluation.protocol, study.evaluation.precision)[:12]


def plan(study: Study, *, include_unaccepted: bool = False) -> list[PromptUnit]:
    """Every unit of a study, data set by data set: the default, none, then the wordings in their order.

    Wordings that people did not accept have the reason why, but where they are included. Raises DataError where there
    are no wordings, or no verdicts yet, and for data sets that cannot be read.
    """
    asked_of(study)
    if not study.evaluation.models:
        raise StudyError(f"{study.file}: the study has no `evaluation`, so that nothing is scored; add its `models`")
    wordings = read_wordings(study)
    decisions = {} if include_unaccepted and unlabelled(study) else labelled(study, wordings)
    return [
        unit
        for spec, dataset in zip(study.datasets, iter_datasets(study), strict=True)
        for unit in _units(study, dataset, content_id(spec, dataset), wordings, decisions, include_unaccepted)
    ]


def _units(
    study: Study,
    dataset: Dataset,
    content: str,
    wordings: Sequence[Instruction],
    decisions: Mapping[str, WordingLabel],
    include_unaccepted: bool,
) -> Iterator[PromptUnit]:
    unusable = scoring.unusable(dataset, study.evaluation.protocol)
    for choice in (OWN, NOTHING):
        yield PromptUnit(dataset, content, choice, unusable)
    for wording in wordings:
        if wording.serves(dataset.name, dataset.task):
            decided = decisions.get(wording.prompt_id, WordingLabel())
            wanted = PromptChoice(
                wording.prompt_id,
                wording.text,
                wording.source,
                wording.generator,
                wording.context,
                decided.label,
                decided.simulated,
            )
            refused = "" if decided.accepted or include_unaccepted else decided.reason
            yield PromptUnit(dataset, content, wanted, unusable or (f"not accepted: {refused}" if refused else ""))


@functools.cache
def _versions() -> str:
    """The libraries that make scores, without our own version: what of it counts is in the identities."""
    return ", ".join(part for part in versions().split(", ") if not part.startswith("plumbline "))
