"""Ratings made up to have the means and standard deviations of HTEB's Table 2."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
from scipy.optimize import LinearConstraint, milp

# (level, name): (mean, SD) of quality and of fluency, as printed.
HTEB: dict[tuple[str, str], tuple[tuple[float, float], tuple[float, float]]] = {
    ("axis", "lexical_stylistic"): ((4.04, 1.04), (4.32, 0.87)),
    ("pool", "paraphrasing"): ((4.07, 1.07), (4.04, 0.90)),
    ("pool", "backtranslation"): ((4.10, 1.16), (4.40, 0.99)),
    ("pool", "style_change"): ((3.95, 0.86), (4.52, 0.63)),
    ("axis", "length"): ((4.02, 1.04), (4.66, 0.66)),
    ("pool", "expansion"): ((4.36, 0.79), (4.82, 0.39)),
    ("pool", "summarisation"): ((3.87, 0.96), (4.20, 0.89)),
    ("pool", "summarised_expansion"): ((3.83, 1.24), (4.97, 0.18)),
    ("axis", "language"): ((4.28, 1.03), (4.20, 1.00)),
    ("pool", "translation"): ((4.28, 1.03), (4.20, 1.00)),
    ("overall", "overall"): ((4.09, 1.04), (4.42, 0.86)),
}
PAIRS, RATERS = 100, 3  # of each transformation; translation and cross-translation are one pool of 200


def points(mean: float, deviation: float, number: int) -> list[int]:
    """So many ratings from 1 to 5, ascending, whose mean and sample SD are these when rounded to two decimals."""
    scale, near = np.arange(1, 6), round(mean * number)
    for total in sorted(range(near - 3, near + 4), key=lambda total: abs(total - mean * number)):
        if round(total / number, 2) != mean:
            continue
        squares = [(number - 1) * (deviation + away) ** 2 + total**2 / number for away in (-0.0049, 0.0049)]
        limits = [(np.ones(5), number, number), (scale, total, total), (scale**2, *squares)]
        found = milp(np.zeros(5), integrality=np.ones(5), constraints=[LinearConstraint(*limit) for limit in limits])
        if found.success:
            return [int(point) for point in np.repeat(scale, np.round(found.x).astype(int))]
    raise ValueError(f"no {number} ratings have a mean of {mean} and an SD of {deviation}")


def hteb_ratings() -> pd.DataFrame:
    """A campaign of HTEB's size: 100 pairs a transformation, three raters, two questions; neighbours agree."""
    frames = []
    for (level, pool), numbers in HTEB.items():
        if level != "pool":
            continue
        members = [pool, "cross_translation"] if pool == "translation" else [pool]
        number = PAIRS * len(members)
        pair = np.arange(number).repeat(RATERS)
        for question, (mean, deviation) in zip(("quality", "fluency"), numbers, strict=True):
            columns = {
                "pair_id": [f"{pool}-{i:03d}" for i in pair],
                "transformation": np.array(members)[pair % len(members)],
                "rater_id": np.tile([f"rater-{i}" for i in range(RATERS)], number),
                "value": points(mean, deviation, number * RATERS),
            }
            frames.append(pd.DataFrame(columns).assign(question=question))
    about = {"language": "en", "status": "submitted", "submitted_at": datetime(2026, 1, 1, tzinfo=UTC)}
    return pd.concat(frames, ignore_index=True).assign(**about, excluded="", simulated=False)
