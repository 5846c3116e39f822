"""The answer on top of the evaluation's report, of scores whose means can be seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from evaluation.report import paper_tables
from evaluation.report.material import failed_models
from evaluation.report.page import answer, doubts_of
from evaluation.report.paper_tables import PaperResults
from tests.evaluation.conftest import verdict, write_study
from tests.evaluation.made_scores import score_row

CHANGES = {"paraphrasing": -0.02, "expansion": 0.01, "translation": -0.05}  # an axis each: the total changes by -0.02


def made(models: dict[str, float], **changes: Any) -> pd.DataFrame:
    """Scores on two data sets; `models` are by how much more than `CHANGES` they move."""
    rows = []
    for model, more in models.items():
        for dataset, original in (("d0", 0.8), ("d1", 0.6)):
            rows.append(score_row(model, dataset, "original", original))
            for name, change in CHANGES.items():
                rows.append(score_row(model, dataset, name, original + change + more, **changes))
    return pd.DataFrame(rows)


def results(scores: pd.DataFrame) -> PaperResults:
    return PaperResults(scores, [], (), 1)


def test_what_the_numbers_say() -> None:
    # -2 of one and -6 of two: -4 in the mean; by translation -5 and -9, -7 in the mean.
    two = answer(results(made({"one": 0.0, "two": -0.04})))
    assert two == (
        "On accepted transformations 2 models' scores change by -4.00 points on average, from -6.00 (two) to -2.00"
        " (one); the axis with the largest mean change is Language (-7.00 points)"
    )
    alone = answer(results(made({"one": 0.0})))
    assert (
        alone
        == "On accepted transformations one's scores change by -2.00 points; the axis with the largest mean change is"
        " Language (-5.00 points)"
    )
    three = answer(results(made({"one": 0.0, "two": -0.04, "three": 0.01})))
    assert three.startswith("On accepted transformations 3 models' scores change by -3.00 points")  # (2 + 6 + 1) / 3
    assert "Kendall's tau" not in three  # their originals are equal: there is no order


def test_without_a_total_the_axes_that_there_are_are_told_and_without_anything_that() -> None:
    scores = made({"one": 0.0, "two": -0.04})
    refused = scores["transformation"] == "expansion"
    scores.loc[refused, ["status", "reason", "score"]] = ["left_out", "rejected: why", float("nan")]
    assert answer(results(scores)) == (
        "There is no total; Lexical/Stylistic -4.00 points (2 models), Language -7.00 points (2 models)"
    )
    assert doubts_of(results(scores), [], ["of verdicts"]) == (
        "left out of all totals, as no verdict accepts them: Expansion",
        "over 2 data sets the shift by all 2 transformations may be due to chance (Wilcoxon, Holm's p of at least .05)",
        "of verdicts",
    )
    scores.loc[refused & (scores["dataset"] == "d0"), ["status", "score"]] = ["evaluated", 0.8]
    assert "as no verdict accepts them: Expansion on 1 of 2 data sets" in doubts_of(results(scores), [], [])[0]
    nothing = scores[scores["transformation"] == "original"]
    assert answer(results(nothing)) == "No accepted transformation has a score, so the change is unknown"


def test_simulated_ratings_and_failed_models_come_first(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    scores = made({"one": 0.0, "two": 0.0})
    scores.loc[scores["model"] == "two", ["score", "status", "reason"]] = [float("nan"), "failed", "no such folder"]
    failed = failed_models(scores)
    assert failed == ["two failed: no such folder"]
    simulated = PaperResults(scores, [verdict(study, "paraphrasing", simulated=True)], (), 1)
    assert doubts_of(simulated, failed, [])[:2] == (
        "the ratings behind the verdicts are SIMULATED: these numbers measure nothing",
        "two failed: no such folder",
    )


def test_a_cell_shows_the_original_that_its_difference_is_from() -> None:
    """Failed items of d0 are dropped: its original is 70 on what is left, 65 in the mean in place of 70."""
    scores = made({"one": 0.0})
    dropped = (scores["transformation"] == "translation") & (scores["dataset"] == "d0")
    scores.loc[dropped, ["n_failed", "original_score", "score"]] = [3, 0.7, 0.64]
    axes = paper_tables.axes(results(scores))
    row = axes.printed.iloc[0]
    # Language: (64 + 55) / 2 beside (70 + 60) / 2; the total's original: (70 + 70 + 65) / 3.
    assert row["Original"] == "70.00" and row["Length"] == "71.00 (+1.00)"
    assert row["Language"] == "65.00 → 59.50 (-5.50)"
    assert row["Total"] == "68.33 → 66.17 (-2.17)"
    assert sum(note.startswith("a → b") for note in axes.notes) == 1
    (datasets,) = paper_tables.datasets(results(scores))
    cells = datasets.printed.set_index("Data set")["one HTEB"]
    # d0: (78 + 81 + 64) / 3 beside (80 + 80 + 70) / 3; d1: (58 + 61 + 55) / 3 beside 60.
    assert cells["d0"] == "76.67 → 74.33" and cells["d1"] == "58.00"
    whole = paper_tables.axes(results(made({"one": 0.0})))
    assert not any("→" in text for text in (*whole.notes, *whole.printed.iloc[0]))
