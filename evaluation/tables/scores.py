"""Scores by transformation, axis and data set (HTEB, Tables 14 and 15), beside those of the original texts.

Where failed outputs were dropped, the original's score is that of the items left (`Score.original_score`), not of the
whole data set, because items with failed outputs are not a random sample. The whole data set's is kept beside it for
the papers' tables, which print the original once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pandas as pd

from annotation.records import Verdict
from annotation.verdicts.rules import marks_of
from plumbline.errors import nearest
from plumbline.frames import filled, need, numbers, once
from plumbline.records import Score
from plumbline.statistics.estimates import Estimate
from plumbline.study.subject import ORIGINAL
from plumbline.study.transformations import AXES, EIGHT, HTEB_TOTAL, Axes
from plumbline.study.transformations import in_order as names_in_order
from plumbline.words import count

NO_SAME_ITEMS = "the original has no score on the same items (run `plumbline evaluate` again)"
NO_ORIGINAL = "the original has no score"
NO_SCORE = "there is no score"
SCORED = ("evaluated", "included_rejected")
_UNIT = ["model", "dataset", "transformation"]
_NUMBERS = ["score", "original", "original_all"]


def of_estimate(name: str, estimate: Estimate) -> dict[str, object]:
    """Return the columns of an estimate, its value by this name."""
    return {
        name: estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "reason": estimate.reason,
    }


def originals(scores: pd.DataFrame) -> pd.DataFrame:
    """Return each model's score on each whole original data set; NaN if undefined."""
    rows = scores[(scores["transformation"] == ORIGINAL) & (scores["status"] == "evaluated")]
    return rows[["model", "dataset", "task_type", "score"]].rename(columns={"score": "original"})


def counting_scores(scores: pd.DataFrame, *, include_rejected: bool = False, of_total: bool = False) -> pd.DataFrame:
    """Return the counting scores of transformed data sets, a row a seed; NaN if the metric is undefined.

    With `of_total` only those on the axes of the total.
    """
    counted = scores[scores["status"].isin(SCORED if include_rejected else SCORED[:1])]
    counted = counted[counted["transformation"] != ORIGINAL]
    return counted[counted["axis"].isin(Axes.of(scores).of_total)] if of_total else counted


