"""Labels to choose, one or several: shares of labels, and agreement on labels and on sets of labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from annotation.questions.question import AND, LEFT_OUT, Question, Value, labels_of
from annotation.questions.summary import Coefficient, MeanOfAnswers, Share
from plumbline.errors import nearest
from plumbline.statistics import agreement
from plumbline.statistics.estimates import Estimate, Floats
from plumbline.statistics.group_sequential import ALPHA, FEW, repeated_interval
from plumbline.statistics.truth import Truth, dawid_skene, majority
from plumbline.study.campaign import AcceptanceSpec, RuleSpec, SimulatedRater
from plumbline.words import trim

_METHODS: Mapping[str, Callable[[pd.DataFrame], Truth]] = {"majority": majority, "Dawid-Skene": dawid_skene}


@dataclass(frozen=True)
class LabelledQuestion(Question):
    """A question whose answers name labels."""

    has_labels: ClassVar[bool] = True
    away: ClassVar[tuple[float, ...]] = (-0.1, -0.05, 0.0, 0.05, 0.1)

    def wrong(self, value: Value, *, complete: bool = True) -> str:
        if not isinstance(value, str) or not value:
            return super().wrong(value)
        named = labels_of(value)
        if unknown := [name for name in named if name not in self.labels]:
            return f"the question has no label {unknown[0][:60]!r}; its labels are {', '.join(self.labels)}"
        if fault := self._wrong_number(value, named, complete=complete):
            return fault
        return f"the answer {value[:60]!r} names a label twice" if len(set(named)) < len(named) else ""

    def _wrong_number(self, value: str, named: Sequence[str], *, complete: bool) -> str:
        return ""

    def _of_list(self, value: Any) -> str:
        try:
            return self._in_order([str(label) for label in value])
        except TypeError:
            return str(value)

    def _in_order(self, named: Sequence[str]) -> str:
        in_order = [label for label in self.labels if label in named]
        return AND.join([*in_order, *(name for name in named if name not in in_order)])

    def read_words(self, text: str, names: Mapping[str, str]) -> Value:
        return self._in_order([names.get(part.casefold(), part.replace(" ", "-")) for part in self._parts(text, names)])

    def _parts(self, text: str, names: Mapping[str, str]) -> Sequence[str]:
        return [trim(text)]

    def has(self, answer: str, label: str) -> bool:
        """Return whether an answer names a label."""
        return label in labels_of(answer)

    def numbers(self, ratings: pd.DataFrame, label: str = "") -> Floats:
        return np.array([self.has(answer, label) for answer in ratings["answer"].astype(str)], np.float64)

    def _unjudged(self, rule: RuleSpec) -> str:
        if not rule.label:
            return f"a {self.called} has no mean; give the `label` whose share is judged"
        if rule.label not in self.labels:
            return f"no label is called {rule.label!r}; {nearest(rule.label, list(self.labels))}"
        return ""

    def _statistics(
        self, ratings: pd.DataFrame, rule: AcceptanceSpec, seed: int | None, level: float | None
    ) -> dict[str, Any]:
        return {
            "shares": self.shares(ratings, rule.interval, level),
            "coefficients": self.coefficients(ratings, seed) if len(ratings) else (),
        }

    def shares(self, ratings: pd.DataFrame, interval: str, level: float | None = None) -> tuple[Share, ...]:
        """Return each label's share, or share of first ranks, with the rule's interval.

        `level` is the one-sided level of a look after a block.
        """
        none, level = Estimate.undefined("no ratings"), ALPHA if level is None else level
        return tuple(
            Share(
                label=label,
                share=MeanOfAnswers(self.judged(ratings, label), interval).estimate(level) if len(ratings) else none,
            )
            for label in self.labels
        )

    def answers(self, ratings: pd.DataFrame) -> agreement.Answers:
        """Return the answers, of which there is one or more, as categories: each different one by its place."""
        texts = ratings["answer"].astype(str)
        points = self._categories(texts)
        position = texts.map({answer: number for number, answer in enumerate(points)}).to_numpy()
        pair, rater = pd.factorize(ratings["pair_id"])[0].astype(np.int64), agreement.rater_numbers(ratings["rater_id"])
        return agreement.Answers(pair, rater, position.astype(np.int64), tuple(range(len(points))))

    def _categories(self, texts: pd.Series) -> Sequence[str]:
        return sorted(set(texts))

    def coefficients(self, ratings: pd.DataFrame, seed: int | None) -> tuple[Coefficient, ...]:
        """Return the agreement on answers, of which there is one or more; without a seed nothing is resampled."""
        raise NotImplementedError

    def truth(self, right: Value, level: float) -> float:
        if right is not None:
            return float(self.labels.index(labels_of(str(right))[0]))
        return (1 - level) * (len(self.labels) - 1)

    def simulated(self, rater: SimulatedRater, truth: float | None, noise: Floats) -> Value:
        return None if truth is None else self._nearest(truth - rater.bias + noise)

    def _nearest(self, felt: Floats) -> str:
        raise NotImplementedError

    def _felt(self, felt: Floats) -> list[str]:
        """Return the labels nearest to two places."""
        return [self.labels[int(number)] for number in np.clip(np.round(felt), 0, len(self.labels) - 1)]


def of_labels(answers: agreement.Answers, seed: int | None, label: str = "") -> tuple[Coefficient, ...]:
    """Return the agreement on categories: AC1, Fleiss' kappa and nominal alpha."""
    alpha = LEFT_OUT if seed is None else agreement.nominal_alpha(answers, np.random.default_rng(seed))
    estimates = {
        "AC1": agreement.ac1(answers),
        "Fleiss' kappa": agreement.fleiss_kappa(answers),
        "alpha (nominal)": alpha,
    }
    return tuple(Coefficient(name=name, label=label, estimate=estimate) for name, estimate in estimates.items())


