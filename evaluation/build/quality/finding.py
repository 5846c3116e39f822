"""What a check found: a row of the table, and the rows of the data that it is about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from evaluation.build.quality.contents import Part
from evaluation.build.quality.thresholds import THRESHOLDS, Verdict

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


def rows_of(part: Part, places: Sequence[int], details: Sequence[str]) -> pd.DataFrame:
    """Rows of a part by their places, with a word on each; texts are cut after 200 characters."""
    return pd.DataFrame(
        {
            "subset": part.subset,
            "split": part.split,
            "part": part.what,
            "item": [part.items[place] for place in places],
            "text": [" | ".join(map(str, part.texts[place]))[:_SHOWN] for place in places],
            "detail": list(details),
        },
        columns=list(ROWS),
    )


def together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Rows of several parts; an empty table where there are none."""
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=list(ROWS))
