"""Embedding models on a human study's sampled tasks: what is left to score is scored, each result a file of its own.

A file appears whole or not at all, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from annotation.human.records import HumanTask
from annotation.human.rehearsing import read_items
from annotation.human.tasks import read_tasks
from evaluation.human.records import MADE, ModelMade
from evaluation.human.sampled import Sampled, sampled
from evaluation.human.scored import metric_of, protocol_of, score, why_unusable
from evaluation.jobs import done
from evaluation.models.encoder import Encoder
from evaluation.models.in_process import first_line
from evaluation.tasks.item_scores import LABELS, Part
from evaluation.tasks.own_data import label_names
from evaluation.units import UNDEFINED, UNKNOWN, Model
from evaluation.work import Ended, Job, Loader, naming, versions
from generation.datasets.loading import load_dataset
from generation.datasets.local import TableDataset
from plumbline.errors import DataError
from plumbline.identity import identity
from plumbline.reading import read_json
from plumbline.store import write_json
from plumbline.study import Study, file_hash
from plumbline.study.datasets import LocalDataset

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
            raise other_data(task)
        found += sampled(dataset, task, [one for one in items if one.task == task.task])
    return found


def refuse_changed_files(study: Study) -> None:
    """Raise DataError where a file of a data set is there, and not the one that people's items were drawn from."""
    specs = {one.name: one for one in study.datasets}
    for task in read_tasks(study):
        spec = specs.get(task.dataset)
        path = study.resolve(spec.path) if isinstance(spec, LocalDataset) else None
        if path is not None and path.exists() and file_hash(path) != task.revision:
            raise other_data(task)


def other_data(task: HumanTask) -> DataError:
    """That a data set is another than a task's items are of."""
    return DataError(
        f"data set {task.dataset!r} is not the one that the items of {task.task!r} were drawn from; bring back"
        f" revision {task.revision}"
    )


def score_models(
    study: Study, samples: Sequence[Sampled], models: Sequence[Model], load: Loader, cluster: str = ""
) -> Outcome:
    """Score models on sampled tasks, but where a file has it already; on the Ray cluster at an address, if any.

    Raises as `evaluation.jobs.done`.
    """
    outcome = Outcome()
    due = [one for one in samples if not why_unusable(one, study.evaluation.protocol)]
    todo = {model.name: [one for one in due if _kept(study, model, one) is None] for model in models}
    left = sum(map(len, todo.values()))
    outcome.kept = len(due) * len(models) - left
    jobs = [
        Job(model, [partial(_made, study, model, one) for one in todo[model.name]])
        for model in models
        if todo[model.name]
    ]
    with (
        tqdm(total=left, unit="score", desc="evaluating", disable=not left) as bar,
        contextlib.closing(done(study, jobs, load, cluster if jobs else "")) as stream,
    ):
        for job, made in stream:
            if isinstance(made, Ended):
                outcome.asked, outcome.encoded = outcome.asked + made.asked, outcome.encoded + made.encoded
                if made.failure:
                    outcome.failures[job.model.name] = made.failure
                    tqdm.write(f"{job.model.name} failed: {made.failure}", file=sys.stderr)
                continue
            data = json.loads(made.model_dump_json())
            write_json(_file(study, made.unit_id), {**data, _SEAL: _sealed(data)})
            outcome.made += 1
            bar.update()
    return outcome


def _made(study: Study, model: Model, one: Sampled, loaded: Encoder) -> ModelMade:
    """What a model makes of a sampled task."""
    with naming(one.name):
        found = score(one, loaded, study.evaluation.protocol, study.evaluation.batch_size)
    part = found.items.parts[0] if found.items.parts else Part(np.empty(0), np.empty(0))
    names = label_names(one.dataset) if isinstance(one.dataset, TableDataset) else []
    runs = part.beside.get(LABELS, np.empty((0, 0))).tolist()
    return ModelMade(
        unit_id=unit_id(study, model, one), model=model.name,
        revision=model.revision or loaded.revision or UNKNOWN, task=one.task.task, subset=one.subset,
        language=one.language, score=found.score, units=one.units,
        made=tuple(np.asarray(part.made, np.float64).tolist()),
        labels=tuple(tuple(names[label] if names else str(label) for label in run) for run in runs),
        others={name: tuple(own.tolist()) for name, own in part.beside.items() if name != LABELS},
        measures=found.measures,
        reason=UNDEFINED if math.isnan(found.score) else found.items.reason, versions=versions(),
    )  # fmt: skip


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
    return identity("human-score-v2", of, model.model_id, how)


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
