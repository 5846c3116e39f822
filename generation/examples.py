"""Functions that transform texts, as examples to copy: `studies/own.yaml` uses them (docs/transformations.md).

Each gives the same text for the same arguments, whatever was asked before, and raises ValueError for a text that it can
do nothing with, which leaves that text without an output.
"""

from __future__ import annotations

import random
import re

_WORD = re.compile(r"[^\W\d_]+")
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|am|can|could|will|would|should|must|may|might|has|have|had|do|does|did)\b(?! not)",
    re.IGNORECASE,
)
_NOT = re.compile(r" not\b|n't\b", re.IGNORECASE)


def typos(text: str, *, language: str, seed: int) -> str:
    """The text with two neighbouring letters swapped in every tenth word, and in one word at least."""
    words = [word for word in _WORD.finditer(text) if _swaps(word.group())]
    if not words:
        raise ValueError("no word has two different letters inside")
    draw = _draws(text, seed)
    for word in draw.sample(words, max(1, len(words) // 10)):
        place = word.start() + draw.choice(_swaps(word.group()))
        text = f"{text[:place]}{text[place + 1]}{text[place]}{text[place + 2 :]}"
    return text


def casing(text: str, *, language: str, seed: int) -> str:
    """The text in capitals; what is in capitals already in small letters."""
    changed = text.upper() if text != text.upper() else text.lower()
    if changed == text:
        raise ValueError("its letters have no other case")
    return changed


def word_order(text: str, *, language: str, seed: int) -> str:
    """The text with two neighbouring words exchanged, one pair for every five words."""
    words = text.split()
    places = [n for n in range(len(words) - 1) if words[n] != words[n + 1]]
    if not places:
        raise ValueError("it has no two different words beside each other")
    for place in _draws(text, seed).sample(places, max(1, len(places) // 5)):
        words[place], words[place + 1] = words[place + 1], words[place]
    changed = " ".join(words)
    if changed == " ".join(text.split()):
        raise ValueError("its words came back into their order")
    return changed


def negation(text: str, *, language: str, seed: int) -> str:
    """An English text with a `not` more, or one less: it says the opposite of its first statement."""
    if language != "en":
        raise ValueError("it is not English")
    if _NOT.search(text):
        return _NOT.sub("", text, count=1)
    if _AUXILIARY.search(text):
        return _AUXILIARY.sub(lambda found: f"{found.group()} not", text, count=1)
    return f"It is not true that {text[0].lower()}{text[1:]}"


def _swaps(word: str) -> list[int]:
    """Where two neighbouring letters of a word differ, its first letter left alone."""
    return [n for n in range(1, len(word) - 1) if word[n].lower() != word[n + 1].lower()]


def _draws(text: str, seed: int) -> random.Random:
    """Random numbers of a text and seed; Python makes the same of the same words on every machine."""
    return random.Random(f"{seed} {text}")  # noqa: S311 (no secret)
