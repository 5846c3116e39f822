"""HUME's own tables of a study: Table 8, with its intervals and stars, and scores by groups of tasks (Tables 1, 2)."""

from __future__ import annotations

import math

import pandas as pd

from evaluation.human.cells import NONE, estimate
from evaluation.human.material import ANSWERS_TOO, EMBEDS, PEOPLE, Material
from evaluation.human.paper import AGGREGATED, table_8
from evaluation.human.standing import by_group, by_type, pairs_by_scorer
from evaluation.human.tables import table
from plumbline.exhibits.table import Exhibit, reasons

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


def as_hume(one: Material) -> Exhibit:
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


def by_types(one: Material) -> Exhibit:
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


def by_groups(one: Material) -> Exhibit:
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
