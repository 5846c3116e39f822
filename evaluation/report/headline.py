"""The answer on top: what the numbers say, what is doubtful about them and what to do next, in a sentence each."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from annotation.status.headline import in_short
from annotation.status.status import Status
from annotation.status.text import next_step
from annotation.verdicts.marks import late_lines
from annotation.verdicts.tables import count, display
from evaluation import tables
from evaluation.display import points
from evaluation.measures.rows import COMMAND
from evaluation.report.paper_tables import Results
from plumbline.transformations import in_order

SIGNIFICANT = 0.05
_RANKED = 3  # models, from which the order that they keep is told
_NOTHING = "Nothing that people accepted has a score: there is no change to speak of"


def headline(results: Results, status: Status, doubts: Sequence[str], missing: Sequence[str]) -> tuple[str, ...]:
    """Three sentences on scores that hold. `missing` says which scores are not there, which come first then."""
    study = status.study
    step = f"{study.command(COMMAND)}, for the scores that are missing" if missing else ""
    return in_short(f"{answer(results)}.", doubts, step or next_step(status, study.arguments))


def answer(results: Results) -> str:
    """How far scores change on what people accepted: over all models, of which most and least, by which axis most.

    Each mean is over the models that have the total's difference, or, where none has, a difference on the axis.
    """
    frame, axes = tables.axis_table(results.scores, results.verdicts), results.axes
    scored = frame[frame[f"{axes.total}_difference"].notna()]
    if scored.empty:
        found = [_of_axis(frame, axis) for axis in axes.shown]
        return f"There is no total; {', '.join(filter(None, found))}" if any(found) else _NOTHING
    change = scored.set_index("model")[f"{axes.total}_difference"].sort_values(kind="stable")
    by_axis = {axis: float(scored[f"{axis}_difference"].mean()) for axis in axes.of_total}
    most = max(by_axis, key=lambda axis: abs(by_axis[axis]))
    whose = f"{len(change)} models'" if len(change) > 1 else f"{change.index[0]}'s"
    ends = f" in the mean, from {_of(change, 0)} to {_of(change, -1)}" if len(change) > 1 else ""
    told = f"On accepted transformations {whose} scores change by {points(change.mean())} points{ends}"
    if len(by_axis) > 1:
        told += f"; most by {display(most)}, {points(by_axis[most])}"
    return told + _order(results)


def doubts_of(results: Results, missing: Sequence[str], campaign: Sequence[str]) -> tuple[str, ...]:
    """A line for each thing that is doubtful about the numbers; `campaign` are the doubts about the verdicts."""
    simulated = any(verdict.simulated for verdict in results.verdicts)
    return (
        *(["the ratings that decided what counts are SIMULATED: these numbers measure nothing"] if simulated else []),
        *(line.rstrip(".") for line in (*late_lines(results.verdicts), *missing)),
        *_left_out(results.scores),
        *_chance(results),
        *campaign,
    )


def failed_models(scores: pd.DataFrame) -> list[str]:
    """Models that failed, each with its reason."""
    failed = scores[scores["status"] == "failed"].drop_duplicates(["model", "reason"])
    return [f"{row.model} failed: {row.reason}" for row in failed.itertuples()]


def _left_out(scores: pd.DataFrame) -> list[str]:
    """Transformations that no verdict accepts, of all data sets or of some."""
    refused = scores[scores["status"].isin(("left_out", "included_rejected"))]
    lines = []
    for name in in_order(refused["transformation"].unique()):
        own, all_of_it = (one.loc[one["transformation"] == name, "dataset"].nunique() for one in (refused, scores))
        where = "" if own == all_of_it else f" on {own} of {count(all_of_it, 'data set')}"
        lines.append(f"{display(name, pooled=False)}{where}")
    return [f"left out of all totals, as no verdict accepts it: {', '.join(lines)}"] if lines else []


def _chance(results: Results) -> list[str]:
    """The transformations whose shift is not told from chance."""
    frame = tables.shift_table(results.scores)
    shifts = frame[frame["shift"].notna()]
    lines = []
    for n, part in shifts[~(shifts["p_holm"] < SIGNIFICANT)].groupby("n", sort=False):
        names = [display(name, pooled=False) for name in part["name"]]
        whose = f"all {len(names)} transformations" if len(names) == len(shifts) > 1 else ", ".join(names)
        over = count(int(str(n)), "data set")
        lines.append(f"over {over} the shift by {whose} may be chance (Wilcoxon, p of at least .05 by Holm)")
    return lines


def _order(results: Results) -> str:
    """How far models keep their order, where there are enough of them."""
    frame = tables.kendall_table(results.scores)
    row = frame[frame["name"] == results.axes.total].iloc[0]
    if row["n_models"] < _RANKED or pd.isna(row["tau"]):
        return ""
    return f"; their order stays with Kendall's tau {row['tau']:.2f} (1: the same order)"


def _of_axis(frame: pd.DataFrame, axis: str) -> str:
    own = frame[f"{axis}_difference"].dropna()
    return f"{display(axis)} {points(float(own.mean()))} points ({count(len(own), 'model')})" if len(own) else ""


def _of(change: pd.Series[float], place: int) -> str:
    return f"{points(float(change.iloc[place]))} ({change.index[place]})"
