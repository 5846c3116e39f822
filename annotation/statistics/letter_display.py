"""Letters beside means: those that share one do not differ significantly."""

from __future__ import annotations

import string
from collections.abc import Collection, Sequence


def letter_display(names: Sequence[str], different: Collection[tuple[str, str]]) -> dict[str, str]:
    """The letters of each name: two names share one if and only if they are no pair of `different`.

    `names` stand in the order of their means, the best first: it is the one with an a. By insert and absorb (Piepho
    2004, J. Comput. Graph. Stat. 13, 456-466): all begin in one column; each difference splits the columns that hold
    both names into one without the one and one without the other, and columns within another are taken out.

    >>> letter_display(["a", "b", "c"], [("a", "c")])
    {'a': 'a', 'b': 'ab', 'c': 'b'}
    """
    columns = [frozenset(names)]
    for one, other in different:
        split: list[frozenset[str]] = []
        for column in columns:
            together = one in column and other in column
            split += [column - {one}, column - {other}] if together else [column]
        columns = _absorbed(split)
    columns.sort(key=lambda column: [name not in column for name in names])
    return {name: "".join(_letter(i) for i, column in enumerate(columns) if name in column) for name in names}


def _absorbed(columns: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """The columns that lie within no other, each once."""
    unique = list(dict.fromkeys(columns))
    return [column for column in unique if not any(column < other for other in unique)]


def _letter(number: int) -> str:
    """A to z, then a1 to z1 and so on."""
    round_, place = divmod(number, 26)
    return string.ascii_lowercase[place] + (str(round_) if round_ else "")
