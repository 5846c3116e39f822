"""Pairs that people withdraw, from the decision to what every number rests on: ratings by hand, without a server."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from annotation.campaign_records import CampaignRecords
from annotation.csv_answers import export
from annotation.preview import preview_html
from annotation.ratings.ratings import counting_ratings, dealt_with, decide, withdraw
from annotation.ratings.review import review_text
from annotation.report.exhibits import exclusions_exhibit
from annotation.report.material import read_material
from annotation.report.methods import methods
from annotation.sampling.queues import in_order
from annotation.sampling.sample import draw_sample
from annotation.statistics.summaries import Design
from annotation.status.status import read_status
from annotation.status.text import status_text
from annotation.verdicts.acceptance import accept
from annotation.verdicts.counted import basis
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.verdicts import refuse_stale
from annotation.verdicts.verification import refuse_edited
from plumbline.errors import DataError
from plumbline.manifest import Manifest
from plumbline.records import Rating
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation import judgements
from tests.annotation.previews import words
from tests.annotation.ratings.test_review import rate
from tests.commands import here

WHY = "the original is cut off"


def command(study: Study, *words: str) -> subprocess.CompletedProcess[str]:
    return here("annotation", *words, "--study", str(study.file), "--exports", str(study.folder.parent))


def of(study: Study, transformation: str, number: int) -> list[str]:
    """The first pairs of a transformation, by id."""
    return sorted(pair.pair_id for pair in CampaignRecords.open(study).pairs if pair.transformation == transformation)[
        :number
    ]


def test_a_withdrawn_pair_leaves_every_number_and_its_answers_stay(generated: Study) -> None:
    """Three raters rated 24 pairs of each transformation; two of paraphrasing go, each with 3 x 2 ratings."""
    rate(generated)
    decide(generated, "a", exclude=True, reason="clicks through")
    out = [
        *of(generated, "paraphrasing", 1),
        *(one.repeats for one in CampaignRecords.open(generated).controls if one.repeats),
    ][:2]
    assert len(set(out)) == 2
    accept(generated)
    before = {one.transformation: one for one in CampaignRecords.open(generated).verdicts}
    withdraw(generated, [out[0][:12], out[1]], take_back=False, reason=f"{WHY}\n")
    with pytest.raises(DataError, match="changed after the verdicts were reached"):
        refuse_stale(CampaignRecords.open(generated), CampaignRecords.open(generated).verdicts)
    accept(generated)
    now = {one.transformation: one for one in CampaignRecords.open(generated).verdicts}
    refuse_stale(CampaignRecords.open(generated), list(now.values()))
    refuse_edited(Evidence.read(generated), list(now.values()))

    ratings, gone = CampaignRecords.open(generated).ratings, set(out)
    repeats = {one.pair_id for one in CampaignRecords.open(generated).controls if one.repeats in gone}
    assert repeats and set(CampaignRecords.open(generated).withdrawn) == gone | repeats
    every = CampaignRecords.open(generated).all_ratings
    assert set(every.loc[every["withdrawn"] == WHY, "pair_id"]) == gone | repeats
    assert (ratings["withdrawn"] != "").sum() == 2 * 3 * 2 and (ratings["excluded"] != "").sum() == len(ratings) / 3
    assert not gone & set(counting_ratings(ratings, 3, with_excluded=True)["pair_id"])
    assert not gone & set(CampaignRecords.open(generated).pair_means["pair_id"])
    pools = {pair.pair_id: pair.pool for pair in CampaignRecords.open(generated).pairs}
    for name, verdict in now.items():
        lost = sum(pools[one] == verdict.pool for one in gone)
        assert verdict.n_pairs == before[name].n_pairs - lost == verdict.questions[0].n_pairs
        assert (verdict.n_ratings, verdict.n_withdrawn) == (verdict.n_pairs * 2 * 2, lost)
        assert verdict.n_excluded == verdict.n_pairs * 2  # those of withdrawn pairs are counted once, as withdrawn
        assert (verdict.decision_with_withdrawn is None) is not bool(lost)

    status = read_status(Evidence.open(generated), datetime.now(UTC))
    assert (
        status.progress["withdrawn"].sum() == 2
        and status.progress["pairs"].sum() == len(CampaignRecords.open(generated).pairs) - 2
    )
    assert status.progress["open"].equals(status.progress["pairs"])  # one of four answers to come, to what stays
    assert status.raters.set_index("rater_id")["excluded"].sum() == 1
    assert f"Withdrawn from the sample: 2 pairs ({WHY})." in status_text(status, "--study x")

    withdraw(generated, out, take_back=True, reason="it is whole after all")
    accept(generated)
    again = {one.transformation: one for one in CampaignRecords.open(generated).verdicts}
    assert {name: one.questions for name, one in again.items()} == {n: one.questions for n, one in before.items()}
    assert "withdrawn" not in pq.read_schema(generated.folder / "ratings.parquet").names  # the file as it was before


def test_the_report_and_the_export_tell_withdrawn_from_excluded(generated: Study) -> None:
    rate(generated)
    decide(generated, "a", exclude=True, reason="clicks through")
    (out,) = of(generated, "paraphrasing", 1)
    withdraw(generated, [out], take_back=False, reason=WHY)
    accept(generated)
    material = read_material(Evidence.open(generated))
    counts = exclusions_exhibit(material).frame.set_index("why")["ratings"]
    assert counts[f"pair withdrawn: {WHY}"] == 3 * 2
    assert counts.sum() == len(CampaignRecords.open(generated).all_ratings)
    assert "1 pair was withdrawn from the sample, after it had been rated. Had it stayed" in str(methods(material))
    folder = export(generated)
    pairs = pd.read_csv(folder / "pairs.csv", keep_default_na=False).set_index("pair_id")
    assert pairs.loc[out, "withdrawn"] == WHY and "(1 of them withdrawn" in (folder / "codebook.md").read_text()
    ratings = pd.read_csv(folder / "ratings.csv", keep_default_na=False)
    assert not ratings.loc[ratings["withdrawn"] == WHY, "counts"].any()
    assert pairs["transformed"][out] not in words(preview_html(CampaignRecords.open(generated), 1000))
    evidence = Evidence.read(generated)
    text = review_text(evidence, evidence.signs)
    assert re.search(rf"{out[:12]}\s+withdrawn", text)


def test_who_withdraws_what_raters_rejected_is_told_so(generated: Study) -> None:
    """After a look, the worst pairs of a rejected transformation go, until it is accepted."""
    rate(generated)
    accept(generated)
    rejected = next(
        one
        for one in CampaignRecords.open(generated).verdicts
        if one.decision == "rejected" and one.pool != "translation"
    )
    means = CampaignRecords.open(generated).pair_means
    own = means[means["transformation"] == rejected.transformation].groupby("pair_id")["mean"].min()
    ratings = CampaignRecords.open(generated).ratings
    ratings.loc[ratings["pair_id"].isin(own.nlargest(20).index), "value"] = 4
    Manifest.of(generated).write_table("ratings.parquet", ratings, Rating)
    doubts = " ".join(accept(generated).doubts)
    assert "withdrawn" not in doubts
    withdraw(generated, list(own.nsmallest(4).index), take_back=False, reason="strange")
    done = accept(generated)
    verdict = next(one for one in done.verdicts if one.transformation == rejected.transformation)
    line = next(line for line in done.doubts if "withdrawn" in line)
    assert line.startswith("4 pairs were withdrawn after ratings had come in (4 of them after verdicts had been seen)")
    assert verdict.n_withdrawn == 4 and verdict.decision_with_withdrawn is not None
    withdraw(generated, list(own.nsmallest(4).index), take_back=True, reason="not strange")
    assert any("made to count again after ratings had come in" in line for line in accept(generated).doubts)


def test_a_decision_that_nothing_carries_yet_refuses_the_verdicts(
    generated: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the decision and the ratings' marks: nobody builds on verdicts that do not know it."""
    rate(generated)
    accept(generated)
    reached = CampaignRecords.open(generated).verdicts
    (out,) = of(generated, "paraphrasing", 1)
    with monkeypatch.context() as patch:
        patch.setattr("annotation.ratings.ratings.write_ratings", lambda *_: None)
        withdraw(generated, [out], take_back=False, reason=WHY)
        decide(generated, "b", exclude=True, reason="the same")
    with pytest.raises(DataError, match="list of withdrawn pairs changed"):
        refuse_stale(CampaignRecords.open(generated), reached)
    withdraw(generated, [out], take_back=True, reason="a mistake")
    with monkeypatch.context() as patch:
        patch.setattr("annotation.ratings.ratings.write_ratings", lambda *_: None)
        decide(generated, "c", exclude=True, reason="the same")
    accept(generated)
    ratings = CampaignRecords.open(generated).ratings
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
            patch.setattr(f"annotation.ratings.ratings.{moment}", cut_off)
        done = command(generated, "withdraw", *words)
    assert done.returncode == (130 if moment else 0)
    done = command(generated, "withdraw", *words)
    assert done.returncode == 0 and f"2 pairs withdrawn ({WHY})" in done.stdout, done.stderr
    assert [one.pair_id for one in CampaignRecords.open(generated).decided] == ids
    ratings = CampaignRecords.open(generated).all_ratings
    assert set(ratings.loc[ratings["withdrawn"] == WHY, "pair_id"]) >= set(ids)
    for _ in range(2):
        done = command(generated, "withdraw", "--take-back", *words[:-1], "whole")
        assert done.returncode == 0 and "2 pairs restored (whole)" in done.stdout, done.stderr
    assert (
        len(CampaignRecords.open(generated).decided) == 4
        and not (CampaignRecords.open(generated).all_ratings["withdrawn"] != "").any()
    )


