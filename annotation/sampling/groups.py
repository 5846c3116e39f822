"""The items of a subject's groups as candidates: in strata as outputs are, and in an order that a hash decides."""

from __future__ import annotations

import functools
import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from annotation.rubric import Rubric
from annotation.sampling.candidates import Candidate, Supply, rank_of
from annotation.sampling.strata import share_of
from annotation.subjects.item import Item
from annotation.subjects.items import read_items
from plumbline.errors import DataError, StudyError
from plumbline.fields import plain
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.subject import InstructionsSubject
from plumbline.words import count_words


class Groups:
    """Reads a study's items; `supply` grows with each group that was read."""

    def __init__(self, study: Study, rubric: Rubric) -> None:
        self.study, self.supply = study, list[Supply]()
        items, self._lacking = read_items(study, rubric)
        self._known = [item for item in items if item.expected]
        self._open = [item for item in items if not item.expected]
        known, self._twice = set(map(_seen, self._known)), Counter[tuple[str, str]]()
        self._items = defaultdict[str, list[Item]](list)
        lengths = defaultdict[tuple[str, str], Counter[int]](Counter)
        for item in self._open:
            if _seen(item) in known:
                self._twice[item.group, item.language] += 1
            else:
                self._items[item.group].append(item)
                lengths[item.dataset, item.language][count_words(item.text)] += 1
        self._bounds = {place: (share_of(found, 1), share_of(found, 2)) for place, found in lengths.items()}

    def of(self, name: str) -> list[Candidate]:
        """A group's items, without those whose right answers are known, whatever row says so."""
        items, kind = self._items[name], self.study.kinds[name]
        if isinstance(self.study.subject, InstructionsSubject) and len(items) > self.study.sample.pairs:
            raise StudyError(
                f"{self.study.file}: sample.pairs is {self.study.sample.pairs}, and people label every wording:"
                f" {name} has {len(items)}; write {len(items)} or more"
            )
        twice = {language: number for (group, language), number in self._twice.items() if group == name}
        if twice and not items:
            raise DataError(f"{self.study.file}: every text of {name} is a known item too; add others, or take it out")
        if not items:
            raise DataError(f"{self.study.file}: {name} has no item with all that raters are to see; take it out")
        lacking = self._lacking[name]  # their language is not known, so they stand with the first
        numbers = Counter(item.language for item in items)
        for language in sorted({*numbers, *twice}):
            number, all_told = numbers[language], numbers[language] + lacking
            self.supply.append(
                Supply(
                    transformation=name, language=language, ok=number, failed=lacking, unanswered=0,
                    failed_share=lacking / all_told if all_told else math.nan, known=twice.get(language, 0),
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
        drawn = {pair.key for pair in had if pair.drawn}
        shown = {_seen(item) for item in self._open if item.key in drawn}  # a file may name its answers later
        pairs = [item.pair(self.study.kinds[item.group]) for item in self._known if _seen(item) not in shown]
        fresh = [pair for pair in pairs if pair.pair_id not in there]
        return sorted(fresh, key=lambda pair: rank_of(seed, pair.pair_id))

    def _stratum(self, item: Item) -> tuple[str, ...]:
        words = count_words(item.text)
        third = sum(words > bound for bound in self._bounds[item.dataset, item.language])
        beside = "\n".join(plain(item.fields[name]) for name in item.apart)
        return item.language, item.task_type, item.dataset, beside, item.output_language, str(third)


def _seen(item: Item) -> Hashable:
    """What raters read of an item, by which it is the same to them: without capitals and the width of blanks."""
    texts = (unicodedata.normalize("NFKC", plain(value)).casefold().split() for value in item.fields.values())
    return item.language, item.output_language, tuple(" ".join(words) for words in texts)
