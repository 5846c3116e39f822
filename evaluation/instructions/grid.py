"""The scores that count as arrays: models by tasks by wordings, the defaults beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.instructions.comparable import WHY
from evaluation.instructions.scores import ACCEPTABLE, DEFAULT, NONE, REPORTED, is_wording
from plumbline.errors import DataError
from plumbline.statistics.estimates import Floats

Words = NDArray[Any]


@dataclass(frozen=True)
class Grid:
    """What is analysed.

    `scores` are models by tasks by wordings, NaN where one was not scored (tasks with fewer wordings are filled up so).
    `prompts` (tasks by wordings) are their ids, empty where a task has no more; `facts` by name say of each wording its
    source, label, context, generator and text. `default`, `none` and `reported` are models by tasks: the model's own
    prompt in the same run, no prompt, and the default as somebody published it. `types` are the tasks' types.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    types: dict[str, str]
    prompts: Words
    facts: dict[str, Words]
    scores: Floats
    default: Floats
    none: Floats
    reported: Floats
    gated: bool
    simulated: bool

    @property
    def sources(self) -> tuple[str, ...]:
        """Who worded what there is."""
        return tuple(sorted({str(source) for source in self.facts["source"][self.prompts != ""]}))

    def only(self, wanted: NDArray[np.bool_]) -> Grid:
        """With the scores of these wordings (tasks by wordings) alone."""
        return replace(self, scores=np.where(wanted[None], self.scores, np.nan))

    def accepted(self) -> Grid:
        """With the wordings alone that the gate lets in; all where nobody was asked."""
        return self.only(self.facts["label"] == ACCEPTABLE) if self.gated else self

    def of_source(self, source: str) -> Grid:
        """With wordings of one source alone."""
        return self.only(self.facts["source"] == source)

    def with_wordings(self) -> Grid:
        """Without models and tasks that have no wording left."""
        scored = ~np.isnan(self.scores)
        models, tasks = scored.any(axis=(1, 2)), scored.any(axis=(0, 2))
        if models.all() and tasks.all():
            return self
        rows, columns = np.ix_(models, tasks), np.flatnonzero(tasks)
        arrays = {name: getattr(self, name)[rows] for name in ("scores", "default", "none", "reported")}
        return replace(
            self,
            models=tuple(np.array(self.models, object)[models]),
            tasks=tuple(np.array(self.tasks, object)[tasks]),
            prompts=self.prompts[columns],
            facts={name: values[columns] for name, values in self.facts.items()},
            **arrays,
        )

    def frame(self, values: Floats) -> pd.DataFrame:
        """Models by tasks as a frame."""
        return pd.DataFrame(values, index=list(self.models), columns=list(self.tasks))


def grid_of(marked_scores: pd.DataFrame, named: Callable[[str], str] = str) -> Grid:
    """The grid of scores that count (`evaluation.instructions.comparable.marked`); `named` shortens models' names.

    Raises DataError where no task has two wordings.
    """
    rows = marked_scores[marked_scores[WHY] == ""]
    worded = rows[is_wording(rows["prompt_id"])]
    models, tasks = list(dict.fromkeys(worded["model"])), list(dict.fromkeys(worded["task"]))
    once = worded.drop_duplicates(["task", "prompt_id"])
    number = once.groupby("task", sort=False).cumcount()
    width = int(number.max()) + 1 if len(once) else 0
    if width < 2:
        raise DataError("no task has scores under 2 distinct wordings; prompt sensitivity needs at least 2")
    task_at, model_at = pd.Index(tasks), pd.Index(models)
    at = task_at.get_indexer(pd.Index(once["task"]))
    names = ("prompt_id", "source", "label", "context", "generator", "text")
    facts = {name: np.full((len(tasks), width), "", object) for name in names}
    for name in names:
        facts[name][at, number] = once[name].to_numpy()
    scores = np.full((len(models), len(tasks), width), np.nan)
    keys = ["task", "prompt_id"]
    k = number.to_numpy()[pd.MultiIndex.from_frame(once[keys]).get_indexer(pd.MultiIndex.from_frame(worded[keys]))]
    scores[model_at.get_indexer(pd.Index(worded["model"])), task_at.get_indexer(pd.Index(worded["task"])), k] = worded[
        "score"
    ].to_numpy()

    def beside(prompt_id: str) -> Floats:
        of_prompt = rows[(rows["prompt_id"] == prompt_id) & rows["model"].isin(models) & rows["task"].isin(tasks)]
        filled = np.full((len(models), len(tasks)), np.nan)
        filled[model_at.get_indexer(pd.Index(of_prompt["model"])), task_at.get_indexer(pd.Index(of_prompt["task"]))] = (
            of_prompt["score"]
        )
        return filled

    return Grid(
        tuple(map(named, models)), tuple(tasks), dict(zip(once["task"], once["task_type"], strict=True)),
        facts.pop("prompt_id"), facts, scores, beside(DEFAULT), beside(NONE), beside(REPORTED),
        bool((worded["label"] != "").any()), bool(worded["simulated"].any()),
    )  # fmt: skip
