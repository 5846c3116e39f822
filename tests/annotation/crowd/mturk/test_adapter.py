"""MTurk through real boto3, against a local server that speaks its protocol."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest

from annotation.campaign.offering import Mode
from annotation.crowd.mturk.adapter import ENDPOINTS, MTurk
from annotation.crowd.platform import RefusedError, UncertainError
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.study import Study
from tests.annotation.crowd.mturk.mturk_site import Fault, Moment, MTurkSite, WorkerRefusedError
from tests.annotation.crowd.offers import TEXTS, make_offer

COUNTRIES = {"countries": {"en": ["GB", "US"]}}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "very-secret")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def study(variant: Callable[..., Study]) -> Study:
    return variant(name="turks", crowd=COUNTRIES)


def mturk(study: Study, site: MTurkSite, mode: Mode = "sandbox", retries: int = 0) -> MTurk:
    return MTurk(study, mode, endpoint=site.url, retries=retries)


def once(operation: str, moment: Moment, fault: Fault) -> Callable[[str, Moment], Fault]:
    """This fault at the first such call, no other."""
    left = [fault]
    return lambda op, when: left.pop() if left and (op, when) == (operation, moment) else None


def test_every_page_of_a_list_is_read(study: Study) -> None:
    with MTurkSite(page=2) as site:
        platform = mturk(study, site)
        hits = [platform.post(make_offer(places=7, reward=100 + n), f"t{n}") for n in range(5)]
        done = [site.work(hits[0], f"W{n}") for n in range(7)]
        for key in done:
            platform.bonus(platform.submission(key), 10, "thanks", f"b{key}")
        assert [one.submission_id for one in platform.submissions(hits[0])] == done
        assert all(one.bonuses == (10,) for one in platform.submissions(hits[0]))
        assert [platform.find_posted(f"t{n}") for n in range(5)] == hits
        assert platform.find_posted("other") is None


@pytest.mark.parametrize("mode", ["live", "sandbox"])
def test_who_may_work(study: Study, site: MTurkSite, mode: Mode) -> None:
    """Live asks for 95% of 1,000 tasks; in the sandbox nobody has them. The rest is asked in both."""
    hit = mturk(study, site, mode).post(make_offer(), "t")
    asked = {
        one["QualificationTypeId"]: (one["Comparator"], one.get("IntegerValues") or one.get("LocaleValues"))
        for one in site.hits[hit].type["QualificationRequirements"]
    }
    (own,) = site.qualifications
    wanted: dict[str, Any] = {
        "00000000000000000071": ("In", [{"Country": "GB"}, {"Country": "US"}]),
        own: ("DoesNotExist", None),
    }
    if mode == "live":
        wanted |= {
            "000000000000000000L0": ("GreaterThan", [95]),
            "00000000000000000040": ("GreaterThanOrEqualTo", [1000]),
        }
    assert asked == wanted


def test_a_hit_is_as_the_study_wants_it_and_where_its_rarer_language_is_read(study: Study, site: MTurkSite) -> None:
    platform = mturk(study, site)
    for languages in (("en", "tr"), ("tr", "en"), ("tr", "tr")):
        hit = site.hits[platform.post(make_offer(reward=105, languages=languages), "".join(languages))]
        assert hit.type["QualificationRequirements"][0]["LocaleValues"] == [{"Country": "TR"}]
    assert (hit.type["Reward"], hit.type["AssignmentDurationInSeconds"], hit.body["MaxAssignments"]) == (
        "1.05",
        3600,
        3,
    )
    assert hit.type["AutoApprovalDelayInSeconds"] == hit.body["LifetimeInSeconds"] == 7 * 86_400


def test_a_qualification_that_lists_do_not_show_yet(study: Study) -> None:
    with MTurkSite(lag=3) as site:
        mturk(study, site).prepare()
        with pytest.raises(UncertainError, match="does not show yet"):
            mturk(study, site).prepare()
        mturk(study, site).prepare()  # the fourth list shows it
        assert len(site.qualifications) == 1


def test_a_hit_that_lists_do_not_show_yet_is_known_by_its_token(study: Study) -> None:
    with MTurkSite(lag=2) as site:
        platform = mturk(study, site)
        hit = platform.post(make_offer(), "t")
        assert platform.find_posted("t") is None
        with pytest.raises(UncertainError, match="its list does not show the HIT yet"):
            platform.post(make_offer(), "t")
        site.forget_tokens()  # after 24 hours
        assert platform.find_posted("t") == hit
        assert list(site.hits) == [hit]


def test_a_decision_is_not_turned_round(study: Study, site: MTurkSite) -> None:
    platform = mturk(study, site)
    hit = platform.post(make_offer(), "t")
    good, bad, other = (platform.submission(site.work(hit, worker)) for worker in ("W1", "W2", "W3"))
    for _ in range(2):
        platform.approve(good)
        platform.reject(bad, "why")
    platform.approve(platform.submission(good.submission_id))
    with pytest.raises(RefusedError, match="is rejected on MTurk"):
        platform.approve(bad)
    with pytest.raises(RefusedError, match="is approved on MTurk"):
        platform.reject(good, "why")
    with pytest.raises(RefusedError, match="1025 characters; MTurk sends only 1024"):
        platform.reject(other, "x" * 1025)
    assert [one.state for one in platform.submissions(hit)] == ["approved", "rejected", "submitted"]


def test_a_refusal_at_the_second_try_is_uncertain(study: Study, site: MTurkSite) -> None:
    """The first try pays and its answer is lost; what refuses the second one does not say that nothing was paid."""
    platform = mturk(study, site, retries=1)
    one = platform.submission(site.work(platform.post(make_offer(), "t"), "W1"))

    def fault(operation: str, moment: Moment) -> Fault:
        if (operation, moment) != ("SendBonus", "after"):
            return None
        site.shut = ("RequestError", "The reason is not allowed")
        return "drop"

    site.fault = fault
    with pytest.raises(UncertainError, match="refused a repeated try"):
        platform.bonus(one, 35, "longer", "b")
    with pytest.raises(RefusedError, match="not allowed"):
        platform.bonus(one, 35, "longer", "b")
    site.shut = None
    assert platform.is_bonus_paid(one, 35, "longer")


def test_extending_and_closing(study: Study, site: MTurkSite) -> None:
    platform = mturk(study, site)
    hit = platform.post(make_offer(places=2), "t")
    site.expire(hit)
    assert not platform.posted(hit).open
    for _ in range(2):  # the second one does nothing more
        platform.extend(hit, places=3, token="more")
    now = platform.posted(hit)
    assert (now.places, now.open) == (3, True)
    assert now.ends is not None
    assert 6.9 < (now.ends - datetime.now(UTC)).total_seconds() / 86_400 < 7.1
    busy = site.accept(hit, "W1")
    for _ in range(2):
        platform.close(hit)
    with pytest.raises(WorkerRefusedError):
        site.accept(hit, "W2")
    assert platform.posted(hit).open  # W1 is still at work
    site.submit(busy, site.fields(hit))
    assert not platform.posted(hit).open
    with pytest.raises(RefusedError, match="does not extend a HIT from . to 10 places"):
        platform.extend(hit, places=10, token="ten")


UNREADABLE = [
    ({"study": "other"}, "answers are for study 'other', not for 'turks'"),
    ({"batch": "other"}, "answers are for batch 'other', not for 'batch2'"),
    ({"p0.quality": ""}, "pair p0 has no answer to 'quality'"),
    ({"p0.quality": "6"}, "the answer 6 is not on the scale 1 to 5"),
    ({"p0.quality": "4.0"}, "'4.0' is not on the scale"),
    ({"p9.quality": "4"}, "answers 'p9.quality', which was not asked"),
    ({"p0.mood": "4"}, "answers 'p0.mood', which was not asked"),
    ({"p0.comment": "x" * 1_000_000}, "at most 1,000,000 are read"),
]
ANSWER = "<Answer><QuestionIdentifier>q</QuestionIdentifier><FreeText>1</FreeText></Answer>"
NO_DOCUMENTS = [("<a><b></a>", "not well-formed XML"), (f"<a>{ANSWER * 2}</a>", "twice"), ("", "has no answers")]


def test_answers_and_documents_that_cannot_be_read(study: Study, site: MTurkSite) -> None:
    platform, offer = mturk(study, site), make_offer(places=len(UNREADABLE) + len(NO_DOCUMENTS))
    hit = platform.post(offer, "t")
    wrong = {}
    for change, complaint in UNREADABLE:
        wrong[site.work(hit, complaint, site.fields(hit) | change)] = complaint
    for xml, complaint in NO_DOCUMENTS:
        wrong[work := site.work(hit, complaint)] = complaint
        site.assignments[work].answer = xml
    for submission in platform.submissions(hit):
        with pytest.raises(DataError) as caught:
            platform.answers(submission, offer)
        assert wrong.pop(submission.submission_id) in str(caught.value) and "\n" not in str(caught.value)
    assert not wrong


def test_what_workers_write_stays_text(study: Study, site: MTurkSite) -> None:
    """Markup and formulas are kept as they are, control characters go, 3,000 letters are cut to 2,000."""
    platform, offer = mturk(study, site), make_offer()
    hit = platform.post(offer, "t")
    change = {
        "p0.comment": '=HYPERLINK("http://x") <script>&amp;</script>\u0085\u202e',
        "p1.comment": "y" * 3000,
        "p0.seconds": "inf",
        "p1.seconds": "fast",
        "p1.quality": "",
        "p1.discarded": "yes",
    }
    site.work(hit, "W1", site.fields(hit) | change)
    (submission,) = platform.submissions(hit)
    first, second = platform.answers(submission, offer)
    assert first.comment == '=HYPERLINK("http://x") <script>&amp;</script>\u202e'
    assert first.status == "submitted"
    assert (second.comment, second.status, dict(second.values)) == (
        "y" * 2000, "discarded", {"quality": None, "fluency": 4},
    )  # fmt: skip
    assert first.seconds != first.seconds
    assert second.seconds != second.seconds


def test_no_keys(study: Study, site: MTurkSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(ServiceError, match="cannot be used .*; set AWS_ACCESS_KEY_ID"):
        mturk(study, site).balance()
    monkeypatch.setenv("AWS_PROFILE", "nosuch")
    with pytest.raises(ServiceError, match="cannot be used .*nosuch"):
        mturk(study, site)


def test_a_service_that_refuses_all(study: Study, site: MTurkSite) -> None:
    platform = mturk(study, site)
    for code, message, complaint in (
        ("UnrecognizedClientException", "The security token is invalid", "set AWS_ACCESS_KEY_ID"),
        ("AccessDeniedException", "not authorized to perform: mturk:GetAccountBalance", "linked to the requester"),
        ("UnknownOperationException", "", "closed on 30 September 2026"),
        ("ThrottlingException", "Rate exceeded", "run the command again"),
    ):
        site.shut = (code, message)
        with pytest.raises(ServiceError, match=complaint) as caught:
            platform.balance()
        assert not isinstance(caught.value, RefusedError)
        assert "very-secret" not in str(caught.value) and "AKIATEST" not in str(caught.value)


def test_nobody_answers(study: Study) -> None:
    platform = MTurk(study, "sandbox", endpoint="http://127.0.0.1:9", retries=0)
    with pytest.raises(ServiceError, match="cannot be reached.*closed on 30 September 2026.*prolific"):
        platform.balance()


@pytest.mark.parametrize(("mode", "other"), [("sandbox", "live"), ("live", "sandbox")])
def test_the_modes_never_meet(study: Study, mode: Mode, other: Mode) -> None:
    with pytest.raises(StudyError, match=f"is MTurk's {other} service, but the mode is {mode}"):
        MTurk(study, mode, endpoint=ENDPOINTS[other] + "/")
    made: list[str] = []

    class Session:
        def client(self, name: str, endpoint_url: str, config: object) -> None:
            made.append(endpoint_url)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boto3, "Session", Session)
        MTurk(study, mode)
    assert made == [ENDPOINTS[mode]]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("fault", ["drop", "error", "throttle"])
@pytest.mark.parametrize("retries", [0, 2])  # boto3's own
def test_faults_anywhere_end_in_the_same(
    study: Study, site: MTurkSite, moment: Moment, fault: Fault, retries: int
) -> None:
    """Every operation fails once; each step is repeated until it goes through. All is done exactly once."""
    failed: set[str] = set()

    def fails_once(operation: str, when: Moment) -> Fault:
        if when == moment and operation not in failed:
            failed.add(operation)
            return fault
        return None

    def insist(step: Callable[[], Any]) -> Any:
        for _ in range(9):
            try:
                return step()
            except RefusedError:
                raise
            except ServiceError:
                assert not retries
        raise AssertionError("it never goes through")

    platform, offer = mturk(study, site, retries=retries), make_offer()
    site.fault = fails_once
    hit = insist(lambda: platform.find_posted("t") or platform.post(offer, "t"))
    insist(lambda: platform.extend(hit, places=4, token="x"))
    key, bad = site.work(hit, "W1"), site.work(hit, "W2")
    one, other = insist(lambda: list(platform.submissions(hit)))
    assert len(insist(lambda: platform.answers(one, offer))) == len(TEXTS)
    insist(lambda: platform.approve(one))
    insist(lambda: platform.reject(other, "why"))
    assert not insist(lambda: platform.is_bonus_paid(one, 7, "r"))
    insist(lambda: platform.bonus(one, 7, "r", "b"))
    insist(lambda: platform.bonus(one, 7, "r", "b"))
    assert insist(lambda: platform.is_bonus_paid(one, 7, "r")) and not platform.is_bonus_paid(one, 8, "r")
    insist(lambda: platform.keep_out("W1"))
    insist(lambda: platform.close(hit))
    assert insist(platform.balance) == site.available
    assert site.paid == {("W1", key): [120, 7], ("W2", bad): []}
    assert len(site.hits) == len(site.qualifications) == 1
    assert not platform.posted(hit).open and platform.posted(hit).places == 4
    platform.bonus(one, 7, "r", "other")  # another token is another bonus
    assert site.paid["W1", key] == [120, 7, 7]


def test_what_cannot_be_offered_is_refused_before_any_call(variant: Callable[..., Study], site: MTurkSite) -> None:
    platform = mturk(variant(name="turks", crowd={}), site)
    with pytest.raises(RefusedError, match="crowd.countries has no countries for 'en'"):
        platform.post(make_offer(), "t")
    many = make_offer([(random.Random(5).randbytes(40_000).hex(), "y")])
    with pytest.raises(RefusedError, match="MTurk takes at most 65,535; set sample.batch below"):
        platform.post(many, "t")
    assert "CreateHITWithHITType" not in site.calls


def test_an_extension_that_was_lost_is_not_made_twice(study: Study, site: MTurkSite) -> None:
    platform = mturk(study, site)
    hit = platform.post(make_offer(places=2), "t")
    site.fault = once("CreateAdditionalAssignmentsForHIT", "after", "error")
    with pytest.raises(UncertainError):
        platform.extend(hit, places=4, token="more")
    platform.extend(hit, places=4, token="more")
    assert platform.posted(hit).places == 4
