"""The answer on top of the evaluation's report, of scores whose means can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.records import Verdict
from evaluation.report import paper_tables
from evaluation.report.material import failed_models
from evaluation.report.page import answer, doubts_of
from evaluation.report.paper_tables import PaperResults
from tests.evaluation.conftest import verdict, write_study
from tests.evaluation.made_scores import score_row

GOLDEN = Path(__file__).parent / "golden" / "answers.md"
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


def told(scores: pd.DataFrame, *missing: str, verdicts: Sequence[Verdict] = ()) -> str:
    """The answer, and the doubts as a list."""
    found = PaperResults(scores, verdicts, (), 1)
    return "\n".join([*answer(found), *(f"- {line}" for line in doubts_of(found, missing, ["of the campaign"]))])


def test_the_answer_and_its_doubts_are_as_they_were(tmp_path: Path) -> None:
    """Where a change is meant, replace the file by what the failure shows."""
    two = made({"one": 0.0, "two": -0.04})
    refused = two["transformation"] == "expansion"
    columns = ["status", "reason", "score"]
    left_out, partly, failed = two.copy(), two.copy(), made({"one": 0.0, "two": 0.0})
    left_out.loc[refused, columns] = ["left_out", "rejected: why", float("nan")]
    partly.loc[refused & (two["dataset"] == "d0"), columns] = ["left_out", "rejected: why", float("nan")]
    failed.loc[failed["model"] == "two", columns] = ["failed", "no such folder", float("nan")]
    simulated = [verdict(write_study(tmp_path), "paraphrasing", simulated=True)]
    cases = {
        "one model": told(made({"one": 0.0})),
        # -2 of one and -6 of two: -4 in the mean; by translation -5 and -9, -7 in the mean.
        "two models": told(two),
        # (2 + 6 + 1) / 3; their originals are equal, so there is no order.
        "three models": told(made({"one": 0.0, "two": -0.04, "three": 0.01})),
        "an axis is refused": told(left_out),
        "an axis is refused on one data set": told(partly),
        "nothing is accepted": told(two[two["transformation"] == "original"]),
        "simulated ratings, and a model that failed": told(failed, *failed_models(failed), verdicts=simulated),
    }
    assert "\n".join(f"## {name}\n\n{lines}\n" for name, lines in cases.items()) == GOLDEN.read_text(encoding="utf-8")


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
