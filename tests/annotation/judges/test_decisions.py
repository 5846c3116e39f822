"""`acceptance.judges: decide`: what people and judges decide together, and whom the rules hold to it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from annotation.campaign_records import CampaignRecords
from annotation.judges.check import check, check_text
from annotation.judges.decisions import beside, judged_mean, judged_means, read_judging, refuse_other_judgements
from annotation.judges.powered import powered_means
from annotation.judges.run import judge
from annotation.records import JudgedMean, Verdict
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.counted import basis
from annotation.verdicts.doubts import doubts_of
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.judged import deciders, unit_of, with_judged
from annotation.verdicts.preregistration import fix_rules
from annotation.verdicts.tables import verdict_table
from annotation.verdicts.verdicts import verdicts
from annotation.verdicts.verification import refuse_edited
from evaluation.tables.sensitivity import decision_at
from plumbline.errors import DataError, StudyError
from plumbline.statistics.prediction_powered import FEWEST_RATED
from plumbline.store import write_json
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec, RatersSpec, SampleSpec
from plumbline.study.engines import EngineSpec, JudgeSpec, refuse_unfit_judges
from tests.annotation.judges.test_check import rated
from tests.annotation.judges.test_powered import design, frames, sample, sampled

RULE = AcceptanceSpec.model_validate({"judges": "decide", "min_pairs": 30})


def decided(**changed: float | str) -> Verdict:
    """40 rated pairs of which people alone cannot tell by the lower end; one number of people and judge is changed."""
    ratings, judging = frames(mean=3.32)
    chosen = design()
    found = verdicts(sample(), ratings.assign(submitted_at=0), chosen, None)
    row = powered_means(basis(sampled(), ratings, chosen), judging, chosen).to_dict("records")[0]
    own = {unit_of(one): (judged_mean({**row, **dict[Hashable, Any](changed)}),) for one in found}
    return with_judged(found, own, chosen.rule)[0]


def test_people_and_judges_accept_what_people_lean_to() -> None:
    one = decided()
    assert (one.decision, one.alone, one.decision_people) == ("accepted", "undecided", "undecided")
    first, second, third = one.reasons
    assert first.startswith("people alone: undecided (interval of quality") and "at least 3" in second
    assert third.startswith("quality: people + judges: 40 rated, 160 judged, worth")
    assert decision_at(one, design().rule) == "accepted"
    shown = verdict_table([one]).iloc[0]
    assert (shown["decision"], shown["decision_people"]) == ("accepted", "undecided")
    assert deciders([one])[0] == "people and judges together" and "of people's ratings alone" in deciders([one])[1]
    assert deciders([one.model_copy(update={"decision_people": None, "checked": True})]) == ("people", "")
    assert decision_at(one, design(threshold=3.5).rule) == "undecided"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"lean_low": 2.99}, "accepted by people and judges (lower end of quality"),
        ({"mean": 2.97, "low": 2.95, "high": 2.99}, "rejected by people and judges (upper end of quality 2.99"),
        (
            {"mean": 4.5, "low": 4.4, "high": 4.6},
            "their common mean on quality (4.50) lies outside the interval",
        ),
        (
            {"mean": 2.5, "low": 2.2, "high": 2.8},
            "their common mean on quality (2.50) lies outside the interval",
        ),
        ({"lean_low": math.nan, "lean_high": math.nan}, "has no interval"),
        ({"low": math.nan, "high": math.nan}, "has no interval"),
        ({"reason": "29 pairs are rated"}, "judges are refused: quality: 29 pairs are rated"),
    ],
)
def test_what_only_one_of_the_two_says_is_undecided(changed: dict[str, float | str], reason: str) -> None:
    one = decided(**changed)
    assert one.decision == "undecided" and any(reason in line for line in one.reasons)
    assert one.reasons[0].startswith("people alone: undecided")


def test_by_the_mean_nothing_is_accepted_that_people_would_not() -> None:
    """People's own mean is 2.9; with the judge it would be 3.1. And the other way round."""
    ratings, judging = frames(mean=2.95)
    chosen = design(rule="mean")
    found = verdicts(sample(), ratings.assign(submitted_at=0), chosen, None)
    row = powered_means(basis(sampled(), ratings, chosen), judging, chosen).to_dict("records")[0]
    people = found[0].questions[0].mean
    for mean in (6 - people, people + 0.01 * (people - 3)):
        own = {unit_of(one): (judged_mean({**row, "mean": mean, "low": mean - 1, "high": mean + 1}),) for one in found}
        one = with_judged(found, own, chosen.rule)[0]
        assert one.decision == (one.alone if (mean >= 3) == (people >= 3) else "undecided")


