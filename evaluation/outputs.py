"""What stands for the texts of a data set: outputs, and what becomes of items whose outputs failed.

Dropped items are dropped from the original too wherever the two are compared (`same_items`): the items whose outputs
fail are no random ones, and a score on all items beside one on the others would hold that difference as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from generation.datasets.dataset import Dataset
from plumbline.errors import DataError
from plumbline.hashes import TextsByHash
from plumbline.identity import canonical, identity_from, prefix
from plumbline.records import Text

Policy = Literal["drop", "original"]
_PIECE = 4096  # outputs that are hashed at a time


@dataclass(frozen=True)
class Outputs:
    """Outputs by `text_id`, ids of texts whose outputs failed, and what a study says of these (`evaluation.failed`).

    What was kept out of the sample is as good as failed: nobody rated its like, so no verdict lets it through.

    `drop` leaves the whole item out (`Dataset.replaced` says what an item is), in classification's
    train split too; `original` leaves the text as it is.
    """

    texts: Mapping[str, str]
    failed: frozenset[str] = frozenset()
    policy: Policy = "drop"
    kept_out: frozenset[str] = frozenset()  #: of the failed: usable ones that no verdict covers (`sample.without`)

    def missing(self, texts: Collection[str]) -> str:
        """How many texts (ids) have neither an output nor a failure, in one line; empty if all have one."""
        lacking = sum(1 for text in texts if self.lacks(text))
        return f"{lacking} of {len(texts)} texts have no output: run generation again" if lacking else ""

    def failed_items(self, dataset: Dataset) -> int:
        """Items with a failed output, in all splits."""
        return _items(dataset, self.failed)

    def kept_out_items(self, dataset: Dataset) -> int:
        """Those of them with an output that was kept out of the sample."""
        return _items(dataset, self.kept_out)

    def change(self, text: Text, cell: str) -> str | None:
        """What is to stand in a text's place; None drops its item."""
        if text.text_id in self.failed:
            return cell if self.policy == "original" else None
        return self.texts[text.text_id]

    def lacks(self, text: str) -> bool:
        """Whether a text (its id) has neither an output nor a failure."""
        return not self.texts.get(text) and text not in self.failed

    def content_id(self, original: str) -> str:
        """Identity of what a data set becomes, from that of the untouched one: all that decides it."""
        whole = prefix("transformed-v2", original)
        whole.update(b"[")
        texts = iter(self.texts if isinstance(self.texts, TextsByHash) else sorted(self.texts))
        before = ""
        while some := list(itertools.islice(texts, _PIECE)):
            entries = (f"[{canonical(text_id)},{canonical(self.texts[text_id])}]" for text_id in some)
            whole.update((before + ",".join(entries)).encode())
            before = ","
        whole.update(b"],")
        return identity_from(whole, [self.policy, sorted(self.failed)] if self.failed else [])


def _items(dataset: Dataset, texts: Collection[str]) -> int:
    return len({(text.split, text.item) for text in dataset.texts() if text.text_id in texts}) if texts else 0


def same_items(dataset: Dataset, outputs: Outputs) -> Dataset:
    """The untouched data set with those items alone that `transformed` leaves under the policy `drop`."""
    return dataset.replaced(lambda text, cell: None if text.text_id in outputs.failed else cell)


def transformed(dataset: Dataset, outputs: Outputs) -> Dataset:
    """The data set with each output in its original's place.

    Raises DataError if one is missing: a text is never left as it is unless the study says so, because a score that
    rests half on originals would pass for the transformation's.
    """
    if any(outputs.lacks(text.text_id) for text in dataset.texts()):
        lacking = outputs.missing({text.text_id for text in dataset.texts()})
        raise DataError(f"data set {dataset.name!r}: {lacking}")
    return dataset.replaced(outputs.change)
