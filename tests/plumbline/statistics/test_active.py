"""Judges that choose what people rate: probabilities, GLIDE's numbers, coverage, never worse than even draws."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.ratings_saved import chosen_campaigns, doubted
from plumbline.resources import ROOT
from plumbline.statistics.active import (
    active_mean,
    block_probabilities,
    drawn,
    expected_error,
    in_any_block,
    sampling_probabilities,
)
from plumbline.statistics.estimates import Floats
from plumbline.statistics.prediction_powered import Pool, RatedPairs, powered
from tests.scale import scaled

SUMMEVAL = next((path for folder in (ROOT, ROOT.parent, ROOT.parents[1])
                 if (path := folder / "shared/data/people/summeval").is_dir()), Path("none"))  # fmt: skip
SPREAD = 3 * math.sqrt(0.05 * 0.95)  # three standard errors of a coverage, times the root of the campaigns


def test_the_published_formula_is_glides() -> None:
    """glide-py 0.11.0, `ASIMeanEstimator().estimate(values, scores, probabilities)`."""
    place = np.arange(40)
    probabilities, scores = 0.2 + 0.6 * (place % 7) / 7, 3 + np.sin(place * 1.3)
    values = np.where((place * 5) % 8 < 3, scores + 0.5 * np.cos(place * 2.1), np.nan)
    mean = active_mean(values, scores, probabilities, "published").mean
    glide = (3.029479373969788, 0.15602934271772578, 2.7236674817115882, 3.3352912662279874)
    assert (float(mean.value), float(mean.error), float(mean.low), float(mean.high)) == pytest.approx(glide, abs=1e-9)


def test_drawn_evenly_it_is_nearly_the_prediction_powered_mean() -> None:
    ratings, scores, _ = doubted(np.random.default_rng(1), knows=True)
    places = np.random.default_rng(2).permutation(500)
    rated, others = places[:60], places[60:]
    values = np.full(500, np.nan)
    values[rated] = ratings[rated]
    mean = active_mean(values, scores, np.full(500, 60 / 500)).mean
    zeros = np.zeros(500, np.int64)
    pairs = RatedPairs(ratings[rated], np.ones(60), scores[rated], zeros[:60])
    beside = powered(pairs, Pool(scores[others], zeros[:440])).mean
    assert float(mean.value) == pytest.approx(float(beside.value), abs=0.01)
    assert float(mean.error) == pytest.approx(float(beside.error), rel=0.03)


def test_probabilities_sum_to_what_is_drawn_and_none_is_left_out() -> None:
    doubt = np.random.default_rng(1).exponential(size=200) ** 3
    left = np.arange(200) >= 50
    probabilities = sampling_probabilities(doubt, 60, 0.3, left)
    assert probabilities[left].sum() == pytest.approx(60)
    assert probabilities.max() == 1 and probabilities.min() > 0
    assert (np.diff(probabilities[np.argsort(doubt)]) >= -1e-12).all()
    times = np.zeros(200)
    rng = np.random.default_rng(2)
    for _ in range(2000):
        chosen = drawn(probabilities[left], rng)
        assert len(set(chosen)) == len(chosen) == 60
        times[50 + chosen] += 1
    assert np.abs(times[left] / 2000 - probabilities[left]).max() < 5 * math.sqrt(0.25 / 2000)


@pytest.mark.parametrize(
    ("doubt", "number", "uniform"), [([1, -1], 1, 0.5), ([1, np.nan], 1, 0.5), ([1, 1], 3, 0.5), ([1, 1], 1, 0.0)]
)
def test_draws_that_cannot_be_are_refused(doubt: list[float], number: int, uniform: float) -> None:
    with pytest.raises(ValueError, match="doubt must be a number|cannot be drawn"):
        sampling_probabilities(np.array(doubt, float), number, uniform)


@pytest.mark.parametrize(("scores", "probabilities"), [([1.0, np.nan], [0.5, 0.5]), ([1.0, 2.0], [0.5, 0.0])])
def test_outputs_without_score_or_probability_are_refused(scores: list[float], probabilities: list[float]) -> None:
    with pytest.raises(ValueError, match="each output needs a score"):
        active_mean(np.array([1.0, np.nan]), np.array(scores), np.array(probabilities))


def test_too_few_ratings_have_no_interval() -> None:
    values = np.array([1.0, 2.0, 3.0, np.nan, np.nan])
    assert math.isnan(active_mean(values, np.arange(5.0), np.full(5, 0.6)).mean.low)
    assert math.isnan(active_mean(np.full(5, np.nan), np.arange(5.0), np.full(5, 0.6)).mean.value)


def test_a_doubt_counts_as_far_as_ratings_bear_it_out() -> None:
    rng, doubt = np.random.default_rng(3), np.linspace(0.2, 2, 100)
    rated = rng.permutation(100)[:40]
    for errors, says in ((doubt[rated], 1), (2 - doubt[rated], -1), (rng.permutation(np.ones(40)), 0)):
        sizes = expected_error(doubt, rated, errors)
        assert np.sign(np.round(sizes[-1] - sizes[0], 6)) == says
    assert (expected_error(doubt, rated[:5], doubt[rated[:5]]) == 1).all()
    first = block_probabilities(np.full(100, np.nan), doubt, doubt, 20)
    assert first == pytest.approx(0.2)
    assert in_any_block([first, first]) == pytest.approx(0.36)


@pytest.mark.parametrize("knows", [True, False])
def test_intervals_of_chosen_outputs_hold_the_mean_and_are_no_wider(knows: bool) -> None:
    number = scaled(300, 4000)
    found = chosen_campaigns(np.random.default_rng(1), number, knows)
    assert 0.95 - SPREAD / math.sqrt(number) <= found.covered
    assert found.ratings <= (0.96 if knows else 1.03)


@pytest.mark.skipif(not SUMMEVAL.is_dir(), reason="the public ratings are not beside the checkout")
@pytest.mark.parametrize("quality", ["coherence", "consistency", "fluency", "relevance"])
def test_judges_of_summaries_choose_no_worse_than_an_even_draw(quality: str) -> None:
    number = scaled(100, 2000)
    found = chosen_campaigns(np.random.default_rng(3), number, False, summeval(quality))
    assert 0.95 - SPREAD / math.sqrt(number) <= found.covered
    assert found.ratings <= (0.88 if quality == "consistency" else 1.02 + 0.5 / math.sqrt(number))


def summeval(quality: str) -> tuple[Floats, Floats, Floats]:
    """Experts' mean ratings of 1,600 summaries; the mean and the standard deviation of six judges' scores."""
    experts, judges = (
        json.loads((SUMMEVAL / f"{name}_annotations.json").read_text(encoding="utf-8")) for name in ("human", "llm")
    )
    keys = [key for key in experts["e0"] if key.endswith(f"__{quality}")]
    scores = np.array([[judge.get(key) or np.nan for key in keys] for judge in judges.values()], float)
    ratings = np.mean([[expert[key] for key in keys] for expert in experts.values()], axis=0)
    return ratings, np.nanmean(scores, axis=0), np.nanstd(scores, axis=0)
