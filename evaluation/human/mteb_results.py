"""Write mteb's result files of a human study, so that mteb reads and ranks people and models.

`human/mteb/results/<model>/<revision>/<task>.json`, for `mteb.ResultCache("exports/<study>/human/mteb")`. A task's name
ends in the hash of its items, as results are kept by name. `baseline/Human`, a name that mteb knows, is the mean of
raters; `baseline/Human-aggregate` their joint answers, `baseline/Human-<rater>` each rater. Simulated raters are called
`simulated/Human`, which mteb does not know. Scores are those of the study's table, on its items.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.benchmarks.benchmark import Benchmark

from annotation.human.records import HumanTask
from evaluation.human.compare import TaskPart
from evaluation.human.models import metric_of, score
from evaluation.human.records import MTEB, HumanRecords, HumanTables
from evaluation.human.sampled import SampledDataset
from evaluation.results import model_meta
from evaluation.tasks.mteb_classes import OwnTask, registered
from evaluation.tasks.protocols import Protocol
from evaluation.tasks.scoring import make_task
from plumbline.exhibits.table import json_file, write_files
from plumbline.languages import with_script
from plumbline.resources import version_of
from plumbline.study import load_study

_KINDS = ("raters_mean", "aggregate", "rater", "llm", "model")
_HASH = 12  # characters of the items' hash in a name


def task_name(task: HumanTask) -> str:
    """Return mteb's name of a sampled task."""
    return f"{task.task}.human.{task.content_hash[:_HASH]}"


def subset_names(samples: Sequence[SampledDataset]) -> list[str]:
    """Return mteb's names of a task's subsets: its data set's subsets, or its languages."""
    if len(samples) == 1:
        return ["default"]
    for names in ([sample.subset for sample in samples], [sample.language for sample in samples]):
        if len(set(names)) == len(samples) and all(names):
            return names
    return [f"{sample.subset}-{sample.language}" for sample in samples]


def write_results(folder: Path, parts: Sequence[TaskPart], compared: HumanTables) -> None:
    """Write the result files below a study's folder; delete outdated ones."""
    files: dict[str, bytes] = {}
    by_task: dict[str, list[TaskPart]] = {}
    for part in (part for part in parts if part.sample.units):
        by_task.setdefault(part.sample.task.task, []).append(part)
    for task_parts in by_task.values():
        for name, revision, result in results_of(task_parts, compared):
            start = f"results/{name.replace('/', '__').replace(' ', '_')}/{revision.replace('/', '__')}"
            files[f"{start}/model_meta.json"] = json_file(model_meta(name, revision))
            files[f"{start}/{result['task_name']}.json"] = json_file(result)
    write_files(folder / MTEB, files)


def results_of(parts: Sequence[TaskPart], compared: HumanTables) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each scorer's name, revision and result on one task.

    Skips scorers that lack a score in a subset, or have one on other items: mteb would rank them.
    """
    task, names = parts[0].sample.task, subset_names([part.sample for part in parts])
    scores = compared.scores
    task_scores = scores[(scores["task"] == task.task) & scores["main"] & scores["scorer_kind"].isin(_KINDS)]
    revisions = {name: result.revision for part in parts for name, result in part.results.items()}
    for (kind, scorer), rows in task_scores.groupby(["scorer_kind", "scorer"], sort=False):
        by_place = {(row["subset"], row["language"]): row for row in rows.to_dict(orient="records")}
        part_rows = [by_place.get((part.sample.subset, part.sample.language)) for part in parts]
        if any(row is None or math.isnan(row["score"]) or not row["compared"] for row in part_rows):
            continue
        simulated = kind != "model" and bool(rows["simulated"].any())
        subsets = [
            _subset(part, row, name, compared) for part, row, name in zip(parts, part_rows, names, strict=True) if row
        ]
        about = {"scorer_kind": kind, "simulated": simulated, "content_hash": task.content_hash}
        result = {
            "dataset_revision": task.content_hash,
            "task_name": task_name(task),
            "mteb_version": version_of("mteb"),
            "scores": {"test": subsets},
            "evaluation_time": 0.0,
            "plumbline": about,
        }
        yield *_named(str(kind), str(scorer), revisions, simulated=simulated), result


def _subset(part: TaskPart, row: Mapping[Hashable, Any], name: str, compared: HumanTables) -> dict[str, Any]:
    """Return mteb's result of one subset; for people with each rater's score and the raters' agreement."""
    sample = part.sample
    score = {row["metric"]: row["score"], "main_score": row["score"], "n_items": row["n_items"]}
    facts = {"hf_subset": name, "languages": [with_script(sample.language)], **score}
    if row["scorer_kind"] not in ("raters_mean", "aggregate"):
        return facts
    raters = _of(compared.scores, sample)
    raters = raters[raters["main"] & (raters["scorer_kind"] == "rater")]
    agreed = _of(compared.agreement, sample)
    agreement = dict(zip(agreed["measure"], agreed["value"].tolist(), strict=True))
    each = [
        {"rater": who, row["metric"]: value, "n_items": n}
        for who, value, n in zip(raters["scorer"], raters["score"].tolist(), raters["n_items"].tolist(), strict=True)
    ]
    return {**facts, "scores_per_experiment": each, "agreement": agreement}


