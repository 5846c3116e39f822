"""Figures of sensitivity, profiles and drift: what is drawn where."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evaluation.report import charts
from evaluation.tables import drop_table, profile_table
from tests.evaluation.made_scores import made_scores
from tests.evaluation.report.test_charts import rows_of, words_of

SCORES = made_scores(
    {
        "Tiny": {"d": {"original": 0.8, "paraphrasing": 0.7, "expansion": 0.78, "translation": 0.5}},
        "Small": {"d": {"original": 0.8, "paraphrasing": 0.5, "expansion": 0.78, "translation": 0.7}},
    }
)


def test_decisions_have_a_row_a_scope_and_the_studys_threshold() -> None:
    rows = [
        {"transformation": name, "language": "de", "task_type": task, "threshold": at, "decision": decision}
        for name, task in (("translation", ""), ("expansion", "pair_classification"))
        for at, decision in ((1.0, "accepted"), (3.0, "undecided"), (5.0, "rejected"))
    ]
    chart = charts.threshold_decisions(pd.DataFrame(rows), 3.0)
    words = words_of(chart)
    assert words.index("Expansion (de, pair classification)") < words.index("Translation (de)")
    rule = chart.to_dict()["layer"][0]
    assert chart.to_dict()["datasets"][rule["data"]["name"]] == [{"threshold": 3.0}]
    assert rule["encoding"]["x"]["scale"]["domain"] == [1 - 4 / 50, 5 + 4 / 50]  # room for points at the ends
    assert rule["encoding"]["x"]["axis"]["values"] == [1, 3, 5]  # a tick for each threshold
    from_0 = pd.DataFrame([{**rows[0], "threshold": 0.0}, *rows])  # PTEB's scale
    layers = charts.threshold_decisions(from_0, 3.0).to_dict()["layer"]
    assert {tuple(layer["encoding"]["x"]["scale"]["domain"]) for layer in layers} == {(-0.1, 5.1)}


def test_lines_of_scores_break_where_nothing_is_known() -> None:
    numbers = {"original": 0.8, "lexical_stylistic": 0.7, "length": 0.6, "language": 0.5, "hteb_total": 0.6}
    rows = [{"threshold": at, "model": "m", **numbers} for at in (1.0, 1.25, 2.0, 2.25)]
    lost = {"threshold": 1.5, "model": "m", **numbers, "length": np.nan, "hteb_total": np.nan}
    table = pd.DataFrame([*rows, lost]).sort_values("threshold")
    chart = charts.threshold_scores(table, 3.0)
    totals = [row for row in rows_of(chart) if row["series"] == "HTEB total"]
    assert [row["score"] for row in totals] == [60.0, 60.0, None, 60.0, 60.0]
    assert "HTEB total" in words_of(chart)


def test_totals_have_their_intervals_times_100() -> None:
    rows = [{"model": "m", "name": name, "value": 0.6, "low": 0.55, "high": 0.62} for name in ("length", "hteb_total")]
    rows.append({"model": "n", "name": "hteb_total", "value": np.nan, "low": np.nan, "high": np.nan})
    intervals = rows_of(charts.total_intervals(pd.DataFrame(rows)))
    assert [(row["model"], round(row["low"], 9), round(row["high"], 9)) for row in intervals] == [("m", 55.0, 62.0)]


def test_figure_9_has_points_and_a_mean_for_each_setting() -> None:
    chart = charts.drops(drop_table(SCORES))
    assert len(rows_of(chart)) == 6
    assert [layer["mark"]["type"] for layer in chart.to_dict()["layer"]] == ["point", "rule"]
    assert chart.to_dict()["layer"][1]["encoding"]["y"]["aggregate"] == "mean"


def test_figure_10_has_a_panel_an_ordering_and_bars_from_most_to_least() -> None:
    chart = charts.axis_sizes(profile_table(SCORES))
    words = words_of(chart)
    assert "Language &gt; Lexical/Stylistic &gt; Length" in words
    assert "Lexical/Stylistic &gt; Language &gt; Length" in words
    ranks = {row["name"]: row["rank"] for row in rows_of(chart) if row["model"] == "Tiny"}
    assert ranks == {"Language": 1, "Lexical/Stylistic": 2, "Length": 3}


def test_drift_of_all_texts_has_a_panel_a_model_on_one_scale() -> None:
    rows = [
        {"transformation": name, "axis": axis, "model": model, "n": 5, "mean": 0.2}
        | {"low": 0.0, "lower_quartile": 0.1, "median": 0.2, "upper_quartile": 0.3, "high": high}
        for model, high in (("m", 0.4), ("n", 0.9))
        for name, axis in (("translation", "language"), ("expansion", "length"))
    ]
    chart = charts.text_drifts(pd.DataFrame(rows))
    panels = chart.to_dict()["concat"]
    assert [panel["title"] for panel in panels] == ["m", "n"]
    assert {panel["layer"][2]["encoding"]["x"]["scale"]["domain"][1] for panel in panels} == {0.9}
    assert "Expansion" in words_of(chart)
