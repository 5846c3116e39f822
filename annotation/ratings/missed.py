"""Controls that raters missed: how many answers, and of each rater how many controls of each kind."""

from __future__ import annotations

import typing
from collections.abc import Iterator

import pandas as pd

from annotation.ratings.signs import Expected, control_answers, missed_answers, of_pairs
from annotation.rubric import CHECKS
from plumbline.study.campaign import QualitySpec


def controls_missed(
    ratings: pd.DataFrame, pairs: pd.DataFrame, rules: QualitySpec, expected: Expected
) -> tuple[int, int]:
    """(submitted ratings of controls that are off by more than `rules.within`, all whose right answer is known).

    `pairs` are as for `find_signs`; those that are no controls play no part.
    """
    answers = _answers(ratings, pairs, expected)
    return len(missed_answers(answers, rules)), len(answers)


def controls_by_kind(
    ratings: pd.DataFrame, pairs: pd.DataFrame, rules: QualitySpec, expected: Expected
) -> dict[str, dict[str, tuple[int, int]]]:
    """(controls that were missed, controls that were answered) by rater and kind of control.

    A control is missed where any of its answers is: what one rater says of one text hangs together.
    """
    answers = _answers(ratings, pairs, expected)
    missed, by_rater = missed_answers(answers, rules), dict[str, dict[str, tuple[int, int]]]()
    of_missed = dict(_numbers(missed))
    for (rater, kind), number in _numbers(answers):
        by_rater.setdefault(rater, {})[kind] = of_missed.get((rater, kind), 0), number
    return by_rater


def _answers(ratings: pd.DataFrame, pairs: pd.DataFrame, expected: Expected) -> pd.DataFrame:
    controls = pairs[pairs["control"].isin(CHECKS)].drop_duplicates("pair_id", keep="last", ignore_index=True)
    return control_answers(of_pairs(ratings, controls), expected)


def _numbers(answers: pd.DataFrame) -> Iterator[tuple[tuple[str, str], int]]:
    """How many controls are among answers, by rater and kind."""
    once = answers.drop_duplicates("answer")
    for key, number in once.groupby(["rater_id", "control"], observed=True).size().items():
        rater, kind = map(str, typing.cast("tuple[str, str]", key))
        yield (rater, kind), int(number)
