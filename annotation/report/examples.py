"""Pairs to see for oneself what the means mean: the best, the worst and the most disputed."""

from __future__ import annotations

import pandas as pd

from annotation.report.material import Material
from annotation.verdicts.tables import display
from plumbline.exhibits.table import Exhibit
from plumbline.fields import fields_of

EACH = 3  # pairs of each kind
_LONGEST = 300  # characters of a text on the page; the CSV file has all
_COLUMNS = ["why", "pair_id", "transformation", "language", "question", "mean", "sd", "n_ratings", "texts"]


def examples_exhibit(material: Material) -> Exhibit:
    """The pairs with the highest and the lowest mean, and those whose ratings differ most; a row each.

    By the first question that is rated on a scale, of pairs with as many ratings as `acceptance.min_raters`; of equal
    ones the first by id. A pair stands under one heading alone.
    """
    caption = f"Examples: the best, the worst and the most disputed {material.study.called.item}s"
    frame = examples(material)
    printed = pd.DataFrame(
        {
            "": frame["why"],
            material.study.called.judged.capitalize(): [
                display(name, pooled=False) for name in frame["transformation"]
            ],
            "Mean": frame["mean"].map("{:.2f}".format),
            "SD": frame["sd"].map("{:.2f}".format),
            "Ratings": frame["n_ratings"].map(str),
            "Texts": [_cut(text) for text in frame["texts"]],
        }
    )
    return Exhibit("examples", caption, frame, printed)


def examples(material: Material) -> pd.DataFrame:
    """The same with all digits and whole texts: why, pair_id, transformation, language, question, mean, sd, ...

    `sd` is the sample standard deviation of the pair's ratings; `texts` what raters read, field by field.
    """
    if not material.questions:
        return pd.DataFrame(columns=_COLUMNS)
    question = material.questions[0]
    own = material.counting[(material.counting["question"] == question) & material.counting["value"].notna()]
    rated = own.groupby("pair_id", observed=True)["value"].agg(["mean", "std", "size"]).astype(float).reset_index()
    rated = rated[rated["size"] >= max(2, material.study.acceptance.min_raters)]
    rated.columns = pd.Index(["pair_id", "mean", "sd", "n_ratings"])
    kinds = (
        ("most disputed", ["sd", "pair_id"], [False, True]),
        ("best", ["mean", "pair_id"], [False, True]),
        ("worst", ["mean", "pair_id"], [True, True]),
    )
    parts = {}
    for why, by, ascending in kinds:
        some = rated[rated["sd"] > 0] if why == "most disputed" else rated
        parts[why] = some.sort_values(by, ascending=ascending).head(EACH).assign(why=why)
        rated = rated[~rated["pair_id"].isin(parts[why]["pair_id"])]
    found = pd.concat([parts["best"], parts["worst"], parts["most disputed"]])
    pairs = {pair.pair_id: pair for pair in material.pairs}
    shown = [pairs[pair_id] for pair_id in found["pair_id"]]
    return found.assign(
        question=question,
        n_ratings=found["n_ratings"].astype(int),
        transformation=[pair.transformation for pair in shown],
        language=[pair.language for pair in shown],
        texts=["\n".join(f"{one.name}: {one.text}" for one in fields_of(pair)) for pair in shown],
    )[_COLUMNS].reset_index(drop=True)


def _cut(text: str) -> str:
    return "\n".join(line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..." for line in text.splitlines())
