"""Pairs that people withdraw, from the decision to what every number rests on: ratings by hand, without a server."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from annotation.campaign.counting import counting_ratings
from annotation.campaign.records import CampaignRecords
from annotation.ratings.decisions import decide, withdraw
from annotation.status.status import read_status
from annotation.status.text import status_text
from annotation.verdicts.acceptance import accept
from annotation.verdicts.conclusion import refuse_unlooked
from annotation.verdicts.evidence import Evidence
from plumbline.errors import DataError
from plumbline.manifest import Manifest
from plumbline.records import Rating
from plumbline.study import Study
from tests.annotation.crowd.campaigns import copied
from tests.annotation.ratings.test_review import rate
from tests.commands import here
from tests.concluded import concluded
from tests.conftest import make_variant
from tests.shared import generate_once

WHY = "the original is cut off"


@pytest.fixture(scope="module")
def rated_once(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = make_variant(tmp_path_factory.mktemp("rated"))(transformations=["paraphrasing", "translation"])
    generate_once(study)
    rate(study)
    return study


@pytest.fixture
def rated(rated_once: Study, tmp_path: Path) -> Study:
    """A copy of what three raters have rated, one of whom clicks through."""
    return copied(rated_once, tmp_path)


def command(study: Study, *words: str) -> subprocess.CompletedProcess[str]:
    return here(*words, "--study", str(study.file), "--exports", str(study.folder.parent))


def of(study: Study, transformation: str, number: int) -> list[str]:
    return sorted(pair.pair_id for pair in CampaignRecords(study).pairs if pair.transformation == transformation)[
        :number
    ]


def test_a_withdrawn_pair_leaves_every_number_and_its_answers_stay(rated: Study) -> None:
    """Three raters rated 24 pairs of each transformation; two of paraphrasing go, each with 3 x 2 ratings."""
    decide(rated, "a", exclude=True, reason="clicks through")
    out = [*of(rated, "paraphrasing", 1), *(one.repeats for one in CampaignRecords(rated).controls if one.repeats)][:2]
    assert len(set(out)) == 2
    accept(rated)
    before = {one.transformation: one for one in concluded(rated).verdicts}
    withdraw(rated, [out[0][:12], out[1]], take_back=False, reason=f"{WHY}\n")
    with pytest.raises(DataError, match="changed after the verdicts were reached"):
        refuse_unlooked(CampaignRecords(rated))
    accept(rated)
    now = {one.transformation: one for one in concluded(rated).verdicts}
    refuse_unlooked(CampaignRecords(rated))

    ratings, gone = CampaignRecords(rated).ratings, set(out)
    repeats = {one.pair_id for one in CampaignRecords(rated).controls if one.repeats in gone}
    assert repeats and set(CampaignRecords(rated).withdrawn) == gone | repeats
    every = CampaignRecords(rated).all_ratings
    assert set(every.loc[every["withdrawn"] == WHY, "pair_id"]) == gone | repeats
    assert (ratings["withdrawn"] != "").sum() == 2 * 3 * 2 and (ratings["excluded"] != "").sum() == len(ratings) / 3
    assert not gone & set(counting_ratings(ratings, 3, with_excluded=True)["pair_id"])
    assert not gone & set(concluded(rated).means["pair_id"])
    pools = {pair.pair_id: pair.pool for pair in CampaignRecords(rated).pairs}
    for name, verdict in now.items():
        lost = sum(pools[one] == verdict.pool for one in gone)
        assert verdict.n_pairs == before[name].n_pairs - lost == verdict.questions[0].n_pairs
        assert (verdict.n_ratings, verdict.review.n_withdrawn) == (verdict.n_pairs * 2 * 2, lost)
        assert verdict.review.n_excluded == verdict.n_pairs * 2  # withdrawn ones are counted as withdrawn
        assert (verdict.review.with_withdrawn is None) is not bool(lost)

    status = read_status(Evidence(rated), datetime.now(UTC))
    assert (
        status.progress["withdrawn"].sum() == 2
        and status.progress["pairs"].sum() == len(CampaignRecords(rated).pairs) - 2
    )
    assert status.progress["open"].equals(2 * status.progress["pairs"])  # two of four count, of what stays
    assert status.raters.set_index("rater_id")["excluded"].sum() == 1
    assert f"Withdrawn from the sample: 2 pairs ({WHY})." in status_text(status, more=True)

    withdraw(rated, out, take_back=True, reason="it is whole after all")
    accept(rated)
    again = {one.transformation: one for one in concluded(rated).verdicts}
    assert {name: one.questions for name, one in again.items()} == {n: one.questions for n, one in before.items()}


def test_who_withdraws_what_raters_rejected_is_told_so(rated: Study) -> None:
    """After a look, the worst pairs of a rejected transformation go, until it is accepted."""
    accept(rated)
    rejected = next(
        one for one in concluded(rated).verdicts if one.decision == "rejected" and one.pool != "translation"
    )
    means = concluded(rated).means
    own = means[means["transformation"] == rejected.transformation].groupby("pair_id")["mean"].min()
    ratings = CampaignRecords(rated).ratings
    ratings.loc[ratings["pair_id"].isin(own.nlargest(20).index), "value"] = 4
    Manifest.of(rated).write_table("ratings.parquet", ratings, Rating)
    doubts = " ".join(accept(rated).doubts)
    assert "withdrawn" not in doubts
    withdraw(rated, list(own.nsmallest(4).index), take_back=False, reason="strange")
    done = accept(rated)
    verdict = next(one for one in done.verdicts if one.transformation == rejected.transformation)
    line = next(line for line in done.doubts if "withdrawn" in line)
    assert line.startswith("4 pairs were withdrawn after ratings had come in (4 of them after verdicts had been seen)")
    assert verdict.review.n_withdrawn == 4 and verdict.review.with_withdrawn is not None
    withdraw(rated, list(own.nsmallest(4).index), take_back=True, reason="not strange")
    assert any("made to count again after ratings had come in" in line for line in accept(rated).doubts)


def test_a_decision_that_nothing_carries_yet_refuses_the_verdicts(
    rated: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the decision and the ratings' marks: nobody builds on verdicts that do not know it."""
    accept(rated)
    (out,) = of(rated, "paraphrasing", 1)
    with monkeypatch.context() as patch:
        patch.setattr("annotation.ratings.decisions.write_ratings", lambda *_: None)
        withdraw(rated, [out], take_back=False, reason=WHY)
        decide(rated, "b", exclude=True, reason="the same")
    with pytest.raises(DataError, match="decisions about raters and pairs changed"):
        refuse_unlooked(CampaignRecords(rated))
    withdraw(rated, [out], take_back=True, reason="a mistake")
    with monkeypatch.context() as patch:
        patch.setattr("annotation.ratings.decisions.write_ratings", lambda *_: None)
        decide(rated, "c", exclude=True, reason="the same")
    accept(rated)
    ratings = CampaignRecords(rated).ratings
    assert set(ratings.loc[ratings["excluded"] == "", "rater_id"]) == {"a"}


