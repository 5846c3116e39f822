"""Verdicts wait for a look at raters who miss the controls or tell nothing apart, and for nobody who reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from annotation.campaign.records import CampaignRecords
from annotation.ratings.answers import write_ratings
from annotation.ratings.decisions import decide
from annotation.statistics.reliability import misses_too_many, telling_apart, vary
from annotation.statistics.summaries import Design
from annotation.status.status import read_status
from annotation.status.text import next_step
from annotation.verdicts.acceptance import accept
from annotation.verdicts.conclusion import refuse_unlooked
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.held import Checks, reasons_to_look
from annotation.verdicts.tables import scoped
from plumbline.errors import DataError
from plumbline.statistics.agreement import Answers
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation.ratings.test_review import rate
from tests.annotation.verdicts.attention import CARELESS, HONEST, share_waiting
from tests.annotation.verdicts.test_doubts import NOW, careless, doubts, paper, three
from tests.commands import here
from tests.scale import scaled


def options(study: Study) -> list[str]:
    return ["--study", str(study.file), "--exports", str(study.folder.parent)]


@pytest.fixture
def clicked(brief: Study) -> Study:
    """Scripted keys, 5 and 4 in turn: AC2 is 0.88, alpha below 0, and every unrelated text was given a 4 or a 5."""
    study = three(brief)
    careless(study)
    return study


def test_raters_who_read_nothing_decide_nothing(clicked: Study) -> None:
    found = accept(clicked).verdicts
    assert {one.decision for one in found} == {"undecided"}
    assert {one.review.unchecked for one in found} == {"accepted"}
    assert {one.review.to_look_at for one in found} == {("a", "b", "c")} and all(one.review.checked for one in found)
    assert found[0].reasons[0].startswith("raters to review: 3 raters with 100% of the ratings missed ")
    assert found[0].reasons[-1].startswith("the rule alone: accepted (mean quality 4.50 and fluency 4.50 are")
    late, look, *_ = doubts(clicked, found)
    assert late.startswith("the rules were fixed on ")  # the ratings are made, of a day before
    assert look.startswith("review raters before 3 verdicts can be decided (")
    assert " review --study " in look and "--keep" not in look and "--exclude" not in look  # pasted, it decides nothing
    step = str(next_step(read_status(Evidence(clicked), NOW)))
    assert step.startswith(
        f"plumbline review {clicked.arguments}\n  shows 3 raters for whom verdicts wait: a person decides, "
    )


def test_a_person_who_keeps_the_raters_ends_it_until_they_answer_more_or_otherwise(brief: Study) -> None:
    careless(brief, "abcd")
    found = accept(brief).verdicts
    assert {one.decision for one in found} == {"undecided"}
    read = here("review", *options(brief))
    assert "Verdicts of the last `accept` that wait until these raters are excluded or kept" in read.stdout
    assert "To decide, " in read.stdout
    assert all(f"- {scoped(one.transformation, one.language)}, a, b, c, d: " in read.stdout for one in found)
    (step,) = [line for line in read.stdout.splitlines() if line.startswith("Next: ")]
    assert "--keep a " in step and "--exclude" not in step  # what is pasted decides against nobody
    done = here("review", *options(brief), "--keep", "a", "b", "c", "d", "--reason", "watched them work")
    assert (done.returncode, done.stderr) == (0, "")
    assert "To decide, " not in here("review", *options(brief)).stdout
    assert "a, b, c, d are kept: watched them work\nNext: " in done.stdout
    with pytest.raises(DataError, match="decisions about raters and pairs changed after the verdicts were reached"):
        refuse_unlooked(CampaignRecords(brief))
    looked_at = accept(brief).verdicts
    assert {one.decision for one in looked_at} == {"accepted"} and not any(one.review.to_look_at for one in looked_at)
    assert all(one.answers_hash for one in CampaignRecords(brief).decided)
    # Times and comments say nothing of whether one read; of as many answers, but others, nobody has looked at all.
    ratings = CampaignRecords(brief).all_ratings
    write_ratings(CampaignRecords(brief), ratings.assign(comment="hm"))
    assert {one.decision for one in accept(brief).verdicts} == {"accepted"}
    one_answer = (ratings["rater_id"] == "a") & (ratings["pair_id"] == ratings["pair_id"].iloc[0])
    changed = ratings["value"].where(~one_answer, 6 - ratings["value"] + (ratings["value"] == 3))
    write_ratings(CampaignRecords(brief), ratings.assign(value=changed))
    assert {one.decision for one in accept(brief).verdicts} == {"undecided"}
    # Nor has anybody looked at what comes in afterwards.
    earlier = ratings[ratings["pair_id"] != ratings["pair_id"].iloc[0]].reset_index(drop=True)
    write_ratings(CampaignRecords(brief), earlier)
    decide(brief, "a", "b", "c", "d", exclude=False, reason="watched them work")
    write_ratings(CampaignRecords(brief), ratings)
    assert {one.decision for one in accept(brief).verdicts} == {"undecided"}


def test_excluding_the_raters_ends_it_too(brief: Study) -> None:
    """Rater a gives 5 to all; without a the others decide."""
    study = three(brief)
    rate(study)
    _all(study, "a", 5)
    waiting = [one for one in accept(study).verdicts if one.review.to_look_at]
    assert waiting and all(one.review.to_look_at == ("a",) for one in waiting)
    assert all("1 rater with 33% of the ratings missed" in one.reasons[0] for one in waiting)
    decide(study, "a", exclude=True, reason="5 to everything")
    after = accept(study).verdicts
    assert not any(one.review.to_look_at for one in after) and {one.decision for one in after} != {"undecided"}


def _all(study: Study, rater: str, value: int) -> None:
    ratings = CampaignRecords(study).all_ratings
    ratings.loc[ratings["rater_id"] == rater, "value"] = value
    write_ratings(CampaignRecords(study), ratings)


def test_papers_go_by_the_ratings_alone(clicked: Study) -> None:
    found = accept(paper(clicked)).verdicts
    assert {one.decision for one in found} == {"accepted"} and not any(one.review.checked for one in found)


@pytest.mark.parametrize(
    ("controls", "fails"),
    [
        ({}, False),
        ({"positive": (1, 1)}, False),  # one control may be missed by anybody: 0.2
        ({"positive": (1, 1), "negative": (1, 1)}, True),  # 0.2 ** 2 = 0.04
        ({"positive": (0, 2), "negative": (2, 2)}, False),  # 0.18 together, and 0.04 above 0.05 / 2
        ({"positive": (0, 3), "negative": (3, 3)}, True),  # 0.008 of one kind: always the best point
        ({"positive": (0, 50), "negative": (8, 50)}, False),
    ],
)
def test_who_fails_the_controls(controls: dict[str, tuple[int, int]], fails: bool) -> None:
    assert misses_too_many(controls, 0.2) is fails


def answers(rows: Any) -> Answers:
    frame = pd.DataFrame(np.asarray(rows)).stack().rename("value").reset_index()
    return Answers.of(frame.set_axis(["pair_id", "rater_id", "value"], axis=1), (1, 2, 3, 4, 5))


def test_telling_apart_is_the_f_test_of_a_two_way_analysis_of_variance() -> None:
    # pairs' means 1.5, 3.5, 4; raters' means 8/3, 10/3, overall 3. Between pairs: 2 (2.25 + 0.25 + 1) = 7 of 2 df;
    # raters: 3 (1/9 + 1/9) = 2/3 of 1; total 4 + 1 + 1 + 0 + 1 + 1 = 8; so within 1/3 of 2 df; F = 3.5 / (1/6) = 21
    rows = [(1, 2), (3, 4), (4, 4)]
    assert telling_apart(answers(rows)) == pytest.approx(1 / (1 + 21))  # of F(2, 2) the upper tail is 1 / (1 + F)
    harsher = [(one, other + 1) for one, other in rows]
    assert telling_apart(answers(harsher)) == pytest.approx(1 / 22)  # how severe a rater is plays no part
    assert telling_apart(answers([(1, 3), (1, 3), (1, 3)])) == 1
    assert np.isnan(telling_apart(answers([(1, 3)])))


def test_ratings_that_hardly_vary_can_show_no_agreement() -> None:
    assert not vary(answers([(5, 5, 5)] * 19 + [(3, 5, 5)]))
    assert vary(answers([(5, 5, 5)] * 10 + [(3, 3, 3)] * 10))


@pytest.mark.parametrize(("pairs", "queues"), [(20, 0), (100, 1)])
@pytest.mark.parametrize("who", HONEST)
def test_who_reads_is_hardly_ever_held_up(who: str, pairs: int, queues: int) -> None:
    """But for pairs that differ less than raters err: without controls nothing tells reading from chance there."""
    most = 0.45 if who == "read, pairs differ less than raters err" and pairs == 20 else 0.06
    if "about as good, noise" in who:  # pairs are alike: passed controls settle it, a mean clear of the threshold too
        most = 0.16 if queues else 0.75
    assert share_waiting(*HONEST[who], pairs, queues, scaled(50, 500)) <= most


@pytest.mark.parametrize(
    ("last", "waits"),
    [
        ({"positive": (0, 4), "negative": (0, 4)}, False),
        ({"positive": (0, 4)}, True),  # also 5 throughout passes these
        ({}, True),
        ({"positive": (0, 4), "negative": (4, 4)}, True),  # a person keeps this rater
    ],
)
def test_passed_controls_settle_what_every_rater_passed(last: dict[str, tuple[int, int]], waits: bool) -> None:
    pairs = [(first, first % 5 + 1, (first + 1) % 5 + 1) for first in (1, 2, 3, 4, 5)] * 20
    frame = pd.DataFrame(pairs, columns=list("abc")).rename_axis("pair_id").reset_index()
    frame = frame.melt("pair_id", var_name="rater_id").assign(question="quality")
    passed = {"positive": (0, 20), "negative": (0, 20)}
    checks = Checks({"a": passed, "b": passed, **({"c": last} if last else {})}, looked_at="c")
    design = Design(("quality",), rule=AcceptanceSpec(threshold=1.5))
    assert bool(list(reasons_to_look(frame, design, checks))) is waits


@pytest.mark.parametrize("who", CARELESS)
def test_who_reads_nothing_is_looked_at(who: str) -> None:
    """With the controls of four queues, and from the first on where nobody reads."""
    number = scaled(20, 500)
    assert share_waiting(*CARELESS[who], 100, 4, number) >= 0.85
    if not who.startswith("two read"):
        assert share_waiting(*CARELESS[who], 20, 1, number) >= 0.9
