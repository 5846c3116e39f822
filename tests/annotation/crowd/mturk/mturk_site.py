"""A local server that speaks MTurk's JSON protocol, for real boto3 clients; with workers, faults and slow lists.

    with MTurkSite(balance=100_000) as site:      # cents
        client = site.client(retries=0)           # a real boto3 client; or point any at `site.url`
        site.fault = lambda operation, moment: "drop" if (operation, moment) == ("SendBonus", "after") else None
        assignment = site.work(hit_id, "W1")      # a worker takes the HIT and submits 4s; or own `fields`
        site.paid                                 # {("W1", assignment): [120, 30]}: reward, then bonuses; cents

`fault` is called before and after the effect of each call; what it returns is what the client gets instead of an
answer. `lag` is how many calls of a list do not show a new HIT or bonus yet, `shut` what answers every call.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

import boto3
from botocore.config import Config

from tests.annotation.crowd.http_site import SiteHandler, serving
from tests.annotation.previews import data_of

Fault = Literal["error", "throttle", "drop"] | None
Moment = Literal["before", "after"]
Body = dict[str, Any]

#: What the service answers; None where the connection breaks.
FAULTS: dict[str, tuple[int, Body] | None] = {
    "drop": None,
    "throttle": (400, {"__type": "ThrottlingException", "Message": "Rate exceeded"}),
    "error": (500, {"__type": "ServiceFault", "TurkErrorCode": "AWS.MechanicalTurk.ServiceUnavailable"}),
}
ANSWERS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/QuestionFormAnswers.xsd"


class RequestError(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = f"AWS.MechanicalTurk.{code}"


class WorkerRefusedError(Exception):
    """The site does not let this worker take this HIT."""


@dataclass
class Hit:
    id: str
    type: Body
    body: Body
    places: int
    ends: datetime
    created: datetime
    unseen: int  #: calls of ListHITs that do not show it yet

    @property
    def html(self) -> str:
        question: str = self.body["Question"]
        return question.split("<![CDATA[", 1)[1].rsplit("]]>", 1)[0]

    @property
    def reward(self) -> int:
        return cents(self.type["Reward"])


@dataclass
class Assignment:
    id: str
    hit: Hit
    worker: str
    accepted: datetime
    status: str = "Accepted"
    submitted: datetime | None = None
    decided: datetime | None = None
    answer: str = ""
    feedback: str = ""
    bonuses: list[tuple[int, str, datetime]] = field(default_factory=list)  #: cents, reason, when
    unseen: int = 0  #: calls of ListBonusPayments that do not show its bonuses yet


def cents(amount: str) -> int:
    return round(float(amount) * 100)


class MTurkSite:
    """One requester's account on a local MTurk; use it as a context."""

    def __init__(self, balance: int = 1_000_000, page: int = 3, lag: int = 0) -> None:
        self.balance, self.page, self.lag = balance, page, lag
        self.fault: Callable[[str, Moment], Fault] = lambda operation, moment: None
        self.shut: tuple[str, str] | None = None
        self.calls: list[str] = []
        self.types: dict[str, Body] = {}
        self.hits: dict[str, Hit] = {}
        self.assignments: dict[str, Assignment] = {}
        self.qualifications: dict[str, Body] = {}
        self.kept_out: dict[str, set[str]] = defaultdict(set)  #: workers, by qualification
        self._tokens: dict[tuple[str, str], str] = {}
        self._ids = itertools.count(1)
        self._lock = threading.RLock()
        self._served = contextlib.ExitStack()
        self.url = self._served.enter_context(serving(self, _Handler))

    def __enter__(self) -> MTurkSite:
        return self

    def __exit__(self, *_: object) -> None:
        self._served.close()

    def client(self, retries: int = 0) -> Any:
        config = Config(retries={"mode": "standard", "total_max_attempts": retries + 1})
        return boto3.client(
            "mturk", region_name="us-east-1", endpoint_url=self.url, aws_access_key_id="test",
            aws_secret_access_key="test", config=config,
        )  # fmt: skip

    # What workers do, and what time does

    def accept(self, hit_id: str, worker: str) -> str:
        """A worker takes a HIT; the assignment's id. Raises WorkerRefusedError where the site would not let them."""
        with self._lock:
            hit = self.hits[hit_id]
            own = [one for one in self.assignments.values() if one.hit is hit]
            if any(one.worker == worker for one in own):
                raise WorkerRefusedError(f"{worker} has had {hit_id}")
            if hit.ends <= datetime.now(UTC) or len(own) >= hit.places:
                raise WorkerRefusedError(f"{hit_id} is not open")
            for required in hit.type.get("QualificationRequirements", []):
                if (
                    required["Comparator"] == "DoesNotExist"
                    and worker in self.kept_out[required["QualificationTypeId"]]
                ):
                    raise WorkerRefusedError(f"{worker} is kept out of {hit_id}")
            made = Assignment(self._id(), hit, worker, datetime.now(UTC))
            self.assignments[made.id] = made
            return made.id

    def submit(self, assignment_id: str, fields: Mapping[str, str], seconds: float = 600) -> None:
        """A worker submits a form, so long after having taken the HIT."""
        with self._lock:
            one = self.assignments[assignment_id]
            if one.status != "Accepted":
                raise WorkerRefusedError(f"{assignment_id} was submitted before")
            one.submitted = datetime.now(UTC)
            one.accepted = one.submitted - timedelta(seconds=seconds)
            one.status, one.answer = "Submitted", answer_xml(fields)

    def work(self, hit_id: str, worker: str, fields: Mapping[str, str] | None = None, seconds: float = 600) -> str:
        """A worker takes a HIT and submits it (`fields`, or 4 for everything); the assignment's id."""
        assignment = self.accept(hit_id, worker)
        self.submit(assignment, self.fields(hit_id) if fields is None else fields, seconds)
        return assignment

    def fields(self, hit_id: str, rate: Callable[[str, str], int] = lambda pair_id, question: 4) -> dict[str, str]:
        """What the HIT's form sends where a worker rates so, by pair and question."""
        data = form_data(self.hits[hit_id].html)
        sent = {"study": data["study"], "batch": data["batch"], "consent": "yes"}
        names = [question["name"] for question in data["questions"]]
        for pair in data["pairs"]:
            sent |= {f"{pair['id']}.{name}": str(rate(pair["id"], name)) for name in names}
            sent |= {f"{pair['id']}.comment": "", f"{pair['id']}.seconds": "20.5"}
        return sent

    def expire(self, hit_id: str) -> None:
        self.hits[hit_id].ends = datetime.now(UTC) - timedelta(seconds=1)

    def forget_tokens(self) -> None:
        self._tokens.clear()

    @property
    def paid(self) -> dict[tuple[str, str], list[int]]:
        """What every worker got for every assignment: the reward where it is approved, then each bonus; cents."""
        found = {}
        for one in self.assignments.values():
            got = [one.hit.reward] if one.status == "Approved" else []
            found[one.worker, one.id] = got + [amount for amount, _, _ in one.bonuses]
        return found

    @property
    def available(self) -> int:
        """Cents that can be spent: what is neither paid nor held for HITs, with fees."""
        spent = sum(_with_fee(one, amount) for one in self.assignments.values() for amount, _, _ in one.bonuses)
        for hit in self.hits.values():
            own = [one for one in self.assignments.values() if one.hit is hit]
            taken = len(own) if hit.ends <= datetime.now(UTC) else hit.places
            spent += (taken - sum(one.status == "Rejected" for one in own)) * _hit_cost(hit.places, hit.reward)
        return self.balance - spent

    # The operations, by MTurk's names

    def answer(self, operation: str, body: Body) -> Body:
        method = getattr(self, f"_{operation}", None)
        if method is None:
            raise RequestError("UnknownOperation", f"{operation} is not known here")
        with self._lock:
            found: Body = method(body)
        return found

    def _CreateHITType(self, body: Body) -> Body:  # noqa: N802
        for key, known in self.types.items():
            if known == body:
                return {"HITTypeId": key}
        key = self._id()
        self.types[key] = body
        return {"HITTypeId": key}

    def _CreateHITWithHITType(self, body: Body) -> Body:  # noqa: N802
        self._first("CreateHIT", body, "HITAlreadyExists")
        if len(body["Question"].encode()) > 65_535:
            raise RequestError("ParameterValidationError", "The value of Question is too long")
        kind, places = self.types[body["HITTypeId"]], body.get("MaxAssignments", 1)
        self._spend(places * _hit_cost(places, cents(kind["Reward"])))
        now = datetime.now(UTC)
        ends = now + timedelta(seconds=body["LifetimeInSeconds"])
        hit = Hit(self._id(), kind, body, places, ends, now, self.lag)
        self.hits[hit.id] = hit
        self._done("CreateHIT", body, hit.id)
        return {"HIT": self._hit(hit)}

    def _GetHIT(self, body: Body) -> Body:  # noqa: N802
        return {"HIT": self._hit(self._known_hit(body))}

    def _ListHITs(self, body: Body) -> Body:  # noqa: N802
        if "NextToken" not in body:
            for hit in self.hits.values():
                hit.unseen -= 1
        seen = [self._hit(hit) for hit in reversed(self.hits.values()) if hit.unseen < 0]
        return self._paged(body, "HITs", seen)

    def _UpdateExpirationForHIT(self, body: Body) -> Body:  # noqa: N802
        hit = self._known_hit(body)
        # MTurk makes a token of its own of the HIT and the second (Dallinger/Dallinger, issue 3109).
        token = {"UniqueRequestToken": f"{hit.id}{int(body['ExpireAt'])}"}
        self._first("UpdateExpirationForHIT", token, "")
        hit.ends = datetime.fromtimestamp(body["ExpireAt"], UTC)
        self._done("UpdateExpirationForHIT", token, hit.id)
        return {}

    def _CreateAdditionalAssignmentsForHIT(self, body: Body) -> Body:  # noqa: N802
        hit, more = self._known_hit(body), body["NumberOfAdditionalAssignments"]
        self._first("CreateAdditionalAssignmentsForHIT", body, "")
        if hit.body.get("MaxAssignments", 1) < 10 <= hit.places + more:
            raise RequestError(
                "InvalidMaximumAssignmentsIncrease", "a HIT created with fewer than 10 assignments cannot have 10"
            )
        self._spend(more * _hit_cost(hit.places, hit.reward))
        hit.places += more
        self._done("CreateAdditionalAssignmentsForHIT", body, hit.id)
        return {}

    def _ListAssignmentsForHIT(self, body: Body) -> Body:  # noqa: N802
        hit = self._known_hit(body)
        wanted = body.get("AssignmentStatuses", ["Submitted", "Approved", "Rejected"])
        own = [_assignment(one) for one in self.assignments.values() if one.hit is hit and one.status in wanted]
        return self._paged(body, "Assignments", own)

    def _GetAssignment(self, body: Body) -> Body:  # noqa: N802
        one = self._known_assignment(body)
        return {"Assignment": _assignment(one), "HIT": self._hit(one.hit)}

    def _ApproveAssignment(self, body: Body) -> Body:  # noqa: N802
        return self._decide(body, "Approved")

    def _RejectAssignment(self, body: Body) -> Body:  # noqa: N802
        return self._decide(body, "Rejected")

    def _decide(self, body: Body, status: str) -> Body:
        one = self._known_assignment(body)
        feedback = body.get("RequesterFeedback", "")
        if len(feedback) > 1024:
            raise RequestError("ParameterValidationError", "RequesterFeedback is longer than 1024 characters")
        overrides = status == "Approved" and one.status == "Rejected" and body.get("OverrideRejection")
        if one.status != "Submitted" and not overrides:
            raise RequestError(
                "InvalidAssignmentState",
                f"This operation can be called with a status of: Submitted. The assignment is {one.status}.",
            )
        one.status, one.feedback, one.decided = status, feedback, datetime.now(UTC)
        return {}

    def _SendBonus(self, body: Body) -> Body:  # noqa: N802
        self._first("SendBonus", body, "")
        one = self._known_assignment(body)
        if one.worker != body["WorkerId"]:
            raise RequestError("WorkerDoesNotExist", "this worker did not submit this assignment")
        if one.status == "Rejected":
            raise RequestError("InvalidAssignmentState", "the assignment is Rejected")
        amount = cents(body["BonusAmount"])
        self._spend(_with_fee(one, amount))
        one.bonuses.append((amount, body["Reason"], datetime.now(UTC)))
        one.unseen = self.lag
        self._done("SendBonus", body, one.id)
        return {}

    def _ListBonusPayments(self, body: Body) -> Body:  # noqa: N802
        rows = []
        for one in self.assignments.values():
            if one.id == body.get("AssignmentId") or one.hit.id == body.get("HITId"):
                one.unseen -= "NextToken" not in body
                rows += [_bonus(one, *bonus) for bonus in one.bonuses if one.unseen < 0]
        return self._paged(body, "BonusPayments", rows)

    def _GetAccountBalance(self, body: Body) -> Body:  # noqa: N802
        return {"AvailableBalance": f"{self.available / 100:.2f}"}

    def _CreateQualificationType(self, body: Body) -> Body:  # noqa: N802
        if any(kind["Name"] == body["Name"] for kind in self.qualifications.values()):
            raise RequestError(
                "QualificationTypeAlreadyExists", "You have already created a QualificationType with this name."
            )
        key = self._id()
        self.qualifications[key] = {**body, "QualificationTypeId": key, "unseen": self.lag}
        return {"QualificationType": _qualification(self.qualifications[key])}

    def _ListQualificationTypes(self, body: Body) -> Body:  # noqa: N802
        if "NextToken" not in body:
            for kind in self.qualifications.values():
                kind["unseen"] -= 1
        seen = [_qualification(kind) for kind in self.qualifications.values() if kind["unseen"] < 0]
        return self._paged(body, "QualificationTypes", seen)

    def _AssociateQualificationWithWorker(self, body: Body) -> Body:  # noqa: N802
        if body["QualificationTypeId"] not in self.qualifications:
            raise RequestError("QualificationTypeDoesNotExist", "There is no such qualification type.")
        if body.get("SendNotification", True):
            raise AssertionError("a worker would be written to")
        self.kept_out[body["QualificationTypeId"]].add(body["WorkerId"])
        return {}

    # What they share

    def _id(self) -> str:
        return f"3{next(self._ids):029d}"

    def _first(self, operation: str, body: Body, code: str) -> None:
        token = body.get("UniqueRequestToken")
        if token is not None and len(token) > 64:
            raise RequestError("ParameterValidationError", "UniqueRequestToken is longer than 64 characters")
        if token is not None and (operation, token) in self._tokens:
            found = self._tokens[operation, token]
            said = f"The HIT with ID {found} already exists for this" if code else "The"
            raise RequestError(
                code or "IdempotencyTokenProcessed", f'{said} idempotency token "{token}" has already been processed.'
            )

    def _done(self, operation: str, body: Body, made: str) -> None:
        if "UniqueRequestToken" in body:
            self._tokens[operation, body["UniqueRequestToken"]] = made

    def _spend(self, amount: int) -> None:
        if amount > self.available:
            raise RequestError("InsufficientFunds", "This Requester has insufficient funds in their account.")

    def _known_hit(self, body: Body) -> Hit:
        if body["HITId"] not in self.hits:
            raise RequestError("HITDoesNotExist", f"Hit {body['HITId']} does not exist.")
        return self.hits[body["HITId"]]

    def _known_assignment(self, body: Body) -> Assignment:
        if body["AssignmentId"] not in self.assignments:
            raise RequestError("AssignmentDoesNotExist", f"Assignment {body['AssignmentId']} does not exist.")
        return self.assignments[body["AssignmentId"]]

    def _paged(self, body: Body, name: str, rows: list[Body]) -> Body:
        begin = int(body.get("NextToken", "p0")[1:])
        end = begin + min(self.page, body.get("MaxResults", 10))
        more = {"NextToken": f"p{end}"} if end < len(rows) else {}
        return {name: rows[begin:end], "NumResults": len(rows[begin:end]), **more}

    def _hit(self, hit: Hit) -> Body:
        own = [one for one in self.assignments.values() if one.hit is hit]  # a rejected one frees no place
        pending = sum(one.status == "Accepted" for one in own)
        over = hit.ends <= datetime.now(UTC)
        status = "Assignable" if len(own) < hit.places and not over else "Unassignable" if pending else "Reviewable"
        return {
            "HITId": hit.id, "HITTypeId": hit.body["HITTypeId"], "CreationTime": hit.created.timestamp(),
            "RequesterAnnotation": hit.body.get("RequesterAnnotation", ""), "HITStatus": status,
            "MaxAssignments": hit.places, "Expiration": hit.ends.timestamp(), "Reward": hit.type["Reward"],
            "NumberOfAssignmentsPending": pending, "NumberOfAssignmentsAvailable": max(0, hit.places - len(own)),
        }  # fmt: skip


