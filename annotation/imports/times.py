"""Times and durations of files, in UTC; missing ones stay unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from annotation.questions.wordings import packaged
from plumbline.errors import DataError

_WORDS = packaged("imports/words.yaml")
_ZONES: dict[str, int] = _WORDS["zones"]  # offsets of the zones that exports name by letters (Amazon's, Google's)
_MONTHS: list[str] = _WORDS["months"]
_DATE = re.compile(  # 2026-03-01, 2026/3/1, 3/1/2026, 01.03.2026; Sun Mar 01 14:13:33 PST 2026 is Amazon's
    r"(?:(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})"
    r"|(?P<first>\d{1,2})(?P<mark>[/.])(?P<second>\d{1,2})(?P=mark)(?P<last>\d{4}))(?P<rest>(?!\d).*)"
)
_AMAZON = re.compile(r"\w{3} (?P<month>\w{3}) (?P<day>\d{1,2}) (?P<clock>[\d:]+ [A-Z]{1,4}) (?P<year>\d{4})")
_CLOCK = re.compile(  # 14:13, 2:13:05.25 pm, 14:13 Uhr, 14h13, T14:13:33Z, 2:13 p.m. CET, 14:13 (GMT+1)
    r"[ ,T]*(?:(?:um|at|à|a las) )?"
    r"(?P<hour>\d{1,2})(?:[:h](?P<minute>\d{1,2})(?::(?P<second>\d{1,2}(?:[.,]\d{1,9})?))?)?"
    r"[ \u202f]?(?P<half>[ap]\.?m\.?(?![a-z]))?(?: ?(?:Uhr|h|hrs)\b)?"
    r" ?\(?(?P<zone>[A-Z]{1,4}(?![A-Z]))?(?P<offset>[+-]\d{1,2}(?::?\d{2})?)?\)?",
    re.I,
)
_WORDED = re.compile(  # 1m 35s, PT1M35S, 95 sec, 0d 0h 1m 35s
    r"(?=.*\d *[a-z])P?(?:(\d+) *d\w*)?[ ,]*T?(?:(\d+) *h\w*)?[ ,]*(?:(\d+) *m(?:in\w*)?)?[ ,]*(?:(\d*\.?\d+) *s\w*)?",
    re.I,
)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_EPOCH = re.compile(r"1\d{9}(\d{3})?(\.\d+)?")


def as_times(values: Sequence[str], location: str) -> pd.Series:
    """Return texts as times in UTC; NaT for a text that is no time.

    Raises DataError if days and months cannot be told apart.
    """
    texts = pd.Series(values, dtype=object).str.strip()
    moments = _read(texts.where(texts.str.match(_ISO), ""))  # most of them, all at once
    others = texts[moments.isna()]
    dates = [match for text in others if (match := _DATE.fullmatch(text)) and match["mark"]]
    day_first = any(int(match["first"]) > 12 for match in dates)
    month_first = any(int(match["second"]) > 12 for match in dates)
    dotted = any(match["mark"] == "." for match in dates)
    if day_first and month_first:
        raise DataError(f"{location}: some times have the day first and some the month; write all as 2026-03-01")
    first = day_first or (dotted and not month_first)
    moments[others.index] = _read(others.map(lambda text: as_iso(text, day_first=first)))
    return moments


def _read(texts: pd.Series) -> pd.Series:
    """Return times in ISO 8601; NaT for other texts."""
    return pd.to_datetime(texts.replace("", None), utc=True, format="ISO8601", errors="coerce").dt.as_unit("us")


def month_unsure(values: Iterable[str]) -> bool:
    """Return whether times have slashes, and no day above 12 tells which number is the month."""
    slashed = [match for value in values if "/" in value and (match := _DATE.fullmatch(value))]
    slashed = [match for match in slashed if match["mark"] == "/"]
    return bool(slashed) and all(int(match["first"]) <= 12 and int(match["second"]) <= 12 for match in slashed)


def as_iso(value: str, *, day_first: bool) -> str:
    """Return a time as ISO 8601; empty for a text that is no time."""
    text = value.strip()
    if _EPOCH.fullmatch(text):
        number = float(text)
        return datetime.fromtimestamp(number / (1000 if number > 1e11 else 1), UTC).isoformat()
    if match := _AMAZON.fullmatch(text):
        months = {name: number for number, name in enumerate(_MONTHS, 1)}
        month = months.get(match["month"].casefold(), 0)
        return _moment(match["year"], month, int(match["day"]), match["clock"])
    match = _DATE.fullmatch(text)
    if not match:
        return ""
    if match["year"]:
        return _moment(match["year"], int(match["month"]), int(match["day"]), match["rest"])
    first, second = int(match["first"]), int(match["second"])
    day, month = (first, second) if first > 12 or (day_first and second <= 12) else (second, first)
    return _moment(match["last"], month, day, match["rest"])


def _moment(year: str, month: int, day: int, rest: str) -> str:
    """Return a date and the clock behind it, if there is one, as ISO 8601; empty if that is no clock."""
    date = f"{year}-{month:02d}-{day:02d}"
    if not rest.strip():
        return date
    clock = _CLOCK.fullmatch(rest)
    zone = clock["zone"].upper() if clock and clock["zone"] else "UTC"
    hour = int(clock["hour"]) if clock else 0
    half = clock["half"][0].casefold() if clock and clock["half"] else ""
    if not clock or zone not in _ZONES or not (clock["minute"] or half or "h" in rest) or (half and hour > 12):
        return ""
    hour = hour % 12 + 12 * (half == "p") if half else hour
    second = (clock["second"] or "00").replace(",", ".")
    return f"{date}T{hour:02d}:{int(clock['minute'] or 0):02d}:{second:0>2}{_offset(zone, clock['offset'] or '')}"


def _offset(zone: str, further: str) -> str:
    """Return a zone as hours and minutes from UTC: that of its letters, or what is added to them (GMT+1)."""
    further = further or f"{_ZONES[zone]:+d}"
    digits = further[1:].replace(":", "")
    digits = (digits if len(digits) > 2 else f"{digits}00").rjust(4, "0")
    return f"{further[0]}{digits[:2]}:{digits[2:]}"


def as_seconds(values: Sequence[str]) -> np.ndarray:
    """Return texts as seconds: numbers, or clocks such as 00:01:35; NaN for other texts."""
    return np.array([_seconds(value) for value in values], float)


def _seconds(value: str) -> float:
    if match := _WORDED.fullmatch(value):
        return float(
            sum(float(part or 0) * size for part, size in zip(match.groups(), (86400, 3600, 60, 1), strict=True))
        )
    if re.fullmatch(r"\d{1,3}(:\d{2}){1,2}(\.\d+)?", value):
        parts = [float(part) for part in value.split(":")]
        return float(sum(part * 60.0**power for power, part in enumerate(reversed(parts))))
    try:
        number = float(value.replace(",", "."))
    except ValueError:
        return float("nan")
    return number if 0 <= number < 1e9 else float("nan")


def coarse(times: pd.Series) -> bool:
    """Return whether times are exact only to the minute or day, too coarse for the length of an answer."""
    filled = times.dropna()
    return bool(len(filled)) and bool((filled.dt.second == 0).all()) and bool((filled.dt.microsecond == 0).all())
