"""Pairs that people withdraw, from the decision to what every number rests on: ratings by hand, without a server."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime

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
from tests.annotation.ratings.test_review import rate
from tests.commands import here
from tests.concluded import concluded

WHY = "the original is cut off"


def command(study: Study, *words: str) -> subprocess.CompletedProcess[str]:
    return here(*words, "--study", str(study.file), "--exports", str(study.folder.parent))


def of(study: Study, transformation: str, number: int) -> list[str]:
    """The first pairs of a transformation, by id."""
    return sorted(pair.pair_id for pair in CampaignRecords(study).pairs if pair.transformation == transformation)[
        :number
    ]


def test_a_withdrawn_pair_leaves_every_number_and_its_answers_stay(generated: Study) -> None:
    """Three raters rated 24 pairs of each transformation; two of paraphrasing go, each with 3 x 2 ratings."""
    rate(generated)
    decide(generated, "a", exclude=True, reason="clicks through")
    out = [
        *of(generated, "paraphrasing", 1),
        *(one.repeats for one in CampaignRecords(generated).controls if one.repeats),
    ][:2]
    assert len(set(out)) == 2
    accept(generated)
    before = {one.transformation: one for one in concluded(generated).verdicts}
    withdraw(generated, [out[0][:12], out[1]], take_back=False, reason=f"{WHY}\n")
    with pytest.raises(DataError, match="changed after the verdicts were reached"):
        refuse_unlooked(CampaignRecords(generated))
    accept(generated)
    now = {one.transformation: one for one in concluded(generated).verdicts}
    refuse_unlooked(CampaignRecords(generated))

    ratings, gone = CampaignRecords(generated).ratings, set(out)
    repeats = {one.pair_id for one in CampaignRecords(generated).controls if one.repeats in gone}
    assert repeats and set(CampaignRecords(generated).withdrawn) == gone | repeats
    every = CampaignRecords(generated).all_ratings
    assert set(every.loc[every["withdrawn"] == WHY, "pair_id"]) == gone | repeats
    assert (ratings["withdrawn"] != "").sum() == 2 * 3 * 2 and (ratings["excluded"] != "").sum() == len(ratings) / 3
    assert not gone & set(counting_ratings(ratings, 3, with_excluded=True)["pair_id"])
    assert not gone & set(concluded(generated).means["pair_id"])
    pools = {pair.pair_id: pair.pool for pair in CampaignRecords(generated).pairs}
    for name, verdict in now.items():
        lost = sum(pools[one] == verdict.pool for one in gone)
        assert verdict.n_pairs == before[name].n_pairs - lost == verdict.questions[0].n_pairs
        assert (verdict.n_ratings, verdict.review.n_withdrawn) == (verdict.n_pairs * 2 * 2, lost)
        assert verdict.review.n_excluded == verdict.n_pairs * 2  # withdrawn ones are counted as withdrawn
        assert (verdict.review.with_withdrawn is None) is not bool(lost)

    status = read_status(Evidence(generated), datetime.now(UTC))
    assert (
        status.progress["withdrawn"].sum() == 2
        and status.progress["pairs"].sum() == len(CampaignRecords(generated).pairs) - 2
    )
    assert status.progress["open"].equals(2 * status.progress["pairs"])  # two of four count, of what stays
    assert status.raters.set_index("rater_id")["excluded"].sum() == 1
    assert f"Withdrawn from the sample: 2 pairs ({WHY})." in status_text(status, more=True)

    withdraw(generated, out, take_back=True, reason="it is whole after all")
    accept(generated)
    again = {one.transformation: one for one in concluded(generated).verdicts}
    assert {name: one.questions for name, one in again.items()} == {n: one.questions for n, one in before.items()}


def test_who_withdraws_what_raters_rejected_is_told_so(generated: Study) -> None:
    """After a look, the worst pairs of a rejected transformation go, until it is accepted."""
    rate(generated)
    accept(generated)
    rejected = next(
        one for one in concluded(generated).verdicts if one.decision == "rejected" and one.pool != "translation"
    )
    means = concluded(generated).means
    own = means[means["transformation"] == rejected.transformation].groupby("pair_id")["mean"].min()
    ratings = CampaignRecords(generated).ratings
    ratings.loc[ratings["pair_id"].isin(own.nlargest(20).index), "value"] = 4
    Manifest.of(generated).write_table("ratings.parquet", ratings, Rating)
    doubts = " ".join(accept(generated).doubts)
    assert "withdrawn" not in doubts
    withdraw(generated, list(own.nsmallest(4).index), take_back=False, reason="strange")
    done = accept(generated)
    verdict = next(one for one in done.verdicts if one.transformation == rejected.transformation)
    line = next(line for line in done.doubts if "withdrawn" in line)
    assert line.startswith("4 pairs were withdrawn after ratings had come in (4 of them after verdicts had been seen)")
    assert verdict.review.n_withdrawn == 4 and verdict.review.with_withdrawn is not None
    withdraw(generated, list(own.nsmallest(4).index), take_back=True, reason="not strange")
    assert any("made to count again after ratings had come in" in line for line in accept(generated).doubts)


def test_a_decision_that_nothing_carries_yet_refuses_the_verdicts(
    generated: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the decision and the ratings' marks: nobody builds on verdicts that do not know it."""
    rate(generated)
    accept(generated)
    (out,) = of(generated, "paraphrasing", 1)
    with monkeypatch.context() as patch:
        patch.setattr("annotation.ratings.decisions.write_ratings", lambda *_: None)
        withdraw(generated, [out], take_back=False, reason=WHY)
        decide(generated, "b", exclude=True, reason="the same")
    with pytest.raises(DataError, match="decisions about raters and pairs changed"):
        refuse_unlooked(CampaignRecords(generated))
    withdraw(generated, [out], take_back=True, reason="a mistake")
    with monkeypatch.context() as patch:
        patch.setattr("annotation.ratings.decisions.write_ratings", lambda *_: None)
        decide(generated, "c", exclude=True, reason="the same")
    accept(generated)
    ratings = CampaignRecords(generated).ratings
    assert set(ratings.loc[ratings["excluded"] == "", "rater_id"]) == {"a"}


@pytest.mark.parametrize("moment", ["write_ratings", "Manifest.write_models", ""])
def test_a_withdrawal_that_was_cut_off_can_be_repeated(
    generated: Study, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Before it, between decision and marks, or after all is written: the same command ends well, and notes it once."""
    rate(generated)
    ids = of(generated, "paraphrasing", 2)
    words = ["--pair", *ids, "--reason", WHY]
    with monkeypatch.context() as patch:
        if moment:
            patch.setattr(f"annotation.ratings.decisions.{moment}", cut_off)
        done = command(generated, "withdraw", *words)
    assert done.returncode == (130 if moment else 0)
    done = command(generated, "withdraw", *words)
    assert done.returncode == 0 and f"2 pairs withdrawn ({WHY})" in done.stdout, done.stderr
    assert [one.pair_id for one in CampaignRecords(generated).decided] == ids
    ratings = CampaignRecords(generated).all_ratings
    assert set(ratings.loc[ratings["withdrawn"] == WHY, "pair_id"]) >= set(ids)
    for _ in range(2):
        done = command(generated, "withdraw", "--take-back", *words[:-1], "whole")
        assert done.returncode == 0 and "2 pairs restored (whole)" in done.stdout, done.stderr
    assert (
        len(CampaignRecords(generated).decided) == 4
        and not (CampaignRecords(generated).all_ratings["withdrawn"] != "").any()
    )


def cut_off(*_: object) -> None:
    raise KeyboardInterrupt
