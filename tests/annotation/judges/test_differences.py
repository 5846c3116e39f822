"""Pairs on which people and judges differ: their order, the flags, and the pairs that are left out."""

from __future__ import annotations

import pandas as pd

from annotation.judges.check import disagreements


def judged(pair_id: str, judge: str, score: float, mass: float = 1.0) -> dict[str, object]:
    row = {"pair_id": pair_id, "judge": judge, "question": "quality", "score": score}
    return {**row, "status": "ok", "label_mass": mass}


def test_pairs_farthest_apart_come_first_with_reasons_to_doubt() -> None:
    people = {"a": [5, 4], "b": [1, 5], "c": [3, 3], "d": [2]}
    rows = [(pair, f"r{n}", value) for pair, values in people.items() for n, value in enumerate(values)]
    ratings = pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"])
    ratings = ratings.assign(question="quality", transformation="paraphrasing", status="submitted")
    judgements = pd.DataFrame([
        judged("a", "x", 2.0), judged("a", "y", 2.5), judged("b", "x", 3.5), judged("b", "y", 3.5, mass=0.8),
        judged("c", "x", 3.75), judged("c", "y", 3.0), judged("d", "x", 5.0), judged("d", "y", 5.0),
    ])  # fmt: skip
    found = disagreements(ratings, judgements, least=2)
    assert found["pair_id"].tolist() == ["a", "b", "c"]  # one rater has rated d
    assert found["apart"].tolist() == [2.25 - 4.5, 3.5 - 3, 3.375 - 3]
    assert found["spread"].tolist() == [0.5, 0, 0.75] and found["raters"].tolist() == [2, 2, 2]
    # The 5 of a is 3 and 2.5 points from both judges, the 1 of b 2.5 from both.
    assert found["far"].tolist() == [1, 1, 0]
    assert found["flags"].tolist() == ["far", "far, label mass", ""]
