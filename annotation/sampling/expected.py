"""The sample that a study's settings lead to, before any output exists: texts stand in for their outputs.

Pairs, controls and repeats are drawn by the functions that draw the real sample. It has their number where no more
outputs fail, and no more of them are near-duplicates, than the texts can spare.
"""

from __future__ import annotations

import copy
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from annotation.campaign.rubric import Rubric
from annotation.records import Supply
from annotation.sampling.candidates import Candidate, Groups, Lengths, WholeSource, rank_of
from annotation.sampling.sample import SampleDrawing, draw_from
from generation.datasets.loading import load_dataset, texts_in
from plumbline.errors import PlumblineError
from plumbline.records import Pair, Text
from plumbline.study import Study
from plumbline.study.datasets import Texts
from plumbline.study.reach import known_texts
from plumbline.study.subject import VerdictUnit

_MOST = 1000  # texts of a stratum; a larger sample takes four times its pairs


@dataclass
class _StandIns:
    """A source of pairs with texts made up for `stated` units of known languages and tasks; `supply` stays empty."""

    study: Study
    read: Sequence[Text] = ()  #: the texts of data sets
    stated: Mapping[str, Iterable[tuple[str, str, str]]] = field(default_factory=dict)  #: language, task, data set
    supply: list[Supply] = field(default_factory=list)
    _made: dict[tuple[str, int], list[Candidate]] = field(default_factory=dict)  #: of samples of all sizes

    def of(self, name: str) -> list[Candidate]:
        """The candidates of a unit, as many of a stratum as a sample may take."""
        most = max(_MOST, 4 * self.study.sample.pairs)
        entry = name, self._enough(name) if self.stated.get(name) else most
        if entry not in self._made:
            self._made[entry] = self._candidates(name, most)
        return self._made[entry]

    def _candidates(self, name: str, most: int) -> list[Candidate]:
        kind, sample, candidates = self.study.kinds[name], self.study.sample, list[Candidate]()
        numbers, seen = Counter[tuple[str, ...]](), set[str]()
        for text, output_language, seed in self._outputs(name):
            stratum = text.language, text.task_type, text.dataset, output_language, str(self._lengths.third(text))
            key = f"{name} {seed} {output_language} {text.language} {text.text}"
            if key in seen or numbers[stratum] == most:
                continue
            seen.add(key)
            numbers[stratum] += 1
            make = functools.partial(_pair, text, kind, output_language, seed, key)
            ranked_by = text.text if kind.queue else key  # systems give the same originals
            candidates.append(Candidate(rank_of(sample.seed, ranked_by), stratum, key, make))
        return candidates

    def known(self, had: Sequence[Pair]) -> list[Pair]:
        """As many items with right answers as batches want, where the study has such items."""
        if not self.study.judging.known_questions:
            return []
        sample, items = self.study.sample, list[Pair]()
        number = sample.controls * (2 + len(self.study.kinds) * sample.pairs // sample.batch)
        for name in self.study.kinds:
            for language, task, dataset in self.stated.get(name, ()):
                for text in _made_up(f"known {name}", language, task, dataset, number):
                    pair = _pair(text, self.study.kinds[name], language, 0, text.text)
                    items.append(pair.model_copy(update={"control": "known"}))
        return items

    @functools.cached_property
    def _lengths(self) -> Lengths:
        made_up = (text for name in self.stated for text in self._stated(name, 1))
        return Lengths([*self.read, *made_up])

    def _outputs(self, name: str) -> Iterator[tuple[Text, str, int]]:
        """Yield texts with the language and the seed of their outputs."""
        kind = self.study.transforming.get(name)
        if kind is None:
            yield from ((text, text.language, 0) for text in self._stated(name, self._enough(name)))
            return
        for seed in self.study.seeds:
            for text in self.read:
                drawn = kind.drawn(seed=seed, dataset=text.dataset, text=text.text, source=text.language)
                yield text, kind.output_language(text.language, drawn), seed
        for text in self._stated(name, self._enough(name)):
            every: Sequence[str | None] = [None]
            if kind.draw == "text":
                every = [language for language in kind.languages if language != text.language]
            elif kind.draw != "none":
                every = [kind.drawn(seed=seed, dataset=text.dataset, text="", source=text.language)
                         for seed in self.study.seeds]  # fmt: skip
            for drawn in dict.fromkeys(every):
                text_of_language = text.model_copy(update={"text": f"{text.text}-{drawn}"})
                yield text_of_language, kind.output_language(text.language, drawn), self.study.seeds[0]

    def _enough(self, name: str) -> int:
        """Texts of a data set in a language: its share of the sample at most, and some for controls."""
        languages = {language for language, _, _ in self.stated.get(name, ())} | {text.language for text in self.read}
        return self.study.sample.pairs // max(1, len(languages)) + 2 + 2 * self.study.sample.controls

    def _stated(self, name: str, number: int) -> Iterator[Text]:
        for language, task, dataset in self.stated.get(name, ()):
            yield from _made_up(name if self.study.kinds[name].queue == "" else "", language, task, dataset, number)


def _made_up(name: str, language: str, task: str, dataset: str, number: int) -> Iterator[Text]:
    """Yield texts that have no word in common."""
    for index in range(number):
        words = f"{name.replace(' ', '-')}-{dataset}-{language}-{task}-{index}"
        yield Text(dataset=dataset, task_type=task, split="test", item=str(index), field="text", language=language,
                   text_id=words, text=words)  # fmt: skip


def _pair(text: Text, kind: VerdictUnit, output_language: str, seed: int, key: str) -> Pair:
    return Pair(
        pair_id=key, key=key, transformation=kind.name, axis=kind.axis, pool=kind.pool, dataset=text.dataset,
        task_type=text.task_type, language=text.language, output_language=output_language, seed=seed,
        original=text.text, transformed=text.text, model="", generator_hash="", prompt_hash="", queue=kind.queue,
    )  # fmt: skip


@dataclass(frozen=True)
class ExpectedSample:
    """What a study's samples of any size are drawn from, as far as its files say it."""

    study: Study
    rubric: Rubric
    texts: Texts  #: the languages and tasks of each unit's texts
    unread: str  #: why these come from the study file alone; empty if they do not
    _source: WholeSource

    @classmethod
    def of(cls, study: Study, rubric: Rubric) -> ExpectedSample:
        """Read the texts of a study."""
        stated = known_texts(study)
        try:
            if study.judging.transforms:
                return cls._of_datasets(study, rubric)
            if study.judging.has_size and not any(dataset.mteb for dataset in study.datasets):
                groups = Groups(study, rubric)
                texts = {
                    name: {(candidate.stratum[0], candidate.stratum[1]) for candidate in groups.of(name)}
                    for name in study.kinds
                }
                return cls(study, rubric, texts, "", groups)
        except PlumblineError as error:
            return cls(study, rubric, stated, str(error).replace("\n", "; "), _of_file(study, stated))
        return cls(study, rubric, stated, "", _of_file(study, stated))

    @classmethod
    def _of_datasets(cls, study: Study, rubric: Rubric) -> ExpectedSample:
        """Read the texts of local data sets; of mteb's the languages and tasks, which its registry tells."""
        read, stated, base = list[Text](), list[tuple[str, str, str]](), study.file.parent
        for dataset in study.datasets:
            if dataset.mteb:
                stated += [(language, task, dataset.name) for language, task in sorted(texts_in(dataset, base))]
            else:
                read += load_dataset(dataset, base).texts()
        every = {(text.language, text.task_type) for text in read} | {(language, task) for language, task, _ in stated}
        source = _StandIns(study, read, dict.fromkeys(study.kinds, tuple(stated)))
        return cls(study, rubric, dict.fromkeys(study.kinds, tuple(sorted(every))), "", source)

    @functools.cached_property
    def with_further_texts(self) -> ExpectedSample:
        """The samples of as many texts as they take, in the languages and tasks of the study's."""
        return replace(self, _source=_of_file(self.study, self.texts))

    def draw(self, pairs: int) -> SampleDrawing:
        """Draw a sample with so many pairs of each unit."""
        source = copy.copy(self._source)
        sized = self.study.sample.model_copy(update={"pairs": pairs})
        source.study, source.supply = self.study.model_copy(update={"sample": sized}), []  # type: ignore[misc]
        return draw_from(source, self.rubric)[0]


def _of_file(study: Study, texts: Texts) -> _StandIns:
    """Return a source of made-up texts in the languages and tasks that the study file says."""
    stated = {name: [(*text, "") for text in sorted(texts.get(name, ())) or [("", "")]] for name in study.kinds}
    return _StandIns(study, (), stated)
