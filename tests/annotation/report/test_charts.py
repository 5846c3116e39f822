"""Figures of the report: each number is in the drawing and in the words, and no decision hangs on a colour."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from annotation.campaign.rubric import load_rubric
from annotation.report.charts import (
    DECISIONS,
    looks_charts,
    mean_intervals,
    means_in_words,
    rating_shares,
    shares_in_words,
)
from plumbline.exhibits.page import svg
from plumbline.study import ROOT, load_study


def shares(points: int = 5) -> pd.DataFrame:
    """72 ratings of paraphrases, all of them on the two highest points; no ratings of expansions."""
    given = {"paraphrasing": [0.0] * (points - 2) + [0.25, 0.75], "expansion": [0.0] * points}
    rows = [
        (name, value + 1, share, 72 if name == "paraphrasing" else 0)
        for name, own in given.items()
        for value, share in enumerate(own)
    ]
    return pd.DataFrame(rows, columns=["transformation", "value", "share", "total"])


MEANS = pd.DataFrame(
    [
        ("paraphrasing", "en", "", "lexical_stylistic", "accepted", 4.0, 3.5, 4.5, 3.0),
        ("expansion", "en", "", "length", "rejected", 2.0, math.nan, math.nan, 3.0),
        ("translation", "de", "sts", "language", "undecided", 4.8, 4.4, 5.0, 3.0),
    ],
    columns=["transformation", "language", "task_type", "axis", "decision", "mean", "low", "high", "threshold"],
)


@pytest.mark.parametrize("points", [5, 6])
def test_shares_are_drawn_one_after_the_other(points: int) -> None:
    chart = rating_shares(shares(points), range(1, points + 1))
    rows = next(iter(chart.to_dict()["datasets"].values()))
    own = [row for row in rows if row["total"]][-2:]
    assert [(row["start"], row["end"], row["words"]) for row in own] == [(0, 0.25, "25%"), (0.25, 1, "75%")]
    drawing = svg(chart)
    assert "Paraphrasing (n = 72)" in drawing and "75%" in drawing
    told = shares_in_words(shares(points))
    assert f"25% are {points - 1}, 75% are {points}" in told and "Expansion (n = 0): no ratings." in told


def test_means_have_their_interval_threshold_and_decision() -> None:
    drawing = svg(mean_intervals(MEANS, range(1, 6)))
    for name in ("Paraphrasing (en): accepted", "Expansion (en): rejected", "Translation (de, sts): undecided"):
        assert name in drawing
    assert len(set(DECISIONS.values())) == 3
    lines = mean_intervals(MEANS, range(1, 6)).to_dict()["layer"][1]
    assert lines["encoding"]["x"]["scale"]["domain"] == [1, 5]
    assert means_in_words(MEANS) == (
        "Threshold 3.00. Paraphrasing (en): accepted, mean 4.00 [3.50, 4.50]; Expansion (en): rejected, mean 2.00;"
        " Translation (de, sts): undecided, mean 4.80 [4.40, 5.00]."
    )


def test_looks_lead_from_mean_to_mean_with_the_intervals_and_the_limit() -> None:
    looks = pd.DataFrame({"verdict": "Ours: accepted", "decision": "accepted", "look": [1, 2], "pairs": [20, 40]})
    looks = looks.assign(mean=[3.2, 3.6], low=[2.8, 3.1], high=[3.9, 4.0], limit=3.0)
    looks = pd.concat([looks.assign(question="quality", label=label) for label in ("", "a")])
    rubric = load_rubric(load_study(ROOT / "studies" / "demo.yaml"))
    ((chart, caption),) = looks_charts(looks, rubric)  # the rubric's other question has no look
    specification = chart.to_dict()
    assert "quality" in caption and not list(looks_charts(looks.iloc[:0], rubric))
    limit, intervals, line = (layer["encoding"] for layer in specification["layer"])
    assert (line["x"]["field"], line["y"]["field"]) == ("pairs", "mean") and line["y"]["scale"]["domain"] == [1, 5]
    assert (intervals["y"]["field"], intervals["y2"]["field"], limit["y"]["field"]) == ("low", "high", "limit")
    assert line["color"]["scale"]["domain"] == ["accepted"]  # no empty place in the legend
