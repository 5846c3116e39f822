"""The pairs that judges rate: the sample's, and further ones drawn from where the sample ends.

Strata and order are the sample's. No sample has two near-duplicates, and it rather has one of many than of few: so
outputs that have as many are a stratum, and what a sample could not have, which `judge_pool: all` judges too, stands in
one without any pair of it (`UNDRAWN`). Then the pairs that people rate are within each stratum a random part of those
that are judged. Judges see no controls and no repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from annotation.campaign_records import CampaignRecords
from annotation.judges.records import UNDRAWN, JudgedPair
from annotation.records import Supply
from annotation.rubric import load_rubric
from annotation.sampling.candidates import Candidate, Candidates, DuplicateIndex, Groups, SampleSource
from annotation.sampling.sample import PoolDrawing, compared
from generation.jobs import Plan
from plumbline.identity import identity
from plumbline.records import Pair
from plumbline.store import read_records, write_table
from plumbline.study import Study

FILE = "judged.parquet"
COMMAND = "annotation judge run"
_ALL = 10**7  # more than there are
_LONGEST = 60  # characters of a stratum's part


def draw_judged(study: Study, *, keep: bool = True) -> list[JudgedPair]:
    """Draw the pairs that judges rate; if they are to be kept, write `judgements/judged.parquet`.

    For each transformation those of the sample, whatever was drawn before, then further ones until there are
    `judge_pool`, or as many as there are. With `judge_pool: all` every usable output; what no sample could have, since
    it is a near-duplicate, is the last of them and enters no mean.
    """
    rubric = load_rubric(study)
    larger = _larger(study, _ALL if study.judge_pool == "all" else study.judge_pool)
    source: SampleSource = Groups(larger, rubric) if study.subject else Candidates(Plan(larger))
    # What was drawn for raters, the controls among it; nothing before that, nor of a candidate's outputs.
    records = CampaignRecords.open(study)
    sample = records.known_pairs if study.outputs == study.folder / "transformations" else []
    sample = [*sample, *(records.controls if sample else [])]
    by_name: dict[str, list[JudgedPair]] = {}
    pools: dict[str, list[str]] = {}
    for name, kind in study.kinds.items():
        pools.setdefault(kind.pool, []).append(name)
    for members in pools.values():
        for name, drawn in _drawn(source, members, sample).items():
            by_name[name] = [
                JudgedPair(**pair.model_dump(), stratum=stratum, place=number)
                for number, (pair, stratum) in enumerate(drawn, 1)
            ]
    judged = [pair for name in study.kinds for pair in by_name[name]]
    if keep:
        write_table(study.judgements / FILE, judged, JudgedPair)
    return judged


def read_judged(study: Study) -> list[JudgedPair]:
    """The pairs that judges rate."""
    return read_records(study.judgements / FILE, JudgedPair, study.command(COMMAND))


def undrawn(records: CampaignRecords, judged: Sequence[JudgedPair]) -> int:
    """Count judged outputs that no sample could have had although their strata do not say so.

    Earlier versions drew near-duplicates into a pool of `all` as if people could have rated them.
    """
    judging, number, seen = records.study.judging, 0, dict[str, DuplicateIndex]()
    sample = {pair.pair_id for pair in records.known_pairs}
    counting = [pair for pair in judged if pair.stratum != UNDRAWN and not judging.takes_all]
    for pair in sorted(counting, key=lambda pair: pair.pair_id not in sample):
        index, text = seen.setdefault(pair.pool, DuplicateIndex()), compared(judging.beside, pair)
        near = pair.pair_id not in sample and index.near(*text)
        number += near
        if not near:
            index.add(*text)
    return number


def _larger(study: Study, pairs: int) -> Study:
    """The study with a sample of so many pairs."""
    return study.model_copy(update={"sample": study.sample.model_copy(update={"pairs": pairs})})


def _drawn(source: SampleSource, members: Sequence[str], sample: Sequence[Pair]) -> dict[str, list[tuple[Pair, str]]]:
    """Return the pairs of each transformation of a pool with their strata: the sample's first, undrawable ones last."""
    pool, everything = source.study.kinds[members[0]].pool, source.study.judge_pool == "all"
    before = [pair for pair in sample if pair.pool == pool and (pair.drawn or not everything)]
    candidates = {name: source.of(name) for name in members}
    every = [candidate for of_name in candidates.values() for candidate in of_name]
    cache = _SourceCache(_larger(source.study, len(every)) if everything else source.study, source.supply, candidates)
    drawn = [*(pair for pair in before if pair.drawn), *PoolDrawing(cache, members, before).sample()]
    keys = {pair.key for pair in drawn}
    more = sorted((candidate for candidate in every if candidate.key not in keys), key=lambda candidate: candidate.rank)
    near = Counter[str]()
    if not source.study.judging.takes_all:
        near = _near_duplicates(partial(compared, source.study.judging.beside), drawn, more)
    strata = {candidate.key: _stratum(candidate) + _class(near[candidate.key]) for candidate in every}
    pairs = [(pair, strata.get(pair.key, "")) for pair in drawn]
    pairs += [(candidate.pair, UNDRAWN) for candidate in more if everything]
    return {name: [drawn_pair for drawn_pair in pairs if drawn_pair[0].transformation == name] for name in members}


def _near_duplicates(
    text_of: Callable[[Pair], tuple[list[Hashable], frozenset[str]]], drawn: Sequence[Pair], more: Sequence[Candidate]
) -> Counter[str]:
    """Return how many of the other candidates are near-duplicates of each drawn pair, by its key."""
    seen = DuplicateIndex()
    for pair in drawn:
        seen.add(*text_of(pair))
    places = (seen.first(*text_of(candidate.pair)) for candidate in more)
    return Counter(drawn[index].key for index in places if index is not None)


def _class(near: int) -> str:
    """Return the part of a stratum for outputs with near-duplicates: 1, 2 to 3, 4 to 7 of them and so on."""
    return f"/near {near.bit_length()}" if near else ""


@dataclass(frozen=True)
class _SourceCache:
    """A source whose candidates were read already."""

    study: Study
    supply: list[Supply]
    candidates: Mapping[str, list[Candidate]]

    def of(self, name: str) -> list[Candidate]:
        """Return the cached candidates of a transformation."""
        return self.candidates[name]


def _stratum(candidate: Candidate) -> str:
    """Return a candidate's stratum as one line; a long part is replaced by its hash."""
    return "/".join(part if len(part) <= _LONGEST else identity("stratum-v1", part)[:12] for part in candidate.stratum)
