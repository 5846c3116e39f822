"""What goes wrong in a campaign beside crashes: want of money, work decided elsewhere, late answers, lost files."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from annotation.campaign.names import worker_pseudonym
from annotation.campaign.offering import LEDGER, CampaignName, ledgers
from annotation.campaign.records import CampaignRecords
from annotation.crowd import judging
from annotation.crowd.campaign import CrowdCampaign, LimitError
from annotation.crowd.collecting import collect, collect_archive
from annotation.crowd.ledger import Ledger
from annotation.crowd.platform import NoMoneyError, RefusedError, UncertainError
from annotation.crowd.summary import plan_text, read_summaries
from annotation.ratings.decisions import decide
from annotation.verdicts.evidence import Evidence
from plumbline.errors import DataError, StudyError
from plumbline.study import Study
from tests.annotation.campaigns import Make
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.campaigns import drawn, honest, launch, paid, rate_on_prolific, rated, step, work, worked
from tests.annotation.crowd.mturk.mturk_site import Fault, Moment, MTurkSite, RequestError
from tests.annotation.crowd.prolific.prolific_site import Site

# Four paraphrases, two controls: $1.20, and MTurk's 20%: $1.44. Prolific's 25%: $1.50, for 750 s that are worth $5.00.
REWARD, UNIT = 120, 144
PROLIFIC = {**campaigns.CROWD, "address": "https://argilla.example.org"}


def participate(study: Study, site: Site, pid: str) -> tuple[str, tuple[str, str]]:
    """A participant does the open batch well; the submission, and where its answers are."""
    (posted,) = [key for key, one in site.studies.items() if one["status"] == "ACTIVE"]
    good = honest(study)
    rates = lambda pair_id: {name: good(pair_id, name) for name in ("quality", "fluency")}  # noqa: E731
    return rate_on_prolific(study, site, posted, pid, lambda: rates)


def spent(study: Study) -> int:
    return next(told.spent for told in read_summaries(Evidence(study)) if told.mode == "live")


def test_want_of_money_for_one_batch_does_not_keep_done_work_unpaid(variant: Make) -> None:
    study = drawn(variant, crowd={**campaigns.CROWD, "share": 1.0})
    with MTurkSite(balance=3 * UNIT) as site:  # for one batch of two workers, and half of another
        with pytest.raises(NoMoneyError, match="add money"):
            launch(study, site)
        (hit,) = site.hits
        work(study, site, hit, "one")
        step(study, site, collect)
        step(study, site, judging.approve_all)
        assert [own for own in site.paid.values() if own] == [[REWARD]]
        assert spent(study) == 2 * UNIT
        site.balance = 100_000
        assert launch(study, site).posted == 2
        assert len(site.hits) == 3


def test_want_of_money_at_the_second_try_says_nothing_of_the_first(variant: Make, site: MTurkSite) -> None:
    """The first call took effect, its answer was lost, and lists are late: the batch must not be offered twice."""
    study = drawn(variant)

    def lost(operation: str, moment: Moment) -> Fault:
        if operation != "CreateHITWithHITType":
            return None
        site.lag = 100
        return "drop" if moment == "after" else None

    site.fault = lost
    with pytest.raises(UncertainError, match="did not answer"):
        launch(study, site)
    site.fault = lambda operation, moment: None
    site.forget_tokens()
    site.balance = 0
    with pytest.raises(NoMoneyError):
        launch(study, site)
    site.balance = 100_000
    for hit in site.hits.values():
        hit.unseen = 0
    assert len(launch(study, site).open) == 1
    assert len(site.hits) == 1 and spent(study) == 2 * UNIT


def test_a_rejected_workers_time_lowers_nobodys_bonus(variant: Make, site: MTurkSite) -> None:
    study = drawn(variant)
    launch(study, site)
    hasty, _ = rated(study, site, hasty=20, slow=600)
    step(study, site, lambda campaign: judging.reject(campaign, [hasty], "no answer took a second"))
    step(study, site, judging.approve_all)
    step(study, site, judging.pay_bonuses)
    assert sorted(site.paid.values()) == [[], [REWARD]]  # a third worker is to come
    launch(study, site)
    paid(study, site, third=300)
    step(study, site, judging.pay_bonuses)
    # The median of 600 and 300 s is 450 s, $3.00: $1.80 more than the reward
    assert sorted(site.paid.values()) == [[], [REWARD, 180], [REWARD, 180]]


def test_bonuses_wait_for_who_replaces_an_excluded_worker(variant: Make, site: MTurkSite) -> None:
    study = drawn(variant)
    launch(study, site)
    paid(study, site, hasty=20, slow=600)
    decide(study, worker_pseudonym(campaigns.KEY, study.name, "mturk", "hasty"), exclude=True, reason="in a rush")
    step(study, site, judging.pay_bonuses)
    assert list(site.paid.values()) == [[REWARD], [REWARD]]  # one more is to come, whose time counts for all
    launch(study, site)
    paid(study, site, third=400)
    step(study, site, judging.pay_bonuses)
    # The median of 20, 400 and 600 s is 400 s, $2.67 at $24 an hour: $1.47 more than the reward
    assert list(site.paid.values()) == [[REWARD, 147]] * 3


def test_a_bonus_that_an_older_copy_of_the_ledger_does_not_know_is_not_paid_again(
    variant: Make, site: MTurkSite
) -> None:
    """Nor is any paid beyond the limit, and one that is refused keeps no other unpaid."""
    study = drawn(variant)
    launch(study, site)
    paid(study, site, one=600, two=600)
    all_bonuses = 2 * UNIT + 2 * 336  # $2.80 and 20% are $3.36 for each of two
    with pytest.raises(LimitError, match=r"2 bonuses costs \$6.72, \$2.88 is already spent"):
        step(study, site, judging.pay_bonuses, limit=all_bonuses - 1)
    assert list(site.paid.values()) == [[REWARD]] * 2
    older = (study.scratch / LEDGER).read_bytes()

    def closed(operation: str, moment: Moment) -> Fault:
        if operation == "SendBonus" and moment == "before":
            site.fault = lambda operation, moment: None
            raise RequestError("InvalidParameterValue", "this worker's account is closed")
        return None

    site.fault = closed
    with pytest.raises(RefusedError, match=r"1 of 2 bonuses paid now; .*account is closed"):
        step(study, site, judging.pay_bonuses, limit=all_bonuses)
    assert sorted(site.paid.values()) == [[REWARD], [REWARD, 280]] and spent(study) == 2 * UNIT + 336
    (study.scratch / LEDGER).write_bytes(older)
    step(study, site, judging.pay_bonuses, limit=all_bonuses)
    assert list(site.paid.values()) == [[REWARD, 280]] * 2 and spent(study) == all_bonuses


def test_what_was_decided_on_the_platforms_page_is_excluded_released_and_spent_again(
    variant: Make, site: MTurkSite
) -> None:
    study, (theirs, ours) = worked(variant, site, "bad", "good")
    site.client().reject_assignment(AssignmentId=theirs, RequesterFeedback="by hand")
    for _ in range(2):
        step(study, site, collect)
    excluded = CampaignRecords(study).ratings.groupby("rater_id")["excluded"].first().tolist()
    assert sorted(excluded) == ["", judging.ON_PLATFORM]
    assert spent(study) == UNIT == site.balance - site.available
    step(study, site, lambda campaign: judging.reject(campaign, [ours], "both controls are wrong"))
    assert spent(study) == 0 == site.balance - site.available
    site.client().approve_assignment(AssignmentId=ours, OverrideRejection=True)
    for _ in range(2):
        step(study, site, collect, limit=0)
        assert spent(study) == UNIT == site.balance - site.available


def test_one_refused_decision_does_not_stop_the_others(variant: Make, site: MTurkSite) -> None:
    study, (first, second) = worked(variant, site, "one", "two")

    def meanwhile(campaign: CrowdCampaign) -> None:
        site.client().reject_assignment(AssignmentId=first, RequesterFeedback="by hand")
        judging.approve(campaign, [first, second])

    with pytest.raises(RefusedError, match=f"{first} is rejected on MTurk"):
        step(study, site, meanwhile)
    assert site.assignments[second].status == "Approved"


def test_a_rehearsal_is_marked_and_goes_when_live_ratings_come_from_any_platform(
    variant: Make, site: MTurkSite, prolific: Site, tmp_path: Path
) -> None:
    study = drawn(variant, crowd=PROLIFIC)
    launch(study, site, "sandbox", limit=0)  # costs nothing there
    (hit,) = site.hits
    work(study, site, hit, "me")
    step(study, site, collect, "sandbox")
    launch(study, prolific)
    step(study, prolific, collect)  # nobody has answered there yet
    ratings = CampaignRecords(study).ratings
    assert ratings["simulated"].all() and set(ratings["source"]) == {"mturk sandbox"}
    other = campaigns.copied(study, tmp_path / "other")
    answers = {f"Answer.{key}": value for key, value in site.fields(hit).items()}
    row = {"HITId": hit, "AssignmentId": "3A1", "WorkerId": "AW1", "AssignmentStatus": "Approved"}
    row |= {"HITTypeId": "3T", "SubmitTime": "Mon Jan 12 14:21:29 PST 2015", "WorkTimeInSeconds": "412"} | answers
    path = tmp_path / "results.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([list(row), list(row.values())])
    collect_archive(other, campaigns.KEY, path)
    assert set(CampaignRecords(other).all_ratings["source"]) == {"results.csv"}
    participate(study, prolific, "a" * 24)
    step(study, prolific, collect)
    assert set(CampaignRecords(study).all_ratings["source"]) == {"prolific"}
    with pytest.raises(StudyError, match="has ratings by people, which must not be mixed with those"):
        step(study, site, collect, "sandbox")
    modes = {(told.mode, *told.states.items()) for told in read_summaries(Evidence(study))}
    assert modes == {("live", ("submitted", 1)), ("sandbox", ("submitted", 1))}


def test_answers_that_come_after_the_submission_are_collected(variant: Make, prolific: Site) -> None:
    study = drawn(variant, crowd=PROLIFIC)
    launch(study, prolific)
    pid = "b" * 24
    submission, key = participate(study, prolific, pid)
    assert not any(prolific.rooms.admitted.values())
    whole = prolific.rooms.given[key]
    prolific.rooms.given[key] = whole[:2]
    found: list[object] = []
    step(study, prolific, lambda campaign: found.append(collect(campaign).troubles))
    assert found == [{submission: f"submission {submission}: has no answers to 4 of its pairs"}]
    (admitted,) = [one for one in prolific.rooms.admitted.values() if one]
    assert admitted == {key[1]}  # the room learns who has a submission at Prolific
    prolific.rooms.given[key] = whole
    step(study, prolific, lambda campaign: found.append(collect(campaign).troubles))
    assert found[1] == {} and CampaignRecords(study).ratings["pair_id"].nunique() == 4


def test_returned_work_is_used_no_more_and_a_rejection_after_closing_gives_its_money_back(
    variant: Make, prolific: Site
) -> None:
    study = drawn(variant, crowd=PROLIFIC)
    launch(study, prolific)
    returned, stays = [participate(study, prolific, pid * 24)[0] for pid in "de"]
    step(study, prolific, collect)
    assert CampaignRecords(study).ratings["rater_id"].nunique() == 2
    prolific.leave(returned, "RETURNED")
    step(study, prolific, collect)
    assert CampaignRecords(study).ratings["rater_id"].nunique() == 1
    step(study, prolific, lambda campaign: campaign.close())
    assert spent(study) == 150
    step(study, prolific, lambda campaign: judging.reject(campaign, [stays], "both controls are wrong"))
    assert spent(study) == 0


def test_who_left_and_is_approved_on_the_platforms_page_costs_a_further_place(variant: Make, prolific: Site) -> None:
    study = drawn(variant, crowd=PROLIFIC)
    launch(study, prolific)
    _, left = [participate(study, prolific, f"{number:024x}")[0] for number in (1, 2)]
    prolific.leave(left, "RETURNED")
    launch(study, prolific)
    participate(study, prolific, "3" * 24)
    prolific.submissions[left]["status"] = "APPROVED"
    for _ in range(2):
        step(study, prolific, collect)
        step(study, prolific, judging.approve_all)
    (bill,) = read_summaries(Evidence(study))
    assert bill.states["approved"] == 3 and bill.spent == 3 * 150
    assert bill.in_all == bill.planned + 150 + bill.bonuses_to_come


def test_a_study_that_pauses_twice_is_started_twice(variant: Make, prolific: Site) -> None:
    """Two places; one who had submitted asks to be let go, which frees a place and pauses the study; then another."""
    study = drawn(variant, crowd=PROLIFIC)
    launch(study, prolific)
    (posted,) = prolific.studies
    works = [participate(study, prolific, f"{number:024x}")[0] for number in (1, 2)]
    for number in (3, 4):
        prolific.leave(works[-1], "RETURNED")
        assert prolific.studies[posted]["status"] == "PAUSED"
        assert launch(study, prolific).extended == 1
        assert prolific.studies[posted]["status"] == "ACTIVE"
        works.append(participate(study, prolific, f"{number:024x}")[0])
    assert spent(study) == 2 * 150


@pytest.mark.parametrize("pilot", [4, 0])
def test_no_batch_that_an_older_copy_of_the_ledger_lacks_is_offered_again(
    variant: Make, site: MTurkSite, prolific: Site, pilot: int
) -> None:
    """After a pilot it lacks the batches of the rest, else only that the second one was offered."""
    study = drawn(variant, crowd=PROLIFIC)
    step(study, site, lambda campaign: campaign.launch(pilot))
    ledger = study.scratch / LEDGER
    older, known = ledger.read_bytes(), list(site.hits)
    for worker in ("one", "two"):
        work(study, site, known[0], worker)
    launch(study, site)
    (later,) = set(site.hits) - set(known)
    work(study, site, later, "three")
    step(study, site, collect)
    ledger.write_bytes(older)
    for platform in (site, prolific):  # what is lost of one platform would be offered on another
        with pytest.raises(DataError, match="1 live mturk batch has ratings, but no offer in this ledger"):
            launch(study, platform)
    with pytest.raises(DataError, match="would be paid again"):
        plan_text(CampaignRecords(study), CampaignName("mturk", "live"))
    with pytest.raises(DataError, match="would be paid again"):
        step(study, site, lambda campaign: collect(campaign, replace=True))
    assert set(site.hits) == {*known, later} and not prolific.studies


def test_a_crash_while_the_ledger_is_made_leaves_no_campaign(variant: Make) -> None:
    study = drawn(variant)
    path = study.scratch / LEDGER
    path.touch()
    assert ledgers(path) == []
    with Ledger(path, study.name, "mturk", "sandbox"):
        assert ledgers(path) == []
