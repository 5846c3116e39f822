"""Score models under wordings of an instruction: each data set under the model's own prompt, none, and all accepted.

The default is scored in the same run, on the same data, as everything that is compared with it. Models that have
nothing left to do are not loaded; one that fails is reported, and the others go on.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from evaluation.instructions.prompted import Prompted
from evaluation.instructions.results import InstructionScore, Results
from evaluation.instructions.units import Unit, plan
from evaluation.models import encoder
from evaluation.tasks.item_scores import Items, measured
from evaluation.tasks.protocols import METRICS
from evaluation.units import UNDEFINED, Model, chosen_models
from evaluation.work import Loader, versions
from plumbline.errors import PlumblineError
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


def evaluate_instructions(
    study: Study, *, models: Sequence[str] = (), include_unaccepted: bool = False, load: Loader = encoder.load
) -> Outcome:
    """Write `instructions/scores.parquet` and `instructions/item_scores.parquet`; `models` names some of the study's.

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
        try:
            with tqdm(total=sum(map(len, todo.values())), unit="score", desc="evaluating") as bar:
                for model in chosen:
                    if todo[model.name]:
                        _evaluate(results, model, todo[model.name], load, outcome, bar)
        finally:
            results.write()
            results.close()
        results.write_items()
    return outcome


def _evaluate(results: Results, model: Model, todo: Sequence[Unit], load: Loader, outcome: Outcome, bar: Any) -> None:
    """Load one model and score what it has left."""
    loaded, study = None, results.study
    try:
        loaded = load(study, model.spec)
        refused = loaded.refuses()
        for unit in todo:
            if refused and unit.wanted.text is not None:
                unit_id = unit.unit_id(study, model)
                rows, items = results.unscored(model, unit, refused, unit_id=unit_id), Items(reason=refused)
            else:
                under = Prompted(loaded, unit.wanted.text, model.spec.instruction_template)
                evaluation = study.evaluation
                result, items = measured(unit.dataset, under, evaluation.protocol, evaluation.batch_size)
                rows = list(_rows(results, model, unit, result, under.effective, loaded.revision))
            results.save(model, unit, rows, items)
            outcome.made += 1
            bar.update()
    except PlumblineError as error:
        outcome.failures[model.name] = str(error)
        results.fail(model, str(error))
        tqdm.write(f"{model.name} failed: {error}", file=sys.stderr)
    finally:
        if loaded is not None:
            outcome.asked, outcome.encoded = outcome.asked + loaded.asked, outcome.encoded + loaded.encoded
            loaded.close()


def _rows(
    results: Results, model: Model, unit: Unit, result: Any, effective: str, revision: str
) -> Iterator[InstructionScore]:
    """A row for each subset that mteb scored."""
    ((split, subsets),) = result.scores.items()
    for one in subsets:
        value = one[METRICS[unit.dataset.task]]
        score = math.nan if value is None else float(value)
        yield results.row(
            model,
            unit,
            revision=model.revision or revision or "unknown",
            split=split,
            subset=one["hf_subset"],
            effective=effective,
            score=score,
            reason=UNDEFINED if math.isnan(score) else "",
            mteb_version=str(result.mteb_version or ""),
            unit_id=unit.unit_id(results.study, model),
            versions=versions(),
        )
