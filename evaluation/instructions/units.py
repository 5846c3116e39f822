"""Units of scoring: each data set under the model's own prompt, under none, and every accepted wording."""

from __future__ import annotations

import functools
import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from annotation.campaign_records import LOOKS
from annotation.counting import counting_ratings
from annotation.questions.label import SingleLabelQuestion
from annotation.rubric import Rubric
from annotation.subjects import RowReader
from annotation.verdicts.conclusion import looked_at
from annotation.verdicts.evidence import Evidence
from evaluation.instructions.scores import ACCEPTABLE, DEFAULT, NONE, SCORES, Label, PromptScore
from evaluation.records import MADE
from evaluation.stored import StoredResults
from evaluation.tasks import scoring
from evaluation.tasks.protocols import METRICS, Protocol
from evaluation.units import UNKNOWN, Model, content_id
from evaluation.work import versions
from generation.datasets.dataset import Dataset
from generation.datasets.loading import iter_datasets
from generation.datasets.mteb_tasks import MtebTask
from generation.instructions.calls import asked_of
from generation.instructions.wordings import LABELS, Instruction, read_wordings
from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.manifest import StudyRecords
from plumbline.records import Record
from plumbline.study import Study
from plumbline.study.evaluation import EvaluationSpec
from plumbline.words import count


@dataclass(frozen=True)
class WordingLabel:
    """Raters' decision on a wording: the majority label, and the `reason` if it is not acceptable."""

    label: Label = ""
    n_raters: int = 0
    reason: str = "nobody has labelled it"
    simulated: bool = False

    @property
    def accepted(self) -> bool:
        """True if the wording may be evaluated."""
        return self.label == ACCEPTABLE


def decide(answers: Sequence[str], min_raters: int) -> WordingLabel:
    """Return the label that more than half of the raters gave.

    >>> decide(["acceptable", "acceptable", "unnatural"], 2).label
    'acceptable'
    >>> decide(["acceptable", "unnatural"], 2).reason
    'no label was chosen by more than half of the 2 raters'
    """
    n = len(answers)
    if n < min_raters:
        return (
            WordingLabel(n_raters=n, reason=f"labelled by {count(n, 'rater')}, but {min_raters} are needed")
            if n
            else WordingLabel()
        )
    for label in LABELS:
        if 2 * answers.count(label) > n:
            why = "" if label == ACCEPTABLE else f"{label}, by {answers.count(label)} of {n} raters"
            return WordingLabel(label, n, why)
    return WordingLabel(n_raters=n, reason=f"no label was chosen by more than half of the {n} raters")


def labelled(evidence: Evidence, wordings: Sequence[Instruction]) -> Mapping[str, WordingLabel]:
    """Return the decision on each wording, by prompt_id.

    Raises DataError if no look at the verdicts is on record since anything changed, StudyError for a rubric that does
    not ask for these labels.
    """
    study = evidence.study
    looked_at(evidence)
    question = _label_question(evidence.rubric)
    if not question:
        raise StudyError(
            f"{study.file}: rubric {study.rubric!r} has no question with the labels {', '.join(LABELS)}; write"
            " `rubric: instructions`"
        )
    counting = counting_ratings(evidence.collected.sample_ratings, study.raters.per_pair)
    of_question = counting[counting["question"] == question]
    answers: pd.Series = of_question.groupby("pair_id")["answer"].agg(list)
    simulated: pd.Series = of_question.groupby("pair_id")["simulated"].any()
    decisions = {}
    items = RowReader(study, evidence.rubric).items()
    pair_ids = [item.pair(study.kinds[item.group]).pair_id for item in items if not item.expected]
    for wording, pair_id in zip(wordings, pair_ids, strict=True):
        decision = decide(list(answers.get(pair_id, [])), study.acceptance.min_raters)
        by_program = bool(simulated.get(pair_id, False))
        decisions[wording.prompt_id] = WordingLabel(decision.label, decision.n_raters, decision.reason, by_program)
    return decisions


def unlabelled(folder: Path) -> bool:
    """Return whether nobody has decided on the wordings of a study's folder yet."""
    return not (folder / LOOKS.name).exists()


