"""What is true by votes: recovered where it is known, printed numbers of real workers, and bad frames."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from plumbline.statistics.truth import Truth, dawid_skene, glad, majority
from plumbline.study import ROOT

PEOPLE = ROOT.parent / "shared" / "data" / "people" / "d_product"


def crowd(accuracies: list[float], n_items: int, classes: str, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """(answers of raters who are right so often, what is true)."""
    rng = np.random.default_rng(seed)
    true = rng.integers(len(classes), size=n_items)
    rows = []
    for rater, accuracy in enumerate(accuracies):
        wrong = (true + rng.integers(1, len(classes), size=n_items)) % len(classes)
        answers = np.where(rng.random(n_items) < accuracy, true, wrong)
        rows += [(item, f"r{rater}", classes[answer]) for item, answer in enumerate(answers)]
    return pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"]), pd.Series([classes[index] for index in true])


@pytest.mark.parametrize("estimate", [dawid_skene, glad])
@pytest.mark.parametrize("classes", ["yn", "abc"])
def test_raters_who_know_outweigh_those_who_guess(estimate: Callable[[pd.DataFrame], Truth], classes: str) -> None:
    guess = 1 / len(classes)
    ratings, true = crowd([0.9, 0.9, guess, guess, guess, guess], 400, classes, seed=2)
    learned, votes = estimate(ratings), majority(ratings)
    right, by_votes = (found.labels.eq(true).mean() for found in (learned, votes))
    assert right > by_votes + 0.04 and learned.converged
    assert learned.raters["accuracy"].nlargest(2).index.tolist() in (["r0", "r1"], ["r1", "r0"])
    assert learned.probabilities.sum(axis=1).to_numpy() == pytest.approx(1)
    assert set(learned.frame()["label"].dropna()) <= set(classes)


def test_an_even_split_has_no_label() -> None:
    ratings = pd.DataFrame({"pair_id": [1, 1, 2], "rater_id": ["a", "b", "a"], "value": ["y", "n", "n"]})
    truth = majority(ratings)
    assert truth.labels.isna().tolist() == [True, False]
    assert truth.raters.to_dict("list") == {"answers": [2, 1], "accuracy": [0.75, 0.5]}


@pytest.mark.parametrize("estimate", [majority, dawid_skene, glad])
def test_one_class_alone_is_certain(estimate: Callable[[pd.DataFrame], Truth]) -> None:
    ratings = pd.DataFrame({"pair_id": [1, 1, 2], "rater_id": ["a", "b", "a"], "value": ["y", "y", "y"]})
    assert estimate(ratings).probabilities["y"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        ({"rater_id": ["a", "a"]}, "appears more than once"),
        ({"value": ["y", None]}, "'value' is missing in 1 row"),
    ],
)
def test_bad_frames_are_one_line(columns: dict[str, list[object]], line: str) -> None:
    ratings = pd.DataFrame({"pair_id": [1, 1], "rater_id": ["a", "b"], "value": ["y", "n"]} | columns)
    for estimate in (majority, dawid_skene, glad):
        with pytest.raises(ValueError, match=line):
            estimate(ratings)
    with pytest.raises(ValueError, match="the frame is empty"):
        majority(ratings.iloc[:0])


@pytest.mark.data
@pytest.mark.skipif(not PEOPLE.exists(), reason="the real ratings are not beside the checkout")
@pytest.mark.parametrize(
    ("estimate", "accuracy", "f1"),
    [
        (majority, 0.8966, 0.5905),  # VLDB 2017
        (dawid_skene, 0.9400, 0.7217),  # as an independent EM that ran until nothing changed, here and below
        (functools.partial(dawid_skene, smoothing=0), 0.9393, 0.7196),
    ],
)
def test_the_numbers_of_workers_on_products_come_out(
    estimate: Callable[..., Truth], accuracy: float, f1: float
) -> None:
    answers = pd.read_csv(PEOPLE / "answer.csv")
    labels = estimate(answers, pair="question", rater="worker", value="answer").labels
    true = pd.read_csv(PEOPLE / "truth.csv").set_index("question")["truth"].reindex(labels.index)
    assert (labels == true).mean() == pytest.approx(accuracy, abs=5e-5)
    both = ((labels == 1) & (true == 1)).sum()
    assert 2 * both / ((labels == 1).sum() + (true == 1).sum()) == pytest.approx(f1, abs=5e-5)
