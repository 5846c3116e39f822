"""Made-up people who do tasks, for rehearsals: they know the right answer, and err by chance.

For labels, marks, pairs, clusters and candidates, a simulated rater answers right with a probability, and otherwise
gives any other answer with equal probability: a known confusion, which must be found again. Scores and grades are the
gold plus the rater's bias plus normal noise, rounded to the scale. Only such answers carry gold.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from annotation.human.asking import NO, NONE, YES, TaskQuestion, apart, point_name, questions_of
from annotation.human.records import ITEMS, HumanItem, HumanTask
from annotation.human.tasks import COMMAND, prepared, read_tasks
from annotation.questions import AND, ranked
from generation.datasets.scored import ScoredItem
from plumbline.errors import DataError
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.store import read_records
from plumbline.study import Study
from plumbline.study.campaign import SimulatedRater
from plumbline.study.human import CANNOT_TELL


@dataclasses.dataclass(frozen=True)
class Skill:
    """How often a simulated rater is right about labels, marks and pairs, and cannot tell."""

    right: float = 0.85
    cannot_tell: float = 0.0


class Rehearsal:
    """Simulated raters' answers: a pure function of seed, rater and record."""

    def __init__(
        self,
        tasks: Sequence[HumanTask],
        items: Sequence[HumanItem],
        gold: Mapping[tuple[str, str], ScoredItem],
        seed: int,
    ) -> None:
        self._tasks, self._gold, self._seed = {task.task: task for task in tasks}, gold, seed
        self._items = {record: item for item in items for record in (item.records or (item.pair_id,))}
        labels: dict[str, set[str]] = {}
        for (task, _), scored in gold.items():
            labels.setdefault(task, set()).update(scored.labels)
        self._labels = {task: sorted(values) for task, values in labels.items()}

    def answers(self, rater: SimulatedRater, pair_id: str, skill: Skill = Skill()) -> dict[str, str]:
        """Return a simulated rater's answers to a record, by question; none for a record outside the tasks."""
        item = self._items.get(pair_id)
        if item is None:
            return {}
        task = self._tasks[item.task]
        seed = int(identity("human-simulation-v1", self._seed, rater.name, pair_id), 16)
        return dict(self._given(task, item, (rater, skill), pair_id, np.random.default_rng(seed)))

    def _given(
        self,
        task: HumanTask,
        item: HumanItem,
        who: tuple[SimulatedRater, Skill],
        pair_id: str,
        draw: np.random.Generator,
    ) -> Iterator[tuple[str, str]]:
        rater, skill = who
        gold = self._gold[item.task, item.item]
        if task.asked == "ranked":
            cannot = draw.random() < skill.cannot_tell
            yield task.task, CANNOT_TELL if cannot else YES
            felt = [(name in gold.relevant) + rater.noise * draw.normal() for name in item.shown]
            order = sorted(range(len(felt)), key=lambda index: -felt[index])
            if not cannot:
                yield f"{task.task}-order", ranked({f"d{index + 1}": rank for rank, index in enumerate(order, 1)})
            return
        names = [item.candidates[item.records.index(pair_id)]] if apart(task) else list(item.shown)
        for asking in questions_of(task):
            about = names[max(asking.position - 1, 0)] if names else ""
            if draw.random() < skill.cannot_tell:
                yield asking.name, CANNOT_TELL
            else:
                yield asking.name, self._one(task, asking, gold, (about, names), who, draw)

    def _one(
        self, task: HumanTask, asking: TaskQuestion, gold: ScoredItem, among: tuple[str, list[str]],
        who: tuple[SimulatedRater, Skill],
        draw: np.random.Generator,
    ) -> str:  # fmt: skip
        (about, names), (rater, skill) = among, who
        if task.asked in ("score", "graded"):
            truth = gold.score if task.asked == "score" else float(task.scale[-1] * (about in gold.relevant))
            felt = truth + rater.bias + rater.noise * draw.normal()
            return point_name(task, int(np.clip(round(felt), task.scale[0], task.scale[-1])))
        if task.asked == "labels":
            return self._several(task, gold, skill, draw)
        if task.asked == "binary":
            truths = [YES if about in gold.relevant else NO]
        elif task.asked == "same":
            truths = [YES if gold.labels == ("1",) else NO]
        elif task.asked == "label":
            truths = [f"l{task.labels.index(label) + 1}" for label in gold.labels]
        elif task.asked == "cluster":
            truths = [self._cluster(task, gold.labels[0], rater)]
        else:
            truths = [f"d{position}" for position, name in enumerate(names, 1) if name in gold.relevant]
        others = [label for label in asking.labels if label not in (*truths, CANNOT_TELL)]
        sure = draw.random() < skill.right or not others
        return truths[0] if sure else str(others[draw.integers(len(others))])

    def _several(self, task: HumanTask, gold: ScoredItem, skill: Skill, draw: np.random.Generator) -> str:
        """Say of each label of the task whether it fits; the rater's errors are shared among the labels."""
        wrong = (1 - skill.right) / max(len(task.labels), 1)
        chosen = [
            f"l{number}"
            for number, label in enumerate(task.labels, 1)
            if (label in gold.labels) != (draw.random() < wrong)
        ]
        return AND.join(chosen or [NONE])

    def _cluster(self, task: HumanTask, label: str, rater: SimulatedRater) -> str:
        """Return the rater's own number for a label."""
        rater_seed = int(identity("human-clusters-v1", self._seed, rater.name, task.task), 16)
        places = np.random.default_rng(rater_seed).permutation(task.clusters_told)
        return f"c{places[self._labels[task.task].index(label) % len(places)] + 1}"


def read_items(study: Study) -> list[HumanItem]:
    """Return the items of a study's tasks. Raises DataError if they are missing, or not the drawn ones."""
    Manifest.of(study).refuse_replaced(ITEMS, study.command(COMMAND))
    return read_records(study.folder / ITEMS, HumanItem, study.command(COMMAND))


def rehearsal_of(study: Study) -> Rehearsal:
    """Return simulated raters of a study's tasks. Raises DataError if the data have changed since the drawing."""
    tasks, gold = read_tasks(study), dict[tuple[str, str], ScoredItem]()
    hashes = {task.task: task.content_hash for task in tasks}
    for drawn_task in prepared(study):
        if drawn_task.task.content_hash != hashes[drawn_task.task.task]:
            raise DataError(
                f"the items of data set {drawn_task.task.dataset!r} have changed since task {drawn_task.task.task!r}"
                f" was drawn; restore them, or run `{study.command(COMMAND)}` again"
            )
        gold |= {
            (drawn_task.task.task, item.scored.item): _on_scale(drawn_task.task, item.scored)
            for item in drawn_task.drawn.items
        }
    return Rehearsal(tasks, read_items(study), gold, study.raters.simulation_seed)


def _on_scale(task: HumanTask, item: ScoredItem) -> ScoredItem:
    """Return an item with its gold on the scale that people answer on."""
    if not task.gold_scale:
        return item
    low, high = task.gold_scale
    share = (item.score - low) / (high - low)
    return dataclasses.replace(item, score=task.scale[0] + share * (task.scale[-1] - task.scale[0]))
