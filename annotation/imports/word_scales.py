"""Scales whose points are words: the usual ones, and the choice among them by a question's answers.

Two different answers are never one point, and answers that fit several scales are asked for.
"""

from __future__ import annotations

import functools
import itertools
import re
import shlex
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from annotation.questions.wordings import packaged
from plumbline.errors import DataError

_GENDER = re.compile(r"(?<=[^\W\d_])[(/·](?:a|e|as|es|ne)\)?(?!\w)")  # satisfecho/a, satisfait(e)
_SHOWN = 4  # scales that are offered for a choice
_MOST_ANSWERS = 200  # different ones, in any spelling, that words of a scale can be
ENOUGH = 0.9  # share of a question's answers that must be points of a scale
Scale = tuple[tuple[str, ...], ...]  # the points from the least to the most, each with its wordings


def folded(text: str) -> str:
    """Return a text without capitals and doubled spaces: what differs in more is another answer."""
    return " ".join(text.casefold().split())


def plain(text: str) -> str:
    """Return a text without capitals, accents and signs, as usual scales are looked up.

    >>> plain("Tout à fait d’accord."), plain("insatisfait(e)"), plain("Very_good")
    ('tout a fait d accord', 'insatisfait', 'very good')
    """
    letters = unicodedata.normalize("NFKD", _GENDER.sub("", text.casefold()))
    return " ".join(re.findall(r"[^\W_]+\+*", "".join(sign for sign in letters if not unicodedata.combining(sign))))


@functools.cache
def usual_scales() -> tuple[Scale, ...]:
    """Return the usual scales of all languages."""
    kinds = itertools.chain.from_iterable(language.values() for language in packaged("imports/scales.yaml").values())
    scales = itertools.chain.from_iterable(kinds)
    return tuple(tuple(tuple(point.split(" / ")) for point in scale.split(" < ")) for scale in scales)


@functools.cache
def points_by_word(scale: Scale) -> dict[str, int]:
    """Return the number of each wording's point, from 0 on."""
    return {plain(word): rank for rank, words in enumerate(scale) for word in words}


@dataclass(frozen=True)
class WordScale:
    """A scale, and the point of each answer on it."""

    scale: Scale
    ranks: Mapping[str, int]  #: by answer, from 0 on
    ending: str = ""  #: words that all answers share at their end, which the scale's wordings lack

    @property
    def words(self) -> list[str]:
        """A wording for each point: the file's, or else the first of the scale's."""
        of_file = {rank: answer for answer, rank in [*self.ranks.items()][::-1]}
        capitals = all(answer[:1].isupper() for answer in self.ranks)
        usual = [" ".join(filter(None, (words[0], self.ending))) for words in self.scale]
        usual = [word[:1].upper() + word[1:] for word in usual] if capitals else usual
        return [of_file.get(rank, word) for rank, word in enumerate(usual)]

    @property
    def tells_apart(self) -> bool:
        """Whether no two different answers are one point."""
        answers = {folded(answer): rank for answer, rank in self.ranks.items()}
        return len(set(answers.values())) == len(answers)

    @property
    def is_full(self) -> bool:
        """Whether each point was given as an answer."""
        return len(set(self.ranks.values())) == len(self.scale)


def scale_of(name: str, answers: Mapping[str, int], others: Collection[str] = ()) -> WordScale | None:
    """Return the usual scale of a question's answers, which have numbers of rows; None if they are on no scale.

    `others` are answers to another question of the file, if they include all of this one's: both have one scale. The
    scale has as many points as answers, or is the only one that has all of them.

    Raises DataError if several scales fit, or if two answers would be one point.
    """
    if len(answers) > _MOST_ANSWERS:
        return None
    every = [*answers, *(answer for answer in others if folded(answer) not in set(map(folded, answers)))]
    candidates = [read for read in _readings(every) if len(read.ranks) == len(every)] or list(_most(every, answers))
    if not candidates or (not others and _are_labels(set(map(plain, answers)))):
        return None
    apart = [read for read in candidates if read.tells_apart]
    if not apart:
        raise DataError(_one_point(name, candidates[0]))
    distinct: dict[tuple[int, ...], WordScale] = {}
    for read in [read for read in apart if read.is_full] or apart:
        distinct.setdefault((len(read.scale), *read.ranks.values()), read)
    if len(distinct) > 1:
        offered = " or ".join(map(functools.partial(_option, name), [*distinct.values()][:_SHOWN]))
        raise DataError(
            f"question {name!r}: its answers fit {len(distinct)} scales, as not all of their points were given; add"
            f" {offered}, or --scale {name}=labels"
        )
    return next(iter(distinct.values()))


def _are_labels(words: set[str]) -> bool:
    """Return whether answers are labels though a scale has their words: one alone, or `good` and `bad`."""
    return len(words) == 1 or any(words <= ends for ends in _opposites())


@functools.cache
def _opposites() -> tuple[set[str], ...]:
    """Return the ends of scales of three points."""
    thirds = (scale for scale in usual_scales() if len(scale) == 3)
    return tuple({plain(word) for point in (scale[0], scale[-1]) for word in point} for scale in thirds)


def _readings(answers: Sequence[str]) -> Iterator[WordScale]:
    """Yield the answers' points on each usual scale that has some of them, with and without words that end them all."""
    keys = [plain(answer) for answer in answers]
    ending = _shared_ending(keys)
    for cut in ("", ending) if ending else ("",):
        for scale in usual_scales():
            ranks = points_by_word(scale)
            on = {answer: ranks[word] for answer, key in zip(answers, keys, strict=True)
                  if (word := key.removesuffix(cut).strip()) in ranks}  # fmt: skip
            if on:
                yield WordScale(scale, on, cut)


def _shared_ending(keys: Sequence[str]) -> str:
    """Return the words that end all answers, as in `not fluent` and `very fluent`."""
    split = [key.split()[::-1] for key in keys]
    alike = itertools.takewhile(lambda words: len(set(words)) == 1, zip(*split, strict=False)) if len(split) > 1 else ()
    return " ".join([words[0] for words in alike][::-1])


def _most(every: Sequence[str], answers: Mapping[str, int]) -> Iterator[WordScale]:
    """Yield the scales with the most answers, if these are three or more and nearly all rows have them."""
    rows = sum(answers.values())
    near = [read for read in _readings(every) if len(set(read.ranks.values())) > 2
            and sum(answers.get(answer, 0) for answer in read.ranks) >= ENOUGH * rows]  # fmt: skip
    most = max((len(read.ranks) for read in near), default=0)
    return (read for read in near if len(read.ranks) == most)


def _option(name: str, read: WordScale) -> str:
    return f"--scale {shlex.quote(name + '=' + '<'.join(read.words))}"


def _one_point(name: str, read: WordScale) -> str:
    """Return the question about two answers that are one point of the nearest scale."""
    ranked = sorted(read.ranks.items(), key=lambda answer: answer[1])
    first, second = next(
        (a, b) for (a, x), (b, y) in itertools.pairwise(ranked) if x == y and folded(a) != folded(b)
    )  # fmt: skip
    example = shlex.quote(f"{name}=bad<fair<good")
    return (
        f"question {name!r}: {first!r} and {second!r} would be one point of a scale; write them alike in the file, or"
        f" add --scale with all points from the least to the most, as in --scale {example}, or --scale {name}=labels"
    )
