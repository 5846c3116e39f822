"""Units of scoring: each data set under the model's own prompt, under none, and every accepted wording."""

from __future__ import annotations

import functools
import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from annotation.campaign.counting import counting_ratings
from annotation.campaign.records import LOOKS
from annotation.campaign.subjects import RowReader
from annotation.questions.label import SingleLabelQuestion
from annotation.verdicts.conclusion import looked_at
from annotation.verdicts.evidence import Evidence
from evaluation.measures import Fields
from evaluation.records import MADE, MadeRows
from evaluation.score_frames import ACCEPTABLE, DEFAULT, NONE, SCORES, Label, PromptScore
from evaluation.stored import StoredResults
from evaluation.tasks import scoring
from evaluation.tasks.protocols import METRICS, Protocol
from evaluation.units import UNKNOWN, Model, content_id
from evaluation.work import versions
from generation.datasets.dataset import Dataset
from generation.datasets.loading import iter_datasets
from generation.datasets.mteb_tasks import MtebTask
from generation.instructions.wordings import LABELS, Instruction, asked_of, read_wordings
from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.manifest import StudyRecords
from plumbline.study import Study
from plumbline.words import count


@dataclass(frozen=True)
class WordingLabel:
    """Raters' decision on a wording: the majority label, and the `reason` if it is not acceptable."""

    label: Label = ""
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
    if not n:
        return WordingLabel()
    if n < min_raters:
        return WordingLabel(reason=f"labelled by {count(n, 'rater')}, but {min_raters} are needed")
    for label in LABELS:
        if 2 * answers.count(label) > n:
            return WordingLabel(
                label, "" if label == ACCEPTABLE else f"{label}, by {answers.count(label)} of {n} raters"
            )
    return WordingLabel(reason=f"no label was chosen by more than half of the {n} raters")


def labelled(evidence: Evidence, wordings: Sequence[Instruction]) -> Mapping[str, WordingLabel]:
    """Return the decision on each wording, by prompt_id.

    Raises DataError if no look at the verdicts is on record since anything changed, StudyError for a rubric that does
    not ask for these labels.
    """
    study = evidence.study
    looked_at(evidence)
    questions = (question for question in evidence.rubric.asked() if isinstance(question, SingleLabelQuestion))
    name = next((question.name for question in questions if set(LABELS) <= set(question.labels)), "")
    if not name:
        raise StudyError(
            f"{study.file}: rubric {study.rubric!r} has no question with the labels {', '.join(LABELS)}; write"
            " `rubric: instructions`"
        )
    counting = counting_ratings(evidence.collected.sample_ratings, study.raters.per_pair)
    by_pair = dict(iter(counting[counting["question"] == name].groupby("pair_id")))
    items = RowReader(study, evidence.rubric).items()
    pair_ids = [item.pair(study.kinds[item.group]).pair_id for item in items if not item.expected]
    decisions = {}
    for wording, pair_id in zip(wordings, pair_ids, strict=True):
        ratings = by_pair.get(pair_id, counting.head(0))
        decision = decide(list(ratings["answer"]), study.acceptance.min_raters)
        decisions[wording.prompt_id] = replace(decision, simulated=bool(ratings["simulated"].any()))
    return decisions


def unlabelled(folder: Path) -> bool:
    """Return whether nobody has decided on the wordings of a study's folder yet."""
    return not (folder / LOOKS.name).exists()


@dataclass(frozen=True)
class PromptUnit:
    """One data set under one prompt: a wording with its label, the model's own (`text` None), or none (empty).

    `reason` says why it is not scored, else it is empty.
    """

    dataset: Dataset
    content_id: str
    prompt_id: str
    text: str | None
    reason: str = ""
    source: str = ""
    label: Label = ""
    simulated: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """Its key among a model's units: data set and prompt."""
        return self.dataset.name, self.prompt_id

    def unscored(self, reason: str) -> list[Fields]:
        """Return the fields of rows without a score, for each split and subset, as mteb names them."""
        parts = [("test", "default")]
        if isinstance(self.dataset, MtebTask):
            parts = [(self.dataset.loaded.split, subset) for subset in self.dataset.loaded.task.dataset]
        return [{"split": split, "subset": subset, "score": math.nan, "reason": reason} for split, subset in parts]

    def unit_id(self, protocol: Protocol, model: Model) -> str:
        """Return the identity of its scores: the data, the model, the prompt and template, protocol and libraries."""
        prompt = DEFAULT if self.text is None else hashlib.sha256(self.text.encode()).hexdigest()
        template = "" if self.text is None else model.spec.instruction_template
        measure = [protocol, METRICS[self.dataset.task], _versions()]
        return identity("prompt-score-v2", self.content_id, model.model_id, template, *measure, prompt)


