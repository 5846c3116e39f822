"""Score models under wordings of an instruction: each data set under the model's own prompt, none, and all accepted.

The default is scored in the same run, on the same data, as everything that is compared with it. Models that have
nothing left to do are not loaded; one that fails is reported, and the others go on.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tqdm import tqdm

from evaluation.instructions.prompted import Prompted
from evaluation.instructions.results import InstructionScore, Results
from evaluation.instructions.units import Unit, plan
from evaluation.jobs import done
from evaluation.models import encoder
from evaluation.models.encoder import Encoder
from evaluation.tasks.item_scores import Items, measured
from evaluation.tasks.protocols import METRICS
from evaluation.units import UNDEFINED, Model, chosen_models
from evaluation.work import Ended, Job, Loader, versions
from plumbline.store import only_one
from plumbline.study import Study


@dataclass
class Outcome:
    """What a run did: units scored and kept, texts asked of models and encoded, what was not scored, what failed."""

    units: Sequence[Unit]
    made: int = 0
    kept: int = 0
    asked: int = 0
    encoded: int = 0
    failures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """What a model made of a unit: mteb's result, the items, what really stood before texts; or why it refuses."""

    place: tuple[str, str]
    items: Items
    result: Any = None
    effective: str = ""
    revision: str = ""
    versions: str = ""
    refused: str = ""


def evaluate_instructions(
    study: Study,
    *,
    models: Sequence[str] = (),
    include_unaccepted: bool = False,
    cluster: str = "",
    load: Loader = encoder.load,
) -> Outcome:
    """Write `instructions/scores.parquet` and `instructions/item_scores.parquet`; `models` names some of the study's.

    `cluster` is the address of a Ray cluster that does the work (docs/cluster.md); without one it is done here.
    `include_unaccepted` scores what people did not accept, too, to show what the gate keeps out; rows carry the label.
    Raises DataError without wordings or verdicts, StudyError for a model that the study does not have. What a model
    does wrong is in the outcome's `failures`. Scores that are there already are kept, and texts encoded once.

    Source: arXiv 2605.22544, section 2; the default is scored anew instead of taken from a leaderboard.
    """
    chosen = [Model.of(study, spec) for spec in chosen_models(study, models)]
    with only_one(study.scratch / ".evaluation.lock", f"another run is evaluating {study.name!r}"):
        units = plan(study, include_unaccepted=include_unaccepted)
        results = Results(study, units, [Model.of(study, spec) for spec in study.evaluation.models])
        todo = {model.name: results.todo(model) for model in chosen}
        outcome = Outcome(units, kept=sum(len(units) for _ in chosen) - sum(map(len, todo.values())))
        outcome.kept -= len(chosen) * sum(bool(one.reason) for one in units)
        jobs = [
            Job(model, [partial(_score, study, unit, model.spec.instruction_template) for unit in todo[model.name]])
            for model in chosen
            if todo[model.name]
        ]
        try:
            with (
                tqdm(total=sum(map(len, todo.values())), unit="score", desc="evaluating") as bar,
                contextlib.closing(done(study, jobs, load, cluster if jobs else "")) as stream,
            ):
                _take(results, stream, outcome, bar)
        finally:
            results.write()
            results.close()
        results.write_items()
    return outcome


def _take(results: Results, stream: Iterator[tuple[Job, Any]], outcome: Outcome, bar: Any) -> None:
    """Save what is made, in whatever order it comes."""
    units = {unit.place: unit for unit in results.units}
    for job, made in stream:
        model = job.model
        if isinstance(made, Ended):
            outcome.asked, outcome.encoded = outcome.asked + made.asked, outcome.encoded + made.encoded
            if made.failure:
                outcome.failures[model.name] = made.failure
                results.fail(model, made.failure)
                tqdm.write(f"{model.name} failed: {made.failure}", file=sys.stderr)
            continue
        unit = units[made.place]
        if made.refused:
            rows = results.unscored(model, unit, made.refused, unit_id=unit.unit_id(results.study, model))
        else:
            rows = list(_rows(results, model, unit, made))
        results.save(model, unit, rows, made.items)
        outcome.made += 1
        bar.update()


def _score(study: Study, unit: Unit, template: str, model: Encoder) -> Made:
    """A piece of `evaluation.work`: a data set under a prompt."""
    refused = model.refuses() if unit.wanted.text is not None else ""
    if refused:
        return Made(unit.place, Items(reason=refused), refused=refused)
    under, evaluation = Prompted(model, unit.wanted.text, template), study.evaluation
    result, items = measured(unit.dataset, under, evaluation.protocol, evaluation.batch_size)
    return Made(unit.place, items, result, under.effective, model.revision, versions())


def _rows(results: Results, model: Model, unit: Unit, made: Made) -> Iterator[InstructionScore]:
    """A row for each subset that mteb scored."""
    ((split, subsets),) = made.result.scores.items()
    for one in subsets:
        value = one[METRICS[unit.dataset.task]]
        score = math.nan if value is None else float(value)
        yield results.row(
            model,
            unit,
            revision=model.revision or made.revision or "unknown",
            split=split,
            subset=one["hf_subset"],
            effective=made.effective,
            score=score,
            reason=UNDEFINED if math.isnan(score) else "",
            mteb_version=str(made.result.mteb_version or ""),
            unit_id=unit.unit_id(results.study, model),
            versions=made.versions,
        )
