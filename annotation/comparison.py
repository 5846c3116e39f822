"""Comparison of two campaigns, or of two waves of one: whether other people, or other pairs, give the same results.

Pure functions from the ratings that count to rows, and the table for a terminal. Every pair counts once, by the mean of
its ratings. Where both rated the same pairs, the differences of a pair are the sample; otherwise the pairs of each are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from annotation.campaign_records import CampaignData, CampaignRecords
from annotation.ratings.ratings import counting_ratings
from annotation.rubric import Rubric, load_rubric
from annotation.verdicts.tables import SIMULATED, display, number
from plumbline.cli import columns
from plumbline.errors import DataError, StudyError
from plumbline.frames import that_count
from plumbline.statistics.agreement import Answers, gwet_ac2
from plumbline.statistics.intervals import over_pairs
from plumbline.study import Study

_PLACE = ["pool", "language", "question"]


@dataclass(frozen=True)
class ComparisonRow:
    """Two sets of ratings in one place: a pool, a language, a question."""

    pool: str
    language: str
    question: str
    pairs: tuple[int, int]  #: of the first and of the second; equal if both rated the same pairs
    means: tuple[float, float]  #: of the pairs' means
    difference: float  #: the second mean minus the first
    low: float  #: lower end of the difference's 95% interval; NaN where there is none
    high: float
    rho: float  #: rank correlation of the pairs' means; NaN if the pairs differ
    ac2: tuple[float, float, float]  #: among the first's raters, the second's, and both's together; NaN as rho
    reason: str  #: why there is no interval; empty where there is one


def compare_campaigns(first: pd.DataFrame, second: pd.DataFrame, scale: Sequence[float]) -> list[ComparisonRow]:
    """Two campaigns on the pairs that both rated.

    Both frames are ratings that count, with the pairs' `pool`. The interval is the t interval of the mean difference
    over pairs. AC2 (Gwet, ordinal weights) of both campaigns' raters taken as one group is lower than that of each
    where the campaigns, and not only their raters, differ.
    """
    common = sorted(set(first["pair_id"]) & set(second["pair_id"]))
    mine, yours = (frame[frame["pair_id"].isin(common)] for frame in (first, second))
    rows = []
    for key, ours in _places(mine):
        theirs = dict(_places(yours)).get(key)
        if theirs is None:
            continue
        means = pd.concat([_means(ours), _means(theirs)], axis=1, join="inner").to_numpy()
        ids = set(ours["pair_id"]) & set(theirs["pair_id"])
        rows.append(_paired(key, means, [part[part["pair_id"].isin(ids)] for part in (ours, theirs)], scale))
    return rows


def compare_parts(first: pd.DataFrame, second: pd.DataFrame) -> list[ComparisonRow]:
    """Two sets of ratings of different pairs, such as two waves: Welch's interval of the difference of means."""
    theirs = dict(_places(second))
    return [_apart(key, _means(group), _means(theirs[key])) for key, group in _places(first) if key in theirs]


def _places(ratings: pd.DataFrame) -> list[tuple[tuple[str, str, str], pd.DataFrame]]:
    rated = that_count(ratings)
    rated = rated[rated["value"].notna()]
    return [((str(a), str(b), str(c)), group) for (a, b, c), group in rated.groupby(_PLACE, observed=True, sort=False)]


def _means(ratings: pd.DataFrame) -> pd.Series:
    return ratings.astype({"pair_id": str, "value": float}).groupby("pair_id")["value"].mean()


def _paired(
    key: tuple[str, str, str], means: np.ndarray, parts: Sequence[pd.DataFrame], scale: Sequence[float]
) -> ComparisonRow:
    from scipy import stats  # noqa: PLC0415 (half a second)

    differences = means[:, 1] - means[:, 0]
    estimate = over_pairs(differences, np.ones(len(differences)))
    varied = len(means) > 1 and bool((np.ptp(means, axis=0) > 0).all())
    plain = [part[["pair_id", "rater_id", "value"]] for part in parts]
    both = pd.concat([part.assign(rater_id=part["rater_id"].astype(str) + f" {n}") for n, part in enumerate(plain)])
    first, second, together = (gwet_ac2(Answers.of(part, scale)).value for part in (*plain, both))
    return ComparisonRow(
        *key,
        pairs=(len(means), len(means)),
        means=(float(means[:, 0].mean()), float(means[:, 1].mean())),
        difference=float(estimate.value),
        low=float(estimate.low),
        high=float(estimate.high),
        rho=float(stats.spearmanr(means[:, 0], means[:, 1]).statistic) if varied else math.nan,
        ac2=(first, second, together),
        reason=_why(float(estimate.low), len(means)),
    )


def _apart(key: tuple[str, str, str], first: pd.Series, second: pd.Series) -> ComparisonRow:
    from scipy import stats  # noqa: PLC0415 (half a second)

    low = high = math.nan
    fewest = min(len(first), len(second))
    if fewest > 1 and first.std() + second.std() > 0:
        ends = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
        low, high = float(ends.low), float(ends.high)
    return ComparisonRow(
        *key,
        pairs=(len(first), len(second)),
        means=(float(first.mean()), float(second.mean())),
        difference=float(second.mean() - first.mean()),
        low=low,
        high=high,
        rho=math.nan,
        ac2=(math.nan, math.nan, math.nan),
        reason=_why(low, fewest),
    )


