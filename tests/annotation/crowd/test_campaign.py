"""Whole campaigns, mostly through real boto3 against a local MTurk: shares, limits, decisions, pay, blocks."""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotation.campaign.counting import coverage_of
from annotation.campaign.offering import LEDGER, CampaignName
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.crowd import judging, pay
from annotation.crowd.batches import Batch
from annotation.crowd.campaign import CrowdCampaign, next_batches
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Ledger, Work
from annotation.crowd.mturk.adapter import MTurk
from annotation.crowd.platform import CLASSES, Platform, RefusedError
from annotation.crowd.summary import plan_text, read_summaries, summary_text
from annotation.ratings.decisions import decide, withdraw
from annotation.sampling.queues import block_numbers
from annotation.sampling.sample import extend_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from plumbline.errors import StudyError
from plumbline.study import ROOT, Study
from plumbline.study.crowd import PTEB_COUNTRIES, CrowdSpec
from tests.annotation.campaigns import Make
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.campaigns import (
    CROWD,
    careless,
    drawn,
    honest,
    launch,
    paid,
    rate_on_prolific,
    rated,
    run,
    step,
    work,
    worked,
)
from tests.annotation.crowd.mturk.mturk_site import MTurkSite, WorkerRefusedError
from tests.annotation.crowd.prolific.prolific_site import prolific_site
from tests.annotation.sampling.test_queues import RULE

# Four paraphrases, a positive and a negative control in a batch: 6 x $0.20 = $1.20, and MTurk's 20%: $1.44 a worker
REWARD, UNIT = 120, 144


def test_batches_to_come_leave_withdrawn_pairs_out_and_those_that_are_out_stay(variant: Make, site: MTurkSite) -> None:
    study = drawn(variant)
    assert launch(study, site).waiting == 2
    ledger = study.scratch / LEDGER
    with Ledger(ledger, study.name, "mturk", "live") as opened:
        posted = opened.posted("mturk")
        before = {one.batch.batch_id: set(one.batch.pair_ids) for one in opened.offered()}
    sampled = {pair.pair_id for pair in CampaignRecords(study).pairs}
    own = {one: sorted(pairs & sampled) for one, pairs in before.items()}
    waiting = next(one for one in before if one not in posted)
    out = [own[next(iter(posted))][0], own[waiting][0]]
    withdraw(study, out, take_back=False, reason="not to be judged")
    launch(study, site)
    with Ledger(ledger, study.name, "mturk", "live") as opened:
        after = {one.batch.batch_id: set(one.batch.pair_ids) for one in opened.offered()}
    assert all(after[one] == before[one] for one in posted) and waiting not in after
    assert set().union(*after.values()) & sampled == sampled - {out[1]}
    assert sum(len(pairs & sampled) for pairs in after.values()) == len(sampled) - 1  # each in one batch


def test_a_campaign_from_the_first_offer_to_the_last_cent(variant: Make, site: MTurkSite) -> None:
    study = drawn(variant)
    # 12 pairs in batches of 4 are three batches; half of them, rounded down, is one for each worker: one open at a time
    done = launch(study, site)
    assert (done.posted, len(done.open), done.waiting) == (1, 1, 2)
    for number in range(3):
        (hit,) = [
            key for key, one in site.hits.items() if len([a for a in site.assignments.values() if a.hit is one]) < 2
        ]
        work(study, site, hit, f"A{number}", 180)
        work(study, site, hit, f"B{number}", 600)
        step(study, site, collect)
        step(study, site, judging.approve_all)
        launch(study, site)
    assert len(site.hits) == 3
    # The median of 180 and 600 s is 390 s, at $24 an hour $2.60: $1.40 more than the reward of $1.20
    step(study, site, judging.pay_bonuses)
    assert set(map(tuple, site.paid.values())) == {(REWARD, 140)}
    (told,) = read_summaries(Evidence(study))  # bonuses count before the platform is asked again
    assert told.hourly == pytest.approx(pay.hourly(260, 180) / 2 + pay.hourly(260, 600) / 2)
    step(study, site, judging.pay_bonuses)
    assert set(map(tuple, site.paid.values())) == {(REWARD, 140)}
    ratings = CampaignRecords(study).ratings
    assert len(ratings) == 12 * 2 * 2  # pairs, workers, questions
    assert set(ratings["source"]) == {"mturk"} and ratings["batch"].nunique() == 3
    assert not ratings["simulated"].any() and (ratings["seconds"] == 20.5).all()
    (told,) = read_summaries(Evidence(study))
    assert (told.posted, told.states, told.rewards, told.bonuses) == (3, {"approved": 6}, 720, 840)
    assert told.spent == 6 * (UNIT + 140 + 28) == site.balance - site.available  # 28 cents: 20% of the bonus
    assert told.hourly == pytest.approx(pay.hourly(260, 180) / 2 + pay.hourly(260, 600) / 2)
    assert told.hourly_in_all == pytest.approx(pay.hourly(6 * 260, 3 * (180 + 600))) != told.hourly
    text = summary_text(told)
    assert all(line.startswith("[live mturk]") for line in text.splitlines())
    assert "batches offered: 3 of 3; all together: 6 places for workers\n" in text
    assert not any(worker in text for worker in ("A0", "B0"))


