"""Crowd campaigns on Mechanical Turk, through boto3 (API of 2017-01-17): a batch is a HIT, a submission an assignment.

The service closed on 30 September 2026. The adapter still serves to repeat a study as its authors did it, against any
service that speaks the protocol.

Each HIT carries its token as RequesterAnnotation, by which it is found again: MTurk forgets request tokens after 24
hours. If the service reports that a token was used, the earlier call took effect.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Self
from urllib.parse import urlsplit

from annotation.campaign.offering import Mode
from annotation.campaign.records import CampaignRecords
from annotation.crowd.mturk.form import STATES, Sheet, fields_of_xml, submission_of
from annotation.crowd.page import question_xml
from annotation.crowd.pay import amount, rounded_up
from annotation.crowd.platform import (
    Decision,
    NoMoneyError,
    Offer,
    Opening,
    Platform,
    PlatformOffer,
    RefusedError,
    Submission,
    UncertainError,
    crowd_of,
    find_or_make,
)
from annotation.questions.entries import ENGLISH, worded
from annotation.ratings.answers import Answer
from annotation.sampling.queues import Queue
from plumbline.addresses import proxy_for, refuse_no_address
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.languages import language_name
from plumbline.resources import installing
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec, PlatformName

SITES: dict[Mode, str] = {"sandbox": "https://workersandbox.mturk.com", "live": "https://www.mturk.com"}  # of workers
# MTurk's own qualifications (API reference, QualificationRequirement).
LOCALE, APPROVAL, APPROVED = "00000000000000000071", "000000000000000000L0", "00000000000000000040"
FEE, FEE_FROM_TEN = Decimal("0.20"), Decimal("0.40")  # of rewards and bonuses
MOST_COUNTRIES = 30  # that one requirement may list
PAST = datetime(2015, 1, 1, tzinfo=UTC)  # the expiry of a closed HIT


class MTurk(Platform):
    """MTurk in one mode, as a requester. Every method raises ServiceError."""

    name: PlatformName = "mturk"
    title = "MTurk"
    guide = "docs/howto/mturk.md"
    longest_reason = 1024
    refills = False
    plan_note = (
        "MTurk closed on 30 September 2026, according to its documentation: launching will likely fail. Use this"
        " platform to download answers, or to show how a published study was done."
    )

    @classmethod
    def open(cls, opening: Opening) -> Self:
        """Connect to the mode's service, or to the one that the environment names."""
        return cls(opening.study, opening.mode, endpoint=os.environ.get("MTURK_ENDPOINT", ""))

    @classmethod
    def fee(cls, cents: int, places: int, crowd: CrowdSpec) -> int:
        """Cents by MTurk's pricing page: at least a cent; a higher share for HITs of ten places and more."""
        return max(1, rounded_up((FEE if places < 10 else FEE_FROM_TEN) * cents))

    @classmethod
    def readers_of(cls, queue: Queue) -> Collection[str]:
        """Return the rarer language, whose readers read both."""
        return (queue.rarer,)

    @classmethod
    def check_plan(cls, records: CampaignRecords, mode: Mode, offer: Offer) -> None:
        question_xml(records.study, records.rubric, offer, submit_address(SITES[mode]))
        countries_of(crowd_of(records.study), offer.batch.queue)

    def __init__(self, study: Study, mode: Mode, *, endpoint: str = "", client: Any = None, retries: int = 4) -> None:
        """`endpoint` is for a service other than the mode's own; boto3 finds the keys.

        `retries` are boto3's, after throttling and broken connections. Raises StudyError without boto3, without `crowd`
        in the study, and for the endpoint of the other mode.
        """
        refuse_other_mode(mode, endpoint)
        super().__init__(study, mode)
        self._submit_to = submit_address(endpoint or SITES[mode])
        self._requester = Requester(client or connected(endpoint or ENDPOINTS[mode], retries))

    # Offers

    def prepare(self) -> None:
        """Create the study's own qualification, which keeps workers out, if it is missing."""
        _ = self._qualification

    def balance(self) -> int:
        return cents_of(self._requester.call("get_account_balance")["AvailableBalance"])

    def check(self, offer: Offer) -> None:
        """Raise StudyError for a page that is too long, a language without countries, or too many countries."""
        question_xml(self._study, self._rubric, offer, self._submit_to)
        countries_of(self._crowd, offer.batch.queue)

    def send_offer(self, offer: Offer, token: str) -> str:
        question = question_xml(self._study, self._rubric, offer, self._submit_to)
        kind = self._hit_type(offer)
        try:
            answer = self._requester.call(
                "create_hit_with_hit_type",
                HITTypeId=self._requester.call("create_hit_type", **kind)["HITTypeId"],
                MaxAssignments=offer.places,
                LifetimeInSeconds=_seconds(days=self._crowd.days),
                Question=question,
                RequesterAnnotation=token,
                UniqueRequestToken=token,
            )
        except DoneBeforeError as error:
            if hit_id := self.find_posted(token):
                return hit_id
            raise UncertainError(
                f"{error}; its list does not show the HIT yet; run the command again in a few minutes"
            ) from None
        return str(answer["HIT"]["HITId"])

    def find_posted(self, token: str) -> str | None:
        hits = self._requester.pages("list_hits", "HITs")
        return next((str(hit["HITId"]) for hit in hits if hit.get("RequesterAnnotation") == token), None)

    def posted(self, posted_id: str) -> PlatformOffer:
        hit = self._hit(posted_id)
        at_work = hit.get("NumberOfAssignmentsPending", 0) > 0
        is_open = hit["HITStatus"] == "Assignable" and hit["Expiration"] > datetime.now(UTC)
        return PlatformOffer(posted_id, hit["MaxAssignments"], hit["Expiration"].astimezone(UTC), is_open or at_work)

    def extend(self, posted_id: str, *, places: int, token: str) -> bool:
        """Open a HIT for its usual time from now, to `places` places in all.

        Raises RefusedError for an increase to ten places or more: MTurk's fee rises there, and it does not allow it.
        """
        current = self._hit(posted_id)["MaxAssignments"]
        if current < 10 <= places:
            raise RefusedError(f"HIT {posted_id}: MTurk does not extend a HIT from {current} to {places} places,"
                               " because its fee rises at 10; the batch stays short of workers, and `crowd close`"
                               " ends it")  # fmt: skip
        if current < places:
            self._requester.once(
                "create_additional_assignments_for_hit",
                HITId=posted_id,
                NumberOfAdditionalAssignments=places - current,
                UniqueRequestToken=token,
            )
        self._expire(posted_id, datetime.now(UTC) + timedelta(days=self._crowd.days))
        return True

    def close(self, posted_id: str) -> None:
        if self._hit(posted_id)["Expiration"] > datetime.now(UTC):
            self._expire(posted_id, PAST)

    def _expire(self, posted_id: str, at: datetime) -> None:
        # MTurk takes the HIT and the second for a token of its own, and refuses an equal call.
        self._requester.once("update_expiration_for_hit", HITId=posted_id, ExpireAt=at)

    def preview(self, posted_id: str) -> str:
        return f"{SITES[self.mode]}/mturk/preview?groupId={self._hit(posted_id).get('HITGroupId', '')}"

    def _hit(self, posted_id: str) -> dict[str, Any]:
        hit: dict[str, Any] = self._requester.call("get_hit", HITId=posted_id)["HIT"]
        return hit

    def _hit_type(self, offer: Offer) -> dict[str, Any]:
        """Return the properties that a queue's HITs of one reward share; MTurk gives equal ones the same id."""
        queue = offer.batch.queue
        rubric, pool = self._rubric, self._rubric.pool(queue.pool)
        title, instruction = worded(pool.title, ENGLISH), worded(pool.asked, ENGLISH)
        pairs = "Read pairs of short texts, an original and a new one made from it, and rate the new one."
        request = instruction if rubric.fields.shown else pairs
        work = title if rubric.fields.shown else f"Rate short texts: {title}"
        names = dict.fromkeys((language_name(queue.language), language_name(queue.output_language)))
        return {
            "Title": f"{work} ({' to '.join(names)})",
            "Description": f"{request} You must read {' and '.join(names)} well.",
            "Keywords": ", ".join(["rating", "text", "language", *names]),
            "Reward": amount(offer.reward),
            "AssignmentDurationInSeconds": _seconds(hours=self._crowd.hours),
            "AutoApprovalDelayInSeconds": _seconds(days=self._crowd.review_days),
            "QualificationRequirements": self._requirements(queue),
        }

    def _requirements(self, queue: Queue) -> list[dict[str, Any]]:
        """Return what a HIT requires of workers, but no approved tasks in the sandbox, where nobody has a thousand."""
        wanted: list[tuple[str, str, dict[str, Any]]] = [
            (LOCALE, "In", {"LocaleValues": [{"Country": code} for code in countries_of(self._crowd, queue)]}),
            (self._qualification, "DoesNotExist", {}),
        ]
        if self.mode == "live":
            wanted.append((APPROVAL, "GreaterThan", {"IntegerValues": [self._crowd.approval]}))
            wanted.append((APPROVED, "GreaterThanOrEqualTo", {"IntegerValues": [self._crowd.approved]}))
        return [
            {"QualificationTypeId": key, "Comparator": how, **values, "ActionsGuarded": "DiscoverPreviewAndAccept"}
            for key, how, values in wanted
        ]

    # Submissions

    def submissions(self, posted_id: str) -> Iterator[Submission]:
        """Yield all submitted assignments; MTurk does not show open or returned ones."""
        bonuses: dict[str, list[int]] = {}
        for row in self._requester.pages("list_bonus_payments", "BonusPayments", HITId=posted_id):
            bonuses.setdefault(row["AssignmentId"], []).append(cents_of(row["BonusAmount"]))
        for row in self._requester.pages(
            "list_assignments_for_hit", "Assignments", HITId=posted_id, AssignmentStatuses=list(STATES)
        ):
            yield submission_of(row, bonuses.get(row["AssignmentId"], []))

    def submission(self, submission_id: str) -> Submission:
        return submission_of(self._assignment(submission_id), [cents for cents, _ in self._bonuses(submission_id)])

    def answers(self, submission: Submission, offer: Offer) -> Sequence[Answer]:
        location = f"assignment {submission.submission_id}"
        assignment = self._assignment(submission.submission_id)
        if submission.submitted_at is None or not assignment.get("Answer"):
            raise DataError(f"{location}: has no answers")
        pools = {pair.pair_id: pair.pool for pair in offer.pairs}
        sheet = Sheet(self._study.name, self._rubric, pools, location)
        fields = fields_of_xml(assignment["Answer"], location)
        sheet.refuse_others(fields, offer.batch.batch_id)
        return sheet.answers(fields, offer.batch.pair_ids, submission.submitted_at.isoformat())

    def _assignment(self, submission_id: str) -> dict[str, Any]:
        assignment: dict[str, Any] = self._requester.call("get_assignment", AssignmentId=submission_id)["Assignment"]
        return assignment

    # Decisions and money

    def send_decision(self, submission_id: str, decision: Decision, reason: str) -> None:
        if decision == "approved":
            self._requester.call("approve_assignment", AssignmentId=submission_id)
        else:
            self._requester.call("reject_assignment", AssignmentId=submission_id, RequesterFeedback=reason)

    def bonus(self, submission: Submission, cents: int, reason: str, token: str) -> None:
        """Pay a bonus, unless its token was used within 24 hours."""
        self._requester.once(
            "send_bonus",
            WorkerId=submission.worker,
            AssignmentId=submission.submission_id,
            BonusAmount=amount(cents),
            Reason=reason,
            UniqueRequestToken=token,
        )

    def shows_bonus(self, submission_id: str, cents: int, reason: str) -> bool:
        """Return whether a bonus of this amount and reason was paid; MTurk does not show its token."""
        return (cents, reason) in self._bonuses(submission_id)

    def _bonuses(self, submission_id: str) -> list[tuple[int, str]]:
        rows = self._requester.pages("list_bonus_payments", "BonusPayments", AssignmentId=submission_id)
        return [(cents_of(row["BonusAmount"]), row.get("Reason", "")) for row in rows]

    # Excluded workers

    @cached_property
    def _qualification(self) -> str:
        """MTurk's id of the study's own qualification, by its name; looked up once."""
        name = f"plumbline {self._study.name}: has taken part"

        def find() -> str | None:
            rows = self._requester.pages(
                "list_qualification_types",
                "QualificationTypes",
                Query=name,
                MustBeRequestable=False,
                MustBeOwnedByCaller=True,
            )
            return next((str(row["QualificationTypeId"]) for row in rows if row["Name"] == name), None)

        def make() -> str | None:
            description = "Has rated as much of this study as one person may."
            try:
                answer = self._requester.call(
                    "create_qualification_type", Name=name, Description=description, QualificationTypeStatus="Active"
                )
            except DoneBeforeError:
                return None
            return str(answer["QualificationType"]["QualificationTypeId"])

        return find_or_make(find, make, f"MTurk has a qualification {name!r}")

    def keep_out(self, worker: str) -> None:
        """Give a worker the qualification that excludes them from this study's HITs, without a message."""
        self._requester.call(
            "associate_qualification_with_worker",
            QualificationTypeId=self._qualification,
            WorkerId=worker,
            IntegerValue=1,
            SendNotification=False,
        )


