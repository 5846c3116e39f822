"""Which pairs are read first."""

from __future__ import annotations

from typing import Any

import pandas as pd

from annotation.ratings.review import pairs_to_read

WORDS = {"transformation": "expansion", "language": "en", "original": "a", "transformed": "b"}


def ratings(*rows: tuple[str, str, str, float | None, str]) -> pd.DataFrame:
    common: dict[str, Any] = {
        "status": "submitted",
        "excluded": "",
        "submitted_at": pd.Timestamp("2026-03-01", tz="UTC"),
    }
    columns = ("pair_id", "rater_id", "question", "value", "comment")
    return pd.DataFrame([common | dict(zip(columns, row, strict=True)) for row in rows])


def test_comments_come_first_then_disagreement_then_low_means() -> None:
    """Both raters on two questions: `apart` 1 and 5, `low` 1 and 1, `fine` 5 and 5; nobody rated `said` on a scale."""
    given = ratings(
        *((pair, rater, "fluency", 4.0, "") for pair in ("apart", "low", "fine") for rater in "xy"),
        *(("apart", "x", "quality", 1.0, ""), ("apart", "y", "quality", 5.0, "")),
        *(("low", rater, "quality", 1.0, "") for rater in "xy"),
        *(("fine", rater, "quality", 5.0, " ") for rater in "xy"),
        *(("said", "x", "error", None, "what?"), ("said", "x", "why", None, "what?")),
    )
    pairs = pd.DataFrame([{"pair_id": name, **WORDS} for name in ("fine", "low", "said", "apart", "unrated")])
    found = pairs_to_read(pairs, given, per_pair=2)
    assert list(found["pair_id"]) == ["said", "apart", "low", "fine"]
    assert list(found["comments"]) == [1, 0, 0, 0]
    assert list(found["n_ratings"]) == [0, 2, 2, 2]
    assert list(found["question"]) == ["", "quality", "quality", "fluency"]  # of equal spreads the lower mean's
    assert found.loc[1, ["lowest", "highest", "mean"]].tolist() == [1, 5, 3.0]
    assert pd.isna(found.loc[0, "lowest"]) and pd.isna(found.loc[0, "mean"])
    assert len(pairs_to_read(pairs, given, per_pair=2, most=2)) == 2


def test_a_withdrawn_pair_is_not_read_first_whatever_was_said_of_it() -> None:
    given = ratings(("out", "x", "quality", 1.0, "cut off"), ("in", "x", "quality", 4.0, ""))
    pairs = pd.DataFrame([{"pair_id": name, **WORDS} for name in ("out", "in")])
    assert list(pairs_to_read(pairs, given, per_pair=2)["pair_id"]) == ["out", "in"]
    withdrawn = given.assign(withdrawn=["it is cut off", ""])
    assert list(pairs_to_read(pairs, withdrawn, per_pair=2)["pair_id"]) == ["in"]
