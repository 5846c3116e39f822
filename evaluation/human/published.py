"""Make HUME's tables from published scores in mteb's form: people, their raters and models, a row a score.

No model is run: the tables combine the numbers of the file as HUME does.
"""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.benchmarks.task_facts import numbers_of, read_table
from evaluation.display import short_names
from evaluation.human.exhibits import best_model, estimate, groups_of, hundredfold, percent, win_columns
from evaluation.human.material import NONE
from evaluation.human.standing import by_task, gaps, in_languages, pairs_by_scorer, rank, table_8, wins
from generation.datasets.tables import row_number
from plumbline.errors import DataError, nearest
from plumbline.exhibits.page import PageWords, write_outlined
from plumbline.exhibits.table import Cell, Exhibit, printed, reasons
from plumbline.reading import read_json
from plumbline.statistics.estimates import Floats
from plumbline.study.places import output_folder
from plumbline.words import count

HUMAN, RATERS_MEAN = "Human", "raters' mean"  # people as HUME scores them; the mean of single raters
MAIN = "main_score"
_COLUMNS = ("model", "revision", "task", "language", "value")
_RATER = "annotator"  # beginning of a single rater's revision
_TYPES = {"v_measure": "clustering", "map": "reranking", "spearman": "sts", "accuracy": "classification"}  # by metric
_MOST_ITEMS = 10**12
_NO_ITEMS = "the number of items is unknown, so there is no interval"


@dataclass(frozen=True)
class PublishedScores:
    """The content of a file: `scores` and `agreement`, in the form of `standing.table_8`."""

    scores: pd.DataFrame  #: task_type, task, subset, language, scorer, scorer_kind, score, n_items (0: unknown)
    agreement: pd.DataFrame  #: task, subset, language, measure, value
    notes: tuple[str, ...]

    @functools.cached_property
    def incomplete(self) -> dict[str, int]:
        """Models that lack a score on a task in a language that people did, and their number of scores."""
        places = pd.MultiIndex.from_frame(self.scores[["task", "language"]])
        shared = self.scores[places.isin(places[(self.scores["scorer"] == HUMAN).to_numpy()])]
        counts = shared.groupby("scorer", sort=False)["score"].count()
        models = self.scores.loc[self.scores["scorer_kind"] == "model", "scorer"].unique()
        return {name: int(counts.get(name, 0)) for name in models if counts.get(name, 0) < counts[HUMAN]}

    @property
    def compared(self) -> pd.DataFrame:
        """People, the mean of the raters, and complete models: one score each for a task."""
        whole = self.every
        return whole[~whole["scorer"].isin(list(self.incomplete))]

    @property
    def every(self) -> pd.DataFrame:
        """The same, including incomplete models."""
        raters = self.scores[self.scores["scorer_kind"] == "rater"]
        keys = ["task_type", "task", "language"]
        means = raters.groupby(keys, sort=False, as_index=False)["score"].mean().assign(scorer=RATERS_MEAN)
        others = self.scores[self.scores["scorer_kind"] != "rater"]
        whole: pd.DataFrame = pd.concat([others, means], ignore_index=True)
        return whole


def read_published(scores: Path, agreement: Path | None = None, models: Collection[str] = ()) -> PublishedScores:
    """Read a table of scores (CSV, TSV, JSONL, Parquet), and raters' agreement (JSON).

    The table has one row per score: model, revision, task, language, value; with a column `metric` only the rows of
    `main_score` count. People are the model `Human`, raters its revisions that begin with `annotator`. `models` selects
    models. Raises DataError for another table.
    """
    frame = _checked(read_table(scores), scores)
    counts, agreed = _agreement(agreement) if agreement else ({}, pd.DataFrame(columns=["task", "subset", "language"]))
    names = [name for name in frame["scorer"].unique() if name != HUMAN]
    if strange := [name for name in models if name not in names]:
        raise DataError(f"{scores}: no model {strange[0]!r} has scores; {nearest(strange[0], names)}")
    if models:
        frame = frame[frame["scorer"].isin([HUMAN, *models])]
    items = [counts.get(key, 0) for key in zip(frame["task"], frame["language"], strict=True)]
    frame = frame.assign(subset="", n_items=frame["n_items"].where(frame["n_items"] > 0, items).astype(np.int64))
    lacking = frame.loc[(frame["scorer"] == HUMAN) & (frame["n_items"] == 0), "task"].nunique()
    note = f"{count(lacking, 'task')}, in at least one language: {_NO_ITEMS}" if lacking else ""
    published = PublishedScores(_with_people(frame, scores), agreed, tuple(filter(None, [note])))
    _refuse_alone(published, scores)
    return published


