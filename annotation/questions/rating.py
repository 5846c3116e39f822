"""Ratings: points of a scale, shown as buttons, or on a fine scale as a slider."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from annotation.questions.question import LEFT_OUT, ArgillaOptions, Meanings, Question, Value
from annotation.questions.summary import MeanOfAnswers, Summary
from plumbline.errors import StudyError
from plumbline.scales import DECIMAL, EQUAL, Continuous, as_number, is_fine, on_scale
from plumbline.statistics.agreement import Answers, gwet_ac2, krippendorff_alpha, mean_kappa, raw_agreement
from plumbline.statistics.estimates import Estimate, Floats
from plumbline.statistics.group_sequential import ALPHA
from plumbline.study.campaign import AcceptanceSpec, RuleSpec, SimulatedRater
from plumbline.words import count

MOST_RATED = 10  # the highest point of a rating on Argilla's page
#: Fields of a summary that have agreement, and what tables call them.
COEFFICIENTS = {"ac2": "AC2", "alpha": "alpha", "kappa": "kappa", "raw": "raw agreement"}
_USUAL_RANGE = 4  # of the scale from 1 to 5, in whose points simulated raters err
_STEPS = 100  # of a slider on a scale without points
_MOST_LISTED = 11  # points that a sheet lists


@dataclass(frozen=True)
class RatingQuestion(Question, kind="rating"):
    """A question that is answered with a point of a scale."""

    has_points: ClassVar[bool] = True
    away: ClassVar[tuple[float, ...]] = (-0.5, -0.25, 0.0, 0.25, 0.5)
    argilla: ClassVar[str] = "rating"
    heds: ClassVar[tuple[int, int]] = (1, 2)

    @classmethod
    def of(
        cls, name: str, scale: tuple[float, ...], labels: tuple[str, ...], required: bool | None, pools: tuple[str, ...]
    ) -> RatingQuestion:
        kind = SliderQuestion if is_fine(scale) and cls is RatingQuestion else cls
        return kind(name, scale, (), required is not False, pools)

    def wrong(self, value: Value, *, complete: bool = True) -> str:
        quoted = value[:60] if isinstance(value, str) else value
        return "" if value in self.scale else f"the answer {quoted!r} is not on the {self._ends}"

    @property
    def _ends(self) -> str:
        return f"scale {self.scale[0]} to {self.scale[-1]}"

    def wrong_among(self, answers: pd.DataFrame) -> str:
        fits = on_scale(answers["value"].to_numpy(np.float64, na_value=np.nan), self.scale).all()
        return "" if fits else f"submitted values are not on the {self._ends}"

    def _of_text(self, text: str) -> Value:
        return as_number(text) if DECIMAL.fullmatch(text) else text

    def given(self, value: Value) -> Any:
        return str(value) if self._has_buttons else value

    @property
    def _has_buttons(self) -> bool:
        """Whether Argilla shows its points as labels: Argilla's own ratings are whole numbers from 0 to 10."""
        return not all(isinstance(point, int) and 0 <= point <= MOST_RATED for point in self.scale)

    def sent(self, text: str) -> Value:
        value = self.kept(text)
        return value if value is None or str(value) == text else text

    def is_right(self, value: Value, right: Value, within: float) -> bool:
        return abs(float(value or 0) - float(right or 0)) <= within + EQUAL

    def wrong_words(self, within: float) -> str:
        return f"off by more than {count(within, 'point')}"

    def entry_faults(self, described: tuple[float, ...], start: float | None) -> Iterator[str]:
        if not self.scale:
            yield f"question {self.name!r} is a rating without a scale; give the question or the rubric one"
        if described not in (tuple(self.scale), self.scale[:1] + self.scale[-1:]):
            yield self._badly_described("all points or none")
        yield from super().entry_faults(described, start)

    def _badly_described(self, between: str) -> str:
        return f"question {self.name!r} must describe both ends of its scale, and between them {between}"

    def description(self, hint: str, meanings: Meanings) -> str:
        points = "; ".join(f"{point} = {meaning}" for point, meaning in meanings.items() if meaning != str(point))
        return f"{hint} {points}.".lstrip() if points else hint

    def guideline(self, option: float | str, meaning: str) -> str:
        return f"- **{option}** {meaning}"

    def anchored(self, title: str, meanings: Meanings, most: int) -> str:
        points = [point for point in meanings if not isinstance(point, str)]
        longer = f"{title} ({'; '.join(f'{point} = {meanings[point]}' for point in (min(points), max(points)))})"
        return longer if len(longer) <= most else title

    def answer_in_words(self, value: Value, meanings: Meanings) -> str:
        meaning = meanings.get(value, "") if value is not None else ""
        return f"{value}: {meaning}" if meaning else str(value)

    def on_page(self, meanings: Meanings, start: float | None, previous: tuple[str, Sequence[str]]) -> dict[str, Any]:
        return {"kind": self.kind, "points": [(point, meanings.get(point, "")) for point in self.scale]}

    def in_argilla(self, meanings: Meanings) -> tuple[str, ArgillaOptions]:
        if not self._has_buttons:
            return self.argilla, tuple((point, "") for point in self.scale)
        words = {point: f"{point} = {meanings[point]}" if point in meanings else str(point) for point in self.scale}
        return "label_selection", tuple((str(point), word) for point, word in words.items())

    @property
    def keys(self) -> tuple[float, ...]:
        return () if self._has_buttons else self.scale

    def in_a_sentence(self) -> str:
        return f"a rating from {self.scale[0]} to {self.scale[-1]}"

    def instrument(self, names: Sequence[str]) -> dict[str, Any]:
        points = [f"{point:g}" for point in self.scale]
        values = f"{points[0]} to {points[-1]}" if len(points) > _MOST_LISTED else ", ".join(points)
        return super().instrument(names) | {"size": str(len(points)), "scale_values": values}

    @classmethod
    def threshold_rules(cls, name: str, rule: AcceptanceSpec) -> tuple[RuleSpec, ...]:
        # Not validated: the threshold may be infinite, so that every mean reaches it.
        return (RuleSpec.model_construct(question=name, at_least=rule.threshold),)

    @property
    def judged_scale(self) -> tuple[float, ...]:
        return self.scale

    def _unjudged(self, rule: RuleSpec) -> str:
        if rule.label:
            return "a rating has no labels; leave `label` out, for the mean"
        fits = self.scale[0] <= rule.limit <= self.scale[-1]
        return "" if fits else f"{rule.limit:g} is outside the {self._ends}"

    def numbers(self, ratings: pd.DataFrame, label: str = "") -> Floats:
        points: Floats = ratings["value"].to_numpy(np.float64, na_value=math.nan)
        return points

    def _statistics(
        self, ratings: pd.DataFrame, rule: AcceptanceSpec, seed: int | None, level: float | None
    ) -> dict[str, Any]:
        answers, mean, probability = self.judged(ratings), Estimate.undefined("no ratings"), math.nan
        if len(ratings):
            rated = MeanOfAnswers(answers, rule.interval)
            mean = rated.estimate(ALPHA if level is None else level)
            one_look = level is None and not rule.rules
            probability = rated.reached(rule.threshold).probability if one_look else math.nan
        resampled = {"alpha": krippendorff_alpha(answers, None), "kappa": LEFT_OUT, "raw": LEFT_OUT}
        if seed is not None:
            resampled = {
                "alpha": krippendorff_alpha(answers, np.random.default_rng(seed)),
                "kappa": mean_kappa(answers),
                "raw": raw_agreement(answers, np.random.default_rng(seed)),
            }
        return {
            "mean": mean.value,
            "sd": float(answers.value.std(ddof=1)) if len(ratings) > 1 else math.nan,
            "low": mean.low,
            "high": mean.high,
            "interval_reason": mean.reason,
            "probability": probability,
            "ac2": gwet_ac2(answers),
            **resampled,
        }

    @classmethod
    def agreement(cls, summary: Summary) -> dict[str, Estimate]:
        return {title: getattr(summary, name) for name, title in COEFFICIENTS.items()}

    def points_twice(self, both: pd.DataFrame) -> Answers:
        complete = both[both["value"].notna() & both["value_first"].notna()]
        return Answers.of_table(complete[["value_first", "value"]].to_numpy(np.float64), self.scale)

    def truth(self, right: Value, level: float) -> float:
        low, high = self.scale[0], self.scale[-1]
        return low + level * (high - low) if right is None else float(right)

    def simulated(self, rater: SimulatedRater, truth: float | None, noise: Floats) -> Value:
        if truth is None:
            return None
        error = (rater.bias + noise[0]) * (self.scale[-1] - self.scale[0]) / _USUAL_RANGE
        felt = int(np.clip(round(truth + error), self.scale[0], self.scale[-1]))
        return min((abs(point - felt), point) for point in self.scale)[1]


