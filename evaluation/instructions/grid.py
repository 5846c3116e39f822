"""Select comparable scores, and arrange them as arrays: models by tasks by wordings, and their defaults.

A default can be compared with wordings only if it was measured on the same items with the same program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.instructions.scores import ACCEPTABLE, DEFAULT, NONE, REPORTED, is_wording
from plumbline.errors import DataError, StudyError, nearest
from plumbline.statistics.estimates import Floats

#: The column of `marked` with the reason why a row does not count.
WHY = "why"
_PART = ("split", "subset")
_BY_TASK = (*_PART, "metric", "dataset_revision")
_BY_MODEL = ("run", "revision")
_BY_CELL = ("mteb_version", "seed")
_NAMES = {"dataset_revision": "data set revision", "mteb_version": "mteb version"}
_CALLED = "|".join(_NAMES.get(name, name) for name in (*_BY_TASK, *_BY_MODEL, *_BY_CELL))
_DIFFERS = rf"^({_CALLED}) .*, but the wordings that count have .*$"


@dataclass(frozen=True)
class Choice:
    """The selection: `tasks` (all if empty), and by task the `parts` (split, subset) of tasks with several."""

    tasks: tuple[str, ...] = ()
    parts: Mapping[str, tuple[str, str]] = field(default_factory=dict)


_ALL = Choice()


def marked(scores: pd.DataFrame, choice: Choice = _ALL) -> pd.DataFrame:
    """Return the scores (`checked_scores`) with the column `why`: empty for rows that count.

    One part of a task counts, a split and a subset of one metric and data set revision: the one with most scored
    wordings, of equal ones the test split, then the first by name. One run and revision of a model counts, and one mteb
    version and seed of a model on a task, by the same rule. Other rows are marked with the difference. Published
    defaults (prompt id `reported`) belong to no run and are never matched: they count as such. Raises StudyError for
    an unknown task or part.
    """
    _refuse_unknown(scores, choice)
    marked_scores = scores.copy()
    marked_scores[WHY] = ""
    if choice.tasks:
        marked_scores.loc[~marked_scores["task"].isin(choice.tasks), WHY] = "the task was not selected"
    _mark(
        marked_scores,
        marked_scores["score"].isna(),
        marked_scores["reason"].where(marked_scores["reason"] != "", "no score"),
    )
    for task, (split, subset) in choice.parts.items():
        elsewhere = (marked_scores["task"] == task) & ~(
            (marked_scores["split"] == split) & (marked_scores["subset"] == subset)
        )
        _mark(
            marked_scores,
            elsewhere & (marked_scores["prompt_id"] != REPORTED),
            f"not the selected part {split}/{subset}",
        )
    for group, fields in ((["task"], _BY_TASK), (["model"], _BY_MODEL), (["model", "task"], _BY_CELL)):
        _mark_others(marked_scores, group, fields)
    _mark_same_texts(marked_scores)
    published = marked_scores[(marked_scores["prompt_id"] == REPORTED) & (marked_scores[WHY] == "")]
    others = published.index[published.duplicated(["model", "task"])]
    _mark(
        marked_scores,
        marked_scores.index.isin(others),
        "another published default of this model and task counts",
    )
    return marked_scores


def parts_of(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the parts of tasks with scored wordings: task, split, subset, n (scores), taken."""
    worded = scores[is_wording(scores["prompt_id"]) & scores["score"].notna()]
    parts = worded.groupby(["task", *_PART], sort=False).agg(
        n=("score", "size"), taken=(WHY, lambda why: (why == "").any())
    )
    return parts.reset_index()


def _refuse_unknown(scores: pd.DataFrame, choice: Choice) -> None:
    tasks = sorted(scores["task"].unique())
    for name in (*choice.tasks, *choice.parts):
        if name not in tasks:
            raise StudyError(f"no scores on task {name!r}; {nearest(name, tasks)[:400]}")
    for task, (split, subset) in choice.parts.items():
        of_task = scores[(scores["task"] == task) & is_wording(scores["prompt_id"])]
        parts = sorted({f"{row.split}/{row.subset}" for row in of_task.itertuples()})
        if f"{split}/{subset}" not in parts:
            raise StudyError(
                f"no wording was scored on {split}/{subset} of {task}; scored parts are: {', '.join(parts)[:400]}"
            )
    if not is_wording(scores["prompt_id"]).any():
        raise DataError("no wording has a score, only defaults; prompt sensitivity needs at least 2 wordings per task")


def _mark(scores: pd.DataFrame, which: Any, why: pd.Series | str) -> None:
    """Mark rows that are not marked yet."""
    unmarked = which & (scores[WHY] == "")
    scores.loc[unmarked, WHY] = why[unmarked] if isinstance(why, pd.Series) else why


