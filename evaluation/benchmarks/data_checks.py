"""Checks of a task's content: its gold and its texts."""

from __future__ import annotations

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
    finding,
    flagged,
    undefined,
)
from plumbline.words import count, shows

_UNFOUND = {False: "mteb leaves the query out silently", True: "the query counts as 0 for every model"}
_SHORT = 3  # characters
Key = tuple[str, ...]


def check_contents(contents: Contents) -> Iterator[Finding]:
    """Yield all checks of texts and of gold that a task of its type can have."""
    least, part = min(((len(part.items), part) for part in contents.scored), key=lambda size: size[0])
    yield finding("items", least, f"{least:,} {part.noun} ({part.label})")
    yield duplicates(contents)
    if contents.kind.trained:
        yield leakage(contents)
    yield _marked(contents, "empty_texts", lambda text: not shows(text))
    yield _marked(contents, "short_texts", lambda text: len(text.strip()) <= _SHORT and shows(text))
    for check in contents.kind.checks:
        yield _OF_GOLD[check](contents)


def labels(contents: Contents) -> Finding:
    """Check the number of labels in the part with the fewest; with several levels, those of the first."""
    labelled = [part for part in contents.parts if len(part.gold)]
    if not labelled:
        return finding("labels", 0, "no labels")
    counts = [
        (Counter(str(label) for gold in part.gold for label in _several(contents, gold)), part) for part in labelled
    ]
    numbers, part = min(counts, key=lambda of_part: len(of_part[0]))
    text = f"{count(len(numbers), 'label')} in {part.label}"
    for most, number in numbers.most_common(1):
        text += f"; the most frequent, {most}, has {number / len(part.items):.0%} of the items"
    return finding("labels", len(numbers), text)


def constant_gold(contents: Contents) -> Finding:
    """Check the number of distinct gold scores in the part with the fewest."""
    counts = [(len({float(gold) for gold in part.gold}), part) for part in contents.scored if len(part.gold)]
    least, part = min(counts, key=lambda count: count[0])
    return finding("constant_gold", least, f"{count(least, 'distinct score')} for {part.noun} ({part.label})")


def conflicts(contents: Contents) -> Finding:
    """Check for items whose texts, ignoring case, have a different gold in any split of the same subset.

    mteb's cleaning removes them (`filter_unclear_label`).
    """
    parts = [part for part in contents.parts if len(part.gold)]
    keys = [[(part.subset, tuple(text.strip().lower() for text in row)) for row in part.texts] for part in parts]
    golds: dict[tuple[str, Key], set[Any]] = defaultdict(set)
    for part, keys_of_part in zip(parts, keys, strict=True):
        for key, gold in zip(keys_of_part, part.gold, strict=True):
            golds[key].add(tuple(sorted(map(str, gold))) if isinstance(gold, (list, tuple)) else gold)
    repeated = [
        {
            index: "; ".join(sorted(map(str, golds[key])))
            for index, key in enumerate(keys_of_part)
            if len(golds[key]) > 1
        }
        for keys_of_part in keys
    ]
    number, rows = flagged(parts, repeated)
    size = sum(len(part.items) for part in parts)
    return finding("conflicts", number / max(1, size), f"{number:,} of {size:,} items", rows)


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
    return finding(check, len(rows), text, pd.DataFrame(rows, columns=list(ROWS)))


_OF_GOLD: dict[str, Callable[[Contents], Finding]] = {
    "labels": labels,
    "constant_gold": constant_gold,
    "conflicts": conflicts,
    "without_relevant": without_relevant,
    "missing_passages": missing_passages,
}


def _several(contents: Contents, gold: Any) -> list[Any]:
    """Return an item's labels: one, or all of multilabel classification; with several levels the first."""
    if not isinstance(gold, (list, tuple)):
        return [gold]
    return list(gold) if contents.kind.several else list(gold[:1])


def duplicates(contents: Contents) -> Finding:
    """Check for items whose texts repeat those of an earlier item of their split, ignoring outer white space.

    mteb compares them in the same way (`mteb.data_cleaning.remove_duplicates`).
    """
    repeated = []
    for part in contents.parts:
        first: dict[Key, int] = {}
        earlier = [first.setdefault(key, index) for index, key in enumerate(_keys(part))]
        repeated.append({index: f"same as item {part.items[at]}" for index, at in enumerate(earlier) if at != index})
    shares = [
        (len(again) / max(1, len(part.items)), len(again), part)
        for part, again in zip(contents.parts, repeated, strict=True)
    ]
    share, number, part = max(shares, key=lambda share: share[:2])
    text = f"{number:,} of {len(part.items):,} {part.noun} ({part.label})" if number else "no item repeats another"
    return finding("duplicates", share, text, flagged(contents.parts, repeated)[1])


def leakage(contents: Contents) -> Finding:
    """Check for scored items whose texts are in the train split of any subset, regardless of labels.

    mteb compares them in the same way (`mteb.data_cleaning.remove_train_leakage`).
    """
    train = [part for part in contents.parts if part.split == TRAIN]
    if not train:
        return undefined("leakage", "the task trains on the split that it scores")
    items = {key: item for part in train for key, item in zip(_keys(part), part.items, strict=True)}
    leaked = [
        {
            index: f"same as item {items[key]} of the train split"
            for index, key in enumerate(_keys(part))
            if key in items
        }
        for part in contents.scored
    ]
    number, rows = flagged(contents.scored, leaked)
    size = sum(len(part.items) for part in contents.scored)
    return finding("leakage", number / max(1, size), f"{number:,} of {size:,} scored items", rows)


def _marked(contents: Contents, check: str, refused: Callable[[str], bool]) -> Finding:
    """Return the finding on items that have a refused text."""
    marked = [
        {index: "" for index, texts in enumerate(part.texts) if any(map(refused, texts))} for part in contents.parts
    ]
    number, rows = flagged(contents.parts, marked)
    return finding(check, number, count(number, "item") if number else "none", rows)


def _keys(part: ContentPart) -> Iterator[Key]:
    """Return the keys by which items are compared."""
    return (tuple(text.strip() for text in texts) for texts in part.texts)
