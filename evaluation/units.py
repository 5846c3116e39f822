"""What a study has to score: a unit for each data set, transformation and seed, before any model is loaded.

A unit knows what the gate says about it, the texts that it would score, and the identity of those texts; with
a model and a protocol that identity becomes the score's `unit_id`.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from annotation.records import Verdict
from annotation.sampling.sample import read_pairs
from evaluation import gate
from evaluation.models.encoder import model_id
from evaluation.models.in_process import fingerprint
from evaluation.outputs import Outputs, same_items, transformed
from evaluation.rated_outputs import replaced_outputs
from evaluation.tasks import scoring
from evaluation.tasks.protocols import METRICS
from generation.datasets.dataset import Dataset
from generation.datasets.loading import iter_datasets
from generation.jobs import Job, Plan
from generation.unit import COMMAND as GENERATE
from generation.unit import refuse_other_outputs
from plumbline.errors import StudyError, nearest
from plumbline.identity import identity
from plumbline.records import Score, Text, TransformedText
from plumbline.store import read_table
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec, LocalDataset
from plumbline.study.evaluation import ModelSpec
from plumbline.transformations import ORIGINAL, TRANSFORMATIONS

_COLUMNS = ("key", "status", "output", "flags")  # of a transformed text
UNKNOWN = "unknown"  # a revision that neither the study nor the model names
UNDEFINED = "the metric is undefined: all similarities, or all gold values, are equal"
UNDEFINED_ORIGINAL = "on the original texts of the same items the metric is undefined"


Place = tuple[str, str, int]  # data set, transformation, seed
_Table = dict[str, tuple[str | None, frozenset[str]]]


@dataclass(frozen=True)
class Model:
    """A model of a study. `name` is its label in records, `revision` what tells it from others of that name.

    `revision` is empty where only the loaded model knows it (mteb's registered ones), or nobody (a server's).
    """

    spec: ModelSpec
    name: str
    revision: str
    model_id: str

    @classmethod
    def of(cls, study: Study, spec: ModelSpec) -> Model:
        """The model of a spec; a local one's files are read for it."""
        revision = spec.revision or fingerprint(spec, study.file.parent)[:32]
        return cls(spec, label(study, spec), revision, model_id(study, spec))


@dataclass(frozen=True)
class Numbers:
    """What a model made of a unit: its score and that of the same items' original texts.

    `versions` made them; `revision` is what the loaded model called its own.
    """

    score: float = math.nan
    original: float = math.nan
    versions: str = ""
    revision: str = ""