def _label_question(rubric: Rubric) -> str:
    """Return the question whose labels decide on wordings; empty without one."""
    questions = (question for question in rubric.asked() if isinstance(question, SingleLabelQuestion))
    return next((question.name for question in questions if set(LABELS) <= set(question.labels)), "")


@dataclass(frozen=True)
class PromptChoice:
    """A prompt to evaluate. `text` is None for the model's own, empty for none."""

    prompt_id: str
    text: str | None
    source: str = ""
    label: Label = ""
    simulated: bool = False


OWN = PromptChoice(DEFAULT, None)
NOTHING = PromptChoice(NONE, "")


@dataclass(frozen=True)
class PromptUnit:
    """One data set under one prompt; `reason` says why it is not scored, else it is empty."""

    dataset: Dataset
    content_id: str
    wanted: PromptChoice
    reason: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Its key among a model's units: data set and prompt."""
        return self.dataset.name, self.wanted.prompt_id

    @property
    def parts(self) -> list[tuple[str, str]]:
        """The scored splits and subsets, as mteb names them."""
        if isinstance(self.dataset, MtebTask):
            return [(self.dataset.loaded.split, subset) for subset in self.dataset.loaded.task.dataset]
        return [("test", "default")]

    def unit_id(self, protocol: Protocol, model: Model) -> str:
        """Return the identity of its scores: the data, the model, the prompt and template, protocol and libraries."""
        text = self.wanted.text
        prompt = DEFAULT if text is None else hashlib.sha256(text.encode()).hexdigest()
        template = "" if text is None else model.spec.instruction_template
        measure = [protocol, METRICS[self.dataset.task], _versions()]
        return identity("prompt-score-v1", self.content_id, model.model_id, template, *measure, prompt)


def run_id(evaluation: EvaluationSpec) -> str:
    """Return the identity of a run: the libraries, protocol and precision that make scores comparable."""
    return identity("prompt-run-v1", _versions(), evaluation.protocol, evaluation.precision)[:12]


def plan(study: Study, *, include_unaccepted: bool = False) -> list[PromptUnit]:
    """Return every unit of a study, data set by data set: the default, none, then the wordings in their order.

    Unaccepted wordings have a reason, unless they are included. Raises DataError without wordings or verdicts, and for
    data sets that cannot be read.
    """
    asked_of(study)
    if not study.evaluation.models:
        raise StudyError(f"{study.file}: no models to score; add `evaluation` with `models`")
    wordings = read_wordings(study)
    decisions = {} if include_unaccepted and unlabelled(study.folder) else labelled(Evidence.open(study), wordings)
    return [
        unit
        for spec, dataset in zip(study.datasets, iter_datasets(study), strict=True)
        for unit in _units(
            dataset,
            content_id(spec, dataset),
            wordings,
            decisions,
            unusable=scoring.unusable(dataset, study.evaluation.protocol),
            include_unaccepted=include_unaccepted,
        )
    ]


def _units(
    dataset: Dataset,
    content: str,
    wordings: Sequence[Instruction],
    decisions: Mapping[str, WordingLabel],
    *,
    unusable: str,
    include_unaccepted: bool,
) -> Iterator[PromptUnit]:
    for choice in (OWN, NOTHING):
        yield PromptUnit(dataset, content, choice, unusable)
    for wording in wordings:
        if wording.serves(dataset.name, dataset.task):
            decided = decisions.get(wording.prompt_id, WordingLabel())
            wanted = PromptChoice(wording.prompt_id, wording.text, wording.source, decided.label, decided.simulated)
            refused = "" if decided.accepted or include_unaccepted else decided.reason
            yield PromptUnit(dataset, content, wanted, unusable or (f"not accepted: {refused}" if refused else ""))


@functools.cache
def _versions() -> str:
    """Return the libraries that make scores, without our version: its relevant parts are in the identities."""
    return ", ".join(part for part in versions().split(", ") if not part.startswith("plumbline "))


COMMAND = "sensitivity"
WRITE_SECONDS = 10.0