def _why(low: float, pairs: int) -> str:
    if not math.isnan(low):
        return ""
    return "one pair is too few" if pairs < 2 else "no spread to compute an interval from"


def comparison_text(study: Study, second: Study | None = None) -> str:
    """The comparison of a study's waves, or with another study's campaign on the same pairs, for a terminal.

    Raises StudyError where there is nothing to compare: no waves, no common pairs, another scale.
    """
    if second is not None:
        return campaigns_text(CampaignRatings.of(study), CampaignRatings.of(second))
    mine = CampaignRatings.of(study).ratings
    waves = CampaignRecords.open(study).waves
    if not waves:
        raise StudyError(
            f"{study.file}: its sample has one wave; name another study with --other, or extend the sample"
            f" (`{study.command('sample')} --extend REASON`)"
        )
    parts = []
    first = mine[mine["wave"] == 1]
    for wave in waves:
        rows = compare_parts(first, mine[mine["wave"] == wave.number])
        parts.append(
            f"Wave {wave.number} compared with wave 1 ({wave.reason})\n{_table(rows, 'wave 1', f'wave {wave.number}')}"
        )
    return "\n\n".join([*parts, _notes(mine, "Difference: the later wave minus the first, with Welch's 95% interval")])


@dataclass(frozen=True)
class CampaignRatings:
    """A campaign to compare: its study, and its counting ratings."""

    study: Study
    rubric: Rubric
    ratings: pd.DataFrame  #: on the rubric's scale, with pool and wave of their pairs

    @classmethod
    def of(cls, study: Study, collected: CampaignData | None = None, rubric: Rubric | None = None) -> CampaignRatings:
        """Return a study's campaign, read from its folder unless passed in.

        Raises StudyError where nothing is rated on the scale, DataError without ratings.
        """
        collected, rubric = collected or CampaignData.read(study), rubric or load_rubric(study)
        on_scale = [
            question.name for question in rubric.asked() if question.kind == "rating" and question.scale == rubric.scale
        ]
        if not on_scale:
            raise StudyError(
                f"{study.file}: rubric {study.rubric!r} has no question on the rubric's scale, so there are no means to"
                " compare; compare the two reports instead, which have shares of labels, orders and agreement"
                f" (`{study.command('ratings-report')}`)"
            )
        counting = counting_ratings(collected.of_sample, study.raters.per_pair)
        counting = counting[counting["question"].isin(on_scale)]
        if counting.empty:
            raise DataError(f"{study.folder}: no ratings that count; run `{study.command('collect')}` first")
        facts = collected.sample.astype({"pair_id": str}).set_index("pair_id")[["pool", "wave"]]
        plain = counting.assign(pair_id=counting["pair_id"].astype(str))
        return cls(study, rubric, plain.join(facts, on="pair_id"))


def campaigns_text(first: CampaignRatings, second: CampaignRatings) -> str:
    """Two campaigns on the same pairs, for a terminal. Raises StudyError for another scale, or without common pairs."""
    study, their_study, mine, theirs = first.study, second.study, first.ratings, second.ratings
    scale = first.rubric.scale
    if second.rubric.scale != scale:
        raise StudyError(f"{their_study.file}: the scale differs from that of {study.file}; ratings cannot be compared")
    if not set(mine["pair_id"]) & set(theirs["pair_id"]):
        raise StudyError(
            f"{their_study.file}: none of its rated pairs were rated in {study.file}; two pairs are the same if their"
            " original, output, generator and prompts are the same"
        )
    rows = compare_campaigns(mine, theirs, scale)
    names = (
        (study.name, their_study.name)
        if study.name != their_study.name
        else (f"{study.name} (1)", f"{their_study.name} (2)")
    )
    difference = f"{names[1]} minus {names[0]}, with the t interval over pairs"
    note = f"Only pairs that both rated are compared. Difference: {difference}"
    return f"{_table(rows, *names, paired=True)}\n\n{_notes(pd.concat([mine, theirs]), note)}"


def _table(rows: Sequence[ComparisonRow], first: str, second: str, *, paired: bool = False) -> str:
    header = [
        "Pool",
        "Language",
        "Question",
        "Pairs",
        f"Mean, {first}",
        f"Mean, {second}",
        "Difference",
        "95% interval",
    ]
    header += ["Rho", f"AC2, {first}", f"AC2, {second}", "AC2, both"] if paired else []
    cells = []
    for row in rows:
        pairs = str(row.pairs[0]) if paired else f"{row.pairs[0]} and {row.pairs[1]}"
        interval = row.reason or f"{row.low:+.2f} to {row.high:+.2f}"
        shown = [
            display(row.pool),
            row.language,
            row.question,
            pairs,
            *map(number, row.means),
            f"{row.difference:+.2f}",
        ]
        cells.append([*shown, interval, *((number(row.rho), *map(number, row.ac2)) if paired else ())])
    return columns(header, cells, "none: no question has ratings of both in the same pool and language")


def _notes(rated: pd.DataFrame, about: str) -> str:
    simulated = [SIMULATED] if rated["simulated"].any() else []
    whole = f"{about}; each pair counts once, by the mean of its ratings that count, on the rubric's scale."
    return "\n".join([whole, *simulated])