def test_offers_are_shared_opened_again_while_short_of_workers_and_closed_for_good(
    variant: Make, site: MTurkSite
) -> None:
    study = drawn(variant)
    launch(study, site)
    (first,) = site.hits
    work(study, site, first, "greedy")
    with pytest.raises(WorkerRefusedError):
        work(study, site, first, "greedy")
    site.expire(first)
    done = launch(study, site)
    assert (done.posted, done.extended, list(done.open.values()), done.waiting) == (0, 1, [first], 2)
    work(study, site, first, "other")
    assert site.hits[first].places == 2
    assert launch(study, site).posted == 1
    (second,) = set(site.hits) - {first}
    with pytest.raises(WorkerRefusedError, match="kept out"):  # nobody does more than the share, however fast
        work(study, site, second, "greedy")
    work(study, site, second, "third")
    step(study, site, lambda campaign: campaign.close())
    step(study, site, collect)
    step(study, site, judging.approve_all)
    (told,) = read_summaries(Evidence(study))
    assert told.spent == 3 * UNIT == site.balance - site.available  # of four places: nobody can earn the last
    with pytest.raises(WorkerRefusedError):
        work(study, site, second, "late")
    assert launch(study, site).extended == 0


def test_the_limit_is_never_passed(variant: Make, site: MTurkSite) -> None:
    study = drawn(variant, crowd={**campaigns.CROWD, "share": 1.0})
    done = launch(study, site, limit=2 * 2 * UNIT + 1)  # two batches of two workers, and a cent
    assert (done.posted, done.waiting) == (2, 1)
    assert "the next step costs $2.88, $5.76 is already spent or reserved, and the limit is $5.77" in done.stopped
    assert site.balance - site.available == 2 * 2 * UNIT
    assert launch(study, site, limit=3 * 2 * UNIT).posted == 1


def test_a_rejected_worker_is_unpaid_excluded_and_replaced(variant: Make, site: MTurkSite) -> None:
    study, (bad, _) = worked(variant, site, "bad", "good")
    with pytest.raises(StudyError, match="a rejection needs a reason"):
        step(study, site, lambda campaign: judging.reject(campaign, [bad], " "))
    with pytest.raises(StudyError, match=r"submission 'other' is not in the live mturk campaign, or was not collected"):
        step(study, site, lambda campaign: judging.reject(campaign, ["other"], "why"))
    step(study, site, lambda campaign: judging.reject(campaign, [bad], "both controls are wrong"))
    assert site.assignments[bad].feedback == "both controls are wrong"
    excluded = CampaignRecords(study).ratings.groupby("rater_id")["excluded"].first().tolist()
    assert sorted(excluded) == ["", "both controls are wrong"]
    with pytest.raises(StudyError, match="is rejected; .* nothing was approved"):
        step(study, site, lambda campaign: judging.approve(campaign, [bad]))
    assert launch(study, site).extended == 1
    paid(study, site, third=600)
    assert Counter(map(tuple, site.paid.values())) == {(): 1, (REWARD,): 2}
    (told,) = read_summaries(Evidence(study))
    assert told.spent == site.balance - site.available == 2 * UNIT
    assert told.off_rules == 1  # its controls were right