class InstructionScore(PromptScore):
    """A row of the table, with its identity."""

    unit_id: str = Field(
        default="", description="hash of everything that affects the score; scores with the same hash are reused"
    )
    versions: str = Field(default="", description="packages that computed the score, with their versions")


class UnitRows(Record):
    """All rows of a unit (`made/instructions/<unit_id>.json`)."""

    rows: tuple[InstructionScore, ...] = Field(min_length=1, description="rows, one for each subset")


class PromptResults:
    """The rows of a run: the valid ones of earlier runs, and the units left to score (`todo`)."""

    def __init__(self, records: StudyRecords, units: Sequence[PromptUnit], models: Sequence[Model]) -> None:
        self.study, self.units, self.models = records.study, units, models
        self._records = records
        self._stored = StoredResults(self.study.folder / MADE / "instructions", UnitRows)
        self._written = -math.inf
        ids = {self.unit_id(unit, model) for model in models for unit in units}
        self._rows = {unit_id: stored.rows for unit_id in ids if (stored := self._stored.get(unit_id))}
        self._failed: dict[str, str] = {}
        self.kept = len(self._rows)

    def unit_id(self, unit: PromptUnit, model: Model) -> str:
        """Return the identity of a unit's scores by a model of this study."""
        return unit.unit_id(self.study.evaluation.protocol, model)

    def todo(self, model: Model) -> list[PromptUnit]:
        """Return the units that a model has left, without those that have a reason."""
        return [unit for unit in self.units if not unit.reason and self.unit_id(unit, model) not in self._rows]

    def save(self, model: Model, unit: PromptUnit, rows: Sequence[InstructionScore]) -> None:
        """Store a unit's rows; they are on disk when this returns."""
        unit_id = self.unit_id(unit, model)
        self._stored.add(unit_id, UnitRows(rows=tuple(rows)))
        self._rows[unit_id] = tuple(rows)
        if time.monotonic() - self._written > WRITE_SECONDS:
            self.write()

    def fail(self, model: Model, reason: str) -> None:
        """Record why a model could not be evaluated; its earlier scores stay."""
        self._failed[model.name] = reason

    def write(self) -> None:
        """Write the table of all rows, in the study's order."""
        begun = [model for model in self.models if self._begun(model)]  # one that never ran has no rows
        rows = [row for model in begun for unit in self.units for row in self._of(model, unit)]
        self._records.noted.write_table(SCORES, rows, InstructionScore)
        self._written = time.monotonic()

    def row(self, model: Model, unit: PromptUnit, **fields: Any) -> InstructionScore:
        """Return a row of a unit."""
        wanted = unit.wanted
        return InstructionScore.model_validate(
            {
                "model": model.name, "revision": model.revision or UNKNOWN, "task": unit.dataset.name,
                "task_type": unit.dataset.task, "metric": METRICS[unit.dataset.task], "prompt_id": wanted.prompt_id,
                "text": wanted.text or "", "source": wanted.source, "label": wanted.label,
                "simulated": wanted.simulated,
                "dataset_revision": unit.dataset.revision, "run": run_id(self.study.evaluation), **fields,
            }
        )  # fmt: skip

    def unscored(self, model: Model, unit: PromptUnit, reason: str, **fields: Any) -> list[InstructionScore]:
        """Return the rows of a unit without a score, with the reason."""
        return [
            self.row(model, unit, split=split, subset=subset, score=math.nan, reason=reason, **fields)
            for split, subset in unit.parts
        ]

    def _of(self, model: Model, unit: PromptUnit) -> Iterator[InstructionScore]:
        """Yield a unit's rows for the table: its scores with the present label, or the reason for none."""
        rows = () if unit.reason else self._rows.get(self.unit_id(unit, model), ())
        says = self.row(model, unit, score=math.nan)
        now = {name: getattr(says, name) for name in ("model", "source", "label", "simulated")}
        for row in rows:
            yield row.model_copy(update={**now, "prompt_id": says.prompt_id})
        reason = unit.reason or self._failed.get(model.name, "")
        if not rows and reason:
            yield from self.unscored(model, unit, reason)

    def _begun(self, model: Model) -> bool:
        return model.name in self._failed or any(self.unit_id(unit, model) in self._rows for unit in self.units)
