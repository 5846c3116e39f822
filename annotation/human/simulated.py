"""Made-up people who do tasks, for rehearsals: they know the right answer, and err by chance.

For labels, marks, pairs, clusters and candidates, a simulated rater answers right with a probability, and otherwise
gives any other answer with equal probability: a known confusion, which must be found again. Scores and grades are the
gold plus the rater's bias plus normal noise, rounded to the scale. Only such answers carry gold.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from annotation.human.forms import USUAL_SKILL, SimulatedAnswering, Skill, form_of
from annotation.human.records import ITEMS, HumanItem, HumanTask
from annotation.human.tasks import COMMAND, prepared, read_tasks
from generation.datasets.scored import ScoredItem
from plumbline.errors import DataError
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.store import read_records
from plumbline.study import Study
from plumbline.study.campaign import SimulatedRater


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
        self._items = {record: item for item in items for record in item.records}
        labels: dict[str, set[str]] = {}
        for (task, _), scored in gold.items():
            labels.setdefault(task, set()).update(scored.labels)
        self._labels = {task: sorted(values) for task, values in labels.items()}

    def answers(self, rater: SimulatedRater, pair_id: str, skill: Skill = USUAL_SKILL) -> dict[str, str]:
        """Return a simulated rater's answers to a record, by question; none for a record outside the tasks."""
        item = self._items.get(pair_id)
        if item is None:
            return {}
        form = form_of(self._tasks[item.task])
        seed = int(identity("human-simulation-v1", self._seed, rater.name, pair_id), 16)
        groups = functools.partial(self._own_group, rater, form.task)
        candidates = (item.candidates[item.records.index(pair_id)],) if form.per_candidate else item.shown
        gold, draw = self._gold[item.task, item.item], np.random.default_rng(seed)
        return dict(form.simulated(SimulatedAnswering(rater, skill, draw, gold, candidates, groups)))

    def _own_group(self, rater: SimulatedRater, task: HumanTask, label: str) -> int:
        """Return the rater's own number for a label."""
        rater_seed = int(identity("human-clusters-v1", self._seed, rater.name, task.task), 16)
        places = np.random.default_rng(rater_seed).permutation(task.clusters_told)
        return int(places[self._labels[task.task].index(label) % len(places)]) + 1


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
        task = drawn_task.task
        for scored in drawn_task.drawn.scored:
            score = scored.score
            if task.gold_scale:  # on the scale that people answer on
                share = (score - task.gold_scale[0]) / (task.gold_scale[1] - task.gold_scale[0])
                score = task.scale[0] + share * (task.scale[-1] - task.scale[0])
            gold[task.task, scored.item] = dataclasses.replace(scored, score=score)
    return Rehearsal(tasks, read_items(study), gold, study.raters.simulation_seed)
