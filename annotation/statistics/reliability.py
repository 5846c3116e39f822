"""How far ratings of a question can be relied on, and whom to believe about labels: tables of all their estimates."""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from annotation.questions import QuestionScale
from plumbline.statistics.estimates import Estimate
from plumbline.statistics.intervals import over_pairs, wilson
from plumbline.statistics.reliability import Form, icc, split_half_reliability, z_scores
from plumbline.statistics.truth import Truth, dawid_skene, majority

_SHUFFLED = 10**7  # ratings that splits into halves shuffle in all: of very many ratings there are fewer splits
_SPLITS = (20, 1000)
_METHODS: Mapping[str, Callable[[pd.DataFrame], Truth]] = {"majority": majority, "Dawid-Skene": dawid_skene}


def reliability_table(ratings: pd.DataFrame, questions: Sequence[str], seed: int) -> pd.DataFrame:
    """A row a question and statistic: intraclass correlations, the same of z-scores, and split halves.

    `ratings` are those that count, of questions with a scale. Columns: question, statistic, value, low, high, n
    (items), reason (why something is NaN). The interval of halves is over splits, not over items.
    """
    rows = [
        (question, name, estimate.value, estimate.low, estimate.high, estimate.n, estimate.reason)
        for question in questions
        for name, estimate in _estimates(ratings[ratings["question"] == question], seed).items()
    ]
    return pd.DataFrame(rows, columns=["question", "statistic", "value", "low", "high", "n", "reason"])


def _estimates(ratings: pd.DataFrame, seed: int) -> dict[str, Estimate]:
    if ratings.empty:
        return {}
    plain = ratings[["pair_id", "rater_id"]].astype(str).assign(value=ratings["value"].to_numpy(np.float64))
    in_sds = plain.assign(value=z_scores(plain)).dropna()
    estimates = {f"ICC({_title(form)})": icc(plain, form) for form in typing.get_args(Form)}
    estimates |= {
        f"ICC({_title(form)}) of z-scores": icc(in_sds, form) if len(in_sds) else Estimate.undefined("no rater varies")
        for form in typing.cast("tuple[Form, ...]", ("1", "1k"))
    }
    splits = int(np.clip(_SHUFFLED // len(plain), *_SPLITS))
    halves = split_half_reliability(plain, rng=np.random.default_rng(seed), n_splits=splits)
    return estimates | {"split-half (Spearman-Brown)": halves}


def _title(form: str) -> str:
    return form.replace("k", ", k")


def truth_table(
    answers: pd.DataFrame, questions: Collection[QuestionScale], right: Mapping[str, Mapping[str, object]]
) -> pd.DataFrame:
    """A row a question, method and number: how often majority and Dawid-Skene name the label that is known to be right.

    `answers` are those that count, of items whose truth is known and others, from which Dawid-Skene learns too;
    `right` has the right answers by item and question. An item without a majority counts as wrong. Columns: question,
    method, statistic (accuracy, or F1 of a label of two), value, low, high (Wilson's, of accuracy), n (items whose
    truth is known), reason. Empty where no label is known.
    """
    rows = []
    for question in questions:
        true = pd.Series({item: of_item[question.name] for item, of_item in right.items() if question.name in of_item})
        asked_about = answers[answers["question"] == question.name]
        true = true[true.index.isin(asked_about["pair_id"].astype(str))]
        if question.kind != "label" or true.empty:
            continue
        votes = asked_about[["pair_id", "rater_id"]].astype(str).assign(value=asked_about["answer"].astype(str))
        for method, infer in _METHODS.items():
            labels = infer(votes).labels.reindex(true.index)
            for name, estimate in _correctness(labels, true, question.labels).items():
                rows.append((question.name, method, name, *_numbers(estimate), len(true), estimate.reason))
    return pd.DataFrame(rows, columns=["question", "method", "statistic", "value", "low", "high", "n", "reason"])


def _numbers(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def _correctness(labels: pd.Series, true: pd.Series, classes: Sequence[str]) -> dict[str, Estimate]:
    """Accuracy, and of two classes F1 of each."""
    hits = np.asarray(labels == true, np.float64)
    low, high = wilson(over_pairs(hits, np.ones(len(hits))), len(hits))
    reason = "one item has no spread" if len(hits) == 1 else ""
    estimates = {"accuracy": Estimate(value=float(hits.mean()), low=float(low), high=float(high), reason=reason)}
    for label in classes if len(classes) == 2 else ():
        both, either = ((labels == label) & (true == label)).sum(), (labels == label).sum() + (true == label).sum()
        estimates[f"F1 of {label}"] = (
            Estimate.alone(float(2 * both / either), "F1 has no interval here")
            if either
            else Estimate.undefined("no item has it, nor is said to")
        )
    return estimates