def _mark_others(scores: pd.DataFrame, group: list[str], fields: tuple[str, ...]) -> None:
    """Keep the most frequent values of the fields in each group, and mark other rows with the first difference."""
    counting = scores[(scores[WHY] == "") & is_wording(scores["prompt_id"])]
    if counting.empty:
        return
    counts = counting.groupby([*group, *fields], sort=False).size().rename("n").reset_index()
    if "split" in fields:
        counts["later"] = counts["split"] != "test"
    order = [*group, "n", *(["later"] if "split" in fields else []), *fields]
    counts = counts.sort_values(order, ascending=[name != "n" for name in order], kind="stable")
    chosen = counts.drop_duplicates(group).set_index(group)[list(fields)]
    if len(counts) == len(chosen) and (scores.loc[scores[WHY] == "", list(fields)].nunique() == 1).all():
        return
    keys = pd.MultiIndex.from_frame(scores[group]) if len(group) > 1 else pd.Index(scores[group[0]])
    wanted = chosen.reindex(keys)
    stated = wanted[fields[0]].notna().to_numpy() & (scores["prompt_id"] != REPORTED).to_numpy()
    for name in fields:
        values = wanted[name].to_numpy()
        stated_values = scores[name].to_numpy()
        rows = stated & (stated_values != values) & (scores[WHY] == "").to_numpy()
        if rows.any():
            called = _NAMES.get(name, name)
            scores.loc[rows, WHY] = [
                f"{called} {mine if mine != '' else 'unknown'}, but the wordings that count have {most or 'unknown'}"
                for mine, most in zip(stated_values[rows], values[rows], strict=True)
            ]


def _mark_same_texts(scores: pd.DataFrame) -> None:
    """Mark equal texts of one task after the first: they are one wording."""
    texts = scores.loc[is_wording(scores["prompt_id"]) & (scores["text"] != ""), ["task", "prompt_id", "text"]]
    once = texts.drop_duplicates(["task", "prompt_id"])
    twice = once[once.duplicated(["task", "text"])]
    if twice.empty:
        return
    original = once.drop_duplicates(["task", "text"])
    first = dict(zip(zip(original["task"], original["text"], strict=True), original["prompt_id"], strict=True))
    differing = {
        (task, prompt_id): f"the same text as {first[task, text]}"
        for task, prompt_id, text in twice.itertuples(index=False, name=None)
    }
    why = pd.Series(
        [differing.get(key, "") for key in zip(scores["task"], scores["prompt_id"], strict=True)], index=scores.index
    )
    _mark(scores, why != "", why)


def reasons(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the reasons of rows that do not count (without values), n, and an example (model, task, prompt)."""
    aside = scores[scores[WHY] != ""]
    why = aside[WHY].str.replace(_DIFFERS, r"another \1 than that of the wordings that count", regex=True)
    example = aside["model"] + ", " + aside["task"] + ", " + aside["prompt_id"]
    rows = pd.DataFrame({"reason": why, "example": example})
    counts = rows.groupby("reason", sort=False).agg(n=("example", "size"), example=("example", "first")).reset_index()
    return counts.sort_values("n", ascending=False, kind="stable", ignore_index=True)


Words = NDArray[Any]


@dataclass(frozen=True)
class Grid:
    """The analysed scores.

    `scores` are models by tasks by wordings, NaN without a score (also to pad tasks with fewer wordings). `prompts`
    (tasks by wordings) are their ids, empty for padding; `facts` have each wording's source, label and text, by
    name. `default`, `none` and `reported` are models by tasks: the model's own prompt in the same run, no
    prompt, and the published default. `types` are the tasks' types.
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
        """The sources of the wordings."""
        return tuple(sorted({str(source) for source in self.facts["source"][self.prompts != ""]}))

    def only(self, wanted: NDArray[np.bool_]) -> Grid:
        """Return the grid with only the scores of these wordings (tasks by wordings)."""
        return replace(self, scores=np.where(wanted[None], self.scores, np.nan))

    def accepted(self) -> Grid:
        """Return the grid with only accepted wordings; with all if nobody labelled them."""
        return self.only(self.facts["label"] == ACCEPTABLE) if self.gated else self

    def of_source(self, source: str) -> Grid:
        """Return the grid with only wordings of one source."""
        return self.only(self.facts["source"] == source)

    def with_wordings(self) -> Grid:
        """Return the grid without models and tasks that have no wording left."""
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
        """Return models by tasks as a frame."""
        return pd.DataFrame(values, index=list(self.models), columns=list(self.tasks))


def grid_of(marked_scores: pd.DataFrame, named: Callable[[str], str] = str) -> Grid:
    """Return the grid of scores that count (`evaluation.instructions.grid.marked`); `named` shortens models' names.

    Raises DataError if no task has two wordings.
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
    names = ("prompt_id", "source", "label", "text")
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