class SliderQuestion(RatingQuestion):
    """A rating on a scale without points, or with too many for buttons."""

    argilla: ClassVar[str] = "text"  # which only our own page fills
    heds: ClassVar[tuple[int, int]] = (3, 2)

    def given(self, value: Value) -> Any:
        return str(value)

    def entry_faults(self, described: tuple[float, ...], start: float | None) -> Iterator[str]:
        ends = self.scale[:1] + self.scale[-1:]
        if described[:1] + described[-1:] != ends or any(point not in self.scale for point in described):
            yield self._badly_described("only points of the scale")
        if start is not None and start not in self.scale:
            yield from Question.entry_faults(self, described, start)

    def on_page(self, meanings: Meanings, start: float | None, previous: tuple[str, Sequence[str]]) -> dict[str, Any]:
        low, high = self.scale[0], self.scale[-1]
        steps = [(high - low) / _STEPS]
        if not isinstance(self.scale, Continuous):
            steps = [later - earlier for earlier, later in itertools.pairwise(self.scale)]
        if not all(math.isclose(step, steps[0]) for step in steps):
            raise StudyError(
                f"question {self.name!r}: a scale of {len(self.scale)} points is shown as a slider, which needs equal"
                " steps; write it as {from, to, step}"
            )
        ends = {"low": low, "high": high, "step": steps[0]}
        return {"kind": "slider", "points": list(meanings.items()), "start": start, **ends}

    def in_argilla(self, meanings: Meanings) -> tuple[str, ArgillaOptions]:
        return self.argilla, ()

    def instrument(self, names: Sequence[str]) -> dict[str, Any]:
        if not isinstance(self.scale, Continuous):
            return super().instrument(names)
        values = f"{self.scale[0]:g} to {self.scale[-1]:g}"
        return super().instrument(names) | {"size": "continuous", "scale_values": values}
