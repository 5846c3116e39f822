"""Select comparable scores, and arrange them as arrays: models by tasks by wordings, and their defaults.

A default can be compared with wordings only if it was measured on the same items with the same program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.score_frames import ACCEPTABLE, NO_WORDINGS, REPORTED, is_wording
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


Parts = Mapping[str, tuple[str, str]]  # split and subset, by task


def marked(scores: pd.DataFrame, tasks: Sequence[str] = (), parts: Parts | None = None) -> pd.DataFrame:
    """Return the scores (`checked_scores`) with the column `why`: empty for rows that count.

    `tasks` are the selected ones (all if empty), `parts` the selected parts of tasks with several. By default the
    part counts (a split and a subset of one metric and data set revision) with most scored wordings, of equal ones the
    test split, then the first by name. One run and revision of a model counts, and one mteb version and seed of a model
    on a task, by the same rule. Other rows are marked with the difference. Published defaults (prompt id `reported`)
    belong to no run and are never matched: they count as such. Raises StudyError for an unknown task or part.
    """
    parts = parts or {}
    _refuse_unknown(scores, tasks, parts)
    marked_scores = scores.assign(**{WHY: ""})
    if tasks:
        _mark(marked_scores, ~scores["task"].isin(tasks), "the task was not selected")
    _mark(marked_scores, scores["score"].isna(), scores["reason"].where(scores["reason"] != "", "no score"))
    for task, part in parts.items():
        in_part = (scores[list(_PART)] == list(part)).all(axis=1)
        of_other_parts = (scores["task"] == task) & ~in_part & (scores["prompt_id"] != REPORTED)
        _mark(marked_scores, of_other_parts, f"not the selected part {'/'.join(part)}")
    for group, fields in ((["task"], _BY_TASK), (["model"], _BY_MODEL), (["model", "task"], _BY_CELL)):
        _mark_others(marked_scores, group, fields)
    worded = marked_scores[is_wording(scores["prompt_id"]) & (scores["text"] != "")]
    firsts = worded.groupby(["task", "text"])["prompt_id"].transform("first")
    first = firsts.reindex(scores.index).where(lambda prompt_ids: prompt_ids != scores["prompt_id"])
    _mark(marked_scores, first.notna(), "the same text as " + first)  # equal texts of one task are one wording
    published = marked_scores[(marked_scores["prompt_id"] == REPORTED) & (marked_scores[WHY] == "")]
    repeated = marked_scores.index.isin(published.index[published.duplicated(["model", "task"])])
    _mark(marked_scores, repeated, "another published default of this model and task counts")
    return marked_scores


def _refuse_unknown(scores: pd.DataFrame, tasks: Sequence[str], parts: Parts) -> None:
    scored = sorted(scores["task"].unique())
    for name in (*tasks, *parts):
        if name not in scored:
            raise StudyError(f"no scores on task {name!r}; {nearest(name, scored)[:400]}")
    for task, part in parts.items():
        of_task = scores[(scores["task"] == task) & is_wording(scores["prompt_id"])]
        names = sorted(set(of_task["split"] + "/" + of_task["subset"]))
        if "/".join(part) not in names:
            raise StudyError(
                f"no wording was scored on {'/'.join(part)} of {task}; scored parts are: {', '.join(names)[:400]}"
            )
    if not is_wording(scores["prompt_id"]).any():
        raise DataError("no wording has a score, only defaults; prompt sensitivity needs at least 2 wordings per task")


def _mark(scores: pd.DataFrame, which: Any, reason: pd.Series | str) -> None:
    unmarked = which & (scores[WHY] == "")
    scores.loc[unmarked, WHY] = reason[unmarked] if isinstance(reason, pd.Series) else reason


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


def reasons(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the reasons of rows that do not count (without values), n, and an example (model, task, prompt)."""
    uncounted = scores[scores[WHY] != ""]
    reason = uncounted[WHY].str.replace(_DIFFERS, r"another \1 than that of the wordings that count", regex=True)
    example = uncounted["model"] + ", " + uncounted["task"] + ", " + uncounted["prompt_id"]
    rows = pd.DataFrame({"reason": reason, "example": example})
    counts = rows.groupby("reason", sort=False).agg(n=("example", "size"), example=("example", "first")).reset_index()
    return counts.sort_values("n", ascending=False, kind="stable", ignore_index=True)


