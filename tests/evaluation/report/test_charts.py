"""Figures: what is drawn where, seen in what Vega would draw, and in the drawing itself."""

from __future__ import annotations

import re
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evaluation.report import charts
from evaluation.tables.comparisons import shift_table
from evaluation.tables.datasets import drift_correlations, profile_table, score_drops
from evaluation.tables.scores import axis_table, transformation_table
from plumbline.exhibits.charts import NEUTRAL, rows
from plumbline.exhibits.page import svg
from plumbline.study.transformations import EIGHT
from tests.evaluation.made_scores import made_scores


def rows_of(chart: alt.TopLevelMixin) -> list[dict[str, Any]]:
    """The data of a chart's largest data set."""
    return max(chart.to_dict()["datasets"].values(), key=len)


def words_of(chart: alt.TopLevelMixin) -> str:
    return " ".join(re.findall(r">([^<>]+)<", svg(chart)))


@pytest.fixture
def scores() -> pd.DataFrame:
    """Two sizes of one model; paraphrasing loses 10 points on each data set, translation gains 1 to 6."""
    numbers = {
        f"Tiny-{size}": {
            f"d{k}": {"original": 0.5, "paraphrasing": 0.4, "expansion": 0.5, "translation": 0.5 + k / 100}
            for k in range(1, 7)
        }
        for size in ("0.5B", "4B")
    }
    return made_scores(numbers)


def test_figure_4_has_original_axes_and_total_of_each_model(scores: pd.DataFrame) -> None:
    chart = charts.axis_shifts(axis_table(scores))
    scores_by_series = {row["series"]: row["score"] for row in rows_of(chart) if row["model"] == "Tiny-4B"}
    total = (40 + 50 + 53.5) / 3
    assert scores_by_series == pytest.approx(
        {"Original": 50, "Lexical/Stylistic": 40, "Length": 50, "Language": 53.5, "HTEB total": total}
    )
    assert "Tiny-0.5B" in words_of(chart) and "HTEB total" in words_of(chart)


def test_figure_6_shows_each_difference_and_marks_what_was_refused(scores: pd.DataFrame) -> None:
    scores.loc[scores["transformation"] == "expansion", "status"] = "included_rejected"
    chart = charts.delta_map(transformation_table(scores, include_rejected=True))
    words = words_of(chart)
    assert words.count("−10.0") == 2 and words.count("+3.5") == 2  # two models; (1 + ... + 6) / 6 points
    assert words.count(" 0.0*") == 2
    assert chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]["domain"] == pytest.approx([-10, 10])


def test_models_stand_by_what_a_figure_shows() -> None:
    numbers = {name: (original, original + 0.1 * change) for name, original, change in
               (("low", 0.3, 2), ("first", 0.9, -1), ("last", 0.2, -2))}  # fmt: skip
    few = made_scores({name: {"d": {"original": a, "paraphrasing": b, "expansion": b, "translation": b}}
                       for name, (a, b) in numbers.items()})  # fmt: skip
    by_total, by_difference = charts.axis_shifts(axis_table(few)), charts.delta_map(transformation_table(few))
    orders = [chart.to_dict()["layer"][0]["encoding"]["y"]["sort"] for chart in (by_total, by_difference)]
    assert orders == [["first", "low", "last"], ["low", "first", "last"]]


def test_figure_9_has_the_mean_of_all_drops_however_many_it_draws(
    scores: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "POINTS", 5)
    points, means = charts.drops(score_drops(scores)).to_dict()["layer"]
    data = charts.drops(score_drops(scores)).to_dict()["datasets"]
    assert [len(data[layer["data"]["name"]]) for layer in (points, means)] == [5, 36]


def test_figure_7_greys_what_is_not_significant(scores: pd.DataFrame) -> None:
    table = shift_table(scores)
    chart = charts.shift_intervals(table)
    series = {row["name"]: row["series"] for row in rows_of(chart)}
    # Six differences of one sign: p = 2 / 2^6, times 2 hypotheses 0.0625. Expansion moves nothing and has no p.
    assert series == dict.fromkeys(("paraphrasing", "expansion", "translation"), "Not significant")
    assert "Expansion (no p, |Δ| 0.00)" in words_of(chart)
    assert "Translation (p = .062, |Δ| 3.50)" in words_of(chart)
    significant = charts.shift_intervals(table.assign(p_holm=0.0004))
    assert {row["series"] for row in rows_of(significant)} == {"Lexical/Stylistic", "Length", "Language"}
    assert _colours(chart) == {"Not significant": NEUTRAL}
    assert set(_colours(significant)) == {"Lexical/Stylistic", "Length", "Language"}  # the legend has no other


