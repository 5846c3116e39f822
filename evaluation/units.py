"""Units of scoring: one for each data set, transformation and seed, scored by each of the study's models.

A unit has the gate's decision, its texts, and their identity; with a model and a protocol that identity becomes the
score's `unit_id`.

Units are planned before any model is loaded. One data set and the outputs of one unit are in memory at a time; facts
about them are cached, so that a run with nothing left to do reads neither (`plumbline.file_hashes`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from annotation.records import Verdict
from evaluation import gate
from evaluation.models.encoder import ModelHost
from evaluation.records import Numbers
from evaluation.sources import OutputLookup, OutputSource
from evaluation.tasks import scoring
from evaluation.tasks.protocols import METRICS, Protocol
from evaluation.texts import Originals, Outputs, Texts, same_items, transformed
from generation.datasets.dataset import Dataset
from plumbline.hashes import packed, return_unused, set_hash
from plumbline.identity import identity
from plumbline.records import Pair, Score, pair_id
from plumbline.resources import version_of
from plumbline.study.datasets import DatasetSpec, TaskType
from plumbline.study.evaluation import EvaluationSpec, ModelSpec
from plumbline.study.subject import ORIGINAL
from plumbline.words import count

UNKNOWN = "unknown"  # a revision that neither the study nor the model names
UNDEFINED = "the metric is undefined: all similarities, or all gold values, are equal"
UNDEFINED_ORIGINAL = "the metric is undefined on the original texts of the same items"

Place = tuple[str, str, int]  # data set, transformation, seed


@dataclass(frozen=True)
class Model:
    """A model of a study. `name` is its label in records, `revision` tells it from others of that name.

    `revision` is empty if only the loaded model knows it (mteb's registered ones), or nobody does (a server's).
    """

    spec: ModelSpec
    name: str
    revision: str
    model_id: str

    @classmethod
    def of(cls, host: ModelHost, spec: ModelSpec) -> Model:
        """Return the model of a spec, reading a local one's files."""
        revision = spec.revision or host.fingerprint(spec)[:32]
        return cls(spec, host.label(spec), revision, host.model_id(spec))

    @classmethod
    def all_of(cls, host: ModelHost) -> list[Model]:
        """Return all of a study's models, in its order."""
        return [cls.of(host, spec) for spec in host.evaluation.models]


@dataclass(frozen=True)
class ScoreUnit:
    """One data set, untouched or as changed by one transformation with one seed, without its texts.

    `languages` are the codes of its texts, sorted; `n` counts scored items, `n_failed` items whose outputs failed
    (including classification's train split). `sampled` has the pairs shown to people, by the id of their text. `state`
    changes when any of this may change; empty if that is unknown.
    """

    spec: DatasetSpec
    name: str
    task: TaskType
    revision: str
    texts: Texts
    transformation: str
    seed: int
    decision: gate.GateDecision
    content_id: str
    languages: tuple[str, ...]
    n: int
    n_failed: int = 0
    n_kept_out: int = 0
    generator_hash: str = ""
    prompt_hash: str = ""
    sampled: Mapping[str, Pair] = field(default_factory=dict)
    gated_out: bool = False  #: whether the gate left it out before its outputs were read
    state: str = ""
    axis: str = ORIGINAL  #: the transformation's

    @property
    def place(self) -> Place:
        """The key of its score among a model's."""
        return self.name, self.transformation, self.seed

    @property
    def dataset(self) -> Dataset:
        """The untouched data set, read unless it was the last one read. Raises DataError if it changed meanwhile."""
        return self.texts.dataset(self.spec, self.revision)

    @property
    def outputs(self) -> Outputs | None:
        """The outputs of its texts; None for the original, empty if the gate left it out."""
        if self.transformation == ORIGINAL:
            return None
        return Outputs({}) if self.gated_out else self.texts.outputs(self.spec, self.transformation, self.seed)

    @property
    def drops(self) -> bool:
        """True if items are left out because their outputs failed."""
        return self.n_failed > 0

    @property
    def failed_texts(self) -> frozenset[str]:
        """The texts (ids) whose outputs failed, if their items are left out."""
        return self.outputs.failed if self.drops and self.outputs is not None else frozenset()

    def data(self) -> Dataset:
        """Return the data set to score."""
        return self.dataset if self.outputs is None else transformed(self.dataset, self.outputs)

    def original(self) -> Dataset:
        """Return the untouched data set with the same items."""
        return same_items(self.dataset, self.outputs) if self.drops and self.outputs is not None else self.dataset

    def unit_id(self, protocol: Protocol, model: Model) -> str:
        """Return the identity of the score: the texts, the model, the protocol and the library."""
        return identity("score-v1", self.content_id, model.model_id, protocol, METRICS[self.task], version_of("mteb"))

    def row(self, evaluation: EvaluationSpec, model: Model, numbers: Numbers) -> Score:
        """Return the record of this unit's score by a model; NaN if left out or undefined."""
        left_out = self.decision.status == "left_out"
        reason = self.decision.reason
        if not left_out and (math.isnan(numbers.score) or (self.drops and math.isnan(numbers.original))):
            reason = "; ".join(filter(None, [reason, UNDEFINED if math.isnan(numbers.score) else UNDEFINED_ORIGINAL]))
        return Score(
            model=model.name,
            dataset=self.name,
            task_type=self.task,
            language=", ".join(self.languages),
            transformation=self.transformation,
            axis=self.axis,
            seed=self.seed,
            metric=METRICS[self.task],
            score=numbers.score,
            original_score=numbers.original,
            n=self.n,
            n_failed=self.n_failed,
            n_kept_out=self.n_kept_out,
            status=self.decision.status,
            reason=reason,
            unit_id="" if left_out else self.unit_id(evaluation.protocol, model),
            model_revision=model.revision or numbers.revision or UNKNOWN,
            dataset_revision=self.revision,
            protocol=evaluation.protocol,
            precision=evaluation.precision,
            generator_hash=self.generator_hash,
            prompt_hash=self.prompt_hash,
            verdict_hash=",".join(self.decision.verdicts),
            versions="" if left_out else numbers.versions,
            prompts="" if left_out else numbers.prompts,
        )