def test_a_pair_that_nobody_rated_is_not_waited_for(generated: Study, tmp_path: Path) -> None:
    """The same before any rating: no file of ratings is made, and nothing is called doubtful afterwards."""
    draw_sample(generated)
    (out,) = of(generated, "paraphrasing", 1)
    (tmp_path / "ids.txt").write_text(f"{out}\n\n")
    done = command(generated, "withdraw", "--pairs-from", str(tmp_path / "ids.txt"), "--reason", WHY)
    assert done.returncode == 0 and "1 pair withdrawn (the original is cut off); 0 answers" in done.stdout
    assert not (generated.folder / "ratings.parquet").exists()
    rate(generated)  # which writes the answers to all pairs without a mark, as a killed collection would
    done_verdicts = accept(generated)
    assert next(one for one in done_verdicts.verdicts if one.transformation == "paraphrasing").n_withdrawn == 1


def cut_off(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_anytime_sequence_passes_withdrawn_pairs_over_and_says_so() -> None:
    """Of ten pairs the first in the order is withdrawn, the second waits: nine stay, none counts; without it eight."""
    pairs = [judgements.pair(i) for i in range(10)]
    rule = AcceptanceSpec(rule="lower_bound", stop="anytime", min_pairs=2, min_raters=2)
    design = Design(judgements.QUESTIONS, judgements.SCALE, 2, rule, seed=1)
    first, second, *rest = in_order([pair.pair_id for pair in pairs], 1)
    rated = judgements.ratings([pair for pair in pairs if pair.pair_id in rest], [4] * 8, [4] * 8, raters=2)
    sample = pd.DataFrame([pair.model_dump() for pair in pairs])
    waiting = basis(sample, rated, design, dealt_with(rated, {first}))
    (standing,) = waiting.standings.values()
    assert (standing.waits, standing.counted, standing.withdrawn) == (second, 0, 1)
    whole = basis(sample, rated, design, dealt_with(rated, {first, second}))
    (standing,) = whole.standings.values()
    assert (standing.waits, standing.counted, standing.passed, standing.withdrawn) == ("", 8, 0, 2)
    assert standing.lines("", 2) == ("2 withdrawn pairs passed over in the sequence",)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--pair", "0123456789abcdef", "--reason", "x"], "has no pair '0123456789abcdef'"),
        (
            ["--pair", "CONTROL", "--reason", "x"],
            "is a control (positive, negative or with a known answer), which no verdict counts",
        ),
        (["--pair", "REPEAT", "--reason", "x"], "repeats pair"),
        (["--pair", "PAIR"], "withdrawing pairs needs a reason; add --reason"),
        (["--pair", "PAIR", "PAIR", "--reason", "x"], "is named twice"),
        (["--pair", "PAIR", "--take-back", "--reason", "x"], "is not withdrawn; leave it out"),
        (["--pair", "OUT", "--reason", "x"], "is withdrawn already (before)"),
        (["--pairs-from", "/nowhere/ids", "--reason", "x"], "/nowhere/ids"),
        (["--pairs-from", "EMPTY", "--reason", "x"], "names no pair"),
        (["--reason", "x"], "one of the arguments --pair --pairs-from is required"),
    ],
)
def test_bad_input_is_one_line_and_decides_nothing(
    generated: Study, tmp_path: Path, words: list[str], says: str
) -> None:
    draw_sample(generated)
    controls = CampaignRecords.open(generated).controls
    own, out = of(generated, "paraphrasing", 2)
    withdraw(generated, [out], take_back=False, reason="before")
    (tmp_path / "ids.txt").write_text("\n")
    names = {"PAIR": own, "OUT": out, "EMPTY": str(tmp_path / "ids.txt")} | {
        "CONTROL": next(one.pair_id for one in controls if one.control == "negative"),
        "REPEAT": next(one.pair_id for one in controls if one.repeats),
    }
    done = command(generated, "withdraw", *(names.get(word, word) for word in words))
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr
    assert len(CampaignRecords.open(generated).decided) == 1