def submit_address(site: str) -> str:
    """Return the address to which a page sends its answers."""
    return f"{site.rstrip('/')}/mturk/externalSubmit"


def countries_of(crowd: CrowdSpec, queue: Queue) -> tuple[str, ...]:
    """Return the countries of workers who read both languages: the rarer language's.

    Raises StudyError for a language without a list, and for more countries than MTurk takes.
    """
    language = queue.rarer
    countries = crowd.countries_of(language)
    if len(countries) > MOST_COUNTRIES:
        raise StudyError(
            f"crowd.countries, {language}: lists {len(countries)} countries, but MTurk takes at most {MOST_COUNTRIES};"
            " name fewer"
        )
    return countries


def _seconds(**time: float) -> int:
    return round(timedelta(**time).total_seconds())


CLOSED = (
    "MTurk closed on 30 September 2026; results downloaded from its site (CSV) can still be read, and new campaigns"
    " can run on Prolific (--platform prolific)"
)
KEYS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE with a profile in ~/.aws/credentials; use the"
    " keys of the AWS account that is linked to the requester's account"
)


class DoneBeforeError(ServiceError):
    """A call whose token was used before: it took effect then."""


def translated(error: Exception, operation: str) -> ServiceError | None:
    """Return boto3's error as an error of ours; None for one that is a bug here."""
    from botocore import exceptions as boto  # noqa: PLC0415 (extra `crowd`)

    if isinstance(error, boto.ClientError):
        return _answered(error.response, operation)
    keys = (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
        boto.ProfileNotFound,
        boto.ConfigParseError,
        boto.TokenRetrievalError,
    )
    unreached = (boto.EndpointConnectionError, boto.ConnectTimeoutError, boto.ProxyConnectionError)
    meanings: tuple[tuple[Any, type[ServiceError], str], ...] = (
        (keys, ServiceError, f"MTurk: the AWS keys or settings cannot be used ({error}); {KEYS}"),
        (boto.ParamValidationError, RefusedError, f"MTurk, {operation}: {error}"),
        (unreached, ServiceError, f"MTurk cannot be reached ({error}); {CLOSED}"),
        (boto.HTTPClientError, UncertainError, f"MTurk did not answer {operation} ({error}); run the command again"),
        (boto.BotoCoreError, ServiceError, f"MTurk, {operation}: {error}"),
    )
    return next((kind(line) for errors, kind, line in meanings if isinstance(error, errors)), None)


