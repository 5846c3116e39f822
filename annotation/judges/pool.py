"""Which pairs judges rate: those of the sample, and further ones that are drawn on from where the sample ends.

Strata, order and near-duplicates are the sample's, so that within each stratum the pairs that people rate are a random
part of those that are judged. Judges see no controls and no repeats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from annotation.judges.records import JudgedPair
from annotation.rubric import load_rubric
from annotation.sampling.candidates import Candidate, Candidates, Source, Supply
from annotation.sampling.controls import read_controls
from annotation.sampling.groups import Groups
from annotation.sampling.sample import Drawing, known_pairs
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
    """Draw the pairs that judges rate; writes `judgements/judged.parquet`, if they are to be kept.

    For each transformation those of the sample, whatever was drawn before, then further ones until there are
    `judge_pool`, or as many as there are. With `judge_pool: all` every usable output, near-duplicates too.
    """
    rubric = load_rubric(study)
    pool = _ALL if study.judge_pool == "all" else study.judge_pool
    larger = study.model_copy(update={"sample": study.sample.model_copy(update={"pairs": pool})})
    source: Source = Groups(larger, rubric) if study.subject else Candidates(Plan(larger))
    sample = _sample(study)
    by_name: dict[str, list[JudgedPair]] = {}
    for members in _pools(study):
        for name, drawn in _drawn(source, members, sample, study.judge_pool == "all").items():
            by_name[name] = [
                JudgedPair(**pair.model_dump(), stratum=stratum, place=place)
                for place, (pair, stratum) in enumerate(drawn, 1)
            ]
    judged = [pair for name in study.kinds for pair in by_name[name]]
    if keep:
        write_table(judged_file(study), judged, JudgedPair)
    return judged


def read_judged(study: Study) -> list[JudgedPair]:
    """The pairs that judges rate."""
    return read_records(judged_file(study), JudgedPair, study.command(COMMAND))


def judged_file(study: Study) -> Path:
    """Where they stand."""
    return study.judgements / FILE


def _pools(study: Study) -> list[list[str]]:
    pools = dict.fromkeys(kind.pool for kind in study.kinds.values())
    return [[name for name, kind in study.kinds.items() if kind.pool == pool] for pool in pools]


def _sample(study: Study) -> list[Pair]:
    """What was drawn for raters, the controls among it; nothing before that, nor of a candidate's outputs."""
    pairs = known_pairs(study) if study.outputs == study.folder / "transformations" else []
    return [*pairs, *(read_controls(study) if pairs else [])]


def _drawn(
    source: Source, members: Sequence[str], sample: Sequence[Pair], everything: bool
) -> dict[str, list[tuple[Pair, str]]]:
    """The pairs of each transformation of a pool with their strata: the sample's first."""
    pool = source.study.kinds[members[0]].pool
    before = [pair for pair in sample if pair.pool == pool]
    kept = _Kept(source, {name: source.of(name) for name in members})
    strata = {one.key: _stratum(one) for found in kept.candidates.values() for one in found}
    first = [pair for pair in before if pair.drawn]
    if everything:
        had = {pair.key for pair in first}
        left = sorted((one for found in kept.candidates.values() for one in found), key=lambda one: one.rank)
        more = [one.pair for one in left if one.key not in had]
    else:
        more = Drawing(kept, members, before).sample()
    pairs = [*first, *more]
    return {
        name: [(pair, strata.get(pair.key, "")) for pair in pairs if pair.transformation == name] for name in members
    }


@dataclass(frozen=True)
class _Kept:
    """A source whose candidates were read already."""

    source: Source
    candidates: Mapping[str, list[Candidate]]

    @property
    def study(self) -> Study:
        """The source's."""
        return self.source.study

    @property
    def supply(self) -> list[Supply]:
        """The source's."""
        return self.source.supply

    def of(self, name: str) -> list[Candidate]:
        """What was read."""
        return self.candidates[name]


def _stratum(candidate: Candidate) -> str:
    """Its stratum in a line; of what stands beside a text, which may be long, a hash."""
    return "/".join(part if len(part) <= _LONGEST else identity("stratum-v1", part)[:12] for part in candidate.stratum)
