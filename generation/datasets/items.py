"""A data set's items as people judge them: all texts of a row side by side, of a query some of its passages.

Labels, scores and relevance are not among them. Of a query's passages so many relevant ones are taken as make half of
those that are shown, where there are enough others; a hash of query and passage puts them in an order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from generation.datasets.dataset import Dataset, Passages
from plumbline.identity import identity
from plumbline.records import nfc

CANDIDATES = "candidates"


@dataclass
class DatasetItem:
    """One item of the split that is scored: texts, or lists of texts, by field."""

    item: str  #: its number or id
    language: str = ""  #: of its first text
    output_language: str = ""  #: of its second; the same where there is none
    fields: dict[str, str | list[str]] = field(default_factory=dict)


def items_of(dataset: Dataset, candidates: int) -> Iterator[DatasetItem]:
    """The items of the scored split, in order, with at most so many passages of a query (`candidates`).

    A text that shows as nothing is missing in its item.
    """
    found = defaultdict[str, DatasetItem](lambda: DatasetItem(""))
    for text in dataset.texts():
        place = re.fullmatch(rf"(.*)/{re.escape(text.field)}/\d+", text.item)
        if text.split != "test" or text.field in ("passage", "positive", "negative"):
            continue
        one = found[place[1] if place else text.item]
        one.item = place[1] if place else text.item
        one.language, one.output_language = one.language or text.language, text.language
        if place:
            entries = one.fields.setdefault(text.field, [])
            if isinstance(entries, list):
                entries.append(text.text)
        else:
            one.fields[text.field] = text.text
    for passages in dataset.passages_of():
        if passages.item in found:
            shown = chosen(passages, candidates)
            if shown:
                found[passages.item].fields[CANDIDATES] = shown
                found[passages.item].output_language = passages.language
    yield from found.values()


def chosen(passages: Passages, most: int) -> list[str]:
    """The passages that stand beside a query, in an order that tells nothing of their relevance."""

    def order(text: str) -> str:
        return identity("candidate-order-v1", passages.item, text)

    relevant = sorted(dict.fromkeys(map(nfc, passages.relevant)), key=order)
    others = sorted(set(map(nfc, passages.others)) - set(relevant), key=order)
    number = min(len(relevant), max(most // 2, most - len(others)))
    return sorted([*relevant[:number], *others[: most - number]], key=order)
