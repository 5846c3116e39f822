"""The outputs that judges rate are drawn as the sample is: what no sample could have moves no mean."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from annotation.judges.pool import _drawn
from annotation.records import Supply
from annotation.sampling.candidates import Candidate
from annotation.sampling.sample import PoolDrawing
from plumbline.records import Pair
from plumbline.study import Study
from tests.annotation.judgements import pair

STRATUM = ("en", "sts", "made", "en", "0")


@dataclass(frozen=True)
class Made:
    """Outputs as a study has its own."""

    study: Study
    pairs: list[Pair]
    supply: list[Supply] = field(default_factory=list)

    def of(self, name: str) -> list[Candidate]:
        assert name == "paraphrasing"
        return [Candidate(rank, STRATUM, one.key, lambda one=one: one) for rank, one in enumerate(self.pairs)]  # type: ignore[misc]

    def of_size(self, number: int) -> Made:
        """The same with so many pairs in its sample."""
        sample = self.study.sample.model_copy(update={"pairs": number})
        return replace(self, study=self.study.model_copy(update={"sample": sample}))


def test_no_near_duplicate_stands_beside_the_rated_ones(demo: Study) -> None:
    """120 texts, and 301 that differ by a word in thirteen: one of these counts, in a stratum of its own."""
    words = [[f"cluster{number}word{place}" for place in range(12)] for number in range(121)]
    texts = [
        " ".join([*words[number], f"own{which}"])
        for number in range(121)
        for which in range(301 if number == 60 else 1)
    ]
    source = Made(demo, [pair(number).model_copy(update={"original": text}) for number, text in enumerate(texts)])
    sample = PoolDrawing(source.of_size(100), ["paraphrasing"], []).sample()
    judged = _drawn(source.of_size(1000), ["paraphrasing"], sample)["paraphrasing"]
    assert [one.pair_id for one, _ in judged[:100]] == [one.pair_id for one in sample]
    single = "/".join(STRATUM)
    assert Counter(stratum for _, stratum in judged) == {single: 120, f"{single}/near 9": 1}
