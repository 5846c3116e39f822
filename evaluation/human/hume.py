"""HUME's own tables of a study: Table 8, with its intervals and stars, and scores by groups of tasks (Tables 1, 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from evaluation.human.cells import NONE, estimate, table
from evaluation.human.material import ANSWERS_TOO, EMBEDS, PEOPLE, HumanMaterial
from evaluation.human.standing import by_group, by_type, pairs_by_scorer
from plumbline.exhibits.table import Exhibit, reasons
from plumbline.statistics.estimates import Estimate

Z = 1.96
TABLE_8 = ("task", "subset", "language", "task_type", "n", "raters", "answers", "people", "low", "high", "interval",
           "measure", "agreement", "best", "best_model", "star", "reason")  # fmt: skip
_CORRELATED, _CLASSIFIED = ("sts", "str", "summarisation"), ("classification", "multilabel_classification")
AGGREGATED = (*_CORRELATED, *_CLASSIFIED)  # where HUME's score of people is what they say together


def wilson_interval(share: float, n: int, z: float = Z) -> tuple[float, float]:
    """Wilson's score interval of a share of n items (Wilson 1927, JASA 22, 209-212).

    The centre is (p + z^2 / 2n) / (1 + z^2 / n), the half width z / (1 + z^2 / n) sqrt(p (1 - p) / n + z^2 / 4n^2).
    """
    centre, scale = share + z**2 / (2 * n), 1 + z**2 / n
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return (centre - half) / scale, (centre + half) / scale


def fisher_interval(correlation: float, n: int, z: float = Z) -> tuple[float, float]:
    """Fisher's interval of a correlation over n items: tanh(atanh r -+ z / sqrt(n - 3)) (Fisher 1915, Biometrika 10).

    Of Spearman's rho it is approximate, and narrow: its error is some 1.03 / sqrt(n - 3) (Fieller et al. 1957).
    """
    middle, reach = math.atanh(correlation), z / math.sqrt(n - 3)
    return math.tanh(middle - reach), math.tanh(middle + reach)


def paper_interval(task_type: str, value: float, n: int, raters: Sequence[float]) -> tuple[Estimate, str]:
    """HUME's 95% interval of people's score, and which it is: "Wilson", "Fisher z" or "range of raters".

    `value` is its score of people (`paper_score`), `raters` each rater's. Undefined for a share outside 0 to 1, for a
    correlation of 1 or -1, and for fewer items than the formula takes.
    """
    kind = "Fisher z" if task_type in _CORRELATED else "Wilson"
    if task_type not in AGGREGATED and len(raters) > 1:
        return Estimate(value=value, low=min(raters), high=max(raters), n=n), "range of raters"
    if kind == "Fisher z":
        reason = "" if n > 3 and abs(value) < 1 else "Fisher's z needs more than 3 items, and a rho within -1 and 1"
    else:
        reason = "" if n > 0 and 0 <= value <= 1 else "Wilson's interval needs items, and a score from 0 to 1"
    if reason:
        return Estimate.alone(value, reason, n), kind
    low, high = (fisher_interval if kind == "Fisher z" else wilson_interval)(value, n)
    return Estimate(value=value, low=low, high=high, n=n), kind


def paper_score(task_type: str, raters: Sequence[float], together: float) -> float:
    """HUME's score of people: of classification and STS what they say `together`, else the mean of `raters`.

    Its votes go to the alphabet where labels tie: `answers.aggregate(..., ties="first")`.
    """
    if task_type in AGGREGATED:
        return together
    return sum(raters) / len(raters) if raters else math.nan


def star(interval: Estimate, model: float) -> bool:
    """Whether a model lies outside people's interval, which HUME calls significant.

    It is no test: the best of many models is looked at, its own uncertainty is left out, and the items are the same.
    `scores.score` has the paired difference.
    """
    return bool(model < interval.low or model > interval.high)


def table_8(scores: pd.DataFrame, agreement: pd.DataFrame) -> pd.DataFrame:
    """People's scores with intervals, agreement and stars, a row a task in a language, exactly as HUME's Table 8.

    `scores` has rows of `HumanScore` (of each task's own metric), `agreement` of `HumanAgreement`, the measure that the
    paper prints first. Columns: task, subset, language, task_type, n (items), raters, answers (of all raters), people,
    low, high, interval (which of HUME's), measure and agreement (empty and NaN for one rater), best (model's score),
    best_model, star and reason. Tasks without a score of people are left out.
    """
    place = ["task", "subset", "language"]
    first = agreement.drop_duplicates(place).set_index(place)
    rows = []
    for key, own in scores.groupby(place, sort=False):
        by_kind = dict(iter(own.groupby("scorer_kind")))
        raters = by_kind["rater"].dropna(subset="score") if "rater" in by_kind else own.head(0)
        together = float(by_kind["aggregate"]["score"].iloc[0]) if "aggregate" in by_kind else math.nan
        counted = by_kind.get("aggregate", own)  # a rater alone may have others
        kind, n = str(own["task_type"].iloc[0]), int(counted["n_items"].max())
        value = paper_score(kind, raters["score"].tolist(), together)
        if math.isnan(value):
            continue
        found, interval = paper_interval(kind, value, n, raters["score"].tolist())
        models = by_kind["model"].dropna(subset="score") if "model" in by_kind else own.head(0)
        top = models.sort_values("score", ascending=False, kind="stable").head(1)
        best, name = (float(top["score"].iloc[0]), str(top["scorer"].iloc[0])) if len(top) else (math.nan, "")
        agreed = first.loc[[key]].iloc[0] if key in first.index and len(raters) > 1 else None
        rows.append(
            (*key, kind, n, len(raters), int(raters["n_items"].sum()), value, found.low, found.high, interval)
            + (("", math.nan) if agreed is None else (agreed["measure"], agreed["value"]))
            + (best, name, star(found, best), found.reason)
        )
    return pd.DataFrame(rows, columns=list(TABLE_8))


_TABLE_8 = (
    "As HUME has them (its Table 8), for comparison alone: Wilson's interval of accuracies, Fisher's of correlations,"
    " else the range of raters, and a star where the best model lies outside. A range claims no coverage, and a best of"
    " several models lies outside by chance too: the paired differences are the test. Votes without a winner count by"
    " their chance here, where HUME gives them to the alphabet"
)
_TABLE_1 = (
    "As HUME's Table 1, with the raters' mean for people: means over the tasks of a type in a language, in brackets how"
    " many; the last column is the mean over all of these, not over groups"
)
_TABLE_2 = (
    "As HUME's Table 2, with the raters' mean for people, which is what one person reaches: means over tasks in a"
    " language that people, all these language models and all embedding models have; the last row is the mean over all"
    " of these, not over types"
)


def as_hume(one: HumanMaterial) -> Exhibit:
    """Scores of people, intervals, agreement and stars exactly as HUME has them."""
    alone = (one.main["scorer_kind"] == "rater") & ~one.main.index.isin(one.compared.index)
    counted = alone & one.main["task_type"].isin(AGGREGATED)  # whose answers are in what people say together
    shared = one.main[one.main.index.isin(one.compared.index) | counted]
    made = table_8(shared, one.agreement)
    names = {tuple(row[:3]): row[3] for row in one.main[["task", "subset", "language", "where"]].to_numpy()}
    frame = made.assign(where=[names[key] for key in zip(made["task"], made["subset"], made["language"], strict=True)])
    rows = [
        {"Task": row["where"], "Language": row["language"], "Items": str(row["n"]), "Raters": str(row["raters"])}
        | {"Answers": str(row["answers"]), "People [95%]": estimate(row["people"], row["low"], row["high"])}
        | {"Interval": row["interval"], "Agreement": _agreed(row["measure"], row["agreement"])}
        | {"Best model": NONE if math.isnan(row["best"]) else f"{100 * row['best']:.1f}{'*' if row['star'] else ''}"}
        for row in frame.to_dict(orient="records")
    ]
    out = ", ".join(one.main.loc[alone & ~counted, "where"].unique())
    left = f"Raters who answered too few items to be compared are in no mean and no range here: of {out}" if out else ""
    notes = (_TABLE_8, left, *reasons(frame["where"], frame["reason"]))
    return table(one, "as_hume", "People, intervals, agreement and stars as HUME has them", frame, rows, notes)


def by_types(one: HumanMaterial) -> Exhibit:
    """People, each language model and the best embedding model by type of task."""
    caption = "People and language models by type of task, scores times 100"
    shared = one.compared
    own = shared[shared["scorer_kind"].isin((PEOPLE, ANSWERS_TOO, EMBEDS)) & shared["score"].notna()]
    kinds = dict(zip(own["scorer"], own["scorer_kind"], strict=True))
    answering = [name for name, kind in kinds.items() if kind == ANSWERS_TOO]
    wide = pairs_by_scorer(own.assign(task=own["where"])) if answering and PEOPLE in kinds else pd.DataFrame()
    if wide.empty:
        return table(one, "annotators_by_type", caption, pd.DataFrame(), [], ())
    means = by_type(wide)
    embedding = means.loc[[name for name in means.index if kinds[name] == EMBEDS]]
    rows, frame = [], []
    for name, number in means.attrs["pairs"].items():
        best = str(embedding[name].idxmax()) if len(embedding) else ""
        top = float(embedding.loc[best, name]) if best else math.nan
        said = {model: float(means.loc[model, name]) for model in answering}
        frame.append({"type": name, "n": number, "people": float(means.loc[PEOPLE, name]), **said,
                      "best_model": best, "best": top})  # fmt: skip
        rows.append(
            {"Type": "all" if name == "overall" else str(name).replace("_", " "), "Tasks": str(number)}
            | {"People": f"{100 * means.loc[PEOPLE, name]:.1f}"}
            | {model: f"{100 * value:.1f}" for model, value in said.items()}
            | {"Best embedding model": f"{100 * top:.1f} ({best})" if best else NONE}
        )
    left = wide.attrs["left_out"]
    notes = (_TABLE_2, f"{left} tasks are left out, on which somebody has no score" if left else "")
    return table(one, "annotators_by_type", caption, pd.DataFrame(frame), rows, notes)


def by_groups(one: HumanMaterial) -> Exhibit:
    """The raters' mean and each embedding model in each group of tasks, the best first."""
    caption = "People and embedding models by type of task and language, scores times 100"
    if one.gaps.empty:
        return table(one, "groups", caption, pd.DataFrame(), [], ())
    means = by_group(one.wide)
    pairs: dict[str, int] = {_named(*key): number for key, number in means.attrs["pairs"].items()}
    named = means.set_axis(list(pairs), axis=1).rename_axis("scorer").reset_index()
    frame = named.sort_values("all", ascending=False, kind="stable", ignore_index=True)
    rows = [
        {"Scorer": "raters' mean" if row["scorer"] == PEOPLE else str(row["scorer"])}
        | {f"{name} ({number})": f"{100 * row[name]:.1f}" for name, number in pairs.items()}
        for row in frame.to_dict(orient="records")
    ]
    left = one.wide.attrs.get("left_out", 0)
    notes = (_TABLE_1, f"{left} tasks are left out, which not all models have a score on" if left else "")
    return table(one, "groups", caption, frame, rows, notes)


def _named(task_type: str, language: str) -> str:
    return f"{task_type.replace('_', ' ')}, {language}" if language else "all"


def _agreed(measure: str, value: float) -> str:
    return NONE if math.isnan(value) else f"{measure} {value:.2f}"
