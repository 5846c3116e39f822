"""What a paper says of controls, known items and repeats."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from annotation.ratings.signs import controls_missed
from annotation.report.makers import listed
from annotation.report.material import Material
from annotation.report.said import many


def controls_told(material: Material) -> str:
    """Which stood beside the sample, and how many were answered wrongly."""
    counts = Counter[str](pair.control for pair in material.controls)
    kinds = {
        "positive": ("positive control", "almost identical texts"),
        "negative": ("negative control", "unrelated texts"),
        "known": ("known item", "whose right answers its file names"),
        "repeat": ("repeat", "pairs of the sample, shown a second time"),
    }
    told = [f"{many(counts[kind], name)} ({what})" for kind, (name, what) in kinds.items() if counts[kind]]
    if not told:
        return "There were no controls and no repeats."
    given = int((material.control_ratings["status"] == "submitted").sum())
    beside = f"Beside the sample stood {listed(told)}; {many(given, 'rating')} of these came in and"
    text = f"{beside} {'counts' if given == 1 else 'count'} in no result."
    controls = pd.DataFrame([pair.model_dump() for pair in material.controls])
    off, answered = controls_missed(
        material.control_ratings, controls, material.study.quality, material.rubric.expected
    )
    points = many(material.study.quality.within, "point")
    missed = (
        f" Of {many(answered, 'rating')} of controls {off:,} {'was' if off == 1 else 'were'} off by more than {points}."
    )
    return text + (missed if answered else "")
