"""What is scored: each data set under the model's own prompt, under none, and every wording that people accept."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluation.instructions.labels import Labelled, labelled, unlabelled
from evaluation.instructions.scores import DEFAULT, NONE, Label
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
from generation.instructions.wordings import read_wordings
from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.study import Study


@dataclass(frozen=True)
class Wanted:
    """A prompt as it is to be evaluated. `text` is None for the model's own, empty for none at all."""

    prompt_id: str
    text: str | None
    source: str = ""
    generator: str = ""
    context: str = ""
    label: Label = ""
    simulated: bool = False


OWN = Wanted(DEFAULT, None)
NOTHING = Wanted(NONE, "")


@dataclass(frozen=True)
class Unit:
    """One data set under one prompt; `reason` says why it is not scored, and is empty where it is."""

    dataset: Dataset
    content_id: str
    wanted: Wanted
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


def plan(study: Study, *, include_unaccepted: bool = False) -> list[Unit]:
    """Every unit of a study, data set by data set: the default, none, then the wordings in their order.

    Wordings that people did not accept have the reason why, but where they are included. Raises DataError where there
    are no wordings, or no verdicts yet, and for data sets that cannot be read.
    """
    asked_of(study)
    if not study.evaluation.models:
        raise StudyError(f"{study.file}: the study has no `evaluation`, so that nothing is scored; add its `models`")
    wordings = read_wordings(study)
    said = {} if include_unaccepted and unlabelled(study) else labelled(study, wordings)
    return [
        unit
        for spec, dataset in zip(study.datasets, iter_datasets(study), strict=True)
        for unit in _units(study, dataset, content_id(spec, dataset), wordings, said, include_unaccepted)
    ]


def _units(
    study: Study,
    dataset: Dataset,
    content: str,
    wordings: Sequence[Instruction],
    said: Mapping[str, Labelled],
    include_unaccepted: bool,
) -> Iterator[Unit]:
    unusable = scoring.unusable(dataset, study.evaluation.protocol)
    for own in (OWN, NOTHING):
        yield Unit(dataset, content, own, unusable)
    for one in wordings:
        if one.serves(dataset.name, dataset.task):
            decided = said.get(one.prompt_id, Labelled())
            wanted = Wanted(
                one.prompt_id, one.text, one.source, one.generator, one.context, decided.label, decided.simulated
            )
            refused = "" if decided.accepted or include_unaccepted else decided.reason
            yield Unit(dataset, content, wanted, unusable or (f"not accepted: {refused}" if refused else ""))


@functools.cache
def _versions() -> str:
    """The libraries that make scores, without our own version: what of it counts is in the identities."""
    return ", ".join(one for one in versions().split(", ") if not one.startswith("plumbline "))
