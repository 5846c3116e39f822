"""Choices between two outputs: recognised by the question's name and its answers, they are labels and have no mean."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from annotation.imports.answers import AskedScale, ImportedQuestion
from annotation.imports.columns import candidate_columns
from annotation.imports.word_scales import plain
from annotation.questions.wordings import packaged
from plumbline.errors import DataError

LABELS = AskedScale("labels", labels=True)
_WORDS = packaged("imports/words.yaml")["preferences"]
_NAMES, _TIES = frozenset(_WORDS["names"].split()), frozenset(map(plain, _WORDS["ties"]))
_WORST, _BEST = (frozenset(_WORDS[end].split()) for end in ("worst", "best"))
_CANDIDATE = _WORDS["candidates"].replace(" ", "|")
_CHOSEN = re.compile(
    rf"(?:(?:prefer|choose)\s+)?(?:(?:{_CANDIDATE})\s*(?:a|b|1|2|one|two)|a|b|left|right|first|second)"
    r"(?:\s+(?:one|side))?(?:\s+(?:is|was))?(?:\s+(?:a bit|slightly|much|clearly|far))?"
    r"(?:\s+(?:better|preferred|wins))?"
)
_SIDES = {**{letter: side for side, letter in enumerate("abcdefgh")}, **{str(n + 1): n for n in range(8)}}
_SIDES |= {"one": 0, "left": 0, "first": 0, "two": 1, "right": 1, "second": 1}
_CODES = ({"0", "1", "2"}, {"1", "2", "3"}, {"-1", "0", "1"})


def shows_two(columns: Iterable[str]) -> bool:
    """Return whether each row shows two candidates: `output_a` and `output_b`, `summary1` and `summary2`."""
    return bool(candidate_columns(columns))


def is_preference(title: str, answers: Collection[str], *, two: bool) -> bool:
    """Return whether answers choose between two candidates; `two` tells whether each row shows two.

    Raises DataError if numbers may be choices or points of a scale.
    """
    texts = {plain(text) for text in answers if plain(text)}
    codes = {text.strip().removesuffix(".0") for text in answers}
    named = not _NAMES.isdisjoint(_words(title))
    chosen = {text for text in texts if _CHOSEN.fullmatch(text)}
    if chosen and len(texts) > 1 and texts <= chosen | _TIES:
        return True
    if not any(codes <= some for some in _CODES):
        return named and bool(texts & _TIES)
    if two and not named and not re.search(r"(?i)(?:^|[ _.-])[ab12]$", title) and codes != {"0", "1"}:
        ends = f"{min(map(int, codes))}..{max(map(int, codes))}"
        raise DataError(
            f"question {title!r}: {', '.join(sorted(codes, key=int))} may be choices between the two outputs of a row"
            f" or points of a scale; add --scale {title}=labels, or --scale {title}={ends} with the scale's ends"
        )
    return named


def asks_for_worst(title: str) -> bool:
    """Return whether a question's name says that the worst output is chosen, not the best."""
    return not _WORST.isdisjoint(_words(title))


def direction(question: ImportedQuestion, choices: Iterable[ImportedQuestion]) -> dict[str, str | bool]:
    """Return what a rubric says of a choice: whether it asks for the worst, and by the standard of which other choice.

    Their names are equal but for the words for best and worst: `best` and `worst`, `more fluent` has none.
    """
    if not asks_for_worst(question.title):
        return {"lower_is_better": False}
    standard = _words(question.title) - _WORST
    best = [choice.name for choice in choices
            if not asks_for_worst(choice.title) and _words(choice.title) - _BEST - _NAMES == standard]  # fmt: skip
    return {"worst_of": best[0]} if len(best) == 1 else {"lower_is_better": True}


def _words(title: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", title.casefold()))


def as_preference(question: ImportedQuestion) -> ImportedQuestion:
    """Return a question of labels as a choice between two, with the tie as its last label."""
    if question.kind != "label":
        return question
    labels = sorted(question.labels.items(), key=lambda label: (plain(label[1]) in _TIES, label[1].casefold()))
    return replace(question, labels=dict(labels), is_preference=True)


def sides(question: ImportedQuestion, number: int) -> dict[str, int]:
    """Return which of a row's candidates each label stands for, from 0 on; none if that is unclear."""
    codes = {text.strip().removesuffix(".0") for text in question.labels.values()}
    codes = {text for text in codes if text.removeprefix("-").isdecimal()}
    if codes and codes != {str(side) for side in range(1, number + 1)}:
        return {}  # of 0, 1 and 2 any may be the tie
    places = {
        name: side for name, text in question.labels.items() if (side := side_of(text)) is not None and side < number
    }
    return places if len(set(places.values())) > 1 else {}


def side_of(title: str) -> int | None:
    """Return which candidate of a row a word stands for (A, 2, left, `Model B is better`); None for any other."""
    text = plain(title)
    if text not in _TIES and (_CHOSEN.fullmatch(text) or re.fullmatch("[a-h1-8]", text)):
        return next((side for word in text.split() if (side := _SIDES.get(word)) is not None), None)
    return None
