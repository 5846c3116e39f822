"""The items of a subject's groups as candidates: in strata as outputs are, and in an order that a hash decides."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Sequence

from annotation.rubric import Rubric
from annotation.sampling.candidates import Candidate, Supply, rank_of, share_of
from annotation.subjects.item import Item
from annotation.subjects.items import read_items
from plumbline.errors import DataError
from plumbline.fields import plain
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.words import count_words


class Groups:
    """Reads a study's items; `supply` grows with each group that was read."""

    def __init__(self, study: Study, rubric: Rubric) -> None:
        self.study, self.supply = study, list[Supply]()
        items, self._lacking = read_items(study, rubric)
        self._known = [item for item in items if item.expected]
        self._items = defaultdict[str, list[Item]](list)
        lengths = defaultdict[tuple[str, str], Counter[int]](Counter)
        for item in items:
            if not item.expected:
                self._items[item.group].append(item)
                lengths[item.dataset, item.language][count_words(item.text)] += 1
        self._bounds = {place: (share_of(found, 1), share_of(found, 2)) for place, found in lengths.items()}

    def of(self, name: str) -> list[Candidate]:
        """A group's items, without those whose right answers are known."""
        items, kind = self._items[name], self.study.kinds[name]
        if not items:
            raise DataError(f"{self.study.file}: {name} has no item with all that raters are to see; take it out")
        lacking = self._lacking[name]  # their language is not known, so they stand with the first
        for language, number in sorted(Counter(item.language for item in items).items()):
            self.supply.append(
                Supply(
                    transformation=name, language=language, ok=number, failed=lacking, unanswered=0,
                    failed_share=lacking / (number + lacking),
                )
            )  # fmt: skip
            lacking = 0
        return [
            Candidate(
                rank_of(self.study.sample.seed, item.key),
                self._stratum(item),
                item.key,
                functools.partial(item.pair, kind),
            )
            for item in items
        ]

    def known(self, had: Sequence[Pair]) -> list[Pair]:
        """The items whose right answers are known, but those that raters had, in an order that the seed decides."""
        there, seed = {pair.pair_id for pair in had}, self.study.sample.seed
        pairs = [item.pair(self.study.kinds[item.group]) for item in self._known]
        fresh = [pair for pair in pairs if pair.pair_id not in there]
        return sorted(fresh, key=lambda pair: rank_of(seed, pair.pair_id))

    def _stratum(self, item: Item) -> tuple[str, ...]:
        words = count_words(item.text)
        third = sum(words > bound for bound in self._bounds[item.dataset, item.language])
        beside = "\n".join(plain(item.fields[name]) for name in item.apart)
        return item.language, item.task_type, item.dataset, beside, item.output_language, str(third)
