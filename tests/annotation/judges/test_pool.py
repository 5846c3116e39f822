"""The outputs that judges rate are drawn as the sample is: what no sample could have moves no mean."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd
import pytest

from annotation.judges.pool import _drawn, _larger
from annotation.judges.powered import Judging, powered_means
from annotation.judges.records import UNDRAWN, JudgedPair
from annotation.records import Supply
from annotation.sampling.candidates import Candidate
from annotation.sampling.sample import PoolDrawing
from annotation.verdicts.counted import basis
from annotation.verdicts.judged import with_judged
from annotation.verdicts.verdicts import verdicts
from plumbline.records import Pair
from plumbline.study import Study
from tests.annotation.judgements import pair
from tests.annotation.judges.test_decisions import judged_mean, unit_of
from tests.annotation.judges.test_powered import design

STRATUM = ("en", "sts", "made", "en", "0")
Groups = dict[str, tuple[int, ...]]  # numbers of outputs by the text that they are near-duplicates of


@dataclass(frozen=True)
class Made:
    """Outputs whose originals come in clusters of near-duplicates, in a random order."""

    study: Study
    pairs: list[Pair]
    order: list[int]
    supply: list[Supply] = field(default_factory=list)

    def of(self, name: str) -> list[Candidate]:
        """As a study's own."""
        assert name == "paraphrasing"
        return [
            Candidate(rank, STRATUM, one.key, lambda one=one: one)  # type: ignore[misc]
            for rank, one in zip(self.order, self.pairs, strict=True)
        ]


def made(study: Study, clusters: list[int], pool: int | Literal["all"] = "all", pairs: int = 100) -> Made:
    """Clusters of so many outputs each; those of a cluster differ by a word in thirteen."""
    sample = study.sample.model_copy(update={"pairs": pairs})
    own = study.model_copy(update={"sample": sample, "judge_pool": pool})
    texts = [
        " ".join([*(f"cluster{number}word{place}" for place in range(12)), f"own{number}of{which}"])
        for number, size in enumerate(clusters)
        for which in range(size)
    ]
    found = [pair(number).model_copy(update={"original": text}) for number, text in enumerate(texts)]
    return Made(own, found, list(range(len(found))))


def drawn(source: Made) -> tuple[list[Pair], list[JudgedPair]]:
    """(the sample, the judged)."""
    sample = PoolDrawing(source, ["paraphrasing"], []).sample()
    pool = source.study.judge_pool
    larger = source if pool == "all" else replace(source, study=_larger(source.study, pool))
    found = _drawn(larger, ["paraphrasing"], sample)["paraphrasing"]
    judged = [
        JudgedPair(**one.model_dump(), stratum=stratum, place=place) for place, (one, stratum) in enumerate(found, 1)
    ]
    return sample, judged


@pytest.mark.parametrize("pool", ["all", 110])
def test_no_near_duplicate_stands_beside_the_rated_ones(demo: Study, pool: int | Literal["all"]) -> None:
    """120 texts, and 301 that are near one another: one of these counts, in a stratum of its own."""
    sample, judged = drawn(made(demo, [1] * 60 + [301] + [1] * 60, pool))
    assert [one.pair_id for one in judged[:100]] == [one.pair_id for one in sample]
    strata = Counter(one.stratum for one in judged)
    single = "/".join(STRATUM)
    if pool == "all":
        assert strata == {single: 120, f"{single}/near 9": 1, UNDRAWN: 300}
    else:
        assert strata == {single: 109, f"{single}/near 9": 1}


def campaign(source: Made, clusters: list[int], gap: float, draw: np.random.Generator) -> tuple[Judging, pd.DataFrame]:
    """Ratings by three people at a true mean of 3 over texts, of which those with near-duplicates are `gap` away."""
    shuffled = replace(source, order=draw.permutation(len(source.pairs)).tolist())
    sample, judged = drawn(shuffled)
    sizes = np.array(clusters)
    weights = sizes > 1
    quality = draw.normal(3, 0.8, len(sizes)) + gap * (weights - weights.mean())
    felt = dict(zip((one.pair_id for one in source.pairs), np.repeat(quality, sizes), strict=True))
    rows = [
        (one.pair_id, one.transformation, one.language, f"r{rater}", "quality", value)
        for one in sample
        for rater, value in enumerate(felt[one.pair_id] + draw.normal(0, 0.9, 3))
    ]
    names = ["pair_id", "transformation", "language", "rater_id", "question", "value"]
    ratings = pd.DataFrame(rows, columns=names).assign(status="submitted", excluded="", simulated=False)
    ratings["value"] = np.clip(np.round(ratings["value"]), 1, 5)
    frame = pd.DataFrame([one.model_dump() for one in judged])
    scores = [np.clip(felt[one.pair_id] + draw.normal(0, 0.5), 1, 5) for one in judged]
    said = pd.DataFrame({"pair_id": frame["pair_id"], "score": scores}).assign(
        judge="j", question="quality", order="up", status="ok", prompt_hash="p"
    )
    return Judging(frame, said, ("j",), frozenset(one.pair_id for one in sample)), ratings


def accepted(judging: Judging, ratings: pd.DataFrame) -> tuple[bool, bool, float]:
    """(whether people alone accept, whether people and judges do, how far the mean of both is from 3)."""
    chosen = design(min_pairs=30)
    sample = [pair(0).model_copy(update={"pair_id": one}) for one in ratings["pair_id"].unique()]
    facts = pd.DataFrame([one.model_dump() for one in sample])[["pair_id", "pool", "language", "task_type", "wave"]]
    found = verdicts(sample, ratings.assign(submitted_at=0), chosen, None)
    row = powered_means(basis(facts, ratings, chosen), judging, chosen).to_dict("records")[0]
    both = with_judged(found, {unit_of(found[0]): (judged_mean(row),)}, chosen.rule)[0]
    return found[0].decision == "accepted", both.decision == "accepted", float(row["mean"]) - 3


def test_near_duplicates_in_the_pool_accept_nothing(demo: Study) -> None:
    """420 outputs of which 300 are near one another and 1.5 points better: at the threshold, wrongly accepted.

    With the pool as it was drawn before people and judges accepted about a fifth.
    """
    clusters, draw = [1] * 60 + [300] + [1] * 60, np.random.default_rng(2)
    source, campaigns = made(demo, clusters), 40
    now, before = [], []
    for number in range(campaigns):
        judging, ratings = campaign(source, clusters, 1.5, draw)
        now.append(accepted(judging, ratings))
        if number % 4 == 0:
            old = judging.judged.assign(stratum="one")
            before.append(accepted(replace(judging, judged=old), ratings))
    right, wrong = np.array(now), np.array(before)
    assert right[:, 1].mean() <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / campaigns)
    assert abs(np.nanmean(right[:, 2])) < 0.03
    assert np.isnan(wrong[:, 2]).mean() > 0.9 and not wrong[:, 1].any()  # scores say that these are of another kind