def _answered(answer: dict[str, Any], operation: str) -> ServiceError:
    """Translate an error that the service returned: only one with a TurkErrorCode is its judgement of the call."""
    message = str(answer["Error"].get("Message") or answer["Error"].get("Code", ""))
    code, turk = str(answer["Error"].get("Code", "")), str(answer.get("TurkErrorCode", "")).rpartition(".")[2]
    about = answer.get("ResponseMetadata", {})
    if turk.endswith("AlreadyExists") or "has already been processed" in message:
        return DoneBeforeError(f"MTurk, {operation}: {message}")
    if about.get("HTTPStatusCode", 0) >= 500 or "Throttl" in code or code == "ServiceFault":
        return UncertainError(f"MTurk could not complete {operation} ({message}); run the command again. {CLOSED}")
    # boto3 may have tried more than once: the last try was refused, but an earlier one may have taken effect. Of an
    # assignment that was decided before, its state tells.
    if turk not in ("", "InvalidAssignmentState") and about.get("RetryAttempts", 0):
        return UncertainError(
            f"MTurk refused a repeated try of {operation}, but an earlier one may have succeeded ({message}); run the"
            " command again"
        )
    if turk == "InsufficientFunds":
        return NoMoneyError(
            f"MTurk refuses {operation}: {message}; add money on the requester's site, then run the command again"
        )
    if turk:
        return RefusedError(f"MTurk refuses {operation}: {message}")
    return ServiceError(f"MTurk does not accept {operation} ({code}: {message}); {KEYS}. {CLOSED}")


