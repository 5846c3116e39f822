"""A human study's sampled tasks as a benchmark of mteb's: for anyone's mteb script, beside people's result files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from mteb.abstasks.task_metadata import TaskMetadata
from mteb.benchmarks.benchmark import Benchmark

from evaluation.human.models import sampled_tasks
from evaluation.human.mteb_results import subset_names, task_name
from evaluation.human.sampled import Sampled
from evaluation.human.scored import metric_of, protocol_of, score
from evaluation.tasks.protocols import Protocol
from evaluation.tasks.registry import OwnTask, registered
from evaluation.tasks.scoring import make_task
from plumbline.languages import with_script
from plumbline.study import load_study


class SampledTask(OwnTask):
    """The items of a task that people did, each subset or language a subset; `samples` are by subset."""

    samples: Mapping[str, Sampled]
    protocol: Protocol

    def evaluate(
        self,
        model: Any,
        split: str = "test",
        subsets_to_run: list[str] | None = None,
        *,
        encode_kwargs: Any,
        **_: Any,
    ) -> dict[str, Any]:
        """Scores by subset, as the study scores its own models."""
        del split
        batch_size = int(encode_kwargs.get("batch_size", 32))
        made = {}
        for name, one in self.samples.items():
            if subsets_to_run is None or name in subsets_to_run:
                found = score(one, model, self.protocol, batch_size)
                made[name] = {**found.measures, "main_score": found.score, metric_of(one): found.score}
        return made


def human_benchmark(study: str | Path, *, exports: str | Path | None = None) -> Benchmark:
    """The tasks that a study's people did, on their items and candidates, as a benchmark of mteb's.

    Its tables set people beside models where mteb's cache holds the study's files (`exports/<study>/human/mteb`).
    Raises DataError before the items are drawn, and where a data set is not the one that they were drawn from.

    >>> from evaluation import human_benchmark
    >>> benchmark = human_benchmark("studies/human.yaml", exports="exports")
    >>> len(benchmark.tasks), benchmark.tasks[0].metadata.type
    (6, 'Classification')
    """
    opened = load_study(study, exports)
    samples = [one for one in sampled_tasks(opened) if one.units]
    protocol = opened.evaluation.protocol
    tasks = [_task(list(own), protocol) for _, own in groupby(samples, key=lambda one: one.task.task)]
    return Benchmark(
        name=f"{opened.name} (human)",
        tasks=tasks,
        description=f"Items that people of the study {opened.name} did, to be done by models.",
    )


def _task(samples: Sequence[Sampled], protocol: Protocol) -> SampledTask:
    names = subset_names(samples)
    own = {
        "metadata": _metadata(samples, names, protocol),
        "samples": dict(zip(names, samples, strict=True)),
        "protocol": protocol,
    }
    kind: type[SampledTask] = type("SampledTask", (SampledTask,), own)
    return registered(kind)


def _metadata(samples: Sequence[Sampled], names: Sequence[str], protocol: Protocol) -> TaskMetadata:
    task, one = samples[0].task, samples[0]
    base = make_task(one.dataset, protocol_of(one, protocol)).metadata
    languages = [[with_script(sample.language)] for sample in samples]
    made: TaskMetadata = base.model_copy(
        update={
            "name": task_name(task),
            "description": f"{sum(len(sample.items) for sample in samples)} items of {task.source} that people did",
            "dataset": {"path": f"plumbline/{task.task}", "revision": task.content_hash},
            "eval_splits": ["test"],
            "eval_langs": languages[0] if len(samples) == 1 else dict(zip(names, languages, strict=True)),
            "main_score": metric_of(one),
        }
    )
    return made