def with_reasons(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `standing.table_8`, with the reason for missing intervals if the number of items is unknown."""
    unknown = (table["n"] == 0) & table["low"].isna()
    return table.assign(reason=table["reason"].mask(unknown, _NO_ITEMS))


def _checked(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the main scores of a file: task_type, task, language, scorer, revision, score, n_items."""
    if missing := [name for name in _COLUMNS if name not in frame]:
        raise DataError(
            f"{path}: no column {missing[0]!r}; the table needs {', '.join(_COLUMNS)}, and metric if there are several"
        )
    for name in ("model", "task", "language"):
        blank = frame[name].isna() | (frame[name].astype(str).str.strip() == "")
        if blank.any():
            raise DataError(f"{path}: row {row_number(blank.to_numpy().argmax())}, field {name!r} is empty; fill it in")
    types = _types(frame, path)
    main = frame[frame["metric"].astype(str) == MAIN] if "metric" in frame else frame
    if main.empty:
        raise DataError(f"{path}: no row has the metric {MAIN!r}, which marks scores by a task's main metric")
    main = main.reset_index(drop=True)
    values = numbers_of(main, "value", path)
    if (wrong := ~(np.abs(values) <= 1 + 1e-9)).any():
        row = main.iloc[int(wrong.argmax())]
        raise DataError(
            f"{path}: {row['model']} on {row['task']} has the score {row['value']}; scores must be from -1 to 1"
        )
    items = numbers_of(main, "n_items", path) if "n_items" in main else np.zeros(len(main))
    if len(rows := np.flatnonzero(~np.isnan(items) & ~_are_counts(items))):
        cell = main["n_items"].iloc[rows[0]]
        raise DataError(
            f"{path}: {main['task'].iloc[rows[0]]} has n_items {cell}; it must be a whole number of at least 0"
        )
    names = {name: str(name).replace("__", "/") for name in main["model"].unique()}
    short = short_names(set(names.values()))
    return pd.DataFrame(
        {
            "task_type": [types[task] for task in main["task"]],
            "task": main["task"].astype(str).str.removeprefix("HUME"),
            "language": main["language"].astype(str),
            "scorer": [_scorer(names[name], short) for name in main["model"]],
            "revision": main["revision"].astype(str),
            "score": values,
            "n_items": np.nan_to_num(items).astype(np.int64),
        }
    )


def _scorer(name: str, short: Mapping[str, str]) -> str:
    return HUMAN if name.rpartition("/")[2] == HUMAN else short[name]


def _types(frame: pd.DataFrame, path: Path) -> dict[str, str]:
    """Return the type of each task: from the column `task_type`, or else from its metrics."""
    if "task_type" in frame:
        return dict(zip(frame["task"], frame["task_type"].astype(str), strict=True))
    types = {}
    for task, rows in frame.groupby("task", sort=False):
        metrics = set(rows["metric"].astype(str)) if "metric" in frame else set()
        kinds = [kind for metric, kind in _TYPES.items() if metric in metrics]
        if not kinds:
            raise DataError(f"{path}: the metrics of {task} do not show its type; add a column 'task_type'")
        types[str(task)] = kinds[0]
    return types


def _with_people(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the scores with the kind of scorer: rater, aggregate (people together) or model; each once."""
    human = frame["scorer"] == HUMAN
    if not human.any():
        raise DataError(f"{path}: no scores of people; add them, with the model name {HUMAN!r}")
    single = human & frame["revision"].str.startswith(_RATER)
    kinds = np.where(single, "rater", np.where(human, "aggregate", "model"))
    whole = frame.assign(scorer_kind=kinds, scorer=frame["scorer"].mask(single, frame["revision"]))
    key = ["task", "language", "scorer"]
    apart = whole.groupby(key)["score"].agg(np.ptp)
    if (apart > 1e-9).any():
        task, language, scorer = apart.index[int((apart > 1e-9).to_numpy().argmax())]
        raise DataError(f"{path}: {scorer} has several scores on {task} ({language}); keep only one")
    return whole.drop_duplicates(key).drop(columns="revision").reset_index(drop=True)


def _refuse_alone(published: PublishedScores, path: Path) -> None:
    """Raise DataError if people, their raters or models have no comparable score."""
    kinds = published.scores.drop_duplicates("scorer").set_index("scorer")["scorer_kind"]
    names = published.scores.groupby("scorer")["scorer_kind"].nunique()
    if (names > 1).any() or RATERS_MEAN in kinds:
        name = RATERS_MEAN if RATERS_MEAN in kinds else names.index[int((names > 1).to_numpy().argmax())]
        raise DataError(f"{path}: a model is called {name!r}, a name reserved for people; rename it")
    for kind, what in (("aggregate", f"{HUMAN} has"), ("rater", f"{HUMAN}'s {_RATER}s have"), ("model", "models have")):
        if kind not in set(kinds):
            raise DataError(f"{path}: {what} no scores; the tables need people, their raters and models")
    if published.incomplete.keys() >= set(kinds.index[kinds == "model"]):
        raise DataError(
            f"{path}: every model lacks a score on some task and language on which {HUMAN} has one; add the missing"
            " scores, or remove the tasks and languages on which models lack them"
        )


def _are_counts(values: Floats) -> NDArray[np.bool_]:
    """Return which values are valid numbers of items."""
    counts: NDArray[np.bool_] = (values >= 0) & (values <= _MOST_ITEMS) & (values == np.floor(values))
    return counts


def _agreement(path: Path) -> tuple[dict[tuple[str, str], int], pd.DataFrame]:
    """Return (items of each task in a language, its raters' agreement) from a file like HUME's."""
    try:
        content: Any = read_json(path)
    except FileNotFoundError:
        raise DataError(f"no file {path}") from None
    rows = content.get("rows") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not all(isinstance(row, dict) and _whole(row) for row in rows):
        raise DataError(
            f"{path}: not a list of rows with task, language and agreement (n_items, and a value from -1 to 1)"
        )
    items, values = {}, []
    for row in rows:
        measured, key = row["agreement"], (str(row["task"]).removeprefix("HUME"), str(row["language"]))
        value = measured.get("value", measured.get("mean_spearman", math.nan))
        measure = str(measured.get("metric", "mean Spearman")).replace("_", " ")
        items[key] = int(measured["n_items"])
        values.append((key[0], "", key[1], measure, float(value)))
    return items, pd.DataFrame(values, columns=["task", "subset", "language", "measure", "value"])


def _whole(row: Mapping[str, Any]) -> bool:
    measured = row.get("agreement")
    if not isinstance(measured, dict) or not {"task", "language"} <= set(row):
        return False
    items, value = measured.get("n_items"), measured.get("value", measured.get("mean_spearman"))
    if any(isinstance(number, bool) for number in (items, value)):
        return False
    if not isinstance(items, (int, float)) or not isinstance(value, (int, float)):
        return False
    return 0 <= items <= _MOST_ITEMS and items == int(items) and not abs(value) > 1


_OUTLINE = {
    "By type and language": ("groups",),
    "Position of people among models": ("standing", "gaps"),
    "By task": ("tasks_classification", "tasks_clustering", "tasks_reranking", "tasks_sts"),
    "Intervals, agreement and stars": ("as_hume",),
}
_ABOUT = (
    "This report is made from published scores; no model was run and no answer was read. Intervals, stars and means"
    " follow HUME, only for comparison: a test needs paired differences, which need the answers to single items"
    " (docs/human.md). Each table is also a file in tables/ (CSV with all digits, Markdown, LaTeX)."
)


def exhibits_of(published: PublishedScores) -> dict[str, Exhibit]:
    """Return the tables by name, without empty ones."""
    wide = pairs_by_scorer(published.compared)
    n_of_people = int((published.scores["scorer"] == HUMAN).sum())
    names = [f"{name} ({number:,} of {count(n_of_people, 'score')})" for name, number in published.incomplete.items()]
    each = "a task counts once for each language"
    without = f"models left out, because they lack scores on some of people's tasks ({each}): {', '.join(names)}"
    unrated = f"tasks left out, because people or a model has no score ({each}): {wide.attrs['left_out']}"
    missing = (*([without] if names else []), *([unrated] if wide.attrs["left_out"] else []))
    exhibits = [*_tasks(published), _table_8(published)]
    if len(wide):
        frame, columns = groups_of(wide, str)
        caption = "As HUME's Table 1: means by type of task and language, times 100"
        groups = Exhibit("groups", caption, frame, printed(frame, columns), missing)
        exhibits = [groups, _standing(wide, missing), _gaps(wide, missing), *exhibits]
    return {exhibit.name: exhibit for exhibit in exhibits if len(exhibit.frame)}


def headline(published: PublishedScores) -> tuple[str, ...]:
    """Return people's rank by both of their scores."""
    wide = pairs_by_scorer(published.compared)
    if wide.empty:
        return (
            "No task has a score of every scorer in the same language, so nothing can be compared on the same items.",
        )
    (people, of), (alone, _) = rank(wide, HUMAN, [RATERS_MEAN]), rank(wide, RATERS_MEAN, [HUMAN])
    best = wins(wide, HUMAN, [RATERS_MEAN]).set_index("against").loc["best"]
    return (
        f"On {len(wide)} tasks (in one language each) people score {100 * wide[HUMAN].mean():.1f} by HUME's scoring,"
        f" rank {people} of {of}; the mean of single raters is {100 * wide[RATERS_MEAN].mean():.1f}, rank {alone}.",
        f"People are above the best model on {best['wins']} of {best['n']} tasks.",
    )


def write_published(folder: Path, published: PublishedScores, title: str) -> Path:
    """Write the report and return its page; delete files of an earlier report."""
    doubts = [
        "the best of many models' scores may lie outside people's interval by chance: a star is not a test",
        *published.notes,
    ]
    return write_outlined(
        folder, PageWords(title, "", headline(published), doubts, _ABOUT), _OUTLINE, exhibits_of(published), {}
    )


def _tasks(published: PublishedScores) -> list[Exhibit]:
    """Return HUME's Tables 4 to 7: each scorer over the languages that it has."""
    wide, exhibits = pairs_by_scorer(published.every, complete=False), []
    for kind in dict.fromkeys(published.scores["task_type"]):
        frame = by_task(wide, kind).rename_axis("scorer").reset_index()
        columns: dict[str, Cell] = {str(name): hundredfold(str(name)) for name in frame if name != "scorer"}
        caption = f"As HUME's Tables 4 to 7: {kind}, means over the languages in which a scorer has scores, times 100"
        exhibits.append(Exhibit(f"tasks_{kind}", caption, frame, printed(frame, {"Scorer": "scorer", **columns})))
    return exhibits


def _standing(wide: pd.DataFrame, missing: tuple[str, ...]) -> Exhibit:
    split = in_languages(wide.index.get_level_values("task"), wide.index.get_level_values("language"))
    groups: dict[str, str | list[str]] = {by: by for by in ("", "task_type", "language")} | {"languages": split}
    parts = [
        wins(wide, people, [without], by=by).assign(people=people, by=name)
        for people, without in ((HUMAN, RATERS_MEAN), (RATERS_MEAN, HUMAN))
        for name, by in groups.items()
    ]
    frame = pd.concat(parts, ignore_index=True)
    caption = "Number of tasks (in one language each) on which people are above the models"
    return Exhibit("standing", caption, frame, printed(frame, {"People": "people", **win_columns(1)}), missing)


def _gaps(wide: pd.DataFrame, missing: tuple[str, ...]) -> Exhibit:
    frame = gaps(wide, HUMAN, [RATERS_MEAN])
    columns: dict[str, Cell] = {
        "Task": "task", "Language": "language", "People": hundredfold("people"), "For people": "difficulty",
        "Worst": hundredfold("worst"), "Median": hundredfold("median"), "Best": hundredfold("best"),
        "Best model": "best_model", "Best / people": percent("relative"),
    }  # fmt: skip
    caption = "Difficulty of tasks for people, and models' scores, times 100"
    return Exhibit("gaps", caption, frame, printed(frame, columns), missing)


def _table_8(published: PublishedScores) -> Exhibit:
    frame = with_reasons(table_8(published.scores, published.agreement))
    columns: dict[str, Cell] = {
        "Task": "task", "Language": "language", "Items": lambda row: str(row["n"] or NONE), "Raters": "raters",
        "People [95%]": estimate("people"), "Interval": "interval",
        "Agreement": lambda row: NONE if math.isnan(row["agreement"]) else f"{row['agreement']:.2f} ({row['measure']})",
        "Best model": best_model, "Which": lambda row: row["best_model"] or NONE,
    }  # fmt: skip
    where = frame["task"] + " (" + frame["language"] + ")"
    caption = (
        "As HUME's Table 8: people with intervals and agreement, and stars (*) if the best model's score lies outside"
        " people's interval"
    )
    return Exhibit("as_hume", caption, frame, printed(frame, columns), tuple(reasons(where, frame["reason"])))


def report_scores(options: argparse.Namespace) -> int:
    """Run the command with --scores: write the report on published scores, and print the headline."""
    published = read_published(options.scores, options.agreement, options.models)
    folder = output_folder(options.out, "report_human")
    page = write_published(folder, published, f"People and models: {options.scores.name}")
    print("\n".join(headline(published)))
    print(f"-> {page}")
    return 0
