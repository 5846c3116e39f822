"""What a study has to score: a unit for each data set, transformation and seed, before any model is loaded.

A unit knows what the gate says about it, the texts that it would score, and the identity of those texts; with
a model and a protocol that identity becomes the score's `unit_id`.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from annotation.records import Verdict
from evaluation import encoder, gate, tasks
from generation.datasets import Dataset, load_dataset
from generation.exceptions import StudyError
from generation.jobs import Plan
from generation.records import Score, identity
from generation.run import read_transformed
from generation.study import DatasetSpec, ModelSpec, Study, nearest
from generation.transformations import ORIGINAL, TRANSFORMATIONS

UNDEFINED = "the metric is undefined: all similarities, or all gold values, are equal"


@dataclass(frozen=True)
class Unit:
    """One data set as it is, or as one transformation with one seed left it. `outputs` is None for the original."""

    dataset: Dataset
    transformation: str
    seed: int
    decision: gate.Decision
    outputs: Mapping[str, str] | None
    content_id: str

    def data(self) -> Dataset:
        """The data set to be scored."""
        return self.dataset if self.outputs is None else tasks.transformed(self.dataset, self.outputs)

    def unit_id(self, study: Study, model: str) -> str:
        """Identity of the score: what is embedded, by which model (`model_id`), by which protocol and library."""
        return identity(
            "score-v1",
            self.content_id,
            model,
            study.evaluation.protocol,
            tasks.METRICS[self.dataset.task],
            importlib.metadata.version("mteb"),
        )

    def row(self, study: Study, spec: ModelSpec, model: str, score: float) -> Score:
        """The record of this unit's score by a model (and its `model_id`); NaN if left out or undefined."""
        kind = TRANSFORMATIONS.get(self.transformation)
        reason = self.decision.reason
        if math.isnan(score) and self.decision.status != "left_out":
            reason = "; ".join(filter(None, [reason, UNDEFINED]))
        return Score(
            model=label(study, spec),
            dataset=self.dataset.name,
            task_type=self.dataset.task,
            language=self.dataset.language,
            transformation=self.transformation,
            axis=kind.axis if kind else ORIGINAL,
            seed=self.seed,
            metric=tasks.METRICS[self.dataset.task],
            score=score,
            n=tasks.size(self.dataset),
            status=self.decision.status,
            reason=reason,
            unit_id="" if self.decision.status == "left_out" else self.unit_id(study, model),
        )


def model_id(study: Study, spec: ModelSpec) -> str:
    """Identity of a model: name and revision, and of a local one its files, which are read for it."""
    return identity("model-v1", spec.name, spec.revision, encoder.fingerprint(spec, study.file.parent))


def label(study: Study, spec: ModelSpec) -> str:
    """The model's name in records and tables; with its revision where the study has two of one name."""
    same = [model for model in study.evaluation.models if model.name == spec.name]
    return spec.name if len(same) == 1 else f"{spec.name}@{spec.revision}"


def chosen_models(study: Study, names: Sequence[str]) -> list[ModelSpec]:
    """The study's models, or those that are named (by name or label). StudyError for a name it does not have."""
    known = {label(study, spec): spec for spec in study.evaluation.models}
    chosen = []
    for name in names:
        found = [spec for key, spec in known.items() if name in (key, spec.name)]
        if not found:
            raise StudyError(f"{study.file}: no model {name!r} in `evaluation.models`; {nearest(name, list(known))}")
        chosen += [spec for spec in found if spec not in chosen]
    return chosen or list(known.values())


def plan_units(study: Study, verdicts: Sequence[Verdict], *, include_rejected: bool = False) -> list[Unit]:
    """Every unit of a study, in the order of its data sets: the original, then transformations and seeds.

    Raises DataError for data sets or outputs that cannot be read, StudyError for missing prompts.
    """
    planner = _Planner(study, verdicts, include_rejected)
    units = []
    for spec in study.datasets:
        dataset = load_dataset(spec, study.resolve(spec.path))
        original = planner.original(spec, dataset)
        units.append(original)
        units += [planner.changed(original, name, seed) for name in study.transformations for seed in study.seeds]
    return units


class _Planner:
    """What all units of a run share: the jobs' identities, the verdicts, and the outputs, each table read once."""

    def __init__(self, study: Study, verdicts: Sequence[Verdict], include_rejected: bool) -> None:
        self._study, self._verdicts, self._include_rejected = study, verdicts, include_rejected
        self._plan = Plan(study)
        self._tables: dict[tuple[str, int], dict[str, str]] = {}

    def original(self, spec: DatasetSpec, dataset: Dataset) -> Unit:
        """The unit of the untouched data set; left out if it can give no score at all."""
        reason = tasks.unusable(dataset, self._study.evaluation.protocol)
        decision = gate.Decision("left_out", reason) if reason else gate.Decision("evaluated", "")
        # The name is in it because mteb looks up prompts by it.
        content = identity("data-v1", spec.name, spec.task, spec.rows, spec.columns, dataset.revision)
        return Unit(dataset, ORIGINAL, 0, decision, None, content)

    def changed(self, original: Unit, transformation: str, seed: int) -> Unit:
        """The unit of a transformed data set."""
        dataset = original.dataset
        jobs = {text.text: self._plan.job(text, transformation, seed) for text in dataset.texts()}
        kind = TRANSFORMATIONS[transformation]
        decision = gate.decide(
            self._verdicts,
            self._plan,
            transformation=transformation,
            language=dataset.language,
            output_languages={kind.output_language(job.source_language, job.language) for job in jobs.values()},
            include_rejected=self._include_rejected,
        )
        if original.decision.status == "left_out":
            decision = original.decision
        outputs: dict[str, str] = {}
        if decision.status != "left_out":
            made = self._outputs(transformation, seed)
            outputs = {text: made[job.key] for text, job in jobs.items() if job.key in made}
            lacking = tasks.missing(dataset, outputs)
            decision = gate.Decision("left_out", lacking) if lacking else decision
        content = identity("transformed-v1", original.content_id, sorted(outputs.items()))
        return Unit(dataset, transformation, seed, decision, outputs, content)

    def _outputs(self, transformation: str, seed: int) -> dict[str, str]:
        """Outputs that did not fail, by the identity of their job; none if the generator never ran."""
        if (transformation, seed) not in self._tables:
            there = self._study.transformation_file(transformation, seed).exists()
            rows = read_transformed(self._study, transformation, seed) if there else []
            self._tables[transformation, seed] = {row.key: row.output for row in rows if row.status == "ok"}
        return self._tables[transformation, seed]
