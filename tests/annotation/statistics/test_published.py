"""Agreement of real people: the numbers that others printed, and the same by a few lines of numpy."""

from __future__ import annotations

import json
from collections.abc import Sequence

import krippendorff
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from annotation import alpha, kappa
from plumbline.scales import Continuous
from plumbline.statistics.agreement import Answers, mean_kappa, nominal_alpha
from plumbline.study import ROOT

PEOPLE = ROOT.parent / "shared" / "data" / "people"
present = pytest.mark.skipif(not PEOPLE.exists(), reason="the real ratings are not beside the checkout")


def by_hand(ratings: pd.DataFrame, levels: Sequence[float], metric: str) -> float:
    """Krippendorff's alpha of its definition: a coincidence matrix, and distances of its values."""
    tables = ratings.groupby("pair_id")["value"].agg(list)
    observed = np.zeros((len(levels), len(levels)))
    place = {level: index for index, level in enumerate(levels)}
    for values in tables[tables.map(len) > 1]:
        for first, one in enumerate(values):
            for second, other in enumerate(values):
                if first != second:
                    observed[place[one], place[other]] += 1 / (len(values) - 1)
    each = observed.sum(axis=0)
    between = np.array([[each[min(i, j) : max(i, j) + 1].sum() - (each[i] + each[j]) / 2 for i in place.values()]
                        for j in place.values()])  # fmt: skip
    apart = np.subtract.outer(np.array(levels), np.array(levels))
    distance = {"nominal": apart != 0, "ordinal": between**2, "interval": apart**2}[metric]
    expected = np.outer(each, each) / (each.sum() - 1)
    return float(1 - (observed * distance).sum() / (expected * distance).sum())


def qags(*files: str) -> pd.DataFrame:
    """Three answers to each sentence; workers' ids are per file, and one may answer a sentence twice."""
    rows, item = [], 0
    for file in files:
        for line in (PEOPLE / "qags" / f"mturk_{file}.jsonl").read_text(encoding="utf-8").splitlines():
            for sentence in json.loads(line)["summary_sentences"]:
                item += 1
                rows += [(item, slot, answer["response"] == "yes") for slot, answer in enumerate(sentence["responses"])]
    return pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"]).astype(int)


@pytest.mark.data
@present
@pytest.mark.parametrize(
    ("files", "value", "within"),
    [(("cnndm", "xsum"), 0.4878830126174004, 1e-12), (("cnndm",), 0.5135, 5e-5), (("xsum",), 0.3421, 5e-5)],
)
def test_alpha_of_answers_on_summaries(files: tuple[str, ...], value: float, within: float) -> None:
    ratings = qags(*files)
    estimate = nominal_alpha(Answers.of(ratings, (0, 1)), np.random.default_rng(1))
    assert estimate.value == pytest.approx(value, abs=within) == by_hand(ratings, (0, 1), "nominal")
    assert estimate.low < value < estimate.high


@pytest.mark.data
@present
def test_alphas_of_recipes() -> None:
    printed = {"grammar": 0.4151, "fluency": 0.4324, "verbosity": 0.3991, "structure": 0.3986, "success": 0.3627,
               "overall": 0.4351}  # fmt: skip
    recipes = json.loads((PEOPLE / "recipe" / "meta_evaluation_recipes.json").read_text(encoding="utf-8"))["instances"]
    for question, value in printed.items():
        scores = [recipe["annotations"][question]["individual_human_scores"] for recipe in recipes]
        rows = [(item, rater, score) for item, row in enumerate(scores) for rater, score in enumerate(row)]
        ratings = pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"]).dropna()
        estimate = alpha(ratings, scale=range(1, 7))
        assert estimate.value == pytest.approx(value, abs=5e-5)
        assert estimate.value == pytest.approx(by_hand(ratings, range(1, 7), "ordinal"), abs=1e-9)


@pytest.mark.parametrize("step", [1.0, 0.01])
def test_alpha_and_kappa_of_a_continuous_scale_are_those_of_other_implementations(step: float) -> None:
    rng = np.random.default_rng(3)
    felt = 50 + rng.normal(0, 20, 40)[:, None] + rng.normal(0, 12, (40, 4))
    table: NDArray[np.float64] = np.clip(np.round(felt / step) * step, 0, 100)
    table[rng.random(table.shape) < 0.1] = np.nan
    rows = [(item, rater, v) for item, row in enumerate(table) for rater, v in enumerate(row) if not np.isnan(v)]
    ratings, scale = pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"]), Continuous((0, 100))
    estimate = alpha(ratings, scale)
    theirs = krippendorff.alpha(reliability_data=table.T, level_of_measurement="interval")
    assert estimate.value == pytest.approx(theirs, abs=1e-9)
    assert estimate.value == pytest.approx(by_hand(ratings, sorted(set(ratings["value"])), "interval"), abs=1e-9)
    assert estimate.low < estimate.value < estimate.high
    kappas, weights = [], []
    for one in range(4):
        for two in range(one + 1, 4):
            both = table[~np.isnan(table[:, [one, two]]).any(axis=1)][:, [one, two]]
            by_chance = np.subtract.outer(both[:, 0], both[:, 1]) ** 2
            kappas.append(1 - ((both[:, 0] - both[:, 1]) ** 2).mean() / by_chance.mean())
            weights.append(len(both))
    assert kappa(ratings, scale).value == pytest.approx(np.average(kappas, weights=weights), abs=1e-9)
    if step == 1:  # places of all whole points are at the distances of their values
        assert mean_kappa(Answers.of(ratings, range(101))).value == pytest.approx(kappa(ratings, scale).value, abs=1e-9)
