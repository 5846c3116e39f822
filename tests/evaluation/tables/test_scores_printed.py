"""HTEB's and PTEB's printed tables, from the numbers that stand in them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evaluation.tables.comparisons import baseline_table, ranking_table
from evaluation.tables.datasets import dataset_averages, dataset_totals, translation_table
from evaluation.tables.scores import TOTAL, axis_table
from plumbline.study.transformations import AXES, EIGHT
from tests.evaluation.made_scores import made_scores, printed, score_row

# PTEB, Table 6: scores of nine STS data sets on paraphrases, means over six runs; the first model is the baseline.
PTEB = {
    "all-mpnet-base-v2": [77.22, 77.45, 61.85, 78.91, 72.14, 81.58, 85.06, 69.39, 74.90],
    "embedding-gemma-300m": [64.67, 70.28, 54.95, 73.70, 65.03, 74.47, 75.28, 63.21, 66.97],
    "mxbai-embed-large-v1": [84.06, 78.24, 67.91, 84.19, 78.41, 85.05, 85.00, 68.97, 82.20],
    "e5-mistral-7b-instruct": [77.68, 79.01, 68.23, 84.35, 78.12, 86.20, 85.61, 67.49, 82.02],
    "qwen3-embedding-8b": [81.44, 81.88, 67.21, 82.90, 77.10, 86.50, 88.60, 68.61, 84.56],
}
BOTH = pytest.mark.parametrize("setting", ["english", "multilingual"])
# Printed numbers are rounded to 0.005: a number made of two of them is off by up to 0.01, and printed itself to 0.005.
ROUNDING = 0.0101


def axis_scores(setting: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(Table 14 or 15, without its average; scores of one data set whose transformations score as their axis does)"""
    table = printed("hteb_tables_14_15", setting).set_index("model")
    models = table.drop(index="Average")
    kinds = {"original": "original", **{name: kind.axis for name, kind in EIGHT.items()}}
    numbers = {m: {"all": {t: row[column] / 100 for t, column in kinds.items()}} for m, row in models.iterrows()}
    return table, made_scores(numbers)


@BOTH
def test_totals_and_differences_are_those_of_tables_14_and_15(setting: str) -> None:
    paper, scores = axis_scores(setting)
    ours = axis_table(scores).set_index("model")
    rows = paper.loc[ours.index]
    assert len(ours) == (11 if setting == "english" else 9)
    np.testing.assert_allclose(100 * ours[TOTAL], rows[TOTAL], atol=ROUNDING)
    for name in (*AXES, TOTAL):
        np.testing.assert_allclose(ours[f"{name}_difference"], rows[f"{name}_difference"], atol=0.0151)


@BOTH
def test_averages_are_those_of_tables_14_and_15(setting: str) -> None:
    paper, scores = axis_scores(setting)
    ours = axis_table(scores)
    for name in ("original", *AXES, TOTAL):
        assert 100 * ours[name].mean() == pytest.approx(paper.loc["Average", name], abs=ROUNDING)
    for name in (*AXES, TOTAL):
        mean = ours[f"{name}_difference"].mean()
        assert mean == pytest.approx(paper.loc["Average", f"{name}_difference"], abs=0.0151)


@pytest.fixture(scope="module", params=["english", "multilingual"])
def datasets(request: pytest.FixtureRequest) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    """(setting; Tables 17 to 21; three runs whose totals have the printed mean and SD: one below, one on, one above)"""
    paper = printed("hteb_tables_17_to_21", request.param)
    rows = []
    for row in paper[paper["dataset"] != "Average"].to_dict(orient="records"):
        place = {"model": row["model"], "dataset": row["dataset"], "task_type": row["task_type"]}
        rows.append(score_row(transformation="original", score=row["original"] / 100, **place))
        for seed, step in ((1337, -1), (1338, 0), (1339, 1)):
            total = (row["hteb"] + step * row["sd"]) / 100
            rows += [score_row(transformation=t, score=total, seed=seed, **place) for t in EIGHT]
    return request.param, paper, pd.DataFrame(rows)