@dataclass(frozen=True)
class SingleLabelQuestion(LabelledQuestion, kind="label"):
    """A question that is answered with one label."""

    picks_one: ClassVar[bool] = True
    argilla: ClassVar[str] = "label_selection"
    asks_for: ClassVar[str] = "one of"
    heds: ClassVar[tuple[int, int]] = (1, 7)

    def _wrong_number(self, value: str, named: Sequence[str], *, complete: bool) -> str:
        several = f"the answer {value[:60]!r} has {len(named)} labels, but the question takes one"
        return "" if len(named) == 1 else several

    def instrument(self, names: Sequence[str]) -> dict[str, Any]:
        return super().instrument(names) | {"size": str(len(names)), "scale_values": "; ".join(names)}

    def _categories(self, texts: pd.Series) -> Sequence[str]:
        return self.labels

    def preferences(self, answer: str, labels: Sequence[str]) -> Iterator[tuple[str, str, int]]:
        """Yield the chosen label with each other; all with one another, as ties, where none of them is chosen."""
        if answer in labels:
            yield from ((answer, label, 1) for label in labels if label != answer)
        else:
            yield from ((first, second, 0) for first, second in combinations(labels, 2))

    def _nearest(self, felt: Floats) -> str:
        return self._felt(felt)[0]

    def coefficients(self, ratings: pd.DataFrame, seed: int | None) -> tuple[Coefficient, ...]:
        """Return AC1, Fleiss' kappa and nominal alpha."""
        return of_labels(self.answers(ratings), seed)

    def accuracy(self, answers: pd.DataFrame, true: pd.Series) -> Iterator[tuple[str, str, Estimate]]:
        """Yield accuracy, and for two labels F1 of each, of majority and Dawid-Skene.

        Dawid-Skene learns from all answers, of pairs with and without a right one. A pair without a majority counts as
        wrong.
        """
        votes = answers[["pair_id", "rater_id"]].astype(str).assign(value=answers["answer"].astype(str))
        for method, infer in _METHODS.items():
            if method != "majority" and agreement.number_of_raters(votes["rater_id"]) is None:
                yield method, "accuracy", Estimate.undefined(agreement.UNKNOWN_RATERS)
                continue
            for name, estimate in self._correctness(infer(votes).labels.reindex(true.index), true).items():
                yield method, name, estimate

    def _correctness(self, labels: pd.Series, true: pd.Series) -> dict[str, Estimate]:
        hits = np.asarray(labels == true, np.float64)
        low, high = repeated_interval(hits, (0, 1), ALPHA)
        reason = FEW if math.isnan(low) else ""
        estimates = {"accuracy": Estimate(value=float(hits.mean()), low=low, high=high, reason=reason)}
        for label in self.labels if len(self.labels) == 2 else ():
            both, either = ((labels == label) & (true == label)).sum(), (labels == label).sum() + (true == label).sum()
            estimates[f"F1 of {label}"] = (
                Estimate.alone(float(2 * both / either), "F1 has no interval here")
                if either
                else Estimate.undefined("no item has this label, and no answer gives it")
            )
        return estimates


@dataclass(frozen=True)
class MultiLabelQuestion(LabelledQuestion, kind="multi_label"):
    """A question that is answered with one label or several, kept in the question's order."""

    argilla: ClassVar[str] = "multi_label_selection"
    asks_for: ClassVar[str] = "any of"
    heds: ClassVar[tuple[int, int]] = (2, 7)

    @property
    def called(self) -> str:
        return "list of labels"

    def _of_text(self, text: str) -> str:
        named = labels_of(text)
        return text if len(set(named)) < len(named) else self._in_order(named)

    def _parts(self, text: str, names: Mapping[str, str]) -> Sequence[str]:
        # A label's words may hold commas.
        return [text] if text.casefold() in names else [trim(part) for part in text.replace(";", ",").split(",")]

    def ticked(self, names: Sequence[str]) -> str:
        return AND.join(names)

    def given(self, value: Value) -> Any:
        return labels_of(str(value))

    def instrument(self, names: Sequence[str]) -> dict[str, Any]:
        values = f"{'; '.join(names)} (any number of them)"
        return super().instrument(names) | {"size": str(2 ** len(names) - 1), "scale_values": values}

    def rule_fault(self, rule: RuleSpec, *, by_blocks: bool, with_agreement: bool) -> str:
        fault = super().rule_fault(rule, by_blocks=by_blocks, with_agreement=with_agreement)
        none = "min_ac2 does not apply to several labels; leave it out" if with_agreement else ""
        return fault or none

    def coefficients(self, ratings: pd.DataFrame, seed: int | None) -> tuple[Coefficient, ...]:
        """Return alpha with MASI's distance, and for each label AC1 and nominal alpha."""
        answers = self.answers(ratings)
        sets = [frozenset(labels_of(answer)) for answer in self._categories(ratings["answer"].astype(str))]
        masi = LEFT_OUT if seed is None else agreement.masi_alpha(answers, sets, np.random.default_rng(seed))
        each = (of_labels(self.judged(ratings, label), seed, label)[::2] for label in self.labels)
        return (Coefficient(name="alpha (MASI)", estimate=masi), *(part for parts in each for part in parts))

    def _nearest(self, felt: Floats) -> str:
        return self._in_order(self._felt(felt))