def test_judges_that_decide_are_fixed_and_theirs_is_no_verdict_alone(generated: Study, tmp_path: Path) -> None:
    """24 pairs of a transformation are too few beside judges, so these stay undecided; both translations share 48."""
    study = generated.model_copy(update={"acceptance": RULE})
    with pytest.raises(
        StudyError, match=r"outputs that judges rate are not drawn yet; run .*judge run .*before raters begin"
    ):
        fix_rules(CampaignRecords.open(study))
    draw_sample(generated)  # which may be decided as it is; `study` is to have some that cannot
    judge(study)
    fix_rules(CampaignRecords.open(study))
    fixed = CampaignRecords.open(study).rules[-1].rules["judges"]
    assert [one["name"] for one in fixed["each"]] == ["shares", "numbers"] and fixed["pool"]
    rated(generated, tmp_path)
    done = {one.transformation: one for one in accept(study, judged=judged_means).verdicts}
    few, both = done["expansion"], done["translation"]
    assert (few.decision, few.alone) == ("undecided", "undecided") and "judges are refused" in few.reasons[1]
    assert (both.decision, both.alone) == ("accepted", "accepted") and both.judged[0].recorded == ("numbers", "shares")
    assert "people + judges: 48 rated, 48 judged, worth" in both.reasons[2]
    evidence, found = Evidence.whole(study), CampaignRecords.open(study).verdicts
    refuse_edited(evidence, found)
    refuse_other_judgements(evidence, found)
    assert "People and judges decide the verdicts together" in check_text("demo", check(Evidence.whole(study)))
    turned = [one.model_copy(update={"decision_people": "undecided"}) for one in found if one.decision == "accepted"]
    assert any("decide differently from people alone" in line for line in doubts_of(evidence, turned, ()))
    after = [one for one in found if one.transformation == "translation"]
    more = [one.model_copy(update={"judged": (one.judged[0].model_copy(update={"late": 3}),)}) for one in after]
    assert any(
        "some judgements were made or repeated after the first rating (Translation (en) 3)" in line
        for line in doubts_of(evidence, more, ())
    )
    assert not any("after the first rating" in line for line in doubts_of(evidence, found, ()))
    _late_judgements_are_counted(evidence, both)
    forged = [_with_more(one) for one in found]
    write_json(study.folder / "verdicts.json", forged)
    refuse_edited(evidence, forged)  # as far as ratings tell, it follows
    with pytest.raises(DataError, match=r"the judges' means for .* differ from their records; run"):
        refuse_other_judgements(evidence, forged)
    other = [one.model_copy(update={"seed": 7}) for one in study.judges]
    for changed, said in (
        ({"judges": tuple(other)}, r"judges\.each\.shares\.seed 1337, now 7"),
        ({"judges": study.judges[:1]}, r"judges\.each\.numbers is gone"),
        ({"acceptance": AcceptanceSpec(min_pairs=30)}, r"acceptance\.judges decide, now report"),
    ):
        with pytest.raises(StudyError, match=f"changed after the first rating .*{said}"):
            accept(study.model_copy(update=changed), judged=judged_means)
    (study.judgements / "judged.parquet").unlink()
    with pytest.raises(StudyError, match=r"judges\.pool \w+, now none"):
        accept(study, judged=judged_means)


def _late_judgements_are_counted(evidence: Evidence, verdict: Verdict) -> None:
    """As if a server's judge had answered 5 times on quality a second after the first rating; a file's never count."""
    made = beside(evidence, [verdict], read_judging(evidence))
    said, first = made.judging.judgements, evidence.first
    assert first and [one.late for one in made.of(verdict)] == [0, 0]
    own = said[(said["pool"] == verdict.pool) & (said["question"] == "quality") & (said["judge"] == "shares")].index
    changed = said.assign(kind="openai", finished_at=first)
    changed.loc[own[:5], "finished_at"] = first + timedelta(seconds=1)
    asked = replace(made, judging=replace(made.judging, judgements=changed))
    assert {one.question: one.late for one in asked.of(verdict)} == {"quality": 5, "fluency": 0}


def _with_more(verdict: Verdict) -> Verdict:
    more = [JudgedMean.model_validate({**one.model_dump(), "worth": 1000.0}) for one in verdict.judged]
    reasons = [verdict.reasons[0]]
    made = with_judged([verdict.model_copy(update={"decision": verdict.alone})], {unit_of(verdict): more}, RULE)[0]
    kept = tuple(reasons + list(made.reasons[1:]))
    return made.model_copy(update={"reasons": kept, "decision_people": verdict.decision_people})


def test_rules_that_no_judge_can_meet_are_refused_in_a_line() -> None:
    with pytest.raises(ValidationError, match=f"on at least {FEWEST_RATED} rated pairs; set `min_pairs"):
        AcceptanceSpec.model_validate({"judges": "decide", "min_pairs": FEWEST_RATED - 1})
    engine = EngineSpec(kind="recorded", model="m", path="j.jsonl", settings={"saw_ratings": True})
    shown = JudgeSpec(name="j", engine=engine)
    plain = SampleSpec(), RatersSpec()
    with pytest.raises(ValueError, match="`acceptance.judges: decide` needs judges"):
        refuse_unfit_judges((), "all", *plain, RULE)
    with pytest.raises(ValueError, match="no judge that saw people's ratings; take 'j' out"):
        refuse_unfit_judges((shown,), "all", *plain, RULE)
