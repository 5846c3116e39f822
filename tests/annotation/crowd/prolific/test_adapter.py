"""Prolific against a local server that speaks its API: what is sent, every page, every fault, and pay once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from annotation.campaign.offering import Mode
from annotation.crowd.platform import Offer, RefusedError, UncertainError
from annotation.crowd.prolific.adapter import Prolific
from annotation.crowd.prolific.api import Api
from plumbline.errors import PlumblineError, ServiceError, StudyError
from plumbline.study import Study
from tests.annotation.crowd.offers import TEXTS, make_offer
from tests.annotation.crowd.prolific.prolific_site import COUNTRIES, LANGUAGES, PlaceError, Site, prolific_site

KEY = bytes(range(32))
TOKEN = "a" * 64
OPENED: list[Prolific] = []
PID, OTHER = "5" * 24, "6" * 24
CROWD = {
    "address": "https://argilla.example.org",
    "fee": 0.3,
    "countries": {"en": ["US", "GB", "NG"]},
    "consent": "I agree to <b>all</b>.",
}


@pytest.fixture
def site() -> Iterator[Site]:
    with prolific_site() as running:
        yield running
    while OPENED:
        OPENED.pop().close_connections()


@pytest.fixture
def study(variant: Callable[..., Study]) -> Study:
    return variant(crowd=CROWD, raters={"contact": "lab@example.org"})


@pytest.fixture
def live(study: Study, site: Site) -> Prolific:
    return open_on(site, study)


def open_on(site: Site, study: Study, mode: Mode = "live", token: str = "") -> Prolific:
    """The platform; its connections are closed after the test."""
    token = token or site.token
    OPENED.append(Prolific(study, mode, KEY, site.rooms, Api(token, site.url, site.pause)))
    return OPENED[-1]


def offer(places: int = 3, output: str = "de") -> Offer:
    pool = "paraphrasing" if output == "en" else "translation"
    return make_offer(TEXTS * 2, ("en", output), places, 80, pool)


def once(operation: str, moment: str, what: str) -> Callable[[str, str], str]:
    """A fault at the first such call."""
    left = [what]

    def fault(now: str, when: str) -> str:
        return left.pop() if left and (now, when) == (operation, moment) else ""

    return fault


def test_a_batch_becomes_a_published_study_for_those_who_read_both_languages(live: Prolific, site: Site) -> None:
    posted_id = live.post(offer(), TOKEN)
    sent = site.studies[posted_id]
    assert site.rooms.admitted == {("batch4", posted_id): set()}  # the room knows its study before anybody comes
    assert sent["status"] == "ACTIVE"
    assert (sent["internal_name"], sent["reward"], sent["total_available_places"]) == (TOKEN, 80, 3)
    assert sent["external_study_url"] == (
        "https://argilla.example.org/crowd/enter/batch4"
        "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )
    assert sent["estimated_completion_time"] == 2  # 4 pairs of 30 s
    assert sent["maximum_allowed_time"] == 60
    assert sent["device_compatibility"] == ["desktop", "tablet", "mobile"]
    assert sent["description"].count("<b>") == 0
    assert "&lt;b&gt;all&lt;/b&gt;" in sent["description"]
    wanted = [(one["filter_id"], one.get("selected_values") or one["selected_range"]) for one in sent["filters"]]
    # English in three countries, of which Prolific has two; German where PTEB looked for it.
    countries = wanted[0][1]
    assert {COUNTRIES[key] for key in countries} == {
        "United States", "United Kingdom", "Germany", "Austria", "Switzerland",
    }  # fmt: skip
    fluent = [one for name, one in wanted if name == "fluent-languages"]
    assert [[LANGUAGES[key] for key in one] for one in fluent] == [["German"], ["English"]]
    assert ("approval_rate", {"lower": 96, "upper": 100}) in wanted  # more than 95 percent
    assert ("approval_numbers", {"lower": 1000}) in wanted
    codes = {one["code_type"]: one["actions"][0]["action"] for one in sent["completion_codes"]}
    assert codes == {"COMPLETED": "MANUALLY_REVIEW", "OTHER": "REQUEST_RETURN"}
    posted = live.posted(posted_id)
    assert (posted.places, posted.ends, posted.open) == (3, None, True)


def test_a_study_may_ask_for_larger_screens(variant: Callable[..., Study], site: Site) -> None:
    platform = open_on(site, variant(crowd=CROWD | {"devices": ["desktop"]}))
    assert site.studies[platform.post(offer(), TOKEN)]["device_compatibility"] == ["desktop"]


def test_a_study_that_prolific_opens_to_more_people_is_not_published(
    live: Prolific, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = site.create_study
    monkeypatch.setattr(site, "create_study", lambda query, body: create(query, body | {"total_available_places": 30}))
    with pytest.raises(RefusedError, match="set the number of places to 30 instead of 3; the study was not published"):
        live.post(offer(), TOKEN)
    assert [one["status"] for one in site.studies.values()] == ["UNPUBLISHED"] and not site.paid


def test_in_the_sandbox_nothing_is_ever_published(study: Study, site: Site) -> None:
    sandbox = open_on(site, study, "sandbox")
    sandbox.prepare()
    posted_id = sandbox.post(offer(), TOKEN)
    sandbox.extend(posted_id, places=5, token=TOKEN)
    assert sandbox.find_posted(TOKEN) == posted_id
    sandbox.close(posted_id)
    assert site.studies[posted_id]["status"] == "UNPUBLISHED"
    assert "transition_study" not in site.calls
    assert not sandbox.posted(posted_id).open
    assert sandbox.preview(posted_id).endswith(f"?PROLIFIC_PID={'0' * 24}&STUDY_ID={'0' * 24}&SESSION_ID={'0' * 24}")


@pytest.mark.parametrize("what", ["500", "408", "429", "drop"])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("operation", ["create_study", "transition_study"])
def test_a_study_is_published_once_wherever_posting_breaks_off(
    live: Prolific, site: Site, operation: str, moment: str, what: str
) -> None:
    site.fault = once(operation, moment, what)
    with pytest.raises(UncertainError):
        live.post(offer(), TOKEN)
    found = live.find_posted(TOKEN)
    assert (found is None) == (operation == "create_study" and moment == "before")
    posted_id = found or live.post(offer(), TOKEN)
    assert [one["status"] for one in site.studies.values()] == ["ACTIVE"]
    assert live.find_posted(TOKEN) == posted_id


def test_of_two_drafts_of_one_token_one_is_published(study: Study, live: Prolific, site: Site) -> None:
    for _ in range(2):
        site.fault = once("transition_study", "before", "drop")
        with pytest.raises(UncertainError):
            live.post(offer(), TOKEN)
    found = [open_on(site, study).find_posted(TOKEN) for _ in range(2)]
    assert len(set(found)) == 1
    assert sorted(one["status"] for one in site.studies.values()) == ["ACTIVE", "UNPUBLISHED"]
    assert live.find_posted("f" * 64) is None


def test_every_page_of_studies_and_submissions_is_read(live: Prolific, site: Site) -> None:
    site.page = 2
    ids = [live.post(offer(places=5), f"{number:064}") for number in range(5)]
    assert [live.find_posted(f"{number:064}") for number in range(5)] == ids
    works = [site.join(ids[0], f"{number:024x}") for number in range(5)]
    for work, status in zip(works[1:], ["AWAITING REVIEW", "RETURNED", "TIMED-OUT", "SCREENED OUT"], strict=True):
        site.leave(work, status)
    found = list(live.submissions(ids[0]))
    assert [one.submission_id for one in found] == works
    assert [one.state for one in found] == ["working", "submitted", "returned", "returned", "returned"]
    assert math.isnan(found[0].seconds)
    assert found[1].seconds == 750
    assert found[1].submitted_at == datetime(2026, 3, 1, 10, 12, 30, tzinfo=UTC)
    assert live.submission(works[1]) == found[1]
    site.submissions[works[0]]["status"] = "DREAMING"
    with pytest.raises(ServiceError, match="unknown state \\(DREAMING\\)"):
        list(live.submissions(ids[0]))


def test_approval_and_rejection_are_final_and_may_be_repeated(live: Prolific, site: Site) -> None:
    posted_id = live.post(offer(places=2), TOKEN)
    good, bad = site.join(posted_id, PID), site.join(posted_id, OTHER)
    with pytest.raises(RefusedError, match="is working"):
        live.approve(live.submission(good))
    site.submit(good)
    site.submit(bad)
    for _ in range(2):
        live.approve(live.submission(good))
        live.reject(live.submission(bad), "Empty.")
    assert dict(site.paid) == {(PID, good): [80]}
    message = site.submissions[bad]["message"]
    assert message.startswith("Empty.\n\nA person decided this about your submission")
    assert len(message) >= 100
    with pytest.raises(RefusedError, match="is approved on Prolific: it cannot be rejected"):
        live.reject(live.submission(good), "Empty.")
    with pytest.raises(RefusedError, match="is rejected on Prolific: it cannot be approved"):
        live.approve(live.submission(bad))
    with pytest.raises(RefusedError, match="needs a reason"):
        live.reject(live.submission(good), " ")


def test_places_are_added_and_closing_lets_those_at_work_finish(live: Prolific, site: Site) -> None:
    posted_id = live.post(offer(places=1), TOKEN)
    live.extend(posted_id, places=2, token=TOKEN)
    assert live.posted(posted_id).places == 2
    work = site.join(posted_id, PID)
    for _ in range(2):
        live.close(posted_id)
    with pytest.raises(PlaceError):
        site.join(posted_id, OTHER)
    assert live.posted(posted_id).open  # somebody is at work
    site.submit(work)
    assert not live.posted(posted_id).open
    with pytest.raises(RefusedError, match="was stopped on Prolific and cannot be reopened"):
        live.extend(posted_id, places=2, token=TOKEN)


def test_whoever_is_kept_out_cannot_begin_also_in_what_is_open(live: Prolific, site: Site) -> None:
    posted_id = live.post(offer(), TOKEN)
    for _ in range(2):
        live.keep_out(PID)
    with pytest.raises(PlaceError):
        site.join(posted_id, PID)
    assert [group.members for group in site.groups.values()] == [{PID}]


def test_the_group_of_the_kept_out_is_one_also_when_its_making_broke_off(study: Study, site: Site) -> None:
    site.fault = once("create_group", "after", "drop")
    with pytest.raises(UncertainError):
        open_on(site, study).prepare()
    open_on(site, study).prepare()
    open_on(site, study, "sandbox").prepare()
    assert sorted(group.name for group in site.groups.values()) == [
        "Plumbline demo (live): no more batches", "Plumbline demo (sandbox): no more batches",
    ]  # fmt: skip


@pytest.mark.parametrize("what", ["500", "408", "429", "drop"])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("operation", "late"), [("set_up_bonus", 0), ("pay_bonus", 0), ("pay_bonus", 3)])
def test_a_bonus_is_paid_once_wherever_paying_breaks_off(
    live: Prolific, site: Site, operation: str, moment: str, what: str, late: int
) -> None:
    posted_id = live.post(offer(), TOKEN)
    work = site.join(posted_id, PID)
    site.submit(work)
    site.late = late
    submission = live.submission(work)
    site.fault = once(operation, moment, what)
    if operation == "pay_bonus":
        with pytest.raises(UncertainError):
            live.bonus(submission, 105, "long", TOKEN)
        found = live.is_bonus_paid(submission, 105, "long")
        assert found == (moment == "after")
        if not found:
            assert sum(site.pauses) == 900  # a quarter of an hour, in which Prolific may still pay
            live.bonus(submission, 105, "long", TOKEN)
    else:  # what is only set up is tried again by itself
        live.bonus(submission, 105, "long", TOKEN)
    assert live.is_bonus_paid(submission, 105, "long")
    assert dict(site.bonuses) == {(PID, work): [105]}


def test_a_bonus_that_prolific_reads_as_another_amount_is_not_paid(live: Prolific, site: Site) -> None:
    posted_id = live.post(offer(), TOKEN)
    submission = live.submission(site.join(posted_id, PID))
    site.set_up_bonus = lambda query, body: {"id": "x", "amount": 10500}  # type: ignore[method-assign]
    with pytest.raises(RefusedError, match=r"a bonus of 10500 instead of 105 \(in cents\); nothing was paid"):
        live.bonus(submission, 105, "long", TOKEN)
    assert not site.bonuses


def test_reading_is_tried_again_and_waits_as_long_as_prolific_says(live: Prolific, site: Site) -> None:
    site.retry_after = "7"
    faults = ["500", "drop", "429"]
    site.fault = lambda operation, moment: faults.pop() if faults and operation == "balance_of" else ""
    assert live.balance() == 1_000_000
    assert site.pauses == [7, 2, 4]
    site.fault = lambda operation, moment: "500"
    with pytest.raises(
        ServiceError, match="answered 500 to GET workspaces/.../balance, 4 times; run the command again later"
    ):
        live.balance()


def one_line(error: pytest.ExceptionInfo[PlumblineError], site: Site) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert site.token not in text
    return text


def test_what_stands_in_the_way_is_said_in_one_line(
    site: Site, study: Study, variant: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    live = open_on(site, study)
    site.balance = 239  # 3 x 80 cents
    with pytest.raises(RefusedError) as refused:
        live.post(offer(), TOKEN)
    assert "enough funds to publish this study" in one_line(refused, site)
    site.currency = "GBP"
    with pytest.raises(ServiceError, match="pays in GBP"):
        live.prepare()
    site.workspaces = ["1" * 24, "2" * 24]
    with pytest.raises(ServiceError, match="2 workspaces; set PROLIFIC_PROJECT to the id of a project"):
        open_on(site, study).prepare()
    monkeypatch.setenv("PROLIFIC_PROJECT", "3" * 24)
    site.currency = "USD"
    open_on(site, study).prepare()
    with pytest.raises(StudyError, match="cannot filter for readers of 'ha'"):
        live.check(offer(output="ha"))
    with pytest.raises(RefusedError, match="cannot filter for readers of 'ha'"):
        live.post(offer(output="ha"), TOKEN)
    with pytest.raises(StudyError, match="has no countries for 'pt'"):
        live.check(offer(output="pt"))
    with pytest.raises(ServiceError) as unknown:
        open_on(site, study, token="wrong").balance()
    assert "PROLIFIC_TOKEN" in one_line(unknown, site)
    monkeypatch.delenv("PROLIFIC_TOKEN", raising=False)
    with pytest.raises(ServiceError, match="PROLIFIC_TOKEN is not set"):
        Prolific(study, "live", KEY, site.rooms)
    with pytest.raises(ServiceError, match="not an https address"):
        Api("x", "http://prolific.example.org")
    with pytest.raises(StudyError, match="crowd.address is missing"):
        open_on(site, variant(crowd={}))
    with pytest.raises(StudyError, match="must be https"):
        open_on(site, variant(crowd={**CROWD, "address": "http://argilla.example.org"}))
