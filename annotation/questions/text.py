"""Texts: what raters write in their own words, which is read and not compared."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from annotation.questions.question import Question, Value
from plumbline.statistics.estimates import Floats
from plumbline.study.campaign import SimulatedRater

LONGEST = 2000  # characters of a comment or text from a form


def without_controls(text: str) -> str:
    """Return a text without control characters and lone surrogates, cut at `LONGEST` characters."""
    letters = (letter for letter in text if letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cs"))
    return "".join(letters).strip()[:LONGEST].rstrip()


@dataclass(frozen=True)
class TextQuestion(Question, kind="text"):
    """A question that is answered in words."""

    free_text: ClassVar[bool] = True
    argilla: ClassVar[str] = "text"
    asks_for: ClassVar[str] = "a text"
    heds: ClassVar[tuple[int, int]] = (4, 5)

    def _of_list(self, value: Any) -> str:
        return str(value) if value else ""

    def read_words(self, text: str, names: Mapping[str, str]) -> Value:
        return text

    def sent(self, text: str) -> Value:
        return without_controls(text) or None

    def wrong_words(self, within: float) -> str:
        return ""

    def instrument(self, names: Sequence[str]) -> dict[str, Any]:
        return super().instrument(names) | {"task": "To write a text, which is recorded"}

    @property
    def unscaled(self) -> str:
        return "texts are read, not counted"

    def simulated(self, rater: SimulatedRater, truth: float | None, noise: Floats) -> Value:
        return f"A text by simulated rater {rater.name}" if self.required else None