def with_originals(counted: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `counting_scores` with their originals, a row a seed.

    Added columns: original (on the same items), original_all (on the whole data set), why (what is undefined,
    or "").
    """
    on_all_items = originals(scores).rename(columns={"original": "original_all"})
    rows = counted.merge(on_all_items, on=["model", "dataset", "task_type"], how="left")
    dropped = (rows["n_failed"] > 0).to_numpy(bool)
    same = rows["original_score"] if "original_score" in rows else pd.Series(np.nan, index=rows.index)
    rows["original"] = np.where(dropped, same.to_numpy(float), rows["original_all"].to_numpy(float))
    undefined = rows[["score", "original"]].isna().any(axis=1).to_numpy(bool)
    missing = np.where(rows["score"].isna(), NO_SCORE, np.where(dropped, NO_SAME_ITEMS, NO_ORIGINAL))
    reasons = np.where(rows["reason"].str.contains("undefined"), rows["reason"], missing)
    return rows.assign(why=np.where(undefined, reasons, ""))


def paired_scores(counted: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return each model x data set x transformation's score, averaged over seeds, and its original's on the same items.

    `counted` are rows of `counting_scores`; `scores` include the originals. Columns: model, dataset, transformation,
    axis, task_type, score, original, original_all (of the whole data set), n_failed, included_rejected, difference
    (points), why. Values undefined for one of the seeds are NaN, with the reason in `why`.
    """
    return averaged(with_originals(counted, scores))


def shared_scores(scores: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the rows of `paired_scores` that all models have, and a note on what is left out.

    Comparisons between models, and means over them, need the same data sets, transformations and seeds for all.
    """
    rows = with_originals(counting_scores(scores), scores)
    defined = rows[rows["why"] == ""]
    keys = ["dataset", "transformation", "seed"]
    models = defined.groupby(keys)["model"].transform("nunique")
    shared = defined[models == defined["model"].nunique()]
    total, shared_n = (len(some.drop_duplicates(keys)) for some in (rows, shared))
    units = "data sets x transformations" + (" x seeds" if rows["seed"].nunique() > 1 else "")
    return averaged(shared), f"without {total - shared_n} of {total} {units}, which some models lack" * (
        shared_n < total
    )


def whole_data_sets(counted: pd.DataFrame) -> pd.DataFrame:
    """Return rows of models and data sets with each transformation and seed that any model has on the data set.

    Means over different transformations or seeds are not comparable.
    """
    keys = ["dataset", "transformation", "seed"]
    wanted = counted.drop_duplicates(keys).groupby("dataset").size()
    runs = counted.groupby(["model", "dataset"])["seed"].transform("size")
    return counted[runs == counted["dataset"].map(wanted)]


def averaged(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `with_originals`, averaged over seeds."""
    marked = rows.assign(included_rejected=rows["status"] == "included_rejected")
    groups = marked.groupby([*_UNIT, "axis", "task_type"], sort=False)
    means = groups[_NUMBERS].mean(skipna=False)
    counts = groups.agg(
        n_failed=("n_failed", "sum"), included_rejected=("included_rejected", "max"), why=("why", "max")
    )
    paired = means.join(counts).reset_index()
    return paired.assign(difference=100 * (paired["score"] - paired["original"]))


_DEFAULTS: dict[str, Any] = {"task_type": "", "seed": 0, "status": "evaluated", "reason": "", "n_failed": 0}
_ROUNDING = 1e-9  # a score may be off the scale by this
_STATUSES = get_args(Score.model_fields["status"].annotation)


def checked_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores with all columns that tables need. Raises ValueError for invalid rows.

    model, dataset, transformation and score are required. By default all rows are evaluated, no items failed, and axes
    are those of HTEB's transformations.
    """
    filled(scores, ("model", "dataset", "transformation"), "scores")
    need(scores, ("score",), "scores")
    values = numbers(scores["score"], "scores")
    if (off := np.abs(values) > 1 + _ROUNDING).any():
        verb = "is" if off.sum() == 1 else "are"
        fault = f"{values[off.argmax()]:g} is not between -1 and 1 ({off.sum()} of {len(off)} scores {verb} not)"
        raise ValueError(f"scores: {fault}; divide percentages by 100")
    columns = {name: scores.get(name, value) for name, value in _DEFAULTS.items()}
    for name in ("task_type", "reason"):
        if name in scores:
            columns[name] = scores[name].astype(object).where(scores[name].notna(), "").astype(str)
    if "n_failed" in scores:
        columns["n_failed"] = np.nan_to_num(numbers(scores["n_failed"], "scores")).astype(np.int64)
    scores = scores.assign(score=values, **columns)
    if "axis" not in scores:
        _refuse_others(scores["transformation"], (ORIGINAL, *EIGHT), "transformation")  # without an axis
        axes = {name: kind.axis for name, kind in EIGHT.items()} | {ORIGINAL: ORIGINAL}
        scores = scores.assign(axis=scores["transformation"].map(axes))
    htebs = scores["transformation"].isin([ORIGINAL, *EIGHT])
    _refuse_others(scores.loc[htebs, "axis"], (ORIGINAL, *AXES), "axis")
    if taken_axes := sorted(set(scores.loc[~htebs, "axis"]) & {ORIGINAL, *AXES, *EIGHT}):
        raise ValueError(
            f"scores: axis {taken_axes[0]!r} is only for HTEB's transformations; give others their own axis"
        )
    _refuse_others(scores["status"], _STATUSES, "status")
    once(scores, Score.KEY, "scores")
    return scores


def _refuse_others(column: pd.Series, allowed: Iterable[str], kind: str) -> None:
    names = list(allowed)
    if unknown := [name for name in column.unique() if name not in names]:
        raise ValueError(f"scores: unknown {kind} {unknown[0]!r}; {nearest(str(unknown[0]), names)}")


TOTAL = HTEB_TOTAL
NOTHING = "no part of it was evaluated"
_BESIDE = ("original", "difference")  # values beside an axis's score
ANYTHING = "everything"  # in place of a transformation, if a model failed


def transformation_table(scores: pd.DataFrame, *, include_rejected: bool = False) -> pd.DataFrame:
    """Return each model x transformation's score with the original's: a row for each that has scores.

    `scores` are `plumbline.records.Score` rows. Columns: model, axis, transformation, n_datasets, n_failed (items
    whose outputs failed, summed over data sets and seeds), original (mean over the same data sets and items), score,
    difference (points), original_all (over the whole of these data sets), reason (why a value is NaN),
    included_rejected. Seeds are averaged first, then data sets (METHOD: HTEB, 2.3). With `include_rejected` rejected
    rows that the user included count too.
    """
    return _by_transformation(paired_scores(counting_scores(scores, include_rejected=include_rejected), scores))


def axis_table(
    scores: pd.DataFrame, verdicts: Iterable[Verdict] = (), *, include_rejected: bool = False
) -> pd.DataFrame:
    """Return each model's original, axes and total (HTEB, 2.3, Tables 14 and 15).

    An axis is the mean over its transformations (`transformation_table`), `hteb_total` the unweighted mean of HTEB's
    three, `total` that of all axes; a table has one of them (`total_axes`). Columns: model,
    n_datasets, n_failed (as there), original; for each the score, `<name>_original` (of exactly the data sets and items
    that it rests on), `<name>_difference` (of the two, points) and `<name>_reason` (why it is NaN, or what it lacks);
    included_rejected (names, comma-separated); simulated (whether any verdict rests on simulated ratings), rules_fixed
    (`late` or `unknown` if rules were not, or may not have been, fixed before the first rating). `original` is over
    whole data sets, as in the paper: the mean over all with at least one counting transformation on the total's axes.
    Models without scores have a row, too.

    Your own frame needs only model, dataset, transformation and score (`evaluation.tables.scores`). Raises ValueError
    for a frame without these, unknown names, and duplicate scores.

    >>> import pandas as pd
    >>> from evaluation import axis_table
    >>> scores = pd.DataFrame({"model": "mine", "dataset": "STS17"}, index=range(5)).assign(
    ...     transformation=["original", "paraphrasing", "style_change", "expansion", "translation"],
    ...     score=[0.80, 0.76, 0.70, 0.71, 0.52],
    ... )
    >>> table = axis_table(scores).set_index("model")
    >>> table.loc["mine", ["original", "lexical_stylistic", "length", "language", "hteb_total"]].round(3).to_dict()
    {'original': 0.8, 'lexical_stylistic': 0.73, 'length': 0.71, 'language': 0.52, 'hteb_total': 0.653}
    >>> table["lexical_stylistic_difference"].round(1).item()  # points: 100 * (0.73 - 0.80)
    -7.0
    """
    scores = checked_scores(scores)
    paired = paired_scores(counting_scores(scores, include_rejected=include_rejected), scores)
    by_transformation = _by_transformation(paired)
    parts = dict(iter(by_transformation.groupby("model", sort=False)))
    axes = Axes.of(scores)
    on_total = paired[paired["axis"].isin(axes.of_total)]
    counts = on_total if len(on_total) else paired
    first = counts.drop_duplicates(["model", "dataset"])  # each model and data set with the original's score
    whole_scores = dict(iter(first.groupby("model", sort=False)["original_all"]))
    models = scores["model"].drop_duplicates()
    values, *of_same_items = (
        axis_means(paired, name, axes).reindex(models) for name in ("score", "original", "difference")
    )
    reasons = failures(scores)
    marks = marks_of(verdicts)
    wanted = {axis: transformations_of(scores, axis) for axis in axes.shown}
    rows = []
    for model in models:
        mine = parts.get(model, by_transformation.head(0))
        of_model = whole_scores.get(model, first["original_all"].head(0))
        row: dict[str, object] = {"model": model, "n_datasets": len(of_model), "n_failed": int(mine["n_failed"].sum())}
        row["original"] = float(of_model.mean(skipna=False))
        for name in axes.names:
            row[name] = values.at[model, name]
            row |= {f"{name}_{end}": table.at[model, name] for end, table in zip(_BESIDE, of_same_items, strict=True)}
        for axis in axes.shown:
            part = mine[mine["axis"] == axis]
            row[f"{axis}_reason"] = reasons.get(model) or _coverage(part, first["dataset"].nunique(), wanted[axis])
        of_total = {axis: wanted[axis] for axis in axes.of_total}
        row |= {
            f"{axes.total}_reason": reasons.get(model) or _lacking(row, axes.of_total) or _incomplete(mine, of_total),
            "included_rejected": ", ".join(mine.loc[mine["included_rejected"].astype(bool), "transformation"]),
            **marks,
        }
        rows.append(row)
    parts_of = [f"{name}{end}" for name in axes.names for end in ("", "_original", "_difference", "_reason")]
    columns = ["model", "n_datasets", "n_failed", "original", *parts_of, "included_rejected", *marks_of(())]
    return pd.DataFrame(rows, columns=columns)


def axis_means(paired: pd.DataFrame, column: str, axes: Axes) -> pd.DataFrame:
    """Return means of a column over data sets, an axis's transformations, and then the total's axes (HTEB, 2.3).

    `paired` are rows of `paired_scores`. The table has a row a model (the index) and a column for each axis and the
    total. An axis without scores, or with undefined ones, is NaN, and so is its total.
    """
    keys = ["model", "axis", "transformation"]
    means = paired.groupby(keys, sort=False)[column].mean(skipna=False)
    by_axis = means.groupby(level=["model", "axis"], sort=False).mean(skipna=False)
    table = by_axis.unstack("axis").reindex(columns=list(axes.shown))
    table[axes.total] = table[list(axes.of_total)].mean(axis=1, skipna=False)
    return table


def left_out_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return what was left out, failed, is undefined, or was included despite its verdict or by one carried over.

    Columns: transformation, status, reason, datasets (comma-separated), seeds (comma-separated). Equal rows
    of several models, data sets and seeds are merged, and so are all transformations of a failed model. Items whose
    outputs failed have a row for each transformation.
    """
    refused = scores[(scores["status"] != "evaluated") | scores["score"].isna() | (scores["reason"] != "")]
    failed = refused["status"] == "failed"
    named = refused["model"] + ": " + refused["reason"]
    refused = refused.assign(
        transformation=refused["transformation"].mask(failed, ANYTHING), reason=refused["reason"].mask(failed, named)
    )
    refused = pd.concat([refused, _failed(scores)])
    refused = refused.assign(seed=refused["seed"].astype(str))

    def names(values: pd.Series[str]) -> str:
        return ", ".join(dict.fromkeys(values))

    table = refused.groupby(["transformation", "status", "reason"], sort=False, as_index=False).agg(
        datasets=("dataset", names), seeds=("seed", names)
    )
    return table[["transformation", "status", "reason", "datasets", "seeds"]]


def _by_transformation(paired: pd.DataFrame) -> pd.DataFrame:
    """Return `transformation_table` for rows of `paired_scores`."""
    columns = ["model", "axis", "transformation", "n_datasets", "n_failed"]
    columns += ["original", "score", "difference", "original_all", "reason", "included_rejected"]
    if paired.empty:
        return pd.DataFrame(columns=columns)
    groups = paired.groupby(["model", "axis", "transformation"], sort=False)
    means = groups[["original", "score", "original_all"]].mean(skipna=False)
    counts = groups.agg(
        n_datasets=("dataset", "nunique"),
        n_failed=("n_failed", "sum"),
        reason=("why", "max"),
        included_rejected=("included_rejected", "max"),
    )
    table = means.join(counts).reset_index()
    table["difference"] = 100 * (table["score"] - table["original"])
    return in_order(table)[columns].reset_index(drop=True)


def _failed(scores: pd.DataFrame) -> pd.DataFrame:
    """Return scored rows that lack items with failed outputs; the reason has the total."""
    failed = scores[(scores["n_failed"] > 0) & scores["status"].isin(SCORED)]
    failed = failed.drop_duplicates(["dataset", "transformation", "seed"])  # the same for all models
    counts = failed.groupby("transformation")["n_failed"].transform("sum")
    causes = failed["n_kept_out"].map(lambda n: "failed or were kept out of the sample" if n else "failed")
    reasons = [
        f"{count(n, 'item')} whose outputs {cause} {'was' if n == 1 else 'were'} dropped"
        for n, cause in zip(counts, causes, strict=True)
    ]
    return failed.assign(reason=reasons)


def failures(scores: pd.DataFrame) -> dict[str, str]:
    """Return the reasons of models that failed and have no scores at all."""
    scored = set(scores.loc[scores["status"].isin(SCORED), "model"])
    failed = scores[(scores["status"] == "failed") & ~scores["model"].isin(scored)].drop_duplicates("model")
    return dict(zip(failed["model"], failed["reason"], strict=True))


def transformations_of(scores: pd.DataFrame, axis: str) -> list[str]:
    """Return the study's transformations of an axis, evaluated or left out, in the method's order."""
    return names_in_order(scores.loc[scores["axis"] == axis, "transformation"].unique())


def _coverage(part: pd.DataFrame, n_datasets: int, wanted: Sequence[str]) -> str:
    """Return what an axis's score lacks: transformations, or data sets of some; "" if nothing."""
    if part.empty:
        return "no transformation of this axis was evaluated"
    absent = [name for name in wanted if name not in set(part["transformation"])]
    fewer = part[part["n_datasets"] < n_datasets]
    names = zip(fewer["transformation"], fewer["n_datasets"], strict=True)
    notes = [f"without {', '.join(absent)}"] if absent else []
    notes += [f"{name}: {count} of {n_datasets} data sets" for name, count in names]
    undefined = part[part["reason"] != ""]
    return "; ".join([*notes, *map(": ".join, zip(undefined["transformation"], undefined["reason"], strict=True))])


def _lacking(row: Mapping[str, Any], axes: Sequence[str]) -> str:
    """Return the axes without a score, or else without a difference, which leave the total without one; "" if none."""
    for name, end in (("score", ""), ("difference", "_difference")):
        if undefined := [axis for axis in axes if pd.isna(row[axis + end])]:
            return f"no {name} for: {', '.join(undefined)}"
    return ""


def _incomplete(mine: pd.DataFrame, wanted: Mapping[str, Sequence[str]]) -> str:
    """Return how many of the study's transformations (`wanted`, by axis) a total rests on; "" if all."""
    n_scored = mine.loc[mine["axis"].isin(list(wanted)), "transformation"].nunique()
    number = sum(map(len, wanted.values()))
    return f"rests on {n_scored} of {number} transformations" if n_scored < number else ""


def in_order(table: pd.DataFrame, *first: str) -> pd.DataFrame:
    """Return rows in the order of models (as given), then of transformations: `first`, the method's, then others."""
    names = dict.fromkeys((*first, *names_in_order(table["transformation"].unique())))
    rank = {name: number for number, name in enumerate(names)}
    models = {name: number for number, name in enumerate(table["model"].drop_duplicates())}
    keys = pd.DataFrame({"m": table["model"].map(models), "t": table["transformation"].map(rank)}, index=table.index)
    return table.loc[keys.sort_values(["m", "t"], kind="stable").index]
