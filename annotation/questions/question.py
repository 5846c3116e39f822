"""What every kind of question can do; a kind is a subclass that says what it does otherwise.

A subclass with a `kind` is a kind that rubrics can name: `class SingleLabelQuestion(Question, kind="label")`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from annotation.questions.summary import Summary
from plumbline.statistics.agreement import Answers, number_of_raters, rater_numbers
from plumbline.statistics.estimates import Estimate, Floats
from plumbline.study.campaign import AcceptanceSpec, RuleSpec, SimulatedRater
from plumbline.words import trim

Value = float | str | None  # an answer in its stored form; None if there is none
Meanings = Mapping[float | str, str]  # words of points or of labels, in one language
ArgillaOptions = tuple[tuple[Value, str], ...]  # values that Argilla offers, with their words
AND, BEFORE, EQUALS = ", ", " > ", " = "  # between the labels of an answer
AT_END = "is an end of the scale, so a look after a block can decide on one side only; give a value between the ends"
LEFT_OUT = Estimate.undefined("not computed: no decision rests on it")

#: Every kind of question, by the name that rubrics give it.
KINDS: dict[str, type[Question]] = {}


def labels_of(answer: str) -> list[str]:
    """The labels that a stored answer names, in its order."""
    return [name for name in re.split(r"[,>=\s]+", answer) if name]


@dataclass(frozen=True)
class Question:
    """A question as raters answer it: without its words, which are the rubric's (`annotation.questions.entries`)."""

    name: str
    scale: tuple[float, ...] = ()  #: of the kinds that have points (`plumbline.scales`)
    labels: tuple[str, ...] = ()  #: of the kinds that have some, in their order
    required: bool = True
    pools: tuple[str, ...] = ()  #: that it is asked about; empty for all
    lower_is_better: bool | None = None  #: or whether it asks for the worst; None if only the study's rules tell
    worst_of: str = ""  #: the question for the best, to which its choices are added

    kind: ClassVar[str]
    has_points: ClassVar[bool] = False  #: whether answers are points of a scale, which have a mean
    has_labels: ClassVar[bool] = False  #: whether answers name labels
    #: Whether raters answer in their own words, which are read and not compared, and may name people.
    free_text: ClassVar[bool] = False
    away: ClassVar[tuple[float, ...]] = ()  #: true values that a plan tries, from a rule's limit
    picks_one: ClassVar[bool] = False  #: whether an answer is one of the labels
    argilla: ClassVar[str]  #: Argilla's type of question
    asks_for: ClassVar[str]  #: what raters are asked for, before the labels
    heds: ClassVar[tuple[int, int]]  #: how it is shown and answered, as options of HEDS's form
    share_column: ClassVar[str] = "share"  #: what a label's share is called in a column

    def __init_subclass__(cls, kind: str = "") -> None:
        """Make the class a kind that rubrics can name."""
        if kind:
            cls.kind = kind
            KINDS[kind] = cls

    @classmethod
    def of(
        cls, name: str, scale: tuple[float, ...], labels: tuple[str, ...], required: bool | None, pools: tuple[str, ...]
    ) -> Question:
        """Return the question of a rubric; `scale` is its own or the rubric's, `required` None if it is not set."""
        needed = not cls.free_text if required is None else required
        return cls(name, scale if cls.has_points else (), labels, needed, pools)

    def asked_in(self, pool: str) -> bool:
        """Return whether a pool is asked the question."""
        return not self.pools or pool in self.pools

    @property
    def called(self) -> str:
        """The kind of answer in a sentence."""
        return self.kind

    # Its answers: from our own and others' files and pages to their stored form.

    def wrong(self, value: Value, *, complete: bool = True) -> str:
        """Return why a value is no answer; empty if it is one. A draft (not `complete`) need not be complete."""
        return "" if isinstance(value, str) and value else f"the answer {value!r} is not a {self.called}"

    def wrong_among(self, answers: pd.DataFrame) -> str:
        """Return why one of the stored ratings of the question is no answer; empty if all are."""
        return next((fault for answer in answers["answer"].unique() if (fault := self.wrong(answer))), "")

    def kept(self, value: Any) -> Value:
        """Return an answer from Argilla or from our files in its stored form; text if it is malformed."""
        if value is None:
            return None
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return int(value)  # which may be too large for a float
        if isinstance(value, (float, np.floating)):
            return int(value) if float(value).is_integer() else float(value)
        stored = self._of_text(trim(value)) if isinstance(value, str) else self._of_list(value)
        return None if stored == "" else stored  # 0 is an answer

    def _of_text(self, text: str) -> Value:
        return text

    def _of_list(self, value: Any) -> str:
        return str(value)

    def given(self, value: Value) -> Any:
        """A stored answer as Argilla takes it."""
        return value

    def preferences(self, answer: str, labels: Sequence[str]) -> Iterator[tuple[str, str, int]]:
        """Yield each two of these labels between which an answer chooses, with 1 for the first, -1, or 0 for a tie."""
        yield from ()

    def read_words(self, text: str, names: Mapping[str, str]) -> Value:
        """Return a cell's answer in its stored form; `names` are the labels by their folded words.

        What cannot be read is returned as it is, and refused later.
        """
        return self.kept(text)

    def sent(self, text: str) -> Value:
        """Return the stored form of a field that a form sends."""
        return self.kept(text)

    def ticked(self, names: Sequence[str]) -> str:
        """Return the field for the boxes that were ticked in a form of one box for each answer."""
        return names[0] if len(names) == 1 else ""

    def right(self, cell: Any) -> Value:
        """Return a right answer from a file in its stored form. Raises ValueError for what is no answer."""
        if self.free_text:
            raise ValueError("asks for a text, which has no right answer")
        value = self.kept(cell)
        if fault := self.wrong(value):
            raise ValueError(fault)
        return value

    def is_right(self, value: Value, right: Value, within: float) -> bool:
        """Return whether an answer is right; points may be off by `within`."""
        return value == right

    def wrong_words(self, within: float) -> str:
        """Return the words for an answer that is not right; empty if no answer is wrong."""
        return "wrong"

    # Its rubric, and the pages that ask it.

    def entry_faults(self, described: tuple[float, ...], start: float | None) -> Iterator[str]:
        """Yield faults of its entry in a rubric: the points that have words, and where its slider starts."""
        if start is not None:
            yield f"question {self.name!r}: start {start} is for sliders only, and must be on the scale"

    def description(self, hint: str, meanings: Meanings) -> str:
        """Return the words below its title; labels have their words on their buttons."""
        return hint

    def guideline(self, option: float | str, meaning: str) -> str:
        """Return a line of the guidelines on a point or a label, in Markdown."""
        return f"- {meaning}"

    def anchored(self, title: str, meanings: Meanings, most: int) -> str:
        """Return its title of at most so many letters for pages that show no words of points."""
        return title

    def answer_in_words(self, value: Value, meanings: Meanings) -> str:
        """Return an answer as raters read it."""
        return AND.join(meanings[name] for name in labels_of(str(value)))

    def on_page(self, meanings: Meanings, start: float | None, previous: tuple[str, Sequence[str]]) -> dict[str, Any]:
        """Return what the rating page shows of it, as JSON that `rate.js` reads.

        Args:
            meanings: the words of its points or labels.
            start: where its slider starts.
            previous: name and labels of the question before it.

        Raises:
            StudyError: for a scale that neither buttons nor a slider can show.
        """
        return {"kind": self.kind, "points": list(meanings.items())}

    def in_argilla(self, meanings: Meanings) -> tuple[str, ArgillaOptions]:
        """Return Argilla's type of question, and the options that it offers."""
        return self.argilla, tuple(meanings.items())

    @property
    def keys(self) -> tuple[float, ...]:
        """The points that are typed as they are on Argilla's page; empty where options are numbered."""
        return ()

    def in_a_sentence(self) -> str:
        """Return what raters are asked for: `a rating from 1 to 5`."""
        return f"{self.asks_for} {', '.join(self.labels)}".strip()

    def instrument(self, names: Sequence[str]) -> dict[str, Any]:
        """Return its scale's size, values and form as HEDS asks for them; `names` are the words of its labels."""
        presented, response = self.heds
        return {"size": "N/A", "scale_values": "N/A", "task": "N/A", "presented": presented, "response": response}

    # Its rules.

    @classmethod
    def threshold_rules(cls, name: str, rule: AcceptanceSpec) -> tuple[RuleSpec, ...]:
        """Return the rules that a study's one threshold makes for such a question: one or none."""
        return ()

    @property
    def judged_scale(self) -> tuple[float, ...]:
        """The least, the greatest and all other values that a rule's number can take in one answer."""
        return (0, 1)

    def rule_fault(self, rule: RuleSpec, *, by_blocks: bool, with_agreement: bool) -> str:
        """Return why a rule cannot judge it; empty if it can.

        Args:
            rule: a rule of the study on this question.
            by_blocks: whether the rule looks after blocks.
            with_agreement: whether raters must agree (`acceptance.min_ac2`).
        """
        if fault := self._unjudged(rule):
            return fault
        if by_blocks and rule.limit in (self.judged_scale[0], self.judged_scale[-1]):
            return f"{rule.limit:g} {AT_END}"
        optional = "the question is optional, so skipped answers would affect the verdict; make it required"
        return "" if self.required else optional

    def _unjudged(self, rule: RuleSpec) -> str:
        return f"a rule cannot judge a {self.kind}; rules judge ratings and labels"

    # Its statistics. Frames have the columns of `ratings.parquet`, and rows of this question only.

    def numbers(self, ratings: pd.DataFrame, label: str = "") -> Floats:
        """Return the number of each answer that a rule judges: its point, or whether it has the label."""
        raise NotImplementedError

    def judged(self, ratings: pd.DataFrame, label: str = "") -> Answers:
        """Return the answers as the numbers that a rule judges."""
        pair = pd.factorize(ratings["pair_id"].array)[0]
        return Answers.of_values(
            pair, rater_numbers(ratings["rater_id"].array), self.numbers(ratings, label), self.judged_scale
        )

    def summary(
        self, ratings: pd.DataFrame, rule: AcceptanceSpec, seed: int | None, level: float | None = None
    ) -> Summary:
        """Return the numbers of its counting answers.

        Args:
            ratings: those that count.
            rule: gives the interval, and the threshold whose P is computed.
            seed: that of resampling pairs; None leaves out numbers on which no decision rests.
            level: the one-sided level of a look after a block, whose P comes from the looks and is NaN here.
        """
        none = Estimate.undefined(self.unscaled)
        return Summary.model_validate(
            {
                "question": self.name,
                "kind": self.kind,
                "n_pairs": ratings["pair_id"].nunique(),
                "n_raters": number_of_raters(ratings["rater_id"]),
                "n_ratings": len(ratings),
                **dict.fromkeys(("mean", "sd", "low", "high", "probability"), math.nan),
                "interval": rule.interval if level is None else "blocks",
                "interval_reason": self.unscaled,
                **dict.fromkeys(("ac2", "alpha", "kappa", "raw"), none),
                **self._statistics(ratings, rule, seed, level),
            }
        )

    @property
    def unscaled(self) -> str:
        """Why it has no mean, AC2, alpha and kappa."""
        return f"a {self.kind.replace('_', '-')} has none"

    def _statistics(
        self, ratings: pd.DataFrame, rule: AcceptanceSpec, seed: int | None, level: float | None
    ) -> dict[str, Any]:
        """The fields of a summary that this kind of question has."""
        return {}

    @classmethod
    def agreement(cls, summary: Summary) -> dict[str, Estimate]:
        """Return the coefficients of agreement in a summary, by name; first the one that a rule can ask for."""
        return {f"{part.name} {part.label}".strip(): part.estimate for part in summary.coefficients}

    def accuracy(self, answers: pd.DataFrame, true: pd.Series) -> Iterator[tuple[str, str, Estimate]]:
        """Yield (method, number, estimate) of raters' answers together, beside the right ones (by pair)."""
        return iter(())

    def points_twice(self, both: pd.DataFrame) -> Answers | None:
        """Return the points that raters gave twice (`value_first`, `value`); None if answers are no points."""
        return None

    # Made-up raters.

    def truth(self, right: Value, level: float) -> float | None:
        """Return the true value of a rehearsal: the right answer's, or that at a level from 0 (worst) to 1 (best)."""
        return None

    def simulated(self, rater: SimulatedRater, truth: float | None, noise: Floats) -> Value:
        """Return a simulated rater's answer; None for no answer. `noise` are two normal numbers of the rater."""
        return None