@dataclass(frozen=True)
class Grid:
    """The analysed scores.

    `scores` are models by tasks by wordings, NaN without a score (also to pad tasks with fewer wordings). `facts` have
    each wording's prompt_id, source, label and text (tasks by wordings), by name; empty for padding. `default`, `none`
    and `reported` are models by tasks: the model's own prompt in the same run, no prompt, and the published default.
    `types` are the tasks' types.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    types: dict[str, str]
    facts: dict[str, NDArray[Any]]
    scores: Floats
    default: Floats
    none: Floats
    reported: Floats
    gated: bool
    simulated: bool

    @property
    def sources(self) -> tuple[str, ...]:
        """The known sources of the wordings."""
        return tuple(sorted(set(self.facts["source"].ravel()) - {""}))

    def only(self, wanted: NDArray[np.bool_]) -> Grid:
        """Return the grid with only the scores of these wordings (tasks by wordings)."""
        return replace(self, scores=np.where(wanted[None], self.scores, np.nan))

    def accepted(self) -> Grid:
        """Return the grid with only accepted wordings; with all if nobody labelled them."""
        return self.only(self.facts["label"] == ACCEPTABLE) if self.gated else self

    def of_source(self, source: str) -> Grid:
        """Return the grid with only wordings of one source; with all for an empty name."""
        return self.only(self.facts["source"] == source) if source else self

    def with_wordings(self) -> Grid:
        """Return the grid without models and tasks that have no wording left."""
        scored = ~np.isnan(self.scores)
        models, tasks = scored.any(axis=(1, 2)), scored.any(axis=(0, 2))
        return replace(
            self,
            models=tuple(np.array(self.models, object)[models]),
            tasks=tuple(np.array(self.tasks, object)[tasks]),
            facts={name: values[tasks] for name, values in self.facts.items()},
            **{name: getattr(self, name)[np.ix_(models, tasks)] for name in ("scores", "default", "none", "reported")},
        )


def grid_of(marked_scores: pd.DataFrame, named: Callable[[str], str] = str) -> Grid:
    """Return the grid of scores that count (`evaluation.instructions.grid.marked`); `named` shortens models' names.

    Raises DataError if no task has two wordings.
    """
    rows = marked_scores[marked_scores[WHY] == ""]
    worded = rows[is_wording(rows["prompt_id"])]
    models, tasks = list(dict.fromkeys(worded["model"])), list(dict.fromkeys(worded["task"]))
    once = worded.drop_duplicates(["task", "prompt_id"])
    once = once.assign(number=once.groupby("task", sort=False).cumcount())
    width = int(once["number"].max()) + 1 if len(once) else 0
    if width < 2:
        raise DataError("no task has scores under 2 distinct wordings; prompt sensitivity needs at least 2")
    wordings = pd.MultiIndex.from_product([tasks, range(width)])
    facts = once.set_index(["task", "number"]).astype(object).reindex(wordings, fill_value="")
    numbers = once.set_index(["task", "prompt_id"])["number"]
    of_wordings = worded.join(numbers, on=["task", "prompt_id"])

    def values(scored: pd.DataFrame, **axes: Sequence[Any]) -> Floats:
        """Return scores as an array with these columns' values as axes; of several of one place the last."""
        index = pd.MultiIndex.from_product([*axes.values()])
        by_axes = scored.drop_duplicates(list(axes), keep="last").set_index(list(axes))["score"].reindex(index)
        return by_axes.to_numpy(np.float64).reshape(list(map(len, axes.values())))

    default, none, reported = (
        values(rows[rows["prompt_id"] == name], model=models, task=tasks) for name in NO_WORDINGS
    )
    return Grid(
        tuple(map(named, models)),
        tuple(tasks),
        dict(zip(once["task"], once["task_type"], strict=True)),
        {name: facts[name].to_numpy().reshape(-1, width) for name in ("prompt_id", "source", "label", "text")},
        values(of_wordings, model=models, task=tasks, number=range(width)),
        default,
        none,
        reported,
        bool((worded["label"] != "").any()),
        bool(worded["simulated"].any()),
    )
