"""The outputs that judges rate are drawn as the sample is: what no sample could have moves no mean."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from annotation.judges.pool import _drawn
from annotation.judges.powered import Judging, powered_means
from annotation.judges.records import JudgedPair
from annotation.records import Supply
from annotation.sampling.candidates import Candidate
from annotation.sampling.sample import PoolDrawing
from annotation.verdicts.counted import basis
from plumbline.records import Pair
from plumbline.study import Study
from tests.annotation.judgements import pair
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


def made(study: Study, clusters: list[int], pairs: int = 100) -> Made:
    """Clusters of so many outputs each; those of a cluster differ by a word in thirteen."""
    sample = study.sample.model_copy(update={"pairs": pairs})
    own = study.model_copy(update={"sample": sample})
    texts = [
        " ".join([*(f"cluster{number}word{place}" for place in range(12)), f"own{number}of{which}"])
        for number, size in enumerate(clusters)
        for which in range(size)
    ]
    found = [pair(number).model_copy(update={"original": text}) for number, text in enumerate(texts)]
    return Made(own, found, list(range(len(found))))


def drawn(source: Made, outputs: int) -> tuple[list[Pair], list[JudgedPair]]:
    """(the sample, the judged)."""
    sample = PoolDrawing(source, ["paraphrasing"], []).sample()
    study = source.study
    larger = study.model_copy(update={"sample": study.sample.model_copy(update={"pairs": outputs})})
    found = _drawn(replace(source, study=larger), ["paraphrasing"], sample)["paraphrasing"]
    places = enumerate(found, 1)
    return sample, [JudgedPair(**one.model_dump(), stratum=stratum, place=at) for at, (one, stratum) in places]


def test_no_near_duplicate_stands_beside_the_rated_ones(demo: Study) -> None:
    """120 texts, and 301 that are near one another: one of these counts, in a stratum of its own."""
    sample, judged = drawn(made(demo, [1] * 60 + [301] + [1] * 60), 1000)
    assert [one.pair_id for one in judged[:100]] == [one.pair_id for one in sample]
    single = "/".join(STRATUM)
    assert Counter(one.stratum for one in judged) == {single: 120, f"{single}/near 9": 1}


def campaign(source: Made, clusters: list[int], gap: float, draw: np.random.Generator) -> tuple[Judging, pd.DataFrame]:
    """Ratings by three people at a true mean of 3 over texts, of which those with near-duplicates are `gap` away."""
    shuffled = replace(source, order=draw.permutation(len(source.pairs)).tolist())
    sample, judged = drawn(shuffled, 1000)
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
    said = pd.DataFrame({"pair_id": frame["pair_id"], "score": scores})
    return Judging(frame, said.assign(judge="j", question="quality", status="ok", prompt_hash="p")), ratings


def error(judging: Judging, ratings: pd.DataFrame) -> float:
    """How far the mean of people and judge is from 3; NaN where judges are refused."""
    sample = [pair(0).model_copy(update={"pair_id": one}) for one in ratings["pair_id"].unique()]
    facts = pd.DataFrame([one.model_dump() for one in sample])[["pair_id", "pool", "language", "task_type", "wave"]]
    return float(powered_means(basis(facts, ratings, design()), judging, design())["mean"].iloc[0]) - 3


def test_near_duplicates_move_no_mean(demo: Study) -> None:
    """420 outputs of which 300 are near one another and 1.5 points better; one stratum for all is refused."""
    clusters, draw = [1] * 60 + [300] + [1] * 60, np.random.default_rng(2)
    source = made(demo, clusters)
    campaigns = [campaign(source, clusters, 1.5, draw) for _ in range(15)]
    errors = [error(*one) for one in campaigns]
    assert abs(np.nanmean(errors)) < 0.05 and not np.isnan(errors).any()