def test_an_excluded_workers_pairs_are_offered_again_and_paid_from_what_is_left(variant: Make, site: MTurkSite) -> None:
    study, _ = worked(variant, site, "bad", "good")
    step(study, site, judging.approve_all)
    before = CampaignRecords(study).ratings
    bad = sorted(before["rater_id"].unique())[0]
    decide(study, bad, exclude=True, reason="every answer is 4")
    spent = site.balance - site.available
    # Two further batches and the place again: each only where the limit lets it.
    done = launch(study, site, limit=spent)
    assert (done.extended, site.balance - site.available) == (0, spent) and "the limit is" in done.stopped
    assert not CampaignRecords(study).ratings["again"].any()
    assert launch(study, site).extended == 1 and launch(study, site).extended == 0
    ratings = CampaignRecords(study).ratings
    again = ratings[ratings["again"]]
    assert set(again["rater_id"]) == {bad} and set(again["pair_id"]) == set(before["pair_id"])
    assert not coverage_of(ratings).raters.get(before["pair_id"].iloc[0], 0) > 1
    rated(study, site, third=600)
    ratings = CampaignRecords(study).ratings
    assert ratings.groupby("pair_id")["rater_id"].nunique().loc[before["pair_id"].unique()].eq(3).all()
    assert not ratings["surplus"].any()
    decide(study, bad, exclude=False, reason="a mistake")
    assert CampaignRecords(study).ratings["surplus"].sum() == len(before) / 2  # the latest do not count


def test_whose_answers_are_asked_for_again_is_noted_after_kills(variant: Make, site: MTurkSite) -> None:
    """Killed between the place that was paid for and its note, nobody would wait for it."""
    study, _ = worked(variant, site, "bad", "good")
    step(study, site, judging.approve_all)
    bad = sorted(CampaignRecords(study).ratings["rater_id"].unique())[0]
    decide(study, bad, exclude=True, reason="every answer is 4")
    limit = site.balance - site.available + UNIT
    for place in ("after extend", "after _settle"):
        killed = campaigns.run(
            study, lambda: MTurk(study, "live", client=site.client()), lambda one: one.launch(), limit,
            lambda at, place=place: at == place,  # type: ignore[misc]
        )  # fmt: skip
        assert not killed and site.balance - site.available == limit
    for _ in range(2):
        launch(study, site, limit=limit)
        ratings = CampaignRecords(study).ratings
        assert set(ratings.loc[ratings["again"], "rater_id"]) == {bad}
    assert site.balance - site.available == limit  # once


def test_failed_controls_and_a_rejection_that_the_platform_refused_are_left_to_a_person(
    variant: Make, site: MTurkSite
) -> None:
    study = drawn(variant)
    launch(study, site)
    (hit,) = site.hits
    wrong = site.work(hit, "wrong", site.fields(hit, careless(study)))
    good = work(study, site, hit, "good")
    step(study, site, collect)
    cases: list[judging.Case] = []
    step(study, site, lambda campaign: cases.extend(judging.cases(Evidence(study), campaign.ledger)))
    (asked,) = (case for case in cases if case.advice == "ask")
    assert asked.work.submission.submission_id == wrong and {sign.rule for sign in asked.signs} == {"controls"}
    step(study, site, lambda campaign: judging.reject(campaign, [wrong], "controls failed, no answer"))
    assert read_summaries(Evidence(study))[0].off_rules == 0
    with pytest.raises(RefusedError):  # MTurk takes reasons of at most 1,024 characters
        step(study, site, lambda campaign: judging.reject(campaign, [good], "x" * 1100))
    left: list[judging.Case] = []
    step(study, site, lambda campaign: left.extend(judging.approve_all(campaign)[1]))
    (refused,) = left
    assert refused.against[0].startswith("you: rejected it, which the platform refused (xxx")
    assert site.assignments[good].status == "Submitted"
    assert read_summaries(Evidence(study))[0].off_rules == 0
    step(study, site, lambda campaign: judging.reject(campaign, [good], "too hasty"))
    assert read_summaries(Evidence(study))[0].off_rules == 1  # its controls were right, and it is one rejection


