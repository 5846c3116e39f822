"""The report on published scores of people and models: HUME's tables, each as files and on one page."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from evaluation.human.cells import NONE, estimate, percent
from evaluation.human.hume import table_8
from evaluation.human.published import HUMAN, RATERS_MEAN, PublishedScores, with_reasons
from evaluation.human.standing import by_group, by_task, gaps, in_languages, pairs_by_scorer, rank, wins
from plumbline.exhibits.page import PageWords, write_outlined
from plumbline.exhibits.table import Exhibit, reasons

_OUTLINE = {
    "By type and language": ("groups",),
    "Where people stand": ("standing", "gaps"),
    "By task": ("tasks_classification", "tasks_clustering", "tasks_reranking", "tasks_sts"),
    "Intervals, agreement and stars": ("as_hume",),
}
_ABOUT = (
    "Made of scores that somebody published; nothing was run again, and no answer was read. Intervals, stars and means"
    " are HUME's, for comparison alone: without answers to single items there is no paired difference, which is the"
    " test (docs/human.md). Each table is a file in tables/ (CSV with all digits, Markdown, LaTeX)."
)


def exhibits_of(published: PublishedScores) -> dict[str, Exhibit]:
    """The tables by name; those without rows are left away."""
    wide = pairs_by_scorer(published.compared)
    names = [f"{name} (has {count})" for name, count in published.incomplete.items()]
    without = f"models without a score on each task in a language that people did are left out: {', '.join(names)}"
    unrated = f"tasks in a language left out, on which people, or a model, have no score: {wide.attrs['left_out']}"
    missing = (*([without] if names else []), *([unrated] if wide.attrs["left_out"] else []))
    tables = [
        _groups(wide, missing),
        _standing(wide, missing),
        _gaps(wide, missing),
        *_tasks(published),
        _table_8(published),
    ]
    return {table.name: table for table in tables if len(table.frame)}


def headline(published: PublishedScores) -> tuple[str, ...]:
    """Where people stand by both of their scores."""
    wide = pairs_by_scorer(published.compared)
    if wide.empty:
        return ("No task in a language has a score of everybody: there is nothing to compare on the same items.",)
    (people, of), (alone, _) = rank(wide, HUMAN, [RATERS_MEAN]), rank(wide, RATERS_MEAN, [HUMAN])
    best = wins(wide, HUMAN, [RATERS_MEAN]).set_index("against").loc["best"]
    return (
        f"On {len(wide)} tasks in a language people reach {100 * wide[HUMAN].mean():.1f} as HUME scores them, rank"
        f" {people} of {of}; the mean of single raters is {100 * wide[RATERS_MEAN].mean():.1f}, rank {alone}.",
        f"On {best['wins']} of {best['n']} people are above the best model.",
    )


def write_published(folder: Path, published: PublishedScores, title: str) -> Path:
    """Write the report; returns its page. Those of the report before go."""
    doubts = [
        "the best of many models lies outside people's interval by chance too: a star is no test",
        *published.notes,
    ]
    return write_outlined(
        folder, PageWords(title, "", headline(published), doubts, _ABOUT), _OUTLINE, exhibits_of(published), {}
    )


def _groups(wide: pd.DataFrame, missing: tuple[str, ...]) -> Exhibit:
    means = by_group(wide)
    pairs: dict[tuple[str, str], int] = means.attrs["pairs"]
    names = [f"{kind}, {language}" if language else "all" for kind, language in pairs]
    counts = [f"{name} ({number})" for name, number in zip(names, pairs.values(), strict=True)]
    frame = means.set_axis(names, axis=1).rename_axis("scorer").reset_index()
    frame = frame.sort_values("all", ascending=False, kind="stable", ignore_index=True)
    rows = frame.set_axis(["Scorer", *counts], axis=1)
    return Exhibit("groups", "As HUME's Table 1: means by type of task and language, times 100", frame,
                   _hundredfold(rows), missing)  # fmt: skip


def _tasks(published: PublishedScores) -> list[Exhibit]:
    """HUME's Tables 4 to 7: each scorer over the languages that it has."""
    wide, tables = pairs_by_scorer(published.every, complete=False), []
    for kind in dict.fromkeys(published.scores["task_type"]):
        frame = by_task(wide, kind).rename_axis("scorer").reset_index()
        rows = frame.rename(columns={"scorer": "Scorer"})
        caption = f"As HUME's Tables 4 to 7: {kind}, means over the languages that a scorer has, times 100"
        tables.append(Exhibit(f"tasks_{kind}", caption, frame, _hundredfold(rows)))
    return tables


def _standing(wide: pd.DataFrame, missing: tuple[str, ...]) -> Exhibit:
    split = in_languages(wide.index.get_level_values("task"), wide.index.get_level_values("language"))
    groups: dict[str, str | list[str]] = {by: by for by in ("", "task_type", "language")} | {"languages": split}
    people = {HUMAN: RATERS_MEAN, RATERS_MEAN: HUMAN}
    parts = [
        wins(wide, who, [without], by=by).assign(people=who, by=name)
        for who, without in people.items()
        for name, by in groups.items()
        if len(wide)
    ]
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    rows = [
        {
            "People": row["people"],
            "Tasks": row["group"].replace("_", " ") or "all",
            "Against": f"{row['against']} model",
        }
        | {"Wins": f"{row['wins']} of {row['n']}", "Ties": str(row["ties"]), "Share": f"{100 * row['share']:.1f}%"}
        for row in frame.to_dict(orient="records")
    ]
    return Exhibit("standing", "On how many tasks in a language people are above the models", frame,
                   pd.DataFrame(rows), missing)  # fmt: skip


def _gaps(wide: pd.DataFrame, missing: tuple[str, ...]) -> Exhibit:
    frame = gaps(wide, HUMAN, [RATERS_MEAN]) if len(wide) else pd.DataFrame()
    rows = [
        {"Task": row["task"], "Language": row["language"], "People": _hundred(row["people"])}
        | {"For people": row["difficulty"], "Worst": _hundred(row["worst"]), "Median": _hundred(row["median"])}
        | {"Best": _hundred(row["best"]), "Best model": row["best_model"], "Best / people": percent(row["relative"])}
        for row in frame.to_dict(orient="records")
    ]
    return Exhibit("gaps", "How hard tasks are for people, and models beside them, scores times 100", frame,
                   pd.DataFrame(rows), missing)  # fmt: skip


def _table_8(published: PublishedScores) -> Exhibit:
    frame = with_reasons(table_8(published.scores, published.agreement))
    rows = [
        {"Task": row["task"], "Language": row["language"], "Items": str(row["n"] or NONE), "Raters": str(row["raters"])}
        | {"People [95%]": estimate(row["people"], row["low"], row["high"]), "Interval": row["interval"]}
        | {"Agreement": NONE if math.isnan(row["agreement"]) else f"{row['agreement']:.2f} ({row['measure']})"}
        | {"Best model": NONE if math.isnan(row["best"]) else f"{100 * row['best']:.1f}{'*' if row['star'] else ''}"}
        | {"Which": row["best_model"] or NONE}
        for row in frame.to_dict(orient="records")
    ]
    where = frame["task"] + " (" + frame["language"] + ")"
    caption = "As HUME's Table 8: people with intervals and agreement, and stars (*) where the best model lies outside"
    return Exhibit("as_hume", caption, frame, pd.DataFrame(rows), tuple(reasons(where, frame["reason"])))


def _hundredfold(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({name: map(_hundred, column) if name != "Scorer" else column for name, column in rows.items()})


def _hundred(value: float) -> str:
    return NONE if math.isnan(value) else f"{100 * value:.1f}"