def _colours(chart: alt.LayerChart) -> dict[str, str]:
    scale = chart.to_dict()["layer"][1]["encoding"]["color"]["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def test_figure_3_has_a_panel_a_transformation_on_one_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        [
            {
                "pair_id": f"{name}-{i}",
                "transformation": name,
                "axis": EIGHT[name].axis,
                "model": "m",
                "drift": (0.9 if name == "expansion" else 0.3) * (i + 1) / 9,
                "mean_quality": float(rng.integers(1, 6)),
                "n_ratings": 3,
                "simulated": True,
                "original": "<b>bold</b>",
                "transformed": "t",
            }
            for name in ("translation", "expansion")
            for i in range(9)
        ]
    )
    chart = charts.drift_figure(frame, drift_correlations(frame, 0), question="quality", scale=(1, 5))
    panels = chart.to_dict()["concat"]
    assert [panel["title"]["text"] for panel in panels] == ["Expansion", "Translation"]
    assert [panel["encoding"]["y"]["scale"]["domain"][1] for panel in panels] == pytest.approx([0.9, 0.9])
    assert words_of(chart).count("simulated ratings") == 2
    assert "<b>" not in svg(chart)

    monkeypatch.setattr(charts, "POINTS", 7)
    chart = charts.drift_figure(frame, drift_correlations(frame, 0), question="quality", scale=(1, 5))
    assert sum(map(len, chart.to_dict()["datasets"].values())) == 7
    assert words_of(chart).count("n = 9 pairs") == 2
    assert charts.left_undrawn(frame).startswith("7 of 18 points are drawn, at random")


SCORES = made_scores(
    {
        "Tiny": {"d": {"original": 0.8, "paraphrasing": 0.7, "expansion": 0.78, "translation": 0.5}},
        "Small": {"d": {"original": 0.8, "paraphrasing": 0.5, "expansion": 0.78, "translation": 0.7}},
    }
)


def test_figure_10_has_a_panel_an_ordering_and_bars_from_most_to_least() -> None:
    chart = charts.axis_sizes(profile_table(SCORES))
    words = words_of(chart)
    assert "Language &gt; Lexical/Stylistic &gt; Length" in words
    assert "Lexical/Stylistic &gt; Language &gt; Length" in words
    ranks = {row["name"]: row["rank"] for row in rows_of(chart) if row["model"] == "Tiny"}
    assert ranks == {"Language": 1, "Lexical/Stylistic": 2, "Length": 3}


def test_the_overview_of_drift_has_the_median_near_each_rating_and_rho_over_all_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1337)
    means = rng.integers(3, 16, 200) / 3
    points = pd.DataFrame({"pair_id": [f"p{n}" for n in range(200)], "mean_quality": means,
                           "transformation": np.where(np.arange(200) % 2, "paraphrasing", "expansion"), "axis": "all",
                           "model": "m", "drift": (5 - means) / 8 + rng.uniform(0, 0.2, 200), "simulated": False,
                           "original": "a", "transformed": "b", "n_ratings": 3})  # fmt: skip
    row = drift_correlations(points.assign(transformation="all"), 1337).iloc[0]
    chart = charts.drift_overview(points, row, charts.DriftScales("quality", (1, 5), 1.0))
    assert f"ρ = −{stats.spearmanr(points['drift'], means).statistic * -1:.2f}" in words_of(chart)
    assert {"Paraphrasing", "Expansion"} <= set(re.findall(r">([^<>]+)<", svg(chart)))
    middle = next(rows for rows in chart.to_dict()["datasets"].values() if "low" in rows[0])
    for spot in middle:
        near = points.loc[np.abs(means.round(1) - spot["mean_quality"]) <= 0.5, "drift"]
        assert [spot["low"], spot["drift"], spot["high"]] == pytest.approx(np.quantile(near, [0.25, 0.5, 0.75]))
    assert max(abs(row["mean_quality"] - mean) for row, mean in zip(rows_of(chart), means, strict=True)) < 0.17
    monkeypatch.setattr(charts, "POINTS", 40)  # the median is still over all points
    few = charts.drift_overview(points, row, charts.DriftScales("quality", (1, 5), 1.0)).to_dict()["datasets"].values()
    assert any(rows == middle for rows in few) and 40 in map(len, few)


def test_long_names_that_begin_alike_are_told_apart_where_they_are_cut() -> None:
    names = [f"laboratory/sentence-model-instruct-{number:02}" for number in range(3)]
    chart = alt.Chart(pd.DataFrame({"model": names})).mark_point()
    cut = set(words_of(chart.encode(y=rows("model", names, 110))).split()) - {""}
    assert len(cut) == 3 and all(len(name) <= 17 and name.startswith("labor") for name in cut)
    assert {name[-3:] for name in cut} == {"-00", "-01", "-02"}
    assert set(names) <= set(words_of(chart.encode(y=rows("model", names, 400))).split())
    alike = [f"organisation/model-{size}-trained-on-many-sentences-v1" for size in ("base", "large")]
    chart = alt.Chart(pd.DataFrame({"model": alike})).mark_point()
    assert {*alike} <= set(words_of(chart.encode(y=rows("model", alike))).split())  # else both would have one label


def test_a_tall_map_of_differences_has_its_heads_above_and_no_zero_has_a_sign(scores: pd.DataFrame) -> None:
    table = transformation_table(scores, include_rejected=True).assign(difference=-0.0001)
    many = pd.concat(table.assign(model=f"model-{number:02}") for number in range(30))
    for frame, orient in ((table, None), (many, "top")):
        chart = charts.delta_map(frame)
        assert chart.to_dict()["layer"][0]["encoding"]["x"]["axis"].get("orient") == orient
        assert set(re.findall(r"[+−-]?0\.0\b", words_of(chart))) == {"0.0"}
