"""Judges beside real people: SummEval's three experts and six language models, by draws of 100 rated summaries."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from plumbline.resources import ROOT
from plumbline.statistics.prediction_powered import Formula, Pool, RatedPairs, powered
from tests.scale import FULL, scaled

PEOPLE = ROOT.parent / "shared" / "data" / "people" / "summeval"
QUALITIES = ("coherence", "consistency", "fluency", "relevance")
JUDGES = ("gpt-4o", "gemini_pro", "gemini_flash", "gpt-4o-mini", "llama-31", "mistral-v03")
RATED = 100
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not PEOPLE.exists(), reason="the real ratings are not beside the checkout"),
]


@dataclass(frozen=True)
class Draws:
    """How often intervals of means held, by people alone and with the judge, and what the judge was worth."""

    people: float
    both: float
    saved: float  #: 1 - 100 / the median worth
    less_variance: float  #: 1 - variance of the means over draws / that of people alone


def long(name: str) -> pd.DataFrame:
    by_source = json.loads((PEOPLE / name).read_text(encoding="utf-8"))
    rows = [(*key.rsplit("__", 1), who, value) for who, answers in by_source.items() for key, value in answers.items()]
    return pd.DataFrame(rows, columns=["item", "quality", "who", "value"])


def drawn(experts: pd.DataFrame, scores: pd.Series, number: int, formula: Formula) -> Draws:
    """`number` draws of 100 of the 1,600 summaries, whose other 1,500 only the judge has seen."""
    sums, judged, rng = experts.sum(axis=1).to_numpy(float), scores.to_numpy(float), np.random.default_rng(1)
    truth, counts, strata = experts.to_numpy().mean(), np.full(RATED, 3.0), np.zeros(len(sums), np.int64)
    rows = []
    for _ in range(number):
        order = rng.permutation(len(sums))
        here, rest = order[:RATED], order[RATED:]
        found = powered(
            RatedPairs(sums[here], counts, judged[here], strata[:RATED]),
            Pool(judged[rest], strata[RATED:]),
            formula=formula,
        )
        held = [mean.low <= truth <= mean.high for mean in (found.people, found.mean)]
        rows.append((*held, found.worth, found.people.value, found.mean.value))
    table = np.array(rows, float)
    less = 1 - table[:, 4].var() / table[:, 3].var()
    return Draws(*table[:, :2].mean(axis=0), float(1 - RATED / np.median(table[:, 2])), float(less))


@pytest.fixture(scope="module")
def ratings() -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    experts, judges = long("human_annotations.json"), long("llm_annotations.json")
    wide = {}
    for quality in QUALITIES:
        of_experts, of_judges = (
            frame[frame["quality"] == quality].pivot(index="item", columns="who", values="value")
            for frame in (experts, judges)
        )
        wide[quality] = of_experts, of_judges.reindex(of_experts.index)
    return wide


@pytest.mark.parametrize("judge", JUDGES if FULL else (JUDGES[0], JUDGES[-1]))
@pytest.mark.parametrize("quality", QUALITIES if FULL else QUALITIES[1:2])
def test_means_with_a_judge_hold_as_often_as_peoples_own_and_save_what_was_found(
    ratings: dict[str, tuple[pd.DataFrame, pd.DataFrame]], judge: str, quality: str
) -> None:
    """docs/judges.md has the numbers. Judges' own means are off by up to 1.7 points, which does no harm."""
    experts, judges = ratings[quality]
    number = scaled(150, 2000)
    for formula in ("small_samples", "published"):
        found = drawn(experts, judges[judge], number, formula)
        # The published formula has 0.918 beside 0.929 once in 24: it is compared, and Plumbline's is the other.
        assert found.both >= found.people - (0.01 if formula == "small_samples" else 0.015)
        if judge == "gpt-4o" and formula == "published":
            assert 0.20 <= found.saved <= 0.40 and found.less_variance > 0.15
        if judge == "mistral-v03":
            assert found.saved < 0.06 and found.less_variance < 0.06


def test_the_judges_own_means_are_off_by_up_to_two_points(
    ratings: dict[str, tuple[pd.DataFrame, pd.DataFrame]],
) -> None:
    gaps = {
        (quality, judge): float(judges[judge].mean() - experts.to_numpy().mean())
        for quality, (experts, judges) in ratings.items()
        for judge in judges.columns
    }
    assert min(gaps.values()) == pytest.approx(-1.73, abs=0.005) == gaps["fluency", "gemini_pro"]
    assert max(gaps.values()) == pytest.approx(1.12, abs=0.005) == gaps["relevance", "mistral-v03"]