@pytest.mark.parametrize("moment", ["write_ratings", "Manifest.write_models", ""])
def test_a_withdrawal_that_was_cut_off_can_be_repeated(
    rated: Study, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Before it, between decision and marks, or after all is written: the same command ends well, and notes it once."""
    ids = of(rated, "paraphrasing", 2)
    words = ["--pair", *ids, "--reason", WHY]
    with monkeypatch.context() as patch:
        if moment:
            patch.setattr(f"annotation.ratings.decisions.{moment}", cut_off)
        done = command(rated, "withdraw", *words)
    assert done.returncode == (130 if moment else 0)
    done = command(rated, "withdraw", *words)
    assert done.returncode == 0 and f"2 pairs withdrawn ({WHY})" in done.stdout, done.stderr
    assert [one.pair_id for one in CampaignRecords(rated).decided] == ids
    ratings = CampaignRecords(rated).all_ratings
    assert set(ratings.loc[ratings["withdrawn"] == WHY, "pair_id"]) >= set(ids)
    for _ in range(2):
        done = command(rated, "withdraw", "--take-back", *words[:-1], "whole")
        assert done.returncode == 0 and "2 pairs restored (whole)" in done.stdout, done.stderr
    assert (
        len(CampaignRecords(rated).decided) == 4 and not (CampaignRecords(rated).all_ratings["withdrawn"] != "").any()
    )


def cut_off(*_: object) -> None:
    raise KeyboardInterrupt