def replaced_outputs(pairs: Iterable[Pair], outputs: Callable[[str, int], OutputLookup]) -> dict[str, str]:
    """Return why rated pairs no longer match the outputs, by language of the originals; empty if they do.

    `pairs` are one transformation's sample; `outputs` returns the table of a transformation and seed. A changed output
    is refused. A single failed or missing output is not scored, which is reported elsewhere; if all are missing, the
    present outputs are unrated.
    """
    rated_pairs: dict[str, list[tuple[Pair, str | None]]] = defaultdict(list)
    units: dict[tuple[str, int], list[Pair]] = defaultdict(list)
    for pair in pairs:
        units[pair.transformation, pair.seed].append(pair)
    for unit, unit_pairs in units.items():
        if table := outputs(*unit):
            for pair, output in zip(unit_pairs, table.of([pair.key for pair in unit_pairs]), strict=True):
                rated_pairs[pair.language].append((pair, output[0] if output else None))
    reasons = {}
    for language, rated in rated_pairs.items():
        replaced = [pair.pair_id for pair, output in rated if output is not None and output != pair.transformed]
        none_left = all(output is None for _, output in rated)
        if replaced or none_left:
            fault = (
                f"{len(replaced)} of {len(rated)} rated texts changed (first pair {min(replaced)[:12]})"
                if replaced
                else "the outputs no longer include any of the rated texts"
            )
            reasons[language] = f"{fault}: restore the rated outputs, or have the new outputs rated in a new study"
    return reasons


def plan_units(
    source: OutputSource, verdicts: Sequence[Verdict], pairs: Sequence[Pair], *, include_rejected: bool = False
) -> list[ScoreUnit]:
    """Return every unit of a study, in the order of its data sets: the original, then transformations and seeds.

    `source` has the data sets and outputs; `pairs` are the sample's. Raises DataError for data sets or outputs that
    cannot be read, StudyError for missing prompts.
    """
    planner = _Planner(source, verdicts, pairs, include_rejected)
    try:
        return [unit for spec in source.study.datasets for unit in planner.units(spec)]
    finally:
        planner.texts.remembered.keep()
        return_unused()