def _hit_cost(places: int, reward: int) -> int:
    return reward + _fee(reward, places)


def _with_fee(one: Assignment, amount: int) -> int:
    return amount + _fee(amount, one.hit.places)


def _fee(amount: int, places: int) -> int:
    """20% rounded up, 40% for HITs of ten and more; at least a cent."""
    return max(1, -(-amount * (2 if places < 10 else 4) // 10))


def _qualification(kind: Body) -> Body:
    return {name: kind[name] for name in ("QualificationTypeId", "Name", "Description", "QualificationTypeStatus")}


def _assignment(one: Assignment) -> Body:
    times = {"AcceptTime": one.accepted, "SubmitTime": one.submitted}
    if one.decided:
        times["ApprovalTime" if one.status == "Approved" else "RejectionTime"] = one.decided
    return {
        "AssignmentId": one.id, "WorkerId": one.worker, "HITId": one.hit.id, "AssignmentStatus": one.status,
        "Answer": one.answer, "RequesterFeedback": one.feedback,
        **{name: at.timestamp() for name, at in times.items() if at},
    }  # fmt: skip


def _bonus(one: Assignment, amount: int, reason: str, at: datetime) -> Body:
    return {
        "WorkerId": one.worker, "AssignmentId": one.id, "BonusAmount": f"{amount / 100:.2f}", "Reason": reason,
        "GrantTime": at.timestamp(),
    }  # fmt: skip


def answer_xml(fields: Mapping[str, str]) -> str:
    rows = "".join(
        f"<Answer><QuestionIdentifier>{escape(name)}</QuestionIdentifier><FreeText>{escape(text)}</FreeText></Answer>"
        for name, text in fields.items()
    )
    return f'<?xml version="1.0" encoding="UTF-8"?><QuestionFormAnswers xmlns="{ANSWERS}">{rows}</QuestionFormAnswers>'


def form_data(html: str) -> Any:
    data = data_of(html)
    return {**data["task"], "batch": data["task"]["queue"], "pairs": data["items"], "drawn": data["drawn"]}


class _Handler(SiteHandler):
    site: MTurkSite

    def do_POST(self) -> None:  # noqa: N802
        body = self.body()
        if urlsplit(self.path).path == "/mturk/externalSubmit":
            fields = {name: values[-1] for name, values in parse_qs(body.decode(), keep_blank_values=True).items()}
            self.site.submit(fields.pop("assignmentId"), fields)
            self.send(200, b"<!doctype html><title>Thanks</title><p>Submitted", "text/html; charset=utf-8")
            return
        operation = self.headers["X-Amz-Target"].split(".")[1]
        answer = self._answered(operation, json.loads(body))
        if answer is None:
            self.close_connection = True
            return
        self.send(answer[0], json.dumps(answer[1]).encode(), "application/x-amz-json-1.1")

    def do_GET(self) -> None:  # noqa: N802
        """The page of a HIT, as a worker's browser gets it (`/task?hitId=...&assignmentId=...`)."""
        asked = parse_qs(urlsplit(self.path).query)
        hit = self.site.hits.get(asked.get("hitId", [""])[0])
        self.send(200 if hit else 404, hit.html.encode() if hit else b"", "text/html; charset=utf-8")

    def _answered(self, operation: str, body: Body) -> tuple[int, Body] | None:
        """Status and body; None where the connection breaks."""
        site = self.site
        site.calls.append(operation)
        if site.shut:
            code = {"TurkErrorCode": "AWS.MechanicalTurk.ParameterRequired"} if site.shut[0] == "RequestError" else {}
            return 400, {"__type": site.shut[0], "Message": site.shut[1], **code}
        try:
            fault = site.fault(operation, "before")
            if fault is None:
                answer = 200, site.answer(operation, body)
                fault = site.fault(operation, "after")
        except RequestError as error:
            return 400, {"__type": "RequestError", "Message": f"{error} (1700000000000)", "TurkErrorCode": error.code}
        except Exception as error:
            return 500, {"__type": "ServiceFault", "Message": f"{type(error).__name__}: {error}"}
        return FAULTS[fault] if fault else answer
