"""Checks of a task's content: its gold and its texts."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from evaluation.benchmarks.contents import (
    ROWS,
    TRAIN,
    ContentPart,
    Contents,
    Finding,
    Search,
    found,
    rows_of,
    together,
    undefined,
)
from plumbline.words import count, shows

_UNFOUND = {False: "mteb leaves the query out silently", True: "the query counts as 0 for every model"}


def check_gold(contents: Contents) -> Iterator[Finding]:
    """Yield all checks of labels, scores and judgements that a task of its type can have."""
    for check in contents.kind.checks:
        yield _OF_GOLD[check](contents)


def labels(contents: Contents) -> Finding:
    """Check the number of labels in the part with the fewest; with several levels, those of the first."""
    counts = [(len(set(_labels(contents, part))), part) for part in contents.parts if len(part.gold)]
    if not counts:
        return found("labels", 0, "no labels")
    least, part = min(counts, key=lambda count: count[0])
    text = f"{count(least, 'label')} in split {part.split}{_subset(part)}"
    if not least:
        return found("labels", 0, text)
    most, number = Counter(_labels(contents, part)).most_common(1)[0]
    return found("labels", least, f"{text}; the most frequent, {most}, has {number / len(part.items):.0%} of the items")


def constant_gold(contents: Contents) -> Finding:
    """Check the number of distinct gold scores in the part with the fewest."""
    counts = [(len({float(gold) for gold in part.gold}), part) for part in contents.scored if len(part.gold)]
    least, part = min(counts, key=lambda count: count[0])
    return found("constant_gold", least, f"{count(least, 'distinct score')} for {part.what}{_subset(part)}")


def conflicts(contents: Contents) -> Finding:
    """Check for items whose texts, ignoring case, have a different gold in any split of the same subset.

    mteb's cleaning removes them (`filter_unclear_label`).
    """
    seen: dict[tuple[str, tuple[str, ...]], set[Any]] = defaultdict(set)
    parts = [part for part in contents.parts if len(part.gold)]
    keys = {id(part): [(part.subset, tuple(text.strip().lower() for text in row)) for row in part.texts]
            for part in parts}  # fmt: skip
    for part in parts:
        for key, gold in zip(keys[id(part)], part.gold, strict=True):
            seen[key].add(tuple(sorted(map(str, gold))) if isinstance(gold, (list, tuple)) else gold)
    number, rows = 0, []
    for part in parts:
        places = [index for index, key in enumerate(keys[id(part)]) if len(seen[key]) > 1]
        number += len(places)
        repeated = ["; ".join(sorted(map(str, seen[keys[id(part)][index]]))) for index in places]
        rows.append(rows_of(part, places, repeated))
    size = sum(len(part.items) for part in parts)
    return found("conflicts", number / max(1, size), f"{number:,} of {size:,} items", together(rows))


def without_relevant(contents: Contents) -> Finding:
    """Check for queries without relevant passages."""
    rows = [
        _query_row(search, query, _UNFOUND[bool(judged)])
        for search in contents.searches
        for query in search.queries
        for judged in [search.relevant.get(query, {})]
        if not any(value > 0 for value in judged.values())
    ]
    return _of_queries(contents, "without_relevant", rows)


def missing_passages(contents: Contents) -> Finding:
    """Check for judged passages that the corpus lacks."""
    rows = [
        _query_row(search, query, f"passage {passage} is not in the corpus")
        for search in contents.searches
        for query in search.queries
        for passage in sorted(search.relevant.get(query, {}).keys() - search.passages)
    ]
    return _of_queries(contents, "missing_passages", rows)


def _query_row(search: Search, query: str, detail: str) -> dict[str, str]:
    return {"subset": search.subset, "split": "test", "part": "queries", "item": query, "text": "", "detail": detail}


def _of_queries(contents: Contents, check: str, rows: list[dict[str, str]]) -> Finding:
    size = sum(len(search.queries) for search in contents.searches)
    text = f"{len(rows):,} found in {size:,} queries" if rows else "none"
    return found(check, len(rows), text, pd.DataFrame(rows, columns=list(ROWS)))


_OF_GOLD: dict[str, Callable[[Contents], Finding]] = {
    "labels": labels,
    "constant_gold": constant_gold,
    "conflicts": conflicts,
    "without_relevant": without_relevant,
    "missing_passages": missing_passages,
}


def _labels(contents: Contents, part: ContentPart) -> list[str]:
    return [str(label) for gold in part.gold for label in _several(contents, gold)]


def _several(contents: Contents, gold: Any) -> list[Any]:
    """Return an item's labels: one, or all of multilabel classification; with several levels the first."""
    if not isinstance(gold, (list, tuple)):
        return [gold]
    return list(gold) if contents.kind.several else list(gold[:1])