def plan(study: Study, *, include_unaccepted: bool = False) -> list[PromptUnit]:
    """Return every unit of a study, data set by data set: the default, none, then the wordings in their order.

    Unaccepted wordings have a reason, unless they are included. Raises DataError without wordings or verdicts, and for
    data sets that cannot be read.
    """
    asked_of(study)
    if not study.evaluation.models:
        raise StudyError(f"{study.file}: no models to score; add `evaluation` with `models`")
    wordings = read_wordings(study)
    decisions = {} if include_unaccepted and unlabelled(study.folder) else labelled(Evidence(study), wordings)
    units = list[PromptUnit]()
    for spec, dataset in zip(study.datasets, iter_datasets(study), strict=True):
        of_dataset = dataset, content_id(spec, dataset)
        unusable = scoring.unusable(dataset, study.evaluation.protocol)
        units += [PromptUnit(*of_dataset, DEFAULT, None, unusable), PromptUnit(*of_dataset, NONE, "", unusable)]
        for wording in wordings:
            if not wording.serves(dataset.name, dataset.task):
                continue
            decided = decisions.get(wording.prompt_id, WordingLabel())
            refused = "" if decided.accepted or include_unaccepted else f"not accepted: {decided.reason}"
            of_wording = wording.prompt_id, wording.text, unusable or refused, wording.source
            units.append(PromptUnit(*of_dataset, *of_wording, decided.label, decided.simulated))
    return units


@functools.cache
def _versions() -> str:
    """Return the libraries that make scores, without our version: its relevant parts are in the identities."""
    return ", ".join(part for part in versions().split(", ") if not part.startswith("plumbline "))


COMMAND = "sensitivity"
WRITE_SECONDS = 10.0


class InstructionScore(PromptScore):
    """A row of the table, with what computed it."""

    versions: str = Field(default="", description="packages that computed the score, with their versions")


class PromptResults:
    """The rows of a run: the valid ones of earlier runs, and the units left to score (`todo`)."""

    def __init__(self, records: StudyRecords, units: Sequence[PromptUnit], models: Sequence[Model]) -> None:
        self.units, self.models = units, models
        self._records, self._evaluation = records, records.study.evaluation
        self._stored = StoredResults(records.study.folder / MADE / "instructions", MadeRows)
        self._written, self._failures = -math.inf, dict[str, str]()
        ids = {self._unit_id(unit, model) for model in models for unit in units}
        self._rows = {unit_id: stored.rows for unit_id in ids if (stored := self._stored.get(unit_id)) and stored.rows}

    def todo(self, model: Model) -> list[PromptUnit]:
        """Return the units that a model has left, without those that have a reason."""
        return [unit for unit in self.units if not unit.reason and self._unit_id(unit, model) not in self._rows]

    def save(self, model: Model, unit: PromptUnit, rows: Sequence[Fields]) -> None:
        """Store the measured fields of a unit's rows; they are on disk when this returns."""
        unit_id = self._unit_id(unit, model)
        self._stored.add(unit_id, MadeRows(rows=tuple(rows)))
        self._rows[unit_id] = tuple(rows)
        if time.monotonic() - self._written > WRITE_SECONDS:
            self.write()

    def fail(self, model: Model, reason: str) -> None:
        """Note why a model could not be evaluated."""
        self._failures[model.name] = reason

    def write(self) -> None:
        """Write the table of all rows, in the study's order."""
        failures = self._failures
        begun = [
            model  # one that never ran has no rows
            for model in self.models
            if model.name in failures or any(self._unit_id(unit, model) in self._rows for unit in self.units)
        ]
        rows = [row for model in begun for unit in self.units for row in self._of(model, unit, failures)]
        self._records.noted.write_table(SCORES, rows, InstructionScore)
        self._written = time.monotonic()

    def _unit_id(self, unit: PromptUnit, model: Model) -> str:
        return unit.unit_id(self._evaluation.protocol, model)

    def _of(self, model: Model, unit: PromptUnit, failures: Mapping[str, str]) -> Iterator[InstructionScore]:
        """Yield a unit's rows: its scores with the present label, or the reason for none."""
        measured = () if unit.reason else self._rows.get(self._unit_id(unit, model), ())
        reason = unit.reason or failures.get(model.name, "")
        run = identity("prompt-run-v1", _versions(), self._evaluation.protocol, self._evaluation.precision)[:12]
        for fields in measured or (unit.unscored(reason) if reason else ()):
            yield InstructionScore.model_validate(
                {
                    "model": model.name, "task": unit.dataset.name, "task_type": unit.dataset.task,
                    "metric": METRICS[unit.dataset.task], "prompt_id": unit.prompt_id, "text": unit.text or "",
                    "source": unit.source, "label": unit.label, "simulated": unit.simulated,
                    "dataset_revision": unit.dataset.revision, "run": run,
                    **fields,
                    "revision": model.revision or fields.get("revision") or UNKNOWN,
                }
            )  # fmt: skip
