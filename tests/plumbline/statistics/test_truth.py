"""What is true by votes: recovered where it is known, printed numbers of real workers, and bad frames."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from plumbline.statistics.truth import Truth, dawid_skene, majority
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


@pytest.mark.parametrize("classes", ["yn", "abc"])
def test_raters_who_know_outweigh_those_who_guess(classes: str) -> None:
    guess = 1 / len(classes)
    ratings, true = crowd([0.9, 0.9, guess, guess, guess, guess], 400, classes, seed=2)
    learned, votes = dawid_skene(ratings), majority(ratings)
    right, by_votes = (found.labels.eq(true).mean() for found in (learned, votes))
    assert right > by_votes + 0.04 and learned.converged
    assert learned.raters["accuracy"].nlargest(2).index.tolist() in (["r0", "r1"], ["r1", "r0"])
    assert learned.probabilities.sum(axis=1).to_numpy() == pytest.approx(1)
    assert set(learned.frame()["label"].dropna()) <= set(classes)


def plain_em(ratings: pd.DataFrame, classes: str, smoothing: float) -> dict[int, list[float]]:
    """Dawid and Skene's expectation-maximisation in plain loops, until no probability moves any more."""
    answers = list(ratings[["pair_id", "rater_id", "value"]].itertuples(index=False, name=None))
    by_item: dict[int, list[tuple[str, str]]] = {}
    for item, rater, label in answers:
        by_item.setdefault(item, []).append((rater, label))
    beliefs = {item: [sum(c == x for _, x in said) / len(said) for c in classes] for item, said in by_item.items()}
    moved = 1.0
    while moved > 1e-12:
        shares = [sum(belief[c] for belief in beliefs.values()) / len(beliefs) for c in range(len(classes))]
        counts = {(r, c, x): smoothing for r in set(ratings["rater_id"]) for c in range(len(classes)) for x in classes}
        for item, rater, label in answers:
            for c in range(len(classes)):
                counts[rater, c, label] += beliefs[item][c]
        totals = {(r, c): sum(counts[r, c, x] for x in classes) for r, c, _ in counts}
        moved = 0.0
        for item, said in by_item.items():
            likely = [
                share * math.prod(counts[rater, c, label] / totals[rater, c] for rater, label in said)
                for c, share in enumerate(shares)
            ]
            belief = [value / sum(likely) for value in likely]
            moved = max(moved, *(abs(new - old) for new, old in zip(belief, beliefs[item], strict=True)))
            beliefs[item] = belief
    return beliefs


@pytest.mark.parametrize("smoothing", [0, 0.01])
def test_dawid_skene_equals_plain_expectation_maximisation_that_ran_to_its_end(smoothing: float) -> None:
    ratings, _ = crowd([0.75, 0.7, 0.65, 0.6, 0.55], 120, "yn", seed=5)
    few = ratings.sample(frac=0.6, random_state=1)
    found = dawid_skene(few, smoothing=smoothing)
    expected = pd.DataFrame(plain_em(few, "yn", smoothing), index=list("yn")).T.reindex(found.probabilities.index)
    assert found.converged
    assert found.probabilities[["y", "n"]].to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-6)
    assert (found.labels == expected.idxmax(axis=1)).all()
    assert not dawid_skene(few, smoothing=smoothing, iterations=20).converged


def test_an_even_split_has_no_label() -> None:
    ratings = pd.DataFrame({"pair_id": [1, 1, 2], "rater_id": ["a", "b", "a"], "value": ["y", "n", "n"]})
    truth = majority(ratings)
    assert truth.labels.isna().tolist() == [True, False]
    assert truth.raters.to_dict("list") == {"answers": [2, 1], "accuracy": [0.75, 0.5]}


@pytest.mark.parametrize("estimate", [majority, dawid_skene])
def test_one_class_alone_is_certain(estimate: Callable[[pd.DataFrame], Truth]) -> None:
    ratings = pd.DataFrame({"pair_id": [1, 1, 2], "rater_id": ["a", "b", "a"], "value": ["y", "y", "y"]})
    assert estimate(ratings).probabilities["y"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("columns", "line"),
    [({"rater_id": ["a", "a"]}, "appears more than once"), ({"value": ["y", None]}, "'value' is missing in 1 row")],
)
def test_bad_frames_are_one_line(columns: dict[str, list[object]], line: str) -> None:
    ratings = pd.DataFrame({"pair_id": [1, 1], "rater_id": ["a", "b"], "value": ["y", "n"]} | columns)
    for estimate in (majority, dawid_skene):
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
