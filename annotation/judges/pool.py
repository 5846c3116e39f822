"""The pairs that judges rate: the sample's, and further ones drawn from where the sample ends.

Strata and order are the sample's. A sample never has two near-duplicates, and is likelier to have an output with many
near-duplicates than one with few, so strata also separate outputs by their number of near-duplicates. Then within
each stratum the rated pairs are a random part of the judged ones. Judges see no controls and no repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.judges.records import JudgedPair
from annotation.records import Supply
from annotation.sampling.candidates import Candidate, Candidates, DuplicateIndex, Groups, SampleSource
from annotation.sampling.sample import PoolDrawing, compared
from generation.jobs import Plan
from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.records import Pair
from plumbline.store import read_records, write_table
from plumbline.study import Study

FILE = "judged.parquet"
COMMAND = "judge run"
_LONGEST = 60  # characters of a stratum's part


def draw_judged(study: Study, outputs: int = 0, *, keep: bool = True) -> list[JudgedPair]:
    """Draw the pairs that judges rate; if they are to be kept, write `judgements/judged.parquet`.

    For each transformation: the sample's pairs, then further ones up to `outputs`, or as many as exist. Without a
    number: as many as were drawn before, and at least twice the sample. Raises StudyError for fewer than the sample.
    """
    if 0 < outputs < study.sample.pairs:
        raise StudyError(
            f"--outputs {outputs} is less than `sample.pairs: {study.sample.pairs}` of {study.file}, but judges rate"
            " all pairs that people rate; name a larger number"
        )
    if not outputs:
        earlier = read_judged(study) if (study.judgements / FILE).exists() else []
        outputs = max([2 * study.sample.pairs, *(pair.place for pair in earlier)])
    larger = study.model_copy(update={"sample": study.sample.model_copy(update={"pairs": outputs})})
    source: SampleSource = Groups(larger, load_rubric(study)) if study.subject else Candidates(Plan(larger))
    # Pairs drawn for raters, controls included; empty before sampling, and for a candidate's outputs.
    records = CampaignRecords(study)
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
    """Read the pairs that judges rate."""
    return read_records(study.judgements / FILE, JudgedPair, study.command(COMMAND))


def _drawn(source: SampleSource, members: Sequence[str], sample: Sequence[Pair]) -> dict[str, list[tuple[Pair, str]]]:
    """Return the pairs of each transformation of a pool with their strata, the sample's first."""
    pool = source.study.kinds[members[0]].pool
    sampled = [pair for pair in sample if pair.pool == pool]
    candidates = {name: source.of(name) for name in members}
    every = [candidate for of_name in candidates.values() for candidate in of_name]
    cache = _SourceCache(source.study, source.supply, candidates)
    drawn = [*(pair for pair in sampled if pair.drawn), *PoolDrawing(cache, members, sampled).sample()]
    keys = {pair.key for pair in drawn}
    more = sorted((candidate for candidate in every if candidate.key not in keys), key=lambda candidate: candidate.rank)
    near = Counter[str]()
    if not source.study.judging.takes_all:
        near = _near_duplicates(partial(compared, source.study.judging.beside), drawn, more)
    strata = dict[str, str]()
    for candidate in every:  # in one line; a long part is replaced by its hash
        parts = [part if len(part) <= _LONGEST else identity("stratum-v1", part)[:12] for part in candidate.stratum]
        if number := near[candidate.key]:  # 1, 2 to 3, 4 to 7 near-duplicates and so on
            parts.append(f"near {number.bit_length()}")
        strata[candidate.key] = "/".join(parts)
    pairs = [(pair, strata.get(pair.key, "")) for pair in drawn]
    return {name: [drawn_pair for drawn_pair in pairs if drawn_pair[0].transformation == name] for name in members}


def _near_duplicates(
    text_of: Callable[[Pair], tuple[list[Hashable], frozenset[str]]], drawn: Sequence[Pair], more: Sequence[Candidate]
) -> Counter[str]:
    """Return how many of the other candidates are near-duplicates of each drawn pair, by its key."""
    drawn_index = DuplicateIndex()
    for pair in drawn:
        drawn_index.add(*text_of(pair))
    places = (drawn_index.first(*text_of(candidate.pair)) for candidate in more)
    return Counter(drawn[index].key for index in places if index is not None)


@dataclass(frozen=True)
class _SourceCache:
    """A source with its candidates already read."""

    study: Study
    supply: list[Supply]
    candidates: Mapping[str, list[Candidate]]

    def of(self, name: str) -> list[Candidate]:
        """Return the cached candidates of a transformation."""
        return self.candidates[name]