def _subset(part: ContentPart) -> str:
    return "" if part.subset in ("", "default") else f", subset {part.subset}"


_SHORT = 3  # characters
Key = tuple[str, ...]


def check_texts(contents: Contents) -> Iterator[Finding]:
    """Yield all checks that need only texts."""
    sizes = [(len(part.items), part) for part in contents.scored]
    least, part = min(sizes, key=lambda size: size[0])
    yield found("items", least, f"{least:,} {part.what}{_where(part)}")
    yield duplicates(contents)
    if contents.kind.trained:
        yield leakage(contents)
    yield _marked(contents, "empty_texts", lambda text: not shows(text))
    yield _marked(contents, "short_texts", lambda text: len(text.strip()) <= _SHORT and shows(text))


def duplicates(contents: Contents) -> Finding:
    """Check for items whose texts repeat those of an earlier item of their split, ignoring outer white space.

    mteb compares them in the same way (`mteb.data_cleaning.remove_duplicates`).
    """
    shares, rows = [], []
    for part in contents.parts:
        first: dict[Key, int] = {}
        again = [(index, at) for index, key in enumerate(_keys(part)) if (at := first.setdefault(key, index)) != index]
        shares.append((len(again) / max(1, len(part.items)), len(again), part))
        rows.append(rows_of(part, [index for index, _ in again], [f"same as item {part.items[at]}" for _, at in again]))
    share, number, part = max(shares, key=lambda share: share[:2])
    text = f"{number:,} of {len(part.items):,} {part.what}{_where(part)}" if number else "no item repeats another"
    return found("duplicates", share, text, together(rows))


def leakage(contents: Contents) -> Finding:
    """Check for scored items whose texts are in the train split of any subset, regardless of labels.

    mteb compares them in the same way (`mteb.data_cleaning.remove_train_leakage`).
    """
    train = [part for part in contents.parts if part.split == TRAIN]
    if not train:
        return undefined("leakage", "the task trains on the split that it scores")
    train_rows = {
        key: f"item {item} of the train split"
        for part in train
        for key, item in zip(_keys(part), part.items, strict=True)
    }
    number, rows = 0, []
    for part in contents.scored:
        leaked = [(index, train_rows[key]) for index, key in enumerate(_keys(part)) if key in train_rows]
        number += len(leaked)
        rows.append(rows_of(part, [index for index, _ in leaked], [f"same as {item}" for _, item in leaked]))
    size = sum(len(part.items) for part in contents.scored)
    return found("leakage", number / max(1, size), f"{number:,} of {size:,} scored items", together(rows))


def _marked(contents: Contents, check: str, wrong: Callable[[str], bool]) -> Finding:
    """Return the finding on items that have a wrong text."""
    number, rows = 0, []
    for part in contents.parts:
        places = [index for index, texts in enumerate(part.texts) if any(map(wrong, texts))]
        number += len(places)
        rows.append(rows_of(part, places, [""] * len(places)))
    return found(check, number, count(number, "item") if number else "none", together(rows))


def _keys(part: ContentPart) -> Iterator[Key]:
    """Return the keys by which items are compared."""
    return (tuple(text.strip() for text in texts) for texts in part.texts)


def _where(part: ContentPart) -> str:
    """Return the split and subset of a part, as far as it has names."""
    subset = "" if part.subset in ("", "default") else f", subset {part.subset}"
    return f" (split {part.split}{subset})"


@contextlib.contextmanager
def hidden_bars(module: str) -> Iterator[None]:
    """Hide the progress bars of a module of mteb: commands have their own."""
    shown: Any = importlib.import_module(module)
    bar = shown.tqdm
    shown.tqdm = functools.partial(bar, disable=True)
    try:
        yield
    finally:
        shown.tqdm = bar