def test_what_signs_speak_against_is_paid_only_for_a_reason(variant: Make, site: MTurkSite) -> None:
    study = drawn(variant, crowd={**campaigns.CROWD, "share": 1.0})
    launch(study, site)
    first, second, third = site.hits
    wrong = site.work(first, "wrong", site.fields(first, careless(study)))
    good = work(study, site, first, "good")
    rejected, again = (work(study, site, hit, "rejected") for hit in (second, third))
    unread = work(study, site, second, "unread")
    shut = work(study, site, third, "shut")
    step(study, site, lambda campaign: campaign.refresh())
    with pytest.raises(StudyError, match=f"submission {unread}: its answers have not been collected yet"):
        step(study, site, lambda campaign: judging.approve(campaign, [unread]))
    step(study, site, collect)
    step(study, site, lambda campaign: judging.reject(campaign, [rejected], "copied"))
    with pytest.raises(StudyError, match=f"nothing was approved; .*--reason 'why': submission {wrong}: controls: "):
        step(study, site, lambda campaign: judging.approve(campaign, [good, wrong]))
    with pytest.raises(StudyError, match=f"submission {again}: worker: another submission .* was rejected"):
        step(study, site, lambda campaign: judging.approve(campaign, [again], " "))
    works: list[Work] = []
    step(study, site, lambda campaign: works.extend(campaign.ledger.work()))
    (rater,) = (found.pseudonym for found in works if found.submission.submission_id == shut)
    decide(study, rater, exclude=True, reason="a bot")
    with pytest.raises(StudyError, match=rf"submission {shut}: worker: excluded \(a bot\)"):
        step(study, site, lambda campaign: judging.approve(campaign, [shut]))
    step(study, site, judging.approve_all)
    assert {key for key, one in site.assignments.items() if one.status == "Approved"} == {good, unread}
    step(study, site, lambda campaign: judging.approve(campaign, [wrong], "they misread the controls"))
    assert site.assignments[wrong].status == "Approved" and site.assignments[again].status == "Submitted"


def translations(variant: Make, **crowd: object) -> Study:
    """Paraphrases of English and its translations, all batches open at once."""
    return drawn(
        variant, transformations=["paraphrasing", "translation"], crowd={**campaigns.CROWD, "share": 1.0, **crowd}
    )


def test_nothing_is_offered_where_a_later_batch_could_not_be(variant: Make, site: MTurkSite) -> None:
    """The paraphrases come first and are fine; French has more countries than MTurk takes."""
    codes = [*PTEB_COUNTRIES["es"], *PTEB_COUNTRIES["ar"], "FR", "BE", "CH", "LU", "MC", "SN", "CI", "ML"]
    french = {"en": ["US"], "fr": codes}
    study = translations(variant, countries=french)
    for _ in range(2):
        with pytest.raises(
            StudyError, match="batch .*: crowd.countries, fr: lists 33 countries, .*; nothing was offered"
        ):
            launch(study, site)
    assert not site.hits and site.available == site.balance
    assert read_summaries(Evidence(study)) == []  # the next try may have other batches
    with pytest.raises(StudyError, match="crowd.countries, fr: lists 33 countries"):
        plan_text(Evidence(study), CampaignName("mturk", "live"))
    mended = study.model_copy(update={"crowd": CrowdSpec.model_validate({**campaigns.CROWD, "share": 1.0})})
    done = launch(mended, site)
    assert done.posted == len(site.hits) > 3 and not done.troubles


def test_the_plan_accepts_what_launching_accepts(variant: Make, site: MTurkSite) -> None:
    """Into German MTurk's workers are looked for where German is read: nobody need say where English is."""
    study = drawn(variant, transformations=["translation"], crowd={"share": 1.0})
    batches = len(next_batches(Evidence(study), "live", []))
    assert f"{batches} batches" in plan_text(Evidence(study), CampaignName("mturk", "live"))
    with pytest.raises(StudyError, match="crowd.countries has no countries for 'en'"):
        plan_text(Evidence(study), CampaignName("prolific", "live"))  # Prolific looks for readers of both
    assert launch(study, site).posted == batches


