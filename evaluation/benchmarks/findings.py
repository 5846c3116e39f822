"""The checks in the order of the table, and from which value on a task is to be looked at, or fails.

`fail` is where mteb's own test of new tasks fails, or where no score can be made; `look` is a question to a person. So
are both in the end: MMTEB examines a task that fails, and people decide. What is ours says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from evaluation.benchmarks.contents import ContentPart

Verdict = Literal["pass", "look", "fail"]


@dataclass(frozen=True)
class Threshold:
    """When a value is looked at and when it fails: beyond these numbers, on the side that `worse` names."""

    what: str  #: what the value is
    look: float
    fail: float
    source: str
    worse: Literal["above", "below"] = "above"
    share: bool = False

    def verdict(self, value: float, fails: float | None = None) -> Verdict:
        """Pass, look or fail; what is undefined (NaN) passes nothing and is looked at.

        `fails` is what is held against the limit for failing, where that is another value.
        """
        if self._beyond(value if fails is None else fails, self.fail):
            return "fail"
        return "look" if math.isnan(value) or self._beyond(value, self.look) else "pass"

    def _beyond(self, value: float, limit: float) -> bool:
        return value > limit if self.worse == "above" else value < limit

    @property
    def words(self) -> str:
        """The threshold as the table says it."""
        limits = [
            f"{verdict} {self.worse} {limit:.0%}" if self.share else f"{verdict} {self.worse} {limit:g}"
            for verdict, limit in (("look", self.look), ("fail", self.fail))
            if math.isfinite(limit)
        ]
        return f"{': '.join(filter(None, [self.what, ', '.join(limits)]))} ({self.source})"


_MTEB = "mteb's test of new tasks"
_OURS = "ours"
THRESHOLDS = {
    "items": Threshold("items in the smallest scored part", 1, 1, _MTEB, "below"),
    "statistics": Threshold("share by which the number of texts is not mteb's published one", 0, math.inf, _OURS,
                            share=True),
    "duplicates": Threshold("share of items that repeat an earlier one of their split", 0, 0.01, _MTEB, share=True),
    "leakage": Threshold("share of scored items that stand in the train split", 0, 0, _MTEB, share=True),
    "conflicts": Threshold("share of items whose text has another gold elsewhere", 0, 0.01, _OURS, share=True),
    "labels": Threshold("labels in the part that has fewest", 2, 2, _MTEB, "below"),
    "rare_labels": Threshold("scored labels with one item alone, or none in the train split", 0, math.inf, _OURS),
    "constant_gold": Threshold("distinct gold values in the part that has fewest", 2, 2, _MTEB, "below"),
    "empty_texts": Threshold("texts that show nothing", 0, 0, _MTEB),
    "short_texts": Threshold("texts of at most 3 characters", 0, math.inf, _MTEB),
    "uneven_lengths": Threshold("longest text by the mean length", 50, math.inf, f"{_MTEB}, a warning"),
    "long_texts": Threshold("share of texts that a model cuts off", 0.05, 0.5, _OURS, share=True),
    "without_relevant": Threshold("scored queries without a relevant passage", 0, 0, _MTEB),
    "missing_passages": Threshold("judged passages that are not in the corpus", 0, 0, _MTEB),
    "without_others": Threshold("queries whose candidates are all relevant", 0, math.inf, _OURS),
    "random": Threshold("a model's score less the random baseline's, the weakest model's to look, the best's to fail",
                        0.02, 0.02, "MMTEB, 2.2: within 2 points", "below"),
    "near_perfect": Threshold("the best model's score to look, the weakest's to fail", 0.95, 0.95,
                              "ours: MMTEB, 2.2 gives no number"),
    "equal_scores": Threshold("the best model's score less the weakest's", 0.02, 1e-9,
                              "ours; equal ones: MMTEB, 2.4", "below"),
    "difference": Threshold("two models' difference over the same items; look where its 95% interval holds 0",
                            math.nan, math.nan, "ours: MMTEB, 2.2 gives no number"),
    "people_scores": Threshold("Spearman's rho of people's mean scores and the gold", 0.6, math.nan, "HUME", "below"),
    "people_labels": Threshold("Cohen's kappa of people's labels and the gold", 0.4, math.nan, "HUME", "below"),
}  # fmt: skip

_SHOWN = 200  # characters of a text in a file of rows
ROWS = ("subset", "split", "part", "item", "text", "detail")


@dataclass(frozen=True)
class Finding:
    """A check's verdict on a task. `value` is NaN where `reason` says why; else it says what was found."""

    check: str
    verdict: Verdict
    value: float
    reason: str
    rows: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(ROWS)))

    @property
    def threshold(self) -> str:
        """The check's threshold in words."""
        return THRESHOLDS[self.check].words


def found(
    check: str, value: float, reason: str, rows: pd.DataFrame | None = None, *, fails: float | None = None
) -> Finding:
    """A finding by the check's threshold (`Threshold.verdict`)."""
    verdict = THRESHOLDS[check].verdict(value, fails)
    return Finding(check, verdict, value, reason) if rows is None else Finding(check, verdict, value, reason, rows)


def undefined(check: str, reason: str) -> Finding:
    """A finding where the value is undefined: it passes nothing."""
    return found(check, math.nan, f"not known: {reason}", fails=math.nan)


def rows_of(part: ContentPart, places: Sequence[int], details: Sequence[str]) -> pd.DataFrame:
    """Rows of a part by their places, with a word on each; texts are cut after 200 characters."""
    return pd.DataFrame(
        {
            "subset": part.subset,
            "split": part.split,
            "part": part.what,
            "item": [part.items[index] for index in places],
            "text": [" | ".join(map(str, part.texts[index]))[:_SHOWN] for index in places],
            "detail": list(details),
        },
        columns=list(ROWS),
    )


def together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Rows of several parts; an empty table where there are none."""
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=list(ROWS))
