"""What is decided of ratings with known means, and the reasons given: in a file that a person has read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from tests.annotation.judgements import decided, pair
from tests.annotation.judgements import ratings as given
from tests.annotation.verdicts.test_rules import MORE, SHARE, THREE, design, judged, ratings

GOLDEN = Path(__file__).parent / "golden" / "reasons.md"
LOWER = {"rule": "lower_bound"}


def by_threshold(quality: Sequence[int], fluency: Sequence[int], raters: int = 2, **rule: Any) -> str:
    """Each rater gives each pair these ratings; a mean of 3 and two pairs are needed, unless `rule` says otherwise."""
    pairs = [pair(number) for number in range(len(quality))]
    frame = given(pairs, [*quality], [*fluency])
    frame = frame[frame["rater_id"].isin([f"rater-{number}" for number in range(raters)])]
    ((_, decision, reason),) = decided(pairs, frame, **rule)
    return f"{decision}: {reason}"


def by_rules(frame: pd.DataFrame, *rules: dict[str, Any], **more: Any) -> str:
    decision, reasons = judged(design(*rules, **more), frame)
    return f"{decision}: {'; '.join(reasons)}"


def test_decisions_and_reasons_are_as_they_were() -> None:
    """Where a change is meant, replace the file by what the failure shows."""
    quality, good = {"question": "quality"}, [5, 4] * 10
    low = ratings(*((f"p{number}", [1, 1 + number % 2], "nn") for number in range(30)))
    cases = {
        # The mean quality is (2 + 2 + 4 + 4) / 4 = 3, and then 16 / 6.
        "a mean of exactly the threshold": by_threshold([2, 4], [5, 5]),
        "a mean just below": by_threshold([2, 3, 3], [5, 5, 5]),
        "fluency alone is below": by_threshold([5, 5], [2, 2]),
        "too few pairs": by_threshold([5, 5], [5, 5], min_pairs=3),
        "one rater a pair": by_threshold([5, 5], [5, 5], raters=1),
        "no ratings": by_threshold([5, 5], [5, 5], raters=0),
        "undefined agreement": by_threshold([5, 5], [5, 5], min_ac2=0.0),
        # 20 pairs at m + 1 and m - 1 in turn; of 4 and 5 it is the binomial end, as a share of ones may be unseen.
        "a lower end above the threshold": by_threshold([5, 3] * 10, good, **LOWER),
        "a threshold within the interval": by_threshold([4, 2] * 10, good, **LOWER),
        "an upper end below the threshold": by_threshold([3, 1] * 10, good, **LOWER),
        "a mean of at least": by_rules(THREE, quality | {"at_least": 3.5}),
        "a mean below": by_rules(THREE, quality | {"at_least": 3.6}),
        "a mean of at most": by_rules(THREE, quality | {"at_most": 3.5}),
        "a mean above": by_rules(THREE, quality | {"at_most": 2}),
        "a mean that two digits cannot tell from its limit": by_rules(THREE, quality | {"at_least": 3.502}),
        "a share of at most": by_rules(THREE, SHARE | {"at_most": 0.5}),
        "a share above": by_rules(THREE, SHARE | {"at_most": 0.4}),
        "a share by its interval": by_rules(MORE, SHARE | {"at_most": 0.4}, **LOWER),
        "a share without an interval": by_rules(THREE, SHARE | {"at_most": 0.4}, **LOWER),
        # A negation: 30 pairs rated 1 or 2 keep to at most 2 with their whole interval, and miss at most 1.
        "an interval from above": by_rules(low, quality | {"at_most": 2}, **LOWER),
        "an interval beyond": by_rules(low, quality | {"at_most": 1}, **LOWER),
        "one of two rules is not met": by_rules(THREE, quality | {"at_least": 3}, SHARE | {"at_most": 0.1}),
    }
    assert "".join(f"- {name}: {outcome}\n" for name, outcome in cases.items()) == GOLDEN.read_text(encoding="utf-8")
