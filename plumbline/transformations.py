"""The eight transformations as data (HTEB, Table 1 and appendix D), and the language draws.

Every draw is a pure function of the seed and of what it is drawn for, so that a re-run, a resumed run or
another order of work gives the same languages; a hash decides, so consecutive seeds share nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Axis = Literal["lexical_stylistic", "length", "language"]
AXES: tuple[Axis, ...] = ("lexical_stylistic", "length", "language")
ORIGINAL = "original"

# HTEB, appendix D: the pools, in the paper's order; the source language is always left out.
TARGETS = ("es", "fr", "de", "tr", "ar")
PIVOTS = ("en", "es", "fr", "de", "tr", "ar")


@dataclass(frozen=True)
class Transformation:
    """One way to change a text.

    `prompts` are the calls in order (names of files in `prompts/`); each call but the last feeds the next.
    `draw` says what its language is drawn for: nothing, each text, or a whole run (dataset and seed).
    `pool` are the languages drawn from. `drawn_call` is the call that gets the drawn language as
    `target_language`; all other calls get the text's own language.
    """

    name: str
    axis: Axis
    prompts: tuple[str, ...]
    draw: Literal["none", "text", "run"] = "none"
    pool: tuple[str, ...] = ()
    drawn_call: int = 0

    def language(self, *, seed: int, dataset: str, text: str, source: str) -> str | None:
        """The drawn language (a code), or None where this transformation draws none.

        `text` is in NFC, `source` its language code. For `draw == "run"` the text plays no part, for
        `draw == "text"` the data set plays none: equal texts in two data sets are transformed once. A run draws one
        language for all its texts; those that are in this language already share a second draw, so a data set of
        several languages has one target for all others.
        """
        if self.draw == "none":
            return None
        others = [language for language in self.pool if language != source]
        if self.draw == "text":
            return draw_from(others, self.name, seed, text)
        drawn = draw_from(self.pool, self.name, seed, dataset)
        return drawn if drawn != source else draw_from(others, self.name, seed, dataset)

    def call_languages(self, source: str, drawn: str | None) -> tuple[str, ...]:
        """The language that each call is told to answer in, in order (codes)."""
        return tuple(
            drawn if drawn is not None and call == self.drawn_call else source for call in range(len(self.prompts))
        )

    def output_language(self, source: str, drawn: str | None) -> str:
        """The language that the output should be in (a code)."""
        return self.call_languages(source, drawn)[-1]


def draw_from(pool: Sequence[str], *what_for: str | int) -> str:
    """One element of `pool`, decided by SHA-256 over `what_for`; uniform to within 2**-60."""
    digest = hashlib.sha256(json.dumps(["draw-v1", *what_for], ensure_ascii=False).encode()).digest()
    return pool[int.from_bytes(digest[:8], "big") % len(pool)]


TRANSFORMATIONS: dict[str, Transformation] = {
    t.name: t
    for t in (
        Transformation("paraphrasing", "lexical_stylistic", ("paraphrasing",)),
        Transformation("backtranslation", "lexical_stylistic", ("translation", "translation"), "text", PIVOTS),
        Transformation("style_change", "lexical_stylistic", ("style_change",)),
        Transformation("expansion", "length", ("expansion",)),
        Transformation("summarisation", "length", ("summarisation",)),
        Transformation("summarised_expansion", "length", ("expansion", "summarisation")),
        Transformation("translation", "language", ("translation",), "run", TARGETS),
        Transformation("cross_translation", "language", ("translation",), "text", TARGETS),
    )
}