REGION = "us-east-1"  # MTurk has only this region
ENDPOINTS: dict[Mode, str] = {
    "sandbox": "https://mturk-requester-sandbox.us-east-1.amazonaws.com",
    "live": "https://mturk-requester.us-east-1.amazonaws.com",
}
PAGE = 100  # rows that MTurk lists at a time, at most


class Requester:
    """A requester's account, over a client of boto3's."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Make a call through boto3. Raises ServiceError as `translated` returns it."""
        try:
            answer: dict[str, Any] = getattr(self._client, method)(**arguments)
        except Exception as error:
            service_error = translated(error, method)
            if service_error is None:
                raise
            raise service_error from None
        return answer

    def once(self, method: str, **arguments: Any) -> None:
        """Make a call with a token, unless it took effect earlier."""
        try:
            self.call(method, **arguments)
        except DoneBeforeError:
            return

    def pages(self, method: str, name: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """All rows of a list, page by page."""
        token: dict[str, str] = {}
        while True:
            page = self.call(method, MaxResults=PAGE, **arguments, **token)
            yield from page.get(name, [])
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}


def connected(endpoint: str, retries: int) -> Any:
    """Return a boto3 client, with the keys that boto3 finds.

    Raises StudyError where boto3 is not installed, ServiceError where its settings are wrong.
    """
    try:
        import boto3  # noqa: PLC0415 (extra `crowd`)
        from botocore.config import Config  # noqa: PLC0415
    except ImportError:
        raise StudyError(f"MTurk needs boto3; install it: {installing('crowd')}") from None
    config = Config(
        region_name=REGION,
        retries={"mode": "standard", "total_max_attempts": retries + 1},
        connect_timeout=10,
        read_timeout=60,
    )
    try:
        return boto3.Session().client("mturk", endpoint_url=endpoint, config=config)
    except Exception as error:
        raise translated(error, "client") or error from None


def refuse_other_mode(mode: Mode, endpoint: str) -> None:
    """Raise StudyError for the endpoint of the other mode, so that sandbox and live never mix."""
    try:
        if endpoint:
            refuse_no_address(endpoint, ENDPOINTS[mode])
        parts = urlsplit(endpoint or ENDPOINTS[mode])
        proxy_for(parts.scheme, parts.netloc)
    except ValueError as error:
        raise StudyError(f"MTURK_ENDPOINT: {error}") from None
    host = parts.hostname
    for mode_name, address in ENDPOINTS.items():
        if mode_name != mode and host == urlsplit(address).hostname:
            raise StudyError(
                f"MTURK_ENDPOINT {endpoint} is MTurk's {mode_name} service, but the mode is {mode}; unset it"
            )


def cents_of(amount: str) -> int:
    """Dollars as MTurk writes them, in cents."""
    return int(Decimal(amount) * 100)