@dataclass(frozen=True)
class Unit:
    """One data set as it is, or as one transformation with one seed left it. `outputs` is None for the original.

    `languages` are the codes of its texts, sorted; `n` counts the items that are scored, `n_failed` those whose outputs
    failed (classification's train split among them).
    """

    dataset: Dataset
    transformation: str
    seed: int
    decision: gate.Decision
    outputs: Outputs | None
    content_id: str
    languages: tuple[str, ...]
    n: int
    n_failed: int = 0
    n_kept_out: int = 0
    generator_hash: str = ""
    prompt_hash: str = ""

    @property
    def place(self) -> Place:
        """Where its score stands among a model's."""
        return self.dataset.name, self.transformation, self.seed

    @property
    def lost(self) -> frozenset[str]:
        """The texts (ids) whose items are not scored because their outputs failed."""
        dropped = self.outputs is not None and self.n_failed and self.outputs.policy == "drop"
        return self.outputs.failed if self.outputs is not None and dropped else frozenset()

    def data(self) -> Dataset:
        """The data set to be scored."""
        return self.dataset if self.outputs is None else transformed(self.dataset, self.outputs)

    def original(self) -> Dataset:
        """The untouched data set with the same items."""
        return same_items(self.dataset, self.outputs) if self.outputs is not None and self.lost else self.dataset

    def unit_id(self, study: Study, model: Model) -> str:
        """Identity of the score: what is embedded, by which model, by which protocol and library."""
        return identity(
            "score-v2",
            self.content_id,
            model.model_id,
            study.evaluation.protocol,
            METRICS[self.dataset.task],
            importlib.metadata.version("mteb"),
        )

    def row(self, study: Study, model: Model, made: Numbers) -> Score:
        """The record of this unit's score by a model; NaN if left out or undefined."""
        kind = TRANSFORMATIONS.get(self.transformation)
        left_out = self.decision.status == "left_out"
        reason = self.decision.reason
        if not left_out and (math.isnan(made.score) or (self.lost and math.isnan(made.original))):
            reason = "; ".join(filter(None, [reason, UNDEFINED if math.isnan(made.score) else UNDEFINED_ORIGINAL]))
        return Score(
            model=model.name,
            dataset=self.dataset.name,
            task_type=self.dataset.task,
            language=", ".join(self.languages),
            transformation=self.transformation,
            axis=kind.axis if kind else ORIGINAL,
            seed=self.seed,
            metric=METRICS[self.dataset.task],
            score=made.score,
            original_score=made.original,
            n=self.n,
            n_failed=self.n_failed,
            n_kept_out=self.n_kept_out,
            failed_policy=self.outputs.policy if self.outputs is not None and self.n_failed else "",
            status=self.decision.status,
            reason=reason,
            unit_id="" if left_out else self.unit_id(study, model),
            model_revision=model.revision or made.revision or UNKNOWN,
            dataset_revision=self.dataset.revision,
            protocol=study.evaluation.protocol,
            precision=study.evaluation.precision,
            generator_hash=self.generator_hash,
            prompt_hash=self.prompt_hash,
            verdict_hash=",".join(self.decision.verdicts),
            versions="" if left_out else made.versions,
        )


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
    return [
        unit
        for spec, dataset in zip(study.datasets, iter_datasets(study), strict=True)
        for unit in planner.units(spec, dataset)
    ]


