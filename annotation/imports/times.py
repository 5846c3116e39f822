"""Times and durations of files, in UTC; missing ones stay unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd

from annotation.questions.wordings import packaged
from plumbline.errors import DataError

_WORDS = packaged("imports/words.yaml")
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d+))?)?)?"
_ZONE = r" ?(?P<zone>[A-Z]{1,4})? ?(?P<offset>[+-]\d{1,2}(?::?\d{2})?)?"
_ISO = re.compile(rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)(?:[T ]{_CLOCK}{_ZONE})?")
_GOOGLE = re.compile(
    rf"(?P<year>\d{{4}})/(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}}) {_CLOCK} ?(?P<half>[AaPp][Mm])?(?:{_ZONE})"
)
_AMAZON = re.compile(rf"\w{{3}} (?P<month>\w{{3}}) (?P<day>\d{{1,2}}) {_CLOCK}{_ZONE} (?P<year>\d{{4}})")
_SLASHED = re.compile(
    rf"(?P<first>\d{{1,2}})(?P<mark>[/.])(?P<other>\d{{1,2}})(?P=mark)(?P<year>\d{{4}})"
    rf"(?:[ ,T]+{_CLOCK} ?(?P<half>[AaPp][Mm])?)?"
)
_WORDED = re.compile(  # 1m 35s, PT1M35S, 95 sec, 0d 0h 1m 35s
    r"(?i)(?=.*\d *[a-z])P?(?:(\d+) *d\w*)?[ ,]*T?(?:(\d+) *h\w*)?[ ,]*(?:(\d+) *m(?:in\w*)?)?[ ,]*(?:([\d.]+) *s\w*)?"
)
_EPOCH = re.compile(r"1\d{9}(\d{3})?(\.\d+)?")


def as_times(values: Sequence[str], where: str) -> list[datetime | None]:
    """Return texts as times in UTC; None for a text that is no time.

    Raises DataError if days and months cannot be told apart.
    """
    slashed = [match for value in values if (match := _SLASHED.fullmatch(value))]
    day_first = any(int(match["first"]) > 12 for match in slashed)
    month_first = any(int(match["other"]) > 12 for match in slashed)
    dotted = any(match["mark"] == "." for match in slashed)
    if day_first and month_first:
        raise DataError(f"{where}: some times have the day first and some the month; write all as 2026-03-01")
    return [as_time(value, day_first=day_first or (dotted and not month_first)) for value in values]


def month_unsure(values: Iterable[str]) -> bool:
    """Return whether times have slashes, and no day above 12 tells which number is the month."""
    slashed = [match for value in values if (match := _SLASHED.fullmatch(value)) and match["mark"] == "/"]
    return bool(slashed) and all(int(match["first"]) <= 12 and int(match["other"]) <= 12 for match in slashed)


def as_time(value: str, *, day_first: bool = False) -> datetime | None:
    """Return a text as a time in UTC; None for a text that is no time.

    Forms: ISO 8601, seconds since 1970, Google's (2024/03/01 2:15:37 PM GMT+1), Amazon's (Sun May 17 14:13:33 PDT
    2020), and those with the year last (5/17/2020 2:13 PM, 17.05.2020 14:13).
    """
    text = value.replace("\u202f", " ").strip()
    if _EPOCH.fullmatch(text):
        number = float(text)
        return datetime.fromtimestamp(number / (1000 if number > 1e11 else 1), UTC)
    match = next(filter(None, (form.fullmatch(text) for form in (_ISO, _GOOGLE, _AMAZON, _SLASHED))), None)
    if match is None:
        return None
    parts = match.groupdict()
    try:
        hour = int(parts["hour"] or 0)
        if parts.get("half"):
            hour = hour % 12 + 12 * (parts["half"].casefold() == "pm")
        clock = hour, int(parts["minute"] or 0), int(parts["second"] or 0), int(f"{parts['fraction'] or 0:0<6}"[:6])
        date = datetime(int(parts["year"]), *_month_and_day(parts, day_first=day_first), *clock)
        return (date - _offset(parts)).replace(tzinfo=UTC)
    except (KeyError, ValueError, OverflowError):  # no such month, hour, zone
        return None


def _month_and_day(parts: dict[str, str], *, day_first: bool) -> tuple[int, int]:
    if "first" not in parts:
        month = parts["month"]
        return int(month) if month.isdecimal() else _WORDS["months"].index(month.casefold()) + 1, int(parts["day"])
    first, second = int(parts["first"]), int(parts["other"])
    return (second, first) if first > 12 or (day_first and second <= 12) else (first, second)


def _offset(parts: dict[str, str]) -> timedelta:
    """Return the difference of a time's zone from UTC. Raises KeyError for an unknown zone."""
    hours = timedelta(hours=_WORDS["zones"][parts["zone"]] if parts.get("zone") else 0)
    if not parts.get("offset"):
        return hours
    sign, digits = parts["offset"][0], parts["offset"][1:].replace(":", "")
    hour, minute = (digits[:-2], digits[-2:]) if len(digits) > 2 else (digits, "0")
    return (-1 if sign == "-" else 1) * timedelta(hours=int(hour), minutes=int(minute)) + hours


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
