"""What is doubtful about verdicts that follow from their rule to the letter, and that it is said where they are."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from annotation.campaign.records import CampaignRecords
from annotation.questions import rating
from annotation.questions.summary import Chance
from annotation.ratings.decisions import decide
from annotation.records import Decision, Verdict
from annotation.report.material import read_material
from annotation.report.methods import methods
from annotation.report.page import write_report
from annotation.sampling.sample import draw_sample, extend_sample
from annotation.status.status import read_status
from annotation.status.text import status_text
from annotation.verdicts.acceptance import accept
from annotation.verdicts.conclusion import refuse_unlooked
from annotation.verdicts.doubts import doubts_of, doubts_text
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.tables import verdict_text
from plumbline.errors import DataError
from plumbline.manifest import Manifest
from plumbline.records import Pair, Rating
from plumbline.statistics.agreement import Answers, krippendorff_alpha
from plumbline.statistics.estimates import Estimate
from plumbline.study import Study
from tests.annotation.imports.importing import Workplace, write_csv
from tests.annotation.judgements import ratings
from tests.annotation.ratings.test_review import rate
from tests.annotation.sampling.test_sample import flag
from tests.annotation.verdicts.fixed import fixed_in_2025
from tests.concluded import concluded
from tests.shared import generate_once, rating_of

NOW = pd.Timestamp("2026-02-01", tz="UTC").to_pydatetime()


def careless(study: Study, raters: str = "abc") -> None:
    """All give 5 and 4 in turn to whatever they see, in a second, the unrelated texts among it."""
    draw_sample(study)
    records = CampaignRecords(study)
    for file, pairs in (("ratings", records.pairs), ("control_ratings", records.controls)):
        rows = [
            rating_of(pair, rater, question, 5 - (number + place) % 2, submitted_at=NOW, seconds=1.0)
            for number, pair in enumerate(pairs)
            for place, rater in enumerate(raters)
            for question in ("quality", "fluency")
        ]
        Manifest.of(study).write_table(f"{file}.parquet", rows, Rating)


def doubts(study: Study, verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    evidence = Evidence.read(study)
    return doubts_of(evidence, verdicts, evidence.signs)


def three(study: Study) -> Study:
    """The sample study, which then wants three raters a pair: all that there are."""
    return study.model_copy(update={"raters": study.raters.model_copy(update={"per_pair": 3})})


def paper(study: Study) -> Study:
    """A study whose verdicts go by the ratings alone."""
    return study.model_copy(update={"acceptance": study.acceptance.model_copy(update={"protocol": "paper"})})


def test_raters_who_failed_every_control_are_said_by_accept_status_and_report(brief: Study) -> None:
    study = paper(three(brief))
    careless(study)
    fixed_in_2025(study)
    verdicts = accept(study).verdicts
    assert {one.decision for one in verdicts} == {"accepted"} and all(one.probability > 0.99 for one in verdicts)
    assert "Not checked: whether raters pass the controls" in verdict_text(verdicts)
    signs, controls, *others = doubts(study, verdicts)
    assert signs.startswith(
        "3 of 3 raters whose answers count show signs of careless answers (controls: 3, too fast: 3"
    )
    assert "100% of the ratings that count are theirs; nobody has decided about them" in signs
    negative = [pair for pair in CampaignRecords(study).controls if pair.control == "negative"]
    assert negative and controls.endswith("to controls are off by more than 1 point (excluded raters left out)")
    assert any("alpha below 0.2, although AC2 is 0.4 or more" in line for line in others)
    status = read_status(Evidence(study), NOW)
    assert doubts_text((signs, controls, *others), study.judging, judged=True) in status_text(status, more=True)
    assert f"\nDoubtful: {signs}. {1 + len(others)} further doubts.\n" in status_text(status)
    page = write_report(study)[0].read_text(encoding="utf-8")
    assert page.index("In short") < page.index("What is doubtful") < page.index("What was decided")
    short = page[page.index("In short") : page.index("This report")]
    assert "Accepted: " in short and "Doubtful: 3 of 3 raters" in short and "Next: <code>plumbline review" in short


def test_comparisons_of_systems_that_an_exclusion_changed_are_said_with_both_numbers(tmp_path: Path) -> None:
    rows = [
        [f"Question {n}?", system, f"{system} {n}", rater, 4 + lead * (system == "Alba")]
        for n in range(12)
        for rater, lead in (("ada", 1), ("bob", 1), ("cyd", (-3, -2, 0)[n % 3]))
        for system in ("Alba", "Brisa")
    ]
    place = Workplace(tmp_path)
    write_csv(tmp_path / "d.csv", ["source", "system", "output", "rater", "quality"], rows)
    place.take("d.csv", "--column", "answer=quality", "--language", "en")
    before = accept(place.study)
    assert before.side_by_side.excluded == 0 and not [line for line in before.doubts if "excluding" in line]
    ratings = CampaignRecords(place.study).ratings
    leads = ratings.groupby(["rater_id", "transformation"])["value"].mean().unstack()
    careless_rater = str((leads["alba"] - leads["brisa"]).idxmin())
    decide(place.study, careless_rater, exclude=True, reason="at random")
    after = accept(place.study)
    assert after.side_by_side.differences["difference"].tolist() == [1.0]
    first = after.doubts[0]
    assert "after verdicts had been seen changed 1 comparison of systems: Alba and Brisa in quality told apart" in first
    whole = before.side_by_side.differences.iloc[0]
    assert f"if counted not told apart ({whole['difference']:+.2f} [" in first
    note = "Without the ratings of 1 excluded rater"
    write_report(place.study)
    assert note in (place.study.folder / "report" / "differences.tex").read_text(encoding="utf-8")


def test_alpha_is_doubtful_only_beside_a_fair_ac2(brief: Study) -> None:
    rate(brief)
    verdict = accept(brief).verdicts[0]
    for alpha, ac2, said in ((0.19, 0.4, True), (0.2, 0.9, False), (0.1, 0.39, False)):
        own = {name: Estimate(value=value, low=value, high=value) for name, value in (("alpha", alpha), ("ac2", ac2))}
        question = verdict.questions[0].model_copy(update=own)
        found = doubts(brief, [verdict.model_copy(update={"questions": (question,)})])
        assert any("alpha below" in line for line in found) is said, (alpha, ac2)


def test_pairs_that_come_after_a_look_are_doubtful_under_a_rule_for_one(variant: Callable[..., Study]) -> None:
    parts: dict[str, Any] = {"transformations": ["paraphrasing"], "raters": {"per_pair": 3}}
    small, large = ({"sample": {"pairs": pairs}, "acceptance": {"min_pairs": 5}} | parts for pairs in (8, 12))
    generate_once(study := variant(**small))
    careless(study)
    grown = variant(**large)
    extend_sample(grown, "before anybody looked")
    assert not [line for line in doubts(grown, accept(grown).verdicts) if line.startswith("wave")]
    larger = variant(**(large | {"sample": {"pairs": 16}}))
    extend_sample(larger, "wide intervals")
    found = accept(larger).verdicts
    assert {one.waves for one in found} == {(1,)}  # nobody has rated the others yet
    (line,) = [line for line in doubts(larger, found) if line.startswith("wave")]
    assert "(4 pairs, " in line and "wide intervals) was added after 1 look at verdicts" in line
    status = status_text(read_status(Evidence(larger), NOW), more=True)
    assert "wave 2, 4 pairs (before anybody looked)" in status and "wave 3, 4 pairs (wide intervals)" in status
    assert "4 pairs on " in " ".join(methods(read_material(Evidence(larger))))


def test_exclusions_that_turn_verdicts_are_said(brief: Study, variant: Callable[..., Study]) -> None:
    study = three(variant(transformations=[*brief.transformations], sample={"pairs": 26}))
    rate(study)
    decide(study, "a", exclude=True, reason="failed controls")
    verdicts = accept(study).verdicts
    turned = [one for one in verdicts if one.decision != one.review.with_excluded]
    assert turned
    line = next(line for line in doubts(study, verdicts) if line.startswith("excluding raters changed"))
    assert f"{turned[0].transformation.capitalize()} (en) is accepted instead of rejected".replace("_", " ") in line


@pytest.mark.parametrize(("over", "others"), [("pairs", "pairs"), ("pairs_and_raters", "pairs or raters")])
def test_a_close_verdict_could_change_with_others_of_what_is_a_sample(
    over: str, others: str, variant: Callable[..., Study]
) -> None:
    study = variant(acceptance={"interval": over}, transformations=["paraphrasing"])
    generate_once(study)
    rate(study)
    verdict = accept(study).verdicts[0]
    close = verdict.result.model_copy(update={"probabilities": (Chance(probability=0.91),)})
    found = doubts(study, [verdict.model_copy(update={"result": close, "decision": "accepted"})])
    assert [line for line in found if line.startswith(f"other {others} could easily")]


def test_what_rests_on_verdicts_was_not_looked_at_before_there_are(brief: Study) -> None:
    rate(brief)
    before = read_status(Evidence(brief), NOW)
    assert not before.judged and "verdicts" in doubts_text((), brief.judging, judged=before.judged)
    accept(brief)
    after = read_status(Evidence(brief), NOW)
    assert after.judged and "agreement" in doubts_text((), brief.judging, judged=after.judged)


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
