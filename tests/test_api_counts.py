"""What the Python API computes of a study's `ratings.parquet` is what the commands compute of it, for every statistic.

The file holds what must not count: a rater whom a person excluded, one beyond `raters.per_pair`, a pair that was
withdrawn, a draft without a value. Who takes these columns away counts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from annotation import Design, ac2, alpha, judge, kappa, mean_interval
from annotation.campaign.counting import counting_ratings
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.human.answers import answered
from annotation.human.records import HumanItem, HumanTask, TaskInstructions
from annotation.judges.check import length_effects
from annotation.judges.people import against_people, alternative_test, far_ratings, pair_means, with_each_rater
from annotation.questions.summary import Summary
from annotation.ratings.answers import write_ratings
from annotation.ratings.decisions import decide, withdraw
from annotation.records import Verdict
from annotation.verdicts.acceptance import accept
from evaluation.tables.datasets import drift_by_quality
from plumbline.frames import that_count
from plumbline.study import Study, load_study
from tests.annotation.ratings.test_review import rate
from tests.conftest import DEMO
from tests.shared import generate_once

SCALE = (1, 2, 3, 4, 5)
MARKS = ["status", "excluded", "withdrawn", "surplus", "submitted_at"]


@dataclass(frozen=True)
class Made:
    """A campaign that `accept` judged, and what its file holds."""

    study: Study
    verdict: Verdict
    ratings: pd.DataFrame  #: all rows of `ratings.parquet`

    @property
    def design(self) -> Design:
        return Design.of(self.study, load_rubric(self.study))

    @property
    def summary(self) -> Summary:
        return self.verdict.questions[0]

    def own(self, ratings: pd.DataFrame) -> pd.DataFrame:
        """The ratings that the verdict's first question is about."""
        return ratings[
            (ratings["transformation"] == self.verdict.transformation) & (ratings["question"] == self.summary.question)
        ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Raters a, b, c, d and e; a is excluded, e came last, one pair is withdrawn, z has a draft."""
    demo = load_study(DEMO, tmp_path_factory.mktemp("made") / "exports")
    generate_once(demo)
    study = demo.model_copy(update={"raters": demo.raters.model_copy(update={"per_pair": 3})})
    rate(study)
    whole = CampaignRecords(study).all_ratings
    careful, day = whole[whole["rater_id"] == "b"], pd.Timedelta("1D")
    value = careful["value"].astype("Int64")
    fourth = careful.assign(rater_id="d", value=(value - 1).clip(lower=1))
    fifth = careful.assign(rater_id="e", value=6 - value, submitted_at=careful["submitted_at"] + day)
    draft = careful.assign(rater_id="z", value=pd.NA, status="draft")
    write_ratings(CampaignRecords(study), pd.concat([whole, fourth, fifth, draft], ignore_index=True))
    decide(study, "a", exclude=True, reason="clicks through")
    paraphrases = [pair.pair_id for pair in CampaignRecords(study).pairs if pair.transformation == "paraphrasing"]
    withdraw(study, paraphrases[:1], take_back=False, reason="cut off")
    verdicts = accept(study).verdicts
    ratings = CampaignRecords(study).ratings
    assert (ratings["excluded"] != "").any() and (ratings["withdrawn"] != "").any() and ratings["surplus"].any()
    return Made(study, next(one for one in verdicts if one.transformation == "paraphrasing"), ratings)


def estimated(found: Any) -> list[float]:
    return [found.value, found.low, found.high]


#: Statistic -> (API call on rows of the file, what `accept` wrote).
OF_ACCEPT: dict[str, tuple[Callable[[pd.DataFrame, Made], Any], Callable[[Made], Any]]] = {
    "AC2": (lambda own, made: estimated(ac2(own)), lambda made: estimated(made.summary.ac2)),
    "alpha": (
        lambda own, made: estimated(alpha(own, seed=made.study.sample.seed)),
        lambda made: estimated(made.summary.alpha),
    ),
    "kappa": (lambda own, made: estimated(kappa(own)), lambda made: estimated(made.summary.kappa)),
    "mean": (
        lambda own, made: estimated(mean_interval(own)),
        lambda made: [made.summary.mean, made.summary.low, made.summary.high],
    ),
}


@pytest.mark.parametrize("name", OF_ACCEPT)
def test_a_statistic_of_the_file_is_that_of_accept(made: Made, name: str) -> None:
    call, written = OF_ACCEPT[name]
    own = made.own(made.ratings)
    assert call(own, made) == pytest.approx(written(made), nan_ok=True)
    unmarked = own[own["status"] == "submitted"].drop(columns=MARKS)
    assert call(unmarked, made) != pytest.approx(written(made), nan_ok=True)  # who takes the marks away counts all


def test_verdicts_of_the_file_are_those_of_accept(made: Made) -> None:
    (found,) = [
        one
        for one in judge(made.ratings, design=made.design, seed=made.study.sample.seed)
        if one.transformation == made.verdict.transformation
    ]
    assert (found.decision, found.n_ratings, found.review.n_excluded) == (
        made.verdict.decision,
        made.verdict.n_ratings,
        made.verdict.review.n_excluded,
    )
    for mine, theirs in zip(found.questions, made.verdict.questions, strict=True):
        assert mine.model_dump_json() == theirs.model_dump_json()
    untimed = judge(made.ratings.drop(columns="submitted_at"), design=made.design, seed=None)
    named = {one.transformation: one for one in untimed}[made.verdict.transformation]
    assert named.questions[0].mean == made.summary.mean and named.n_ratings == made.verdict.n_ratings


def scores(made: Made) -> pd.DataFrame:
    ids = made.ratings["pair_id"].drop_duplicates()
    given = np.arange(len(ids)) % 5 + 1.0
    parts = [pd.DataFrame({"judge": "j", "question": name, "pair_id": ids, "score": given}) for name in ("quality",)]
    return pd.concat(parts, ignore_index=True)


def by_pair(made: Made) -> pd.Series:
    return scores(made).set_index("pair_id")["score"]


def texts(made: Made) -> pd.DataFrame:
    pairs = CampaignRecords(made.study).pairs
    return pd.DataFrame([(one.pair_id, one.original, one.transformed) for one in pairs]).set_axis(
        ["pair_id", "original", "transformed"], axis=1
    )


def drifted(made: Made) -> pd.DataFrame:
    ids = made.ratings.drop_duplicates("pair_id")[["pair_id", "transformation"]]
    return ids.assign(model="m", drift=0.1, unit_id="")


def people(ratings: pd.DataFrame) -> list[Any]:
    ids = ratings["pair_id"].drop_duplicates()
    task = HumanTask(
        task="t", task_type="sts", source="s", revision="r", scale=SCALE, languages=("en",), content_hash="h",
        words=TaskInstructions(general={}, own={}, wordings=()),
        settings={"dataset": "d", "relevance": "graded", "raters": 3},
    )  # fmt: skip
    items = [HumanItem(records=(one,), task="t", subset="", item=one, language="en") for one in ids]
    return answered([task], items, {"t": ratings.assign(answer=ratings["value"].astype(str))}).answers


#: Statistic -> the same call on the file and on what the commands let count.
OF_FRAMES: dict[str, Callable[[pd.DataFrame, Made], Any]] = {
    "a judge against people": lambda own, made: against_people(own, scores(made), SCALE),
    "a judge against each rater": lambda own, made: with_each_rater(own, scores(made), SCALE),
    "ratings far from the judges": lambda own, made: far_ratings(own, scores(made), far=0.5),
    "pairs' means": lambda own, made: pair_means(own).to_frame(),
    "lengths": lambda own, made: length_effects(own, scores(made), texts(made)),
    "alternative annotators": lambda own, made: alternative_test(own, by_pair(made)).raters,
    "answers of people": lambda own, made: pd.DataFrame([one.model_dump() for one in people(own)]),
}


@pytest.mark.parametrize("name", OF_FRAMES)
def test_a_frame_of_the_file_gives_what_counting_ratings_give(made: Made, name: str) -> None:
    call, own = OF_FRAMES[name], made.own(made.ratings)
    due = counting_ratings(own, made.study.raters.per_pair)
    assert len(due) == made.summary.n_ratings < len(own)
    found = call(own, made)
    assert len(found)
    pd.testing.assert_frame_equal(found, call(due, made))


def test_drift_stands_beside_means_of_what_counts(made: Made) -> None:
    pairs = pd.DataFrame([one.model_dump() for one in CampaignRecords(made.study).pairs])
    frame = drift_by_quality(pairs, made.ratings, drifted(made), per_pair=3, question="quality")
    own = made.own(that_count(made.ratings))
    due = own.astype({"value": float}).groupby("pair_id")["value"].mean()
    found = frame.set_index("pair_id")["mean_quality"]
    assert len(due) and found.reindex(due.index).tolist() == due.tolist()