class _Planner:
    """State that all units of a run share: the jobs' identities, the verdicts, and the texts."""

    def __init__(
        self, source: OutputSource, verdicts: Sequence[Verdict], pairs: Sequence[Pair], include_rejected: bool
    ) -> None:
        self._study, self._verdicts, self._include_rejected = source.study, verdicts, include_rejected
        self._source, self._plan = source, source.plan
        self._pairs, self._by_key = pairs, {pair.key: pair for pair in pairs}
        self._others: dict[str, dict[str, str]] = {}
        without: dict[str, dict[str, set[str]]] = {}
        for verdict in verdicts:
            without.setdefault(verdict.transformation, {}).setdefault(verdict.language, set()).update(verdict.without)
        self.texts = Texts(source, without)
        self._remembered = self.texts.remembered

    def units(self, spec: DatasetSpec) -> Iterator[ScoreUnit]:
        """Yield the units of one data set: the original, then transformations and seeds."""
        original = self._original(spec)
        yield original
        for name in self._study.transformations:
            for seed in self._study.seeds:
                yield self._changed(original, name, seed)

    def _original(self, spec: DatasetSpec) -> ScoreUnit:
        """Return the unit of the untouched data set; left out if it can give no score."""
        protocol, revision = self._study.evaluation.protocol, self._source.revision(spec)
        if not revision:
            revision = self.texts.dataset(spec).revision
        state = self._remembered.key("data set", spec.model_dump(mode="json"), revision)

        def find() -> dict[str, Any]:
            dataset = self.texts.dataset(spec, revision)
            return {
                "task": dataset.task,
                "content_id": content_id(spec, dataset),
                "languages": sorted(set(self.texts.originals(spec).languages)),
                "n": scoring.size(dataset),
                "reason": scoring.unusable(dataset, protocol),
            }

        facts = self._remembered.found(self._remembered.key("original", state, protocol), find)
        decision = (
            gate.GateDecision("left_out", facts["reason"]) if facts["reason"] else gate.GateDecision("evaluated", "")
        )
        return ScoreUnit(
            spec,
            spec.name,
            facts["task"],
            revision,
            self.texts,
            ORIGINAL,
            0,
            decision,
            facts["content_id"],
            tuple(facts["languages"]),
            facts["n"],
            state=state,
        )

    def _changed(self, original: ScoreUnit, transformation: str, seed: int) -> ScoreUnit:
        """Return the unit of a transformed data set."""
        decision, requests = original.decision, self._asked(original, transformation, seed)
        if decision.status != "left_out":
            decision = self._decide(transformation, original.task, requests.languages)
        unit = replace(
            original,
            transformation=transformation,
            seed=seed,
            decision=decision,
            generator_hash=self._plan.makers[transformation].hash,
            prompt_hash=self._plan.prompt_hashes[transformation],
            sampled={text: self._by_key[key] for text, key in requests.sampled.items()},
            gated_out=decision.status == "left_out",
            axis=self._study.transforming[transformation].axis,
            state="",
        )
        if unit.gated_out:
            return replace(unit, content_id=Outputs({}).content_id(original.content_id))
        protocol = self._study.evaluation.protocol
        without = {code: sorted(some) for code, some in self.texts.without.get(transformation, {}).items()}
        outputs = self._source.state(transformation, seed)
        key = self._remembered.key("outputs", requests.state, outputs, without, protocol)
        facts = self._remembered.found(key, lambda: self._found(unit, original.content_id))
        reason, drawn = facts.pop("reason"), facts.pop("drawn")
        if reason:
            decision = replace(decision, status="left_out", reason=reason)
        else:
            decision = gate.drawn_from(
                decision,
                self._verdicts,
                unit.place,
                drawn,
                include_rejected=self._include_rejected,
                carry_over=self._study.evaluation.carry_over,
            )
        return replace(unit, decision=decision, state=key, **facts)

    def _found(self, unit: ScoreUnit, original: str) -> dict[str, Any]:
        """Return the facts about a unit's outputs; `original` is the identity of the untouched data set."""
        outputs, originals = (
            unit.texts.outputs(unit.spec, unit.transformation, unit.seed),
            unit.texts.originals(unit.spec),
        )
        n, reason, n_failed = unit.n, outputs.missing(originals.ids), originals.items_of(outputs.failed)
        if n_failed and not reason:
            dropped = transformed(unit.dataset, outputs)
            n, reason = scoring.size(dropped), scoring.unusable(dropped, self._study.evaluation.protocol)
            failure = "failed or were kept out of the sample" if outputs.kept_out else "failed"
            reason = f"without the {count(n_failed, 'item')} whose outputs {failure} {reason}" if reason else ""
        return {
            "n": n,
            "n_failed": n_failed,
            "n_kept_out": originals.items_of(outputs.kept_out),
            "content_id": outputs.content_id(original),
            "reason": reason,
            "drawn": self._drawn(unit, originals, outputs) if not reason else {},
        }

    def _drawn(self, unit: ScoreUnit, originals: Originals, outputs: Outputs) -> dict[str, str]:
        """Return the hash of the usable outputs of each language of the originals, as `Supply.outputs` has it."""
        ids: dict[str, list[str]] = {language: [] for language in originals.languages}
        keys = unit.texts.asked(unit.spec, unit.transformation, unit.seed).keys
        for text, language, key in zip(originals.ids, originals.languages, keys, strict=True):
            if text not in outputs.failed:
                ids[language].append(pair_id(key, outputs.texts[text]))
        return {language: set_hash(packed(some, unit.name)) for language, some in ids.items()}

    def _asked(self, original: ScoreUnit, transformation: str, seed: int) -> _OutputRequests:
        """Return the requests to the generator for a data set's texts."""
        keys = sorted(pair.key for pair in self._pairs if (pair.transformation, pair.seed) == (transformation, seed))
        kind, maker = self._study.transforming[transformation], self._plan.makers[transformation].hash
        fingerprint = bool(self._source.state(transformation, seed)) and original.state
        key = self._remembered.key(
            "asked",
            fingerprint or "",
            transformation,
            seed,
            maker,
            [self._plan.prompt_hashes[transformation]],
            kind.model_dump(mode="json"),
            keys,
        )

        def find() -> dict[str, Any]:
            languages: dict[str, set[str]] = {}
            originals, requests = (
                self.texts.originals(original.spec),
                self.texts.asked(original.spec, transformation, seed),
            )
            for source, language in zip(originals.languages, requests.languages, strict=True):
                languages.setdefault(source, set()).add(language)
            sampled = {text: key for text, key in zip(originals.ids, requests.keys, strict=True) if key in self._by_key}
            return {"languages": {code: sorted(some) for code, some in languages.items()}, "sampled": sampled}

        return _OutputRequests(state=key, **self._remembered.found(key, find))

    def _decide(self, transformation: str, task: str, languages: dict[str, list[str]]) -> gate.GateDecision:
        decision = gate.decide(
            self._verdicts,
            self._plan,
            transformation=transformation,
            languages=languages,
            task_type=task,
            include_rejected=self._include_rejected,
        )
        replaced = {code: reason for code, reason in self._replaced(transformation).items() if code in languages}
        return gate.withdrawn(decision, replaced, include_rejected=self._include_rejected)

    def _replaced(self, transformation: str) -> dict[str, str]:
        """Return why the sample's pairs no longer match the outputs, by language, if a verdict accepts them."""
        if transformation not in self._others:
            accepted = any(
                verdict.transformation == transformation and verdict.decision == "accepted"
                for verdict in self._verdicts
            )
            rated = [pair for pair in self._pairs if accepted and pair.transformation == transformation]
            states = [
                self._source.state(*unit) for unit in sorted({(pair.transformation, pair.seed) for pair in rated})
            ]

            def find() -> dict[str, str]:
                return replaced_outputs(rated, self._source.outputs)

            rows = [[pair.pair_id, pair.key, pair.language, pair.seed, pair.transformed] for pair in rated]
            key = self._remembered.key("rated", transformation, identity(rows), *states)
            self._others[transformation] = self._remembered.found(key, find)
        return self._others[transformation]


@dataclass(frozen=True)
class _OutputRequests:
    """Requests to the generator for a data set's texts: output `languages` by originals', keys of `sampled` texts."""

    state: str
    languages: dict[str, list[str]]
    sampled: dict[str, str]


def content_id(spec: DatasetSpec, dataset: Dataset) -> str:
    """Return the identity of an untouched data set; it includes the name, by which mteb looks up prompts."""
    if not spec.mteb:
        return identity("data-v1", spec.name, spec.task, spec.rows, spec.columns, dataset.revision)
    settings = spec.model_dump(exclude={"path", "revision", "language", "languages", "gold_scale"})
    return identity("mteb-v1", settings, dataset.task, dataset.revision)
