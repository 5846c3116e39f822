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
_AMAZON = re.compile(r"\w{3} (?P<month>\w{3}) (?P<day>\d{1,2}) (?P<clock>[\d:]+) (?P<zone>[A-Z]{1,4}) (?P<year>\d{4})")
_CLOCK = r"(?P<clock>\d{1,2}(?::\d{1,2}){0,2})[ \u202f]?(?P<half>[AaPp][Mm])?"
_GOOGLE = re.compile(
    rf"(?P<date>\d{{4}}/\d{{1,2}}/\d{{1,2}}) {_CLOCK}(?: (?:GMT|UTC)(?P<zone>[+-]\d{{1,2}}(?::?\d{{2}})?)?)?"
)
_SLASHED = re.compile(r"(?P<first>\d{1,2})(?P<mark>[/.])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4})(?P<rest>\D.*)?")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_WORDED = re.compile(  # 1m 35s, PT1M35S, 95 sec, 0d 0h 1m 35s
    r"(?=.*\d *[a-z])P?(?:(\d+) *d\w*)?[ ,]*T?(?:(\d+) *h\w*)?[ ,]*(?:(\d+) *m(?:in\w*)?)?[ ,]*(?:(\d*\.?\d+) *s\w*)?",
    re.I,
)
_EPOCH = re.compile(r"1\d{9}(\d{3})?(\.\d+)?")


def as_times(values: Sequence[str], location: str) -> list[pd.Timestamp | None]:
    """Return texts as times in UTC; None for a text that is no time.

    Raises DataError if days and months cannot be told apart.
    """
    slashed = [match for value in values if (match := _SLASHED.fullmatch(value))]
    day_first = any(int(match["first"]) > 12 for match in slashed)
    month_first = any(int(match["second"]) > 12 for match in slashed)
    dotted = any(match["mark"] == "." for match in slashed)
    if day_first and month_first:
        raise DataError(f"{location}: some times have the day first and some the month; write all as 2026-03-01")
    iso = [_as_iso(value, day_first=day_first or (dotted and not month_first)) for value in values]
    moments = pd.to_datetime(
        pd.Series(iso, dtype=object).replace("", None), utc=True, format="ISO8601", errors="coerce"
    )
    return [None if pd.isna(moment) else moment for moment in moments]


def month_unsure(values: Iterable[str]) -> bool:
    """Return whether times have slashes, and no day above 12 tells which number is the month."""
    slashed = [match for value in values if (match := _SLASHED.fullmatch(value)) and match["mark"] == "/"]
    return bool(slashed) and all(int(match["first"]) <= 12 and int(match["second"]) <= 12 for match in slashed)


def _as_iso(value: str, *, day_first: bool) -> str:
    """Return a time as ISO 8601; empty for a text that is no time."""
    text = value.strip()
    if _ISO.fullmatch(text):
        return _with_offset(text)
    if _EPOCH.fullmatch(text):
        number = float(text)
        return datetime.fromtimestamp(number / (1000 if number > 1e11 else 1), UTC).isoformat()
    return google_time(text) or _amazons(text) or _slashed(text, day_first=day_first)


def google_time(text: str) -> str:
    """Return a time of Google Forms, such as 2026/03/01 2:15:37 PM GMT+1, as ISO 8601; empty for another text."""
    match = _GOOGLE.fullmatch(text)
    if not match:
        return ""
    year, month, day = match["date"].split("/")
    return _clocked(f"{year}-{int(month):02d}-{int(day):02d}", match["clock"], match["half"], match["zone"])


def _amazons(text: str) -> str:
    """Sun May 17 14:13:33 PDT 2020."""
    match = _AMAZON.fullmatch(text)
    if not match or match["month"].casefold() not in _MONTHS or match["zone"] not in _ZONES:
        return ""
    month = _MONTHS.index(match["month"].casefold()) + 1
    return f"{match['year']}-{month:02d}-{int(match['day']):02d}T{match['clock']}{_offset(_ZONES[match['zone']])}"


def _slashed(text: str, *, day_first: bool) -> str:
    """5/17/2020 2:13 PM, 17.05.2020 14:13."""
    match = _SLASHED.fullmatch(text)
    if not match:
        return ""
    day, month = sorted((int(match["first"]), int(match["second"])), reverse=True)
    if day < 13:
        parts = int(match["first"]), int(match["second"])
        day, month = parts if day_first else parts[::-1]
    clock = re.fullmatch(rf"[ ,T]*{_CLOCK}", match["rest"] or "")
    date = f"{match['year']}-{month:02d}-{day:02d}"
    return _clocked(date, clock["clock"] if clock else "00:00", clock["half"] if clock else None, None)


def _with_offset(text: str) -> str:
    """Return a time in ISO 8601 with its zone's letters replaced by an offset."""
    match = re.fullmatch(r"(.*\d) ?([A-Z]{1,4})", text)
    if match and match[2] in _ZONES and match[2] != "T":
        return f"{match[1]}{_offset(_ZONES[match[2]])}"
    return text.replace(" ", "T", 1).replace(" ", "")


def _offset(hours: int) -> str:
    return f"{'-' if hours < 0 else '+'}{abs(hours):02d}:00"


def _clocked(date: str, clock: str, half: str | None, zone: str | None) -> str:
    """Return a time as ISO 8601; empty if a clock of 24 hours is called before or after noon."""
    hour, *rest = clock.split(":")
    if half and int(hour) > 12:
        return ""
    number = int(hour) % 12 + 12 * (half.casefold() == "pm") if half else int(hour)
    minutes = ":".join(rest) or "00"
    sign, digits = (zone[0], zone[1:].replace(":", "")) if zone else ("+", "")
    digits = (digits if len(digits) > 2 else f"{digits}00").rjust(4, "0")
    return f"{date}T{number:02d}:{minutes}{sign}{digits[:2]}:{digits[2:]}"


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