def test_a_command_parses_each_batch_once_and_all_work_a_few_times(
    variant: Make, site: MTurkSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many batches there are: a campaign of a thousand would else be read a million times."""
    study = drawn(variant, sample={"pairs": 6, "batch": 1, "repeats": 0}, crowd={**campaigns.CROWD, "share": 1.0})
    assert launch(study, site).posted == 6
    times = Counter[str]()

    def count(owner: type, name: str) -> None:
        was = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            times[name] += 1
            return was(*args, **options)

        monkeypatch.setattr(owner, name, staticmethod(counted) if owner is Batch else counted)

    count(Batch, "model_validate_json")
    count(Ledger, "work")
    for hit in list(site.hits):
        work(study, site, hit, "A")
        work(study, site, hit, "B")
    steps = {"collect": collect, "approve": judging.approve_all, "bonus": judging.pay_bonuses,
             "launch": lambda one: one.launch(), "close": lambda one: one.close()}  # fmt: skip
    for name, what in steps.items():
        times.clear()
        step(study, site, what)
        assert times["model_validate_json"] <= 6 and times["work"] <= 8, (name, times)


@pytest.fixture
def study(variant: Make) -> Study:
    """Three blocks of eight paraphrases, a batch each."""
    return drawn(
        variant,
        sample={"pairs": 24, "batch": 8, "repeats": 0},
        raters={"per_pair": 2, "blocks": [8, 16, 24]},
        acceptance=RULE,
        crowd=CROWD | {"share": 1.0, "address": "https://argilla.example.org"},
    )


def offer_next(campaign: CrowdCampaign) -> None:
    campaign.launch()


def rate(study: Study, site: MTurkSite) -> None:
    """Two workers rate all that is open; their answers are collected and paid."""
    for number, hit in enumerate(list(site.hits)):
        for worker in ("A", "B"):
            if sum(given.hit is site.hits[hit] for given in site.assignments.values()) < 2:
                site.work(hit, f"{worker}{number}", site.fields(hit, honest(study)), 600)
    step(study, site, collect)
    step(study, site, judging.approve_all)


def offered_blocks(study: Study) -> list[set[int]]:
    """The blocks of each batch's pairs; controls that are left of an earlier block are in a later one's batch."""
    numbers = block_numbers(study, CampaignRecords(study).pairs)
    with Ledger(study.scratch / LEDGER, study.name, "mturk", "live") as ledger:
        return [{numbers[pair_id] for pair_id in {*offer.batch.pair_ids} & {*numbers}} for offer in ledger.offered()]


def test_a_prolific_study_is_the_next_block_until_a_look_decides(study: Study) -> None:
    rating = honest(study)

    def rates() -> Callable[[str], dict[str, int]]:
        return lambda pair_id: {name: rating(pair_id, name) for name in ("quality", "fluency")}

    with prolific_site() as prolific:
        for number, batches in enumerate([1, 2, 2]):
            step(study, prolific, offer_next)
            step(study, prolific, offer_next)  # nothing new was rated: nothing more is offered
            assert len(prolific.studies) == batches
            for key in list(prolific.studies)[number:]:
                for person in range(2):
                    rate_on_prolific(study, prolific, key, f"{2 * number + person + 1:024x}", rates)
            step(study, prolific, collect)
            step(study, prolific, judging.approve_all)
    (verdict,) = accept(study).verdicts
    assert (verdict.decision, verdict.n_pairs) == ("accepted", 16)
    assert len(prolific.paid) == 4 and all(len(cents) == 1 for cents in prolific.paid.values())


def test_killed_before_the_next_block_it_is_offered_and_paid_once(study: Study, site: MTurkSite) -> None:
    """And killed again further on, each time that it is given again."""
    step(study, site, offer_next)
    step(study, site, offer_next)  # nothing was rated: nothing more is offered
    plan = plan_text(Evidence(study), CampaignName("mturk", "live"))
    assert "no pairs are left to be offered" in plan and "offers the next block only for what is undecided" in plan
    rate(study, site)
    once = site.balance - site.available

    def platform() -> Platform:
        return MTurk(study, "live", client=site.client())

    for place in ("before add_batches", "after add_batches", "before post", "after post"):
        assert not run(study, platform, offer_next, 10**6, lambda at, place=place: at == place)  # type: ignore[misc]
    step(study, site, offer_next)
    step(study, site, offer_next)
    assert len(site.hits) == 2 and offered_blocks(study) == [{0}, {1}]
    rate(study, site)
    step(study, site, offer_next)
    assert len(site.hits) == 2 and site.balance - site.available == 2 * once


def test_no_block_is_offered_beyond_the_limit(study: Study, site: MTurkSite) -> None:
    step(study, site, offer_next)
    rate(study, site)
    spent, stopped = site.balance - site.available, list[str]()
    step(study, site, lambda campaign: stopped.append(campaign.launch().stopped), limit=spent)
    assert "the limit is" in stopped[0] and len(site.hits) == 1


def test_a_platform_of_one_file_runs_a_campaign(variant: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    guide = (ROOT / "docs/guides/maintainer.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "class Laboratory" in block]
    assert len(code.splitlines()) <= 60
    (tmp_path / "laboratory.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(CLASSES, "laboratory", "laboratory:Laboratory")  # type: ignore[misc]
    made = importlib.import_module("laboratory")
    monkeypatch.setattr(made, "FOLDER", tmp_path / "handed in")
    study = drawn(variant)

    def platform() -> object:
        return made.Laboratory(study, "live", "laboratory-live.json")

    def step(what: object) -> None:
        assert run(study, platform, what, 10**6)  # type: ignore[arg-type]

    step(lambda campaign: campaign.launch())
    with Ledger(study.scratch / LEDGER, study.name, "laboratory", "live") as ledger:  # type: ignore[arg-type]
        (batch,) = [offer.batch for offer in ledger.offered() if ledger.operation("post", offer.batch.batch_id)]
    rates = honest(study)
    for person in ("ann", "bob"):
        answers = {
            pair_id: {name: rates(pair_id, name) for name in load_rubric(study).question_names()}
            for pair_id in batch.pair_ids
        }
        file = made.FOLDER / batch.batch_id / f"{person}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(answers), encoding="utf-8")
    step(collect)
    step(judging.approve_all)
    step(judging.approve_all)  # nothing is paid twice
    account = json.loads((study.scratch / "laboratory-live.json").read_text(encoding="utf-8"))
    assert [(paid["worker"], paid["cents"]) for paid in account["payments"]] == [("ann", 120), ("bob", 120)]
    ratings = CampaignRecords(study).all_ratings
    assert set(ratings["source"]) == {"laboratory"} and len(ratings) == 2 * 6 * 2
    (summary,) = read_summaries(Evidence(study))
    assert (summary.platform, summary.rewards, summary.states["approved"]) == ("laboratory", 240, 2)


def test_answers_that_cannot_be_read_are_named_and_left_to_a_person(variant: Make, site: MTurkSite) -> None:
    study = drawn(variant)
    launch(study, site)
    (hit,) = site.hits
    fields = site.fields(hit, honest(study))
    bad = site.work(hit, "hacker", fields | {"batch": "'; DROP TABLE batches; --"})
    good = site.work(
        hit, "kind", fields | {next(k for k in fields if k.endswith(".comment")): '=HYPERLINK("x") <script>'}
    )
    found: list[object] = []
    step(study, site, lambda campaign: found.append(collect(campaign).troubles))
    (troubles,) = found
    assert isinstance(troubles, dict) and set(troubles) == {bad}
    assert '=HYPERLINK("x") <script>' in set(CampaignRecords(study).all_ratings["comment"])
    left: list[judging.Case] = []
    step(study, site, lambda campaign: left.extend(judging.approve_all(campaign)[1]))
    assert [(case.advice, case.work.submission.submission_id) for case in left] == [("ask", bad)]
    assert site.assignments[good].status == "Approved"


def test_an_extended_sample_is_offered_in_batches_of_its_own(variant: Make, site: MTurkSite) -> None:
    study = drawn(variant, sample={"pairs": 4, "batch": 4, "repeats": 0}, acceptance={"min_pairs": 4})
    assert launch(study, site).posted == 1
    grown = variant(
        name="crowd",
        transformations=["paraphrasing"],
        sample={"pairs": 8, "batch": 4, "repeats": 0},
        raters={"per_pair": 2},
        acceptance={"min_pairs": 4},
        crowd=campaigns.CROWD,
    )
    wave = extend_sample(grown, "more")
    for hit in list(site.hits):
        for worker in "AB":
            work(study, site, hit, worker)
    step(grown, site, collect)
    step(grown, site, judging.approve_all)
    launch(grown, site)
    with Ledger(grown.scratch / LEDGER, grown.name, "mturk", "live") as ledger:
        batches = [set(one.batch.pair_ids) for one in ledger.offered()]
    new = {pair.pair_id for pair in CampaignRecords(grown).pairs if pair.wave == wave.number}
    assert len(batches) == 2 and len(new) == 4 and new <= batches[1] and not new & batches[0]
