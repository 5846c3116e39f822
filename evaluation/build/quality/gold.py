"""Checks of a task's gold: labels, scores, and what searches are to find."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pandas as pd

from evaluation.build.quality.contents import TRAIN, Contents, Part
from evaluation.build.quality.finding import ROWS, Finding, found, rows_of, together
from plumbline.study.datasets import SEARCHES, TRAINED

_LABELLED = (*TRAINED, "clustering", "pair_classification")
_UNFOUND = {False: "mteb leaves it out without a word", True: "it counts as 0 for every model"}
_SCORED = ("sts", "str", "summarisation")


def check_gold(contents: Contents) -> Iterator[Finding]:
    """All checks of labels, scores and judgements that a task of its type can have."""
    if contents.kind in _LABELLED:
        yield labels(contents)
        yield rare_labels(contents)
    if contents.kind in _SCORED:
        yield constant_gold(contents)
    if contents.kind in (*_LABELLED, "sts", "str"):
        yield conflicts(contents)
    if contents.kind in SEARCHES:
        yield from _searches(contents)


def labels(contents: Contents) -> Finding:
    """The number of labels in the part that has fewest; of several levels those of the first."""
    counts = [(len(set(_labels(contents, part))), part) for part in contents.parts if len(part.gold)]
    if not counts:
        return found("labels", 0, "there is no label")
    least, part = min(counts, key=lambda one: one[0])
    said = f"{least:,} labels in split {part.split}{_subset(part)}"
    if not least:
        return found("labels", 0, said)
    most, number = Counter(_labels(contents, part)).most_common(1)[0]
    return found("labels", least, f"{said}; the most frequent, {most}, has {number / len(part.items):.0%} of the items")


def rare_labels(contents: Contents) -> Finding:
    """Scored labels of which nothing can be told: with one item alone, or with none to train on."""
    rows, rare = [], 0
    trained = {
        part.subset: set(_labels(contents, part)) for part in contents.parts if part.split == TRAIN and len(part.gold)
    }
    for part in contents.with_gold:
        counts = Counter(_labels(contents, part))
        why = {label: "the only item of its label" for label, number in counts.items() if number == 1}
        if part.subset in trained:
            unseen = counts.keys() - trained[part.subset]
            why |= dict.fromkeys(unseen, "its label is not in the train split")
        rare += len(why)
        own = [{str(label) for label in _several(contents, gold)} & why.keys() for gold in part.gold] if why else []
        places = [place for place, some in enumerate(own) if some]
        rows.append(rows_of(part, places, [f"{min(own[place])}: {why[min(own[place])]}" for place in places]))
    return found("rare_labels", rare, f"{rare:,} of them" if rare else "none", together(rows))


def constant_gold(contents: Contents) -> Finding:
    """The number of distinct gold scores in the part that has fewest."""
    counts = [(len({float(gold) for gold in part.gold}), part) for part in contents.with_gold]
    least, part = min(counts, key=lambda one: one[0])
    return found("constant_gold", least, f"{least:,} distinct scores of {part.what}{_subset(part)}")


def conflicts(contents: Contents) -> Finding:
    """Items whose texts, case aside, stand in the same subset with another gold label or score, in any split.

    mteb's cleaning leaves them out (`filter_unclear_label`).
    """
    seen: dict[tuple[str, tuple[str, ...]], set[Any]] = defaultdict(set)
    parts = [part for part in contents.parts if len(part.gold)]
    keys = {id(part): [(part.subset, tuple(text.strip().lower() for text in one)) for one in part.texts]
            for part in parts}  # fmt: skip
    for part in parts:
        for key, gold in zip(keys[id(part)], part.gold, strict=True):
            seen[key].add(_plain(gold))
    number, rows = 0, []
    for part in parts:
        places = [place for place, key in enumerate(keys[id(part)]) if len(seen[key]) > 1]
        number += len(places)
        told = ["; ".join(sorted(map(str, seen[keys[id(part)][place]]))) for place in places]
        rows.append(rows_of(part, places, told))
    size = sum(len(part.items) for part in parts)
    return found("conflicts", number / max(1, size), f"{number:,} of {size:,} items", together(rows))


def _searches(contents: Contents) -> Iterator[Finding]:
    """Queries without relevant passages, judged passages that are not there, and candidates that leave no choice."""
    lacking, missing, alone = list[dict[str, str]](), list[dict[str, str]](), list[dict[str, str]]()
    for search in contents.searches:
        at = {"subset": search.subset, "split": "test", "part": "queries", "text": ""}
        for query in search.queries:
            judged = search.relevant.get(query, {})
            relevant = {passage for passage, value in judged.items() if value > 0}
            if not relevant:
                lacking.append(at | {"item": query, "detail": _UNFOUND[bool(judged)]})
            for passage in sorted(judged.keys() - search.passages):
                missing.append(at | {"item": query, "detail": f"no passage {passage}"})
            ranked = set(search.candidates.get(query, ()))
            if ranked and ranked <= relevant:
                alone.append(at | {"item": query, "detail": f"{len(ranked)} candidates, all relevant"})
    size = sum(len(search.queries) for search in contents.searches)
    for check, own in (("without_relevant", lacking), ("missing_passages", missing), ("without_others", alone)):
        frame = pd.DataFrame(own, columns=list(ROWS))
        yield found(check, len(own), f"{len(own):,} beside {size:,} queries" if own else "none", frame)


def _labels(contents: Contents, part: Part) -> list[str]:
    return [str(label) for gold in part.gold for label in _several(contents, gold)]


def _several(contents: Contents, gold: Any) -> list[Any]:
    """An item's labels: one, or all of multilabel classification; of several levels the first."""
    if not isinstance(gold, (list, tuple)):
        return [gold]
    return list(gold) if contents.kind == "multilabel_classification" else list(gold[:1])


def _plain(gold: Any) -> Any:
    return tuple(sorted(map(str, gold))) if isinstance(gold, (list, tuple)) else gold


def _subset(part: Part) -> str:
    return "" if part.subset in ("", "default") else f", subset {part.subset}"
