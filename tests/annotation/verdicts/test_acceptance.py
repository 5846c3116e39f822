"""Accepting a study: the files that it writes, and the ratings, rules and files that it refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from annotation.campaign.records import CampaignRecords
from annotation.questions import rating
from annotation.records import Decision
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.conclusion import refuse_unlooked
from annotation.verdicts.tables import verdict_text
from plumbline.errors import DataError
from plumbline.manifest import Manifest
from plumbline.records import Pair, Rating
from plumbline.statistics.agreement import Answers, krippendorff_alpha
from plumbline.statistics.estimates import Estimate
from plumbline.study import Study
from tests.annotation.judgements import ratings
from tests.annotation.sampling.test_sample import flag
from tests.concluded import concluded
from tests.shared import generate_once


def write(study: Study, pairs: list[Pair], value: int, **changes: object) -> None:
    frame = ratings(pairs, [value] * len(pairs), [5] * len(pairs)).assign(**changes)
    Manifest.of(study).write_table("ratings.parquet", frame, Rating)


def test_accept_writes_what_others_read(brief: Study) -> None:
    write(brief, draw_sample(brief), 4, simulated=True)
    done = accept(brief)
    groups, found = done.groups, done.verdicts
    assert concluded(brief).groups[0].model_dump_json() == groups[0].model_dump_json()
    decisions = {v.transformation: v.decision for v in concluded(brief).verdicts}
    assert decisions == dict.fromkeys(brief.transformations, "accepted")
    assert all(verdict.simulated for verdict in found)
    supplies = CampaignRecords(brief).drawn_from
    assert [verdict.failed_share for verdict in found] == [supply.failed_share for supply in supplies]
    means = concluded(brief).means
    assert set(means["decision"]) == {"accepted"} and len(means) == 2 * len({*means["pair_id"]})
    # Everyone gave the same: agreement cannot be told from chance, which is null in the file and NaN in the program.
    stored = json.loads((brief.folder / "verdicts.json").read_text(encoding="utf-8"))[0]
    assert stored["questions"][0]["ac2"]["low"] is None
    assert math.isnan(concluded(brief).verdicts[0].questions[0].ac2.low)
    assert stored["questions"][0]["low"] == pytest.approx(4 - 3 * (1 - 0.025 ** (1 / stored["n_pairs"])))
    assert stored["questions"][0]["interval_reason"] == ""


def test_exclusions_ask_for_decisions_and_resample_nothing_again(brief: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three give 4; one more who gave 1 to each pair was excluded, and would have turned the first three's mean."""
    pairs, resampled = draw_sample(brief), list[int]()

    def counted(answers: Answers, generator: np.random.Generator | None) -> Estimate:
        resampled.extend([answers.pairs] * (generator is not None))
        return krippendorff_alpha(answers, generator)

    monkeypatch.setattr(rating, "krippendorff_alpha", counted)
    good = ratings(pairs, [4] * len(pairs), [4] * len(pairs), raters=2)
    early = pd.Timestamp("2025-01-01", tz="UTC")
    bad = ratings(pairs, [1] * len(pairs), [1] * len(pairs), raters=2).assign(submitted_at=early, excluded="careless")
    bad["rater_id"] = "bad-" + bad["rater_id"].astype(str)
    calls = []
    for frame in (good, pd.concat([good, bad])):
        Manifest.of(brief).write_table("ratings.parquet", frame, Rating)
        decisions = [Decision(rater_id=rater, exclude=True, reason="careless", decided_at=early, signs=())
                     for rater in sorted({*bad["rater_id"]})]  # fmt: skip
        Manifest.of(brief).write_models("decisions.json", decisions)
        Manifest.of(brief).write_table("control_ratings.parquet", frame.iloc[:0], Rating)
        found = accept(brief).verdicts
        calls.append(len(resampled))
    assert calls[0] > 0 and calls[1] == 2 * calls[0]
    assert {one.decision for one in found} == {"accepted"}
    assert {one.review.with_excluded for one in found} == {"rejected"}


def test_verdicts_go_stale_with_ratings_and_threshold(brief: Study, variant: Callable[..., Study]) -> None:
    pairs = draw_sample(brief)
    write(brief, pairs, 4)
    accept(brief)
    refuse_unlooked(CampaignRecords(brief))
    same = {"transformations": [*brief.transformations]}
    stricter = variant(**same, acceptance={"threshold": 4.5})
    assert stricter.folder == brief.folder
    with pytest.raises(DataError, match=r"the study's rule .* changed .* run `plumbline accept"):
        refuse_unlooked(CampaignRecords(stricter))
    with pytest.raises(DataError, match=r"the study's rule .* changed"):
        refuse_unlooked(CampaignRecords(variant(**same, acceptance={"min_pairs": 21})))
    write(brief, pairs, 2)
    with pytest.raises(DataError, match=r"ratings\.parquet changed after the verdicts were reached"):
        refuse_unlooked(CampaignRecords(brief))


def test_a_verdict_says_that_it_rests_on_outputs_without_an_error_type(variant: Callable[..., Study]) -> None:
    study = variant(sample={"pairs": 24, "without": ["wrong_language"]}, transformations=["paraphrasing"])
    generate_once(study)
    flag(study, ("wrong_language",), 30)
    write(study, draw_sample(study), 4)
    (found,) = accept(study).verdicts
    assert found.supply is not None
    assert (found.without, found.supply.kept_out_share) == (("wrong_language",), pytest.approx(30 / 101))
    assert "does not cover outputs flagged wrong_language, 29.7% of" in " ".join(verdict_text([found]).split())
    whole = found.model_copy(update={"supply": found.supply.model_copy(update={"without": ()})})
    assert "does not cover" not in verdict_text([whole])
