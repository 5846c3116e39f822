"""How a campaign goes while ratings come: the agreement so far with its interval, and the pace of answers.

Both are for the coordinator. Neither decides anything: stopping when agreement looks good would bias every number.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pandas as pd

from annotation.campaign.counting import counting_ratings, untimed
from annotation.questions.rating import COEFFICIENTS
from annotation.statistics.summaries import compact, summarise
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.tables import at_least
from plumbline.exhibits.table import Exhibit, estimates, numbers
from plumbline.study.subject import ItemNames
from plumbline.words import count

DAY = timedelta(days=1)  # that a pace is measured over, at most
SHORTEST = timedelta(minutes=10)  # that it is measured over, at least
SHOWN = ("ac2", "alpha")  # of a question with a scale: AC2 alone is high if nearly all ratings are the same


@dataclass(frozen=True)
class Pace:
    """How fast people answer."""

    answers: int  #: in the last hours before `to`
    hours: float  #: since the first of these answers, at most a day
    to: datetime  #: until when answers are on record
    open: int  #: answers that are still asked for
    can_end: bool = True  #: whether somebody who is there can give each of them

    @property
    def an_hour(self) -> float:
        """Answers an hour."""
        return self.answers / self.hours

    @property
    def ends(self) -> datetime | None:
        """When the last open answer comes at this pace; None where none is open or nobody can, or in over a year."""
        hours = self.open / self.an_hour if self.answers else math.inf
        return self.to + timedelta(hours=hours) if self.open and self.can_end and hours < 366 * 24 else None

    def __str__(self) -> str:
        if not self.answers:
            return f"Pace: no answer in the 24 hours before {self.to:%Y-%m-%d %H:%M} UTC; {self.open:,} are open."
        minutes = self.hours * 60
        span = f"{minutes:.1f} minutes" if minutes < 120 else f"{self.hours:.1f} hours"
        least = SHORTEST / timedelta(minutes=1)
        span = span if minutes > least else f"at most {least:g} minutes (counted as {least:g})"
        pace = (
            f"Pace: {count(self.answers, 'answer')} in {span} before {self.to:%Y-%m-%d %H:%M} UTC,"
            f" {self.an_hour:.1f} an hour; {self.open:,} are open"
        )
        return f"{pace}, the last of them expected on {self.ends:%Y-%m-%d %H:%M} UTC." if self.ends else f"{pace}."


def pace_of(
    ratings: pd.DataFrame, still_open: int, to: datetime, *, gone: Collection[str] = (), can_end: bool = True
) -> Pace | None:
    """Return people's pace at a time by submitted ratings with known times; None if there are none, or simulated ones.

    An answer is what one rater gave to one pair. Excluded raters and those who are `gone`, who give no more, are left
    out.
    """
    stay = (ratings["excluded"] == "") & ~ratings["rater_id"].isin(list(gone))
    counts = (ratings["status"] == "submitted") & stay & ~ratings["simulated"].astype(bool)
    submitted = ratings[counts & ~untimed(ratings)]
    times = submitted.drop_duplicates(["pair_id", "rater_id"])["submitted_at"].dropna()
    times = times[times <= to]
    if times.empty:
        return None
    last_day = times[times > to - DAY]
    since = min(DAY, max(SHORTEST, to - last_day.min().to_pydatetime())) if len(last_day) else DAY
    return Pace(len(last_day), since / timedelta(hours=1), to.astimezone(UTC), still_open, can_end)


def agreement_so_far(evidence: Evidence) -> pd.DataFrame:
    """Return a row for each question and coefficient, over all ratings that count now.

    Columns: question, coefficient, value, low, high, n_pairs, n_ratings, reason, word (`at_least`, of ratings). Without
    rows for tasks, whose agreement the report on people has.
    """
    columns = ["question", "coefficient", "value", "low", "high", "n_pairs", "n_ratings", "reason", "word"]
    if evidence.study.judging.does_tasks:
        return pd.DataFrame(columns=columns)
    return pd.DataFrame(_coefficients(evidence), columns=columns)


def _coefficients(evidence: Evidence) -> Iterator[tuple[object, ...]]:
    design = evidence.design
    ratings = compact(counting_ratings(evidence.collected.of_sample, design.per_pair))
    for question in design.questions:
        if not (ratings["question"] == question).any():
            continue
        summary = summarise(ratings, question, design, design.seed)
        named = [(COEFFICIENTS[name], getattr(summary, name)) for name in SHOWN if design.asked(question).has_points]
        named += [(f"{each.name} {each.label}".strip(), each.estimate) for each in summary.coefficients]
        word = at_least(summary) if design.asked(question).has_points else ""
        for name, estimate in named:
            numbers = estimate.value, estimate.low, estimate.high, summary.n_pairs, summary.n_ratings
            yield question, name, *numbers, estimate.reason, word


@dataclass(frozen=True)
class Going:
    """How a campaign goes."""

    agreement: pd.DataFrame  #: `agreement_so_far`; empty without ratings
    pace: Pace | None  #: None while nobody answers, without times, and where others asked the raters

    @classmethod
    def of(
        cls, evidence: Evidence, progress: pd.DataFrame, raters: pd.DataFrame, to: datetime, *, unanswerable: int
    ) -> Going:
        """Return how a campaign goes by the ratings on record, which were collected at a time.

        `raters` are those of `by_rater`: who is out, or has no open pair, gives no more answers.
        """
        ratings = evidence.collected.known
        if ratings.empty:
            return cls(pd.DataFrame(), None)
        still_open = int(progress["open"].sum()) if len(progress) else 0
        agreement = agreement_so_far(evidence)
        if not evidence.offered:
            return cls(agreement, None)
        gone = raters["out"] | (raters["open"] == 0).fillna(value=False)
        most = raters.loc[~raters["excluded"] & ~gone, "open"]
        can_end = not unanswerable and (most.isna().any() or most.sum() >= still_open)
        pace = pace_of(ratings, still_open, to, gone=raters.loc[gone, "rater_id"].to_list(), can_end=bool(can_end))
        return cls(agreement, pace)


def agreement_exhibit(frame: pd.DataFrame, called: ItemNames) -> Exhibit:
    """Return the agreement so far as a table."""
    columns = {
        "Question": "question",
        "Coefficient": "coefficient",
        "Agreement [95%]": estimates("value"),
        "At least": "word",
        f"{called.item}s".capitalize(): numbers("n_pairs", 0),
        "Ratings": numbers("n_ratings", 0),
    }
    missing = frame[frame["reason"] != ""]
    notes = dict.fromkeys(
        f"{question}, {name}: {reason}"
        for question, name, reason in zip(missing["question"], missing["coefficient"], missing["reason"], strict=True)
    )
    notes["It decides nothing: whoever stops when it looks good gets numbers that are too good."] = None
    caption = f"Agreement so far, with 95% intervals over {called.item}s"
    return Exhibit.of("agreement_so_far", caption, frame, columns, notes)
