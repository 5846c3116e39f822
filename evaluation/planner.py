"""What a study has to score, planned before any model is loaded: its units, with what the gate says and their outputs.

Each table is read once, and the identity of each text's output (its key) is computed once: what comes later finds in
the units which texts the sample's pairs are of.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from annotation.records import Verdict
from evaluation import gate
from evaluation.outputs import Outputs, transformed
from evaluation.rated_outputs import replaced_outputs
from evaluation.tasks import scoring
from evaluation.units import Unit
from generation.datasets.dataset import Dataset
from generation.datasets.loading import iter_datasets
from generation.jobs import Job, Plan
from generation.unit import COMMAND as GENERATE
from generation.unit import refuse_other_outputs
from plumbline.identity import identity
from plumbline.records import Pair, Text, TransformedText
from plumbline.store import read_table
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec, LocalDataset
from plumbline.transformations import ORIGINAL

_COLUMNS = ("key", "status", "output", "flags")  # of a transformed text
Table = dict[str, tuple[str | None, frozenset[str]]]


class Source(Protocol):
    """Where a study's data sets and outputs are: its folder, or a bundle of it."""

    @property
    def plan(self) -> Made:
        """What made the outputs, and which text each is of."""
        ...

    def datasets(self) -> Iterator[Dataset]:
        """The data sets one by one, in the study's order."""
        ...

    def outputs(self, transformation: str, seed: int) -> Table:
        """A unit's outputs by key with their error types: None for those that failed, and no unanswered ones."""
        ...


class Made(gate.Makers, Protocol):
    """What the gate asks, and the job of each text."""

    def job(self, text: Text, transformation: str, seed: int) -> Job:
        """The job whose output stands for this text of this data set."""
        ...


@dataclass(frozen=True)
class Folder:
    """A study's own folder. Raises as `Plan`."""

    study: Study

    @functools.cached_property
    def plan(self) -> Plan:
        """The study's plan."""
        return Plan(self.study)

    def datasets(self) -> Iterator[Dataset]:
        """Its data sets, read from where they are."""
        return iter_datasets(self.study)

    def outputs(self, transformation: str, seed: int) -> Table:
        """What the generator left. Raises DataError for a table that is not the one that was written."""
        file = self.study.transformation_file(transformation, seed)
        refuse_other_outputs(self.study, transformation, seed)
        if not file.exists():
            return {}
        rows = read_table(file, TransformedText, self.study.command(GENERATE), _COLUMNS).to_pylist()
        return {
            row["key"]: (row["output"] if row["status"] == "ok" else None, frozenset(row["flags"]))
            for row in rows
            if row["status"] != "unanswered"
        }


def plan_units(
    study: Study,
    verdicts: Sequence[Verdict],
    pairs: Sequence[Pair],
    *,
    include_rejected: bool = False,
    source: Source | None = None,
) -> list[Unit]:
    """Every unit of a study, in the order of its data sets: the original, then transformations and seeds.

    `pairs` are the sample's; `source` has the data sets and outputs, without one the study's folder. Raises DataError
    for data sets or outputs that cannot be read, StudyError for missing prompts.
    """
    source = source or Folder(study)
    planner = _Planner(study, source, verdicts, pairs, include_rejected)
    return [
        unit
        for spec, dataset in zip(study.datasets, source.datasets(), strict=True)
        for unit in planner.units(spec, dataset)
    ]


class _Planner:
    """What all units of a run share: the jobs' identities, the verdicts, and the outputs, each table read once."""

    def __init__(
        self,
        study: Study,
        source: Source,
        verdicts: Sequence[Verdict],
        pairs: Sequence[Pair],
        include_rejected: bool,
    ) -> None:
        self._study, self._verdicts, self._include_rejected = study, verdicts, include_rejected
        self._source, self._plan = source, source.plan
        self._pairs, self._by_key = pairs, {pair.key: pair for pair in pairs}
        self._tables: dict[tuple[str, int], Table] = {}
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
        return Unit(dataset, ORIGINAL, 0, decision, None, content_id(spec, dataset), languages, scoring.size(dataset))

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
            self._plan.makers[transformation].hash,
            self._plan.prompt_hashes[transformation],
            {text: pair for text, job in jobs.items() if (pair := self._by_key.get(job.key)) is not None},
        )

    def _decide(self, transformation: str, task: str, jobs: Iterable[Job]) -> gate.Decision:
        languages: dict[str, set[str]] = {}
        for job in jobs:
            languages.setdefault(job.source_language, set()).add(job.languages[-1])
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

    def _table(self, transformation: str, seed: int) -> Table:
        """A unit's outputs, read once."""
        if (transformation, seed) not in self._tables:
            self._tables[transformation, seed] = self._source.outputs(transformation, seed)
        return self._tables[transformation, seed]


def content_id(spec: DatasetSpec, dataset: Dataset) -> str:
    """Identity of an untouched data set. Its name is in it because mteb looks up prompts by it."""
    if isinstance(spec, LocalDataset):
        return identity("data-v1", spec.name, spec.task, spec.rows, spec.columns, dataset.revision)
    what = spec.model_dump(exclude={"path", "revision", "language", "languages", "gold_scale"})
    return identity("mteb-v1", what, dataset.task, dataset.revision)
