"""Checks of a task's texts: repeated, leaked, empty, short, of uneven length."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from evaluation.build.quality.contents import TRAIN, Contents, Part
from evaluation.build.quality.finding import Finding, found, rows_of, together, undefined
from plumbline.study.datasets import TRAINED
from plumbline.words import shows

_SHORT = 3  # characters
Key = tuple[str, ...]


def check_texts(contents: Contents) -> Iterator[Finding]:
    """All checks that need texts alone."""
    sizes = [(len(part.items), part) for part in contents.scored]
    least, part = min(sizes, key=lambda one: one[0])
    yield found("items", least, f"{least:,} {part.what}{_where(part)}")
    yield duplicates(contents)
    if contents.kind in TRAINED:
        yield leakage(contents)
    yield _marked(contents, "empty_texts", lambda text: not shows(text))
    yield _marked(contents, "short_texts", lambda text: len(text.strip()) <= _SHORT and shows(text))
    yield uneven_lengths(contents)


def duplicates(contents: Contents) -> Finding:
    """Items all of whose texts repeat those of an earlier one of their split, white space at the ends aside.

    So mteb compares them (`mteb.data_cleaning.remove_duplicates`).
    """
    shares, rows = [], []
    for part in contents.parts:
        first: dict[Key, int] = {}
        again = [(place, at) for place, key in enumerate(_keys(part)) if (at := first.setdefault(key, place)) != place]
        shares.append((len(again) / max(1, len(part.items)), len(again), part))
        rows.append(rows_of(part, [place for place, _ in again], [f"as {part.items[at]}" for _, at in again]))
    share, number, part = max(shares, key=lambda one: one[:2])
    said = f"{number:,} of {len(part.items):,} {part.what}{_where(part)}" if number else "no item repeats another"
    return found("duplicates", share, said, together(rows))


def leakage(contents: Contents) -> Finding:
    """Scored items whose texts stand in the train split of any subset, whatever their label.

    So mteb compares them (`mteb.data_cleaning.remove_train_leakage`).
    """
    train = [part for part in contents.parts if part.split == TRAIN]
    if not train:
        return undefined("leakage", "the task trains on the split that it scores")
    known = {key: f"{item} of train" for part in train for key, item in zip(_keys(part), part.items, strict=True)}
    number, rows = 0, []
    for part in contents.scored:
        leaked = [(place, known[key]) for place, key in enumerate(_keys(part)) if key in known]
        number += len(leaked)
        rows.append(rows_of(part, [place for place, _ in leaked], [f"as {item}" for _, item in leaked]))
    size = sum(len(part.items) for part in contents.scored)
    return found("leakage", number / max(1, size), f"{number:,} of {size:,} scored items", together(rows))


def uneven_lengths(contents: Contents) -> Finding:
    """The longest text by the mean length, in characters, in the part where that is most."""
    worst, said, rows = 0.0, "there is no text", []
    for part in contents.parts:
        lengths = np.array([sum(map(len, one)) for one in part.texts], dtype=np.float64)
        mean = float(lengths.mean()) if len(lengths) else 0.0
        if not mean:
            continue
        far = np.flatnonzero(lengths > 50 * mean)
        rows.append(rows_of(part, far.tolist(), [f"{lengths[place]:.0f} characters" for place in far]))
        if lengths.max() / mean > worst:
            worst = float(lengths.max()) / mean
            said = f"{lengths.max():,.0f} characters beside {mean:,.1f} on the mean of {part.what}{_where(part)}"
    return found("uneven_lengths", worst or math.nan, said, together(rows))


def _marked(contents: Contents, check: str, wrong: Callable[[str], bool]) -> Finding:
    """How many items have a text that is wrong."""
    number, rows = 0, []
    for part in contents.parts:
        places = [place for place, texts in enumerate(part.texts) if any(map(wrong, texts))]
        number += len(places)
        rows.append(rows_of(part, places, [""] * len(places)))
    return found(check, number, f"{number:,} items" if number else "none", together(rows))


def _keys(part: Part) -> Iterator[Key]:
    """What items are compared by."""
    return (tuple(text.strip() for text in texts) for texts in part.texts)


def _where(part: Part) -> str:
    """Where a part stands, if that says anything."""
    subset = "" if part.subset in ("", "default") else f", subset {part.subset}"
    return f" (split {part.split}{subset})"
