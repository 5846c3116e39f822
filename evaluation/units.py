"""What is scored: a unit for each data set, transformation and seed, by each of the study's models.

A unit knows what the gate says about it, the texts that it would score, and the identity of those texts; with
a model and a protocol that identity becomes the score's `unit_id`.
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluation import gate
from evaluation.models.encoder import ModelHost
from evaluation.models.in_process import fingerprint
from evaluation.tasks.protocols import METRICS, Protocol
from evaluation.texts import Outputs, Texts, same_items, transformed
from generation.datasets.dataset import Dataset
from plumbline.identity import identity
from plumbline.records import Pair, Score
from plumbline.study.datasets import DatasetSpec, TaskType
from plumbline.study.evaluation import EvaluationSpec, ModelSpec
from plumbline.transformations import ORIGINAL

UNKNOWN = "unknown"  # a revision that neither the study nor the model names
UNDEFINED = "the metric is undefined: all similarities, or all gold values, are equal"
UNDEFINED_ORIGINAL = "on the original texts of the same items the metric is undefined"

Place = tuple[str, str, int]  # data set, transformation, seed


@functools.cache
def _mteb_version() -> str:
    return importlib.metadata.version("mteb")  # reads a file, and a study may have thousands of units


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
    def of(cls, host: ModelHost, spec: ModelSpec) -> Model:
        """The model of a spec; a local one's files are read for it."""
        revision = spec.revision or fingerprint(spec, host.file.parent)[:32]
        return cls(spec, host.label(spec), revision, host.model_id(spec))

    @classmethod
    def all_of(cls, host: ModelHost) -> list[Model]:
        """All of a study's models, in its order."""
        return [cls.of(host, spec) for spec in host.evaluation.models]


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
class ScoreUnit:
    """One data set as it is, or as one transformation with one seed left it, without its texts.

    `languages` are the codes of its texts, sorted; `n` counts the items that are scored, `n_failed` those whose outputs
    failed (classification's train split among them). `sampled` has the pairs that people were shown, by the texts (ids)
    that they are of. `state` is another one once any of this could be another; empty where that is not known.
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
    unread: bool = False  #: whether the gate left it out before its outputs were looked at
    state: str = ""
    axis: str = ORIGINAL  #: the transformation's

    @property
    def place(self) -> Place:
        """Where its score stands among a model's."""
        return self.name, self.transformation, self.seed

    @property
    def dataset(self) -> Dataset:
        """The untouched data set, read unless it was the last to be read. DataError where it was changed meanwhile."""
        return self.texts.dataset(self.spec, self.revision)

    @property
    def outputs(self) -> Outputs | None:
        """What stands for its texts, likewise; None for the original, nothing where the gate left it out."""
        if self.transformation == ORIGINAL:
            return None
        return Outputs({}) if self.unread else self.texts.outputs(self.spec, self.transformation, self.seed)

    @property
    def drops(self) -> bool:
        """Whether items are not scored because their outputs failed."""
        return self.n_failed > 0 and self.texts.policy == "drop"

    @property
    def lost(self) -> frozenset[str]:
        """The texts (ids) of these items whose outputs failed."""
        return self.outputs.failed if self.drops and self.outputs is not None else frozenset()

    def data(self) -> Dataset:
        """The data set to be scored."""
        return self.dataset if self.outputs is None else transformed(self.dataset, self.outputs)

    def original(self) -> Dataset:
        """The untouched data set with the same items."""
        return same_items(self.dataset, self.outputs) if self.drops and self.outputs is not None else self.dataset

    def unit_id(self, protocol: Protocol, model: Model) -> str:
        """Identity of the score: what is embedded, by which model, by which protocol and library."""
        return identity(
            "score-v2",
            self.content_id,
            model.model_id,
            protocol,
            METRICS[self.task],
            _mteb_version(),
        )

    def row(self, evaluation: EvaluationSpec, model: Model, numbers: Numbers) -> Score:
        """The record of this unit's score by a model; NaN if left out or undefined."""
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
            failed_policy=self.texts.policy if self.n_failed else "",
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
        )