class _Planner:
    """What all units of a run share: the jobs' identities, the verdicts, and the outputs, each table read once."""

    def __init__(self, study: Study, verdicts: Sequence[Verdict], include_rejected: bool) -> None:
        self._study, self._verdicts, self._include_rejected = study, verdicts, include_rejected
        self._plan = Plan(study)
        self._pairs = read_pairs(study) if verdicts and (study.folder / "pairs.parquet").exists() else []
        self._tables: dict[tuple[str, int], _Table] = {}
        self._others: dict[str, dict[str, str]] = {}
        self._without: dict[tuple[str, str], set[str]] = {}
        for verdict in verdicts:
            self._without.setdefault((verdict.transformation, verdict.language), set()).update(verdict.without)

    def units(self, spec: DatasetSpec, dataset: Dataset) -> Iterator[Unit]:
        """The units of one data set: the original, then transformations and seeds."""
        texts = list({text.text_id: text for text in dataset.texts()}.values())
        original = self._original(spec, dataset, texts)
        yield original
        for name in self._study.transformations:
            for seed in self._study.seeds:
                yield self._changed(original, texts, name, seed)

    def _original(self, spec: DatasetSpec, dataset: Dataset, texts: Iterable[Text]) -> Unit:
        """The unit of the untouched data set; left out if it can give no score at all."""
        reason = scoring.unusable(dataset, self._study.evaluation.protocol)
        decision = gate.Decision("left_out", reason) if reason else gate.Decision("evaluated", "")
        languages = tuple(sorted({text.language for text in texts}))
        return Unit(dataset, ORIGINAL, 0, decision, None, _content_id(spec, dataset), languages, scoring.size(dataset))

    def _changed(self, original: Unit, texts: Sequence[Text], transformation: str, seed: int) -> Unit:
        """The unit of a transformed data set."""
        dataset, decision, outputs = original.dataset, original.decision, Outputs({})
        jobs = {text.text_id: self._plan.job(text, transformation, seed) for text in texts}
        if decision.status != "left_out":
            decision = self._decide(transformation, dataset.task, jobs.values())
        n, n_failed = original.n, 0
        if decision.status != "left_out":
            outputs = self._outputs(jobs, transformation, seed)
            reason = outputs.missing(jobs)
            n_failed = outputs.failed_items(dataset)
            if n_failed and not reason and outputs.policy == "drop":
                left = transformed(dataset, outputs)
                n, reason = scoring.size(left), scoring.unusable(left, self._study.evaluation.protocol)
                what = "failed or were kept out of the sample" if outputs.kept_out else "failed"
                reason = f"without the {n_failed} items whose outputs {what} {reason}" if reason else ""
            decision = replace(decision, status="left_out", reason=reason) if reason else decision
        return Unit(
            dataset,
            transformation,
            seed,
            decision,
            outputs,
            identity("transformed-v2", original.content_id, *outputs.identity()),
            original.languages,
            n,
            n_failed,
            outputs.kept_out_items(dataset),
            self._plan.generator_hash,
            self._plan.prompt_hashes[transformation],
        )

    def _decide(self, transformation: str, task: str, jobs: Iterable[Job]) -> gate.Decision:
        kind = TRANSFORMATIONS[transformation]
        languages: dict[str, set[str]] = {}
        for job in jobs:
            written = kind.output_language(job.source_language, job.language)
            languages.setdefault(job.source_language, set()).add(written)
        decision = gate.decide(
            self._verdicts,
            self._plan,
            transformation=transformation,
            languages=languages,
            task_type=task,
            include_rejected=self._include_rejected,
        )
        replaced = {code: why for code, why in self._replaced(transformation).items() if code in languages}
        return gate.withdrawn(decision, replaced, include_rejected=self._include_rejected)

    def _replaced(self, transformation: str) -> dict[str, str]:
        """Why the sample's pairs are no longer the outputs, by language; looked for where a verdict accepts them."""
        if transformation not in self._others:
            accepted = any(
                one.transformation == transformation and one.decision == "accepted" for one in self._verdicts
            )
            own = [pair for pair in self._pairs if accepted and pair.transformation == transformation]
            self._others[transformation] = replaced_outputs(own, self._table)
        return self._others[transformation]

    def _outputs(self, jobs: Mapping[str, Job], transformation: str, seed: int) -> Outputs:
        """The outputs of a data set's texts."""
        table = self._table(transformation, seed)
        found = {text: table[job.key] for text, job in jobs.items() if job.key in table}
        kept_out = frozenset(
            text
            for text, (output, flags) in found.items()
            if output is not None and flags & self._without.get((transformation, jobs[text].source_language), set())
        )
        return Outputs(
            {text: output for text, (output, _) in found.items() if output is not None and text not in kept_out},
            kept_out.union(text for text, (output, _) in found.items() if output is None),
            self._study.evaluation.failed,
            kept_out,
        )

    def _table(self, transformation: str, seed: int) -> _Table:
        """A unit's outputs by key with their error types: None for those that failed, and no unanswered ones."""
        if (transformation, seed) not in self._tables:
            file = self._study.transformation_file(transformation, seed)
            refuse_other_outputs(self._study, transformation, seed)
            rows = (
                read_table(file, TransformedText, self._study.command(GENERATE), _COLUMNS).to_pylist()
                if file.exists()
                else []
            )
            self._tables[transformation, seed] = {
                row["key"]: (row["output"] if row["status"] == "ok" else None, frozenset(row["flags"]))
                for row in rows
                if row["status"] != "unanswered"
            }
        return self._tables[transformation, seed]


def _content_id(spec: DatasetSpec, dataset: Dataset) -> str:
    """Identity of an untouched data set. Its name is in it because mteb looks up prompts by it."""
    if isinstance(spec, LocalDataset):
        return identity("data-v1", spec.name, spec.task, spec.rows, spec.columns, dataset.revision)
    what = spec.model_dump(exclude={"path", "revision", "language", "languages"})
    return identity("mteb-v1", what, dataset.task, dataset.revision)