def _of(frame: pd.DataFrame, sample: SampledDataset) -> pd.DataFrame:
    return frame[(frame[["task", "subset", "language"]] == list(sample.key)).all(axis=1)]


def _named(kind: str, scorer: str, revisions: Mapping[str, str], *, simulated: bool) -> tuple[str, str]:
    """Return a scorer's name and revision in mteb."""
    if kind == "model":
        return scorer, revisions[scorer]
    people = "simulated/Human" if simulated else "baseline/Human"
    if kind == "llm":
        return f"annotator/{scorer.replace('/', '__')}", "answers"
    return (people, "raters_mean") if kind == "raters_mean" else (f"{people}-{scorer}", kind)


class SampledTask(OwnTask):
    """The items of a task that people did, with its subsets or languages as subsets; `samples` are by subset."""

    samples: Mapping[str, SampledDataset]
    protocol: Protocol

    def evaluate(
        self, model: Any, split: str = "test", subsets_to_run: list[str] | None = None, *, encode_kwargs: Any, **_: Any
    ) -> dict[str, Any]:
        """Return scores by subset, as the study scores its own models."""
        del split
        batch_size = int(encode_kwargs.get("batch_size", 32))
        scores = {}
        for name, sample in self.samples.items():
            if subsets_to_run is None or name in subsets_to_run:
                task_score = score(sample, model, self.protocol, batch_size)
                scores[name] = {
                    **task_score.measures,
                    "main_score": task_score.score,
                    metric_of(sample): task_score.score,
                }
        return scores


def human_benchmark(study: str | Path, *, exports: str | Path | None = None) -> Benchmark:
    """Return the tasks that a study's people did, on their items and candidates, as an mteb benchmark.

    Its tables show people beside models if mteb's cache has the study's files (`exports/<study>/human/mteb`). Raises
    DataError before the items are drawn, and if a data set is not the one that they were drawn from.

    >>> from evaluation import human_benchmark
    >>> benchmark = human_benchmark("studies/human.yaml", exports="exports")
    >>> len(benchmark.tasks), benchmark.tasks[0].metadata.type
    (6, 'Classification')
    """
    opened = load_study(study, exports)
    samples = [sample for sample in HumanRecords(opened).samples if sample.units]
    protocol = opened.evaluation.protocol
    tasks = [_task(list(of_task), protocol) for _, of_task in groupby(samples, key=lambda sample: sample.task.task)]
    return Benchmark(
        name=f"{opened.name} (human)",
        tasks=tasks,
        description=f"The items that people answered in the study {opened.name}, for models.",
    )


def _task(samples: Sequence[SampledDataset], protocol: Protocol) -> SampledTask:
    names, task, first = subset_names(samples), samples[0].task, samples[0]
    base = make_task(first.dataset, first.kind.protocol(protocol)).metadata
    languages = [[with_script(sample.language)] for sample in samples]
    metadata: TaskMetadata = base.model_copy(
        update={
            "name": task_name(task),
            "description": f"{sum(len(sample.items) for sample in samples)} items of {task.source} that people did",
            "dataset": {"path": f"plumbline/{task.task}", "revision": task.content_hash},
            "eval_splits": ["test"],
            "eval_langs": languages[0] if len(samples) == 1 else dict(zip(names, languages, strict=True)),
            "main_score": metric_of(first),
        }
    )
    attributes = {"metadata": metadata, "samples": dict(zip(names, samples, strict=True)), "protocol": protocol}
    kind: type[SampledTask] = type("SampledTask", (SampledTask,), attributes)
    return registered(kind)
