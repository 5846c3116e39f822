"""Embedding models on a human study's sampled tasks: what is left to score is scored, each result a file of its own.

A file appears whole or not at all, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from annotation.human.rehearsing import read_items
from annotation.human.tasks import read_tasks
from evaluation.human.records import MADE, ModelMade
from evaluation.human.sampled import Sampled, sampled
from evaluation.human.scored import metric_of, protocol_of, score, why_unusable
from evaluation.models.in_process import first_line
from evaluation.units import UNDEFINED, UNKNOWN, Model
from evaluation.work import Loader, versions
from generation.datasets.loading import load_dataset
from plumbline.errors import DataError, PlumblineError
from plumbline.identity import identity
from plumbline.reading import read_json
from plumbline.store import write_json
from plumbline.study import Study

_SEAL = "identity"


@dataclass
class Outcome:
    """What a run did: scores made and kept, texts asked of models and encoded, and which models failed, and why."""

    made: int = 0
    kept: int = 0
    asked: int = 0
    encoded: int = 0
    failures: dict[str, str] = field(default_factory=dict)


def sampled_tasks(study: Study) -> list[Sampled]:
    """The items that people of a study saw, as sampled tasks, task by task.

    Raises DataError before items are drawn, and where a data set is not the one that they were drawn from.
    """
    tasks, specs = read_tasks(study), {one.name: one for one in study.datasets}
    items = read_items(study)
    found, data = list[Sampled](), {}
    for task in tasks:
        if task.dataset not in data:
            data[task.dataset] = load_dataset(specs[task.dataset], study.file.parent)
        dataset = data[task.dataset]
        if dataset.revision != task.revision:
            raise DataError(
                f"data set {dataset.name!r} is not the one that the items of {task.task!r} were drawn from; bring back"
                f" revision {task.revision}"
            )
        found += sampled(dataset, task, [one for one in items if one.task == task.task])
    return found


def score_models(study: Study, samples: Sequence[Sampled], models: Sequence[Model], load: Loader) -> Outcome:
    """Score models on sampled tasks, but where a file has it already."""
    outcome = Outcome()
    due = [one for one in samples if not why_unusable(one, study.evaluation.protocol)]
    todo = {model.name: [one for one in due if _kept(study, model, one) is None] for model in models}
    outcome.kept = len(due) * len(models) - sum(map(len, todo.values()))
    left = sum(map(len, todo.values()))
    with tqdm(total=left, unit="score", desc="evaluating", disable=not left) as bar:
        for model in models:
            if todo[model.name]:
                _score_all(study, model, todo[model.name], load, outcome, bar)
    return outcome


def _score_all(study: Study, model: Model, todo: Sequence[Sampled], load: Loader, outcome: Outcome, bar: Any) -> None:
    """Load one model and score what it has left."""
    loaded, evaluation = None, study.evaluation
    try:
        loaded = load(study, model.spec)
        for one in todo:
            found = score(one, loaded, evaluation.protocol, evaluation.batch_size)
            made = tuple(np.asarray(found.items.parts[0].made, np.float64).tolist()) if found.items.parts else ()
            row = ModelMade(
                unit_id=unit_id(study, model, one), model=model.name,
                revision=model.revision or loaded.revision or UNKNOWN, task=one.task.task, subset=one.subset,
                language=one.language, score=found.score, units=one.units, made=made, measures=found.measures,
                reason=UNDEFINED if math.isnan(found.score) else found.items.reason, versions=versions(),
            )  # fmt: skip
            data = json.loads(row.model_dump_json())
            write_json(_file(study, row.unit_id), {**data, _SEAL: _sealed(data)})
            outcome.made += 1
            bar.update()
    except (PlumblineError, MemoryError, RuntimeError) as error:  # what libraries raise without memory is one of these
        outcome.failures[model.name] = str(error)
        tqdm.write(f"{model.name} failed: {error}", file=sys.stderr)
    finally:
        if loaded is not None:
            outcome.asked, outcome.encoded = outcome.asked + loaded.asked, outcome.encoded + loaded.encoded
            loaded.close()


def made_of(study: Study, models: Sequence[Model], one: Sampled) -> Iterator[ModelMade]:
    """What models made of a sampled task, as far as they were scored."""
    for model in models:
        row = _kept(study, model, one)
        if row is not None:
            yield row.model_copy(update={"model": model.name})


def unit_id(study: Study, model: Model, one: Sampled) -> str:
    """Identity of a model's score on a sampled task: the items and the data set they are of, model, protocol, mteb."""
    of = [one.task.content_hash, one.dataset.name, one.dataset.revision, one.subset, one.language, list(one.units)]
    how = [protocol_of(one, study.evaluation.protocol), metric_of(one), _mteb_version()]
    return identity("human-score-v1", of, model.model_id, how)


@functools.cache
def _mteb_version() -> str:
    return importlib.metadata.version("mteb")


def _file(study: Study, unit: str) -> Path:
    return study.folder / MADE / f"{unit}.json"


def _kept(study: Study, model: Model, one: Sampled) -> ModelMade | None:
    """What a model made of a sampled task in an earlier run. Raises DataError for a file that is damaged."""
    path = _file(study, unit_id(study, model, one))
    if not path.exists():
        return None
    try:
        data = read_json(path)
        edited = data.pop(_SEAL) != _sealed(data)
        row = ModelMade.model_validate(data)
    except (DataError, ValueError, AttributeError, KeyError) as error:
        raise DataError(f"{path} is damaged ({first_line(error)}); delete it: its score is made again") from None
    if edited:
        raise DataError(f"{path} is not what was written (edited by hand); delete it: its score is made again")
    return row


def _sealed(data: object) -> str:
    return identity("human-made-v1", data)
