"""What disrupts models, two generators, accepted pairs alone, the drift of all texts: arithmetic by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evaluation.records import AcceptedScore
from evaluation.tables.datasets import accepted_table, profile_table, score_drops
from evaluation.tables.generators import generator_table
from plumbline.study.transformations import EIGHT
from tests.evaluation.made_scores import made_scores, score_row


def numbers(paraphrasing: float, expansion: float, translation: float) -> dict[str, float]:
    return {"original": 0.8, "paraphrasing": paraphrasing, "expansion": expansion, "translation": translation}


def test_figure_9_has_a_point_a_data_set_model_and_transformation() -> None:
    scores = made_scores({"m": {"d": numbers(0.7, 0.85, 0.5)}})
    scores = pd.concat([scores, made_scores({"m": {"e": numbers(0.8, 0.8, 0.8)}}, language="de, en")])
    table = score_drops(scores)
    found = table[table["dataset"] == "d"].set_index("transformation")["drop"]
    assert found.to_dict() == pytest.approx({"paraphrasing": 10, "expansion": -5, "translation": 30})
    assert dict(zip(table["dataset"], table["setting"], strict=True)) == {"d": "English", "e": "Other languages"}


def test_figures_10_and_11_order_axes_by_what_they_move_and_models_by_that_order() -> None:
    scores = made_scores(
        {
            "a": {"d": numbers(0.7, 0.82, 0.5)},  # 10, 2 (a gain is a size too), 30
            "b": {"d": numbers(0.6, 0.5, 0.79)},  # 20, 30, 1
            "c": {"d": numbers(0.75, 0.79, 0.7)},  # 5, 1, 10: as a
            "d": {"d": {"original": 0.8, "paraphrasing": 0.7}},  # lacks two axes
        }
    )
    table = profile_table(scores)
    assert list(table["model"].unique()) == ["a", "c", "b"]
    own = table[table["model"] == "a"]
    assert list(own["axis"]) == ["language", "lexical_stylistic", "length"] and list(own["rank"]) == [1, 2, 3]
    assert list(own["size"]) == pytest.approx([30, 10, 2])
    assert set(own["ordering"]) == {"language > lexical_stylistic > length"}
    assert table[table["model"] == "b"]["ordering"].iloc[0].startswith("length > lexical")


def test_without_all_axes_there_is_no_profile() -> None:
    assert profile_table(made_scores({"m": {"d": {"original": 0.8, "paraphrasing": 0.7}}})).empty


def test_table_22_sets_two_generators_side_by_side() -> None:
    first = made_scores({"m": {"d": numbers(0.7, 0.6, 0.5)}, "n": {"d": numbers(0.5, 0.6, 0.5)}})
    second = made_scores({"m": {"d": numbers(0.75, 0.7, 0.4)}, "n": {"d": numbers(0.65, 0.7, 0.4)}})
    table = generator_table(first, second).set_index("name")
    assert list(table.index) == [
        *("lexical_stylistic", "paraphrasing", "length", "expansion", "language", "translation", "hteb_total")
    ]
    row = table.loc["paraphrasing"]  # means over two models: .6 and .7
    assert [row["first"], row["second"], row["change"]] == pytest.approx([0.6, 0.7, 10])
    assert [row["first_difference"], row["second_difference"]] == pytest.approx([-20, -10])
    total = table.loc["hteb_total"]  # (.6 + .6 + .5) / 3 and (.7 + .7 + .4) / 3
    assert [total["first"], total["second"], total["change"]] == pytest.approx([1.7 / 3, 0.6, 10 / 3])
    assert (total["n_datasets"], total["n_models"], total["reason"]) == (1, 2, "")


# HTEB, Table 22: scores under Gemma-3 and under Qwen3.
PRINTED = {
    "paraphrasing": (66.50, 67.69),
    "backtranslation": (67.49, 65.81),
    "style_change": (64.61, 67.24),
    "expansion": (66.55, 67.55),
    "summarisation": (64.09, 69.08),
    "summarised_expansion": (64.30, 66.39),
    "translation": (59.11, 58.04),
    "cross_translation": (53.92, 53.54),
}
PRINTED_ROWS = {"length": (64.98, 67.67, 2.69), "language": (56.52, 55.79, -0.73), "hteb_total": (62.57, 63.46, 0.89)}


def test_axes_and_total_of_the_papers_table_22_follow_from_its_transformations() -> None:
    one, other = (
        made_scores({"m": {"d": {"original": 0.7045} | {name: row[k] / 100 for name, row in PRINTED.items()}}})
        for k in (0, 1)
    )
    table = generator_table(one, other).set_index("name")
    for name, expected in PRINTED_ROWS.items():
        row = table.loc[name]
        assert [100 * row["first"], 100 * row["second"], row["change"]] == pytest.approx(expected, abs=0.011)


def test_table_22_takes_what_both_studies_have_and_says_what_it_leaves_out() -> None:
    first = made_scores({"m": {"d": numbers(0.7, 0.6, 0.5), "e": numbers(0.1, 0.1, 0.1)}})
    second = made_scores({"m": {"d": {"original": 0.8, "paraphrasing": 0.75}}, "n": {"d": numbers(0.2, 0.2, 0.2)}})
    table = generator_table(first, second).set_index("name")
    assert table.loc["paraphrasing", "first"] == 0.7 and "length" not in table.index
    assert np.isnan(table.loc["hteb_total", "first"]) and "an axis has no score" in table.loc["hteb_total", "reason"]
    assert "left out: 5 scores of the first study and 3 of the second" in table.loc["paraphrasing", "reason"]
    assert generator_table(first, made_scores({"k": {"d": numbers(0.1, 0.1, 0.1)}})).empty


def beside(model: str, dataset: str, transformation: str, seed: int, **own: object) -> dict[str, object]:
    where = {"model": model, "dataset": dataset, "transformation": transformation, "seed": seed}
    return {**where, "axis": EIGHT[transformation].axis, "status": "evaluated", "unit_id": "", **own}


def accepted_row(dataset: str, seed: int, original: float, score: float, n: int = 20, **own: object) -> AcceptedScore:
    given = {"original": original, "score": score, "n": n, "reason": ""}
    return AcceptedScore.model_validate(beside("m", dataset, "paraphrasing", seed, **{**given, **own}))


def test_accepted_pairs_alone_stand_beside_all_items_of_the_same_data_sets_and_seeds() -> None:
    scores = pd.DataFrame(
        [
            *(score_row("m", dataset, "original", 0.8) for dataset in ("d", "e")),
            *(score_row("m", "d", "paraphrasing", 0.8 - 0.1 * seed, seed=seed) for seed in (1, 2)),
            score_row("m", "e", "paraphrasing", 0.2),
        ]
    )
    few = {"reason": "3 items consist of accepted pairs alone, of at least 20 that are needed"}
    rows = [accepted_row("d", 1, 0.9, 0.85, 30), accepted_row("d", 2, 0.9, 0.75, 20)]
    rows.append(accepted_row("e", 1, float("nan"), float("nan"), 3, **few))
    (row,) = accepted_table(pd.DataFrame([one.model_dump() for one in rows]), scores).to_dict(orient="records")
    assert (row["n_datasets"], row["n_items"]) == (1, 50)
    assert [row["original"], row["score"], row["difference"]] == pytest.approx([0.9, 0.8, -10])
    assert row["difference_all"] == pytest.approx(-15)  # data set d alone: -10 and -20
    assert row["reason"].startswith("no difference for 1 of 3 data sets and seeds; on e: 3 items consist")


def test_what_was_refused_is_in_no_accepted_pairs() -> None:
    rows = pd.DataFrame([accepted_row("d", 1, 0.9, 0.8, status="included_rejected").model_dump()])
    scores = pd.DataFrame([score_row("m", "d", "original", 0.8), score_row("m", "d", "paraphrasing", 0.7)])
    assert accepted_table(rows, scores).empty


def test_no_rows_make_no_table() -> None:
    scores = made_scores({"m": {"d": numbers(0.7, 0.6, 0.5)}})
    assert accepted_table(pd.DataFrame(columns=list(AcceptedScore.model_fields)), scores).empty