def test_data_sets_and_their_averages_are_those_of_tables_17_to_21(
    datasets: tuple[str, pd.DataFrame, pd.DataFrame],
) -> None:
    _, paper, scores = datasets
    ours = dataset_totals(scores)
    assert (ours["n_runs"] == 3).all() and (ours["reason"] == "").all()
    both = ours.merge(paper, on=["model", "dataset"], suffixes=("", "_printed"))
    assert len(both) == len(ours) == (paper["dataset"] != "Average").sum()
    np.testing.assert_allclose(100 * both["score"], both["hteb"], atol=1e-9)
    np.testing.assert_allclose(100 * both["sd"], both["sd_printed"], atol=1e-9)

    averages = dataset_averages(ours).set_index("model")
    rows = paper[paper["dataset"] == "Average"].set_index("model").loc[averages.index]
    for mine, theirs in (("original", "original"), ("score", "hteb"), ("sd", "sd")):
        np.testing.assert_allclose(100 * averages[mine], rows[theirs], atol=ROUNDING)


def test_totals_by_data_set_are_those_by_axis(datasets: tuple[str, pd.DataFrame, pd.DataFrame]) -> None:
    setting, _, scores = datasets
    paper = printed("hteb_tables_14_15", setting).set_index("model")
    ours = axis_table(scores).set_index("model")
    np.testing.assert_allclose(100 * ours[TOTAL], paper.loc[ours.index, TOTAL], atol=ROUNDING)


def test_f2llm_moves_from_second_to_first_and_nv_embed_from_first_to_fourth(
    datasets: tuple[str, pd.DataFrame, pd.DataFrame],
) -> None:
    """HTEB, 4.2.1, of the English means."""
    setting, _, scores = datasets
    if setting == "multilingual":
        assert ranking_table(scores, transformed=True)["mean"].max() == pytest.approx(0.6553, abs=1e-4)
        return
    before, after = (
        list(ranking_table(scores, transformed=which).sort_values("mean", ascending=False)["model"])
        for which in (False, True)
    )
    assert before[:2] == ["NV-Embed-v2", "F2LLM-v2-4B"]
    assert (after[0], after[3]) == ("F2LLM-v2-4B", "NV-Embed-v2")


def test_subtotals_and_totals_are_those_of_table_16() -> None:
    paper = printed("hteb_table_16")
    models = paper[~paper["model"].str.contains("otal")]
    sides = [("STS-B", ""), ("STS-B German", "translated_")]
    totals = pd.concat(
        pd.DataFrame(
            {
                "dataset": name,
                "model": models["model"],
                "original": models[f"{prefix}original"] / 100,
                "score": models[f"{prefix}hteb"] / 100,
                "difference": models[f"{prefix}hteb"] - models[f"{prefix}original"],
            }
        )
        for name, prefix in sides
    )
    groups = {group: list(part["model"]) for group, part in models.groupby("group")}
    ours = translation_table(totals, "STS-B", "STS-B German", groups)
    assert list(ours["model"].str.startswith(("Subtotal", "Total"))) == list(paper["model"].str.contains("otal"))
    for _, prefix in sides:
        for mine, theirs, scale in (("original", "original", 100), ("score", "hteb", 100), ("difference",) * 2 + (1,)):
            expected = paper[f"{prefix}{theirs}"].to_numpy(float)
            # Printed to one digit, and differences made before they were rounded.
            np.testing.assert_allclose(scale * ours[f"{prefix}{mine}"].to_numpy(float), expected, atol=0.1501)


def test_models_against_a_baseline_are_those_of_ptebs_table_14() -> None:
    numbers = {
        model: {str(i): {"original": 0.9, "paraphrasing": score / 100} for i, score in enumerate(scores)}
        for model, scores in PTEB.items()
    }
    ours = baseline_table(made_scores(numbers), "all-mpnet-base-v2", seed=None).set_index("model")
    assert ours["shift"].to_dict() == pytest.approx(
        {
            "embedding-gemma-300m": 7.17,
            "mxbai-embed-large-v1": -3.62,
            "e5-mistral-7b-instruct": -3.42,
            "qwen3-embedding-8b": -4.46,
        },
        abs=0.0051,
    )
    assert ours["p_holm"].round(2).tolist() == [0.02, 0.04, 0.04, 0.02]
    assert set(ours["method"]) == {"exact"} and set(ours["n"]) == {9} and set(ours["reason"]) == {""}
