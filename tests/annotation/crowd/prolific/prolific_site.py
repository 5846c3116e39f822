"""A server on this machine that speaks Prolific's REST API as far as the platform uses it.

    with prolific_site() as site:                # site.url, site.token; about a millisecond a call
        platform = Prolific(study, "live", KEY, site.rooms, site.api())
        platform.post(offer, token)              # -> a study's id
        work = site.join(posted_id, pid)         # a participant begins -> a submission's id; PlaceError if they may not
        site.submit(work)                        # ... ends, and waits for review; or site.leave(work, "RETURNED")
        site.rooms.given[(batch_id, pseudonym)] = [Answer(...)]      # what `platform.answers` then finds

Afterwards: `site.paid` {(pid, submission): [cents]} has rewards and bonuses in the order of payment, `site.bonuses`
bonuses alone. `site.fault = f` is called as f(operation, "before") and f(operation, "after") the effect of each call;
it returns "" for no fault, "500", "429" or "drop" (the connection breaks). `site.late` > 0: a bonus shows only after
so many of the client's pauses. `test_study` makes a study of a draft for the test participants in `site.testers`.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from annotation.crowd.platform import Offer
from annotation.crowd.prolific.api import Api
from annotation.crowd.prolific.workspaces import ArgillaRooms, Room
from annotation.ratings.answers import Answer
from tests.annotation.crowd.http_site import SiteHandler, serving

Json = dict[str, Any]
STATES = ("ACTIVE", "AWAITING REVIEW", "APPROVED", "REJECTED", "RETURNED", "TIMED-OUT", "SCREENED OUT")
FREE = ("REJECTED", "RETURNED", "TIMED-OUT", "SCREENED OUT")  # whose place another one can take
COUNTRIES = {"0": "United Kingdom", "1": "United States", "2": "Germany", "3": "Austria", "4": "Switzerland",
             "5": "Turkey", "6": "France"}  # fmt: skip
LANGUAGES = {"1": "English", "2": "German", "3": "French", "4": "Turkish", "5": "Chinese (Mandarin)"}
BEGIN, END = "2026-03-01T10:00:00.000000Z", "2026-03-01T10:12:30.000000Z"


class RefusalError(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class PlaceError(Exception):
    """A participant cannot begin: closed, full, kept out, or there before."""


@dataclass
class Group:
    name: str
    members: set[str] = field(default_factory=set)


@dataclass
class FakeRooms(ArgillaRooms):
    """Rooms without an Argilla: what participants answered is put into `given`."""

    given: dict[tuple[str, str], Sequence[Answer]] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    admitted: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def open(self, offer: Offer) -> Room:
        batch_id = offer.batch.batch_id
        self.opened.append(batch_id)
        return Room(batch_id, f"https://argilla.example.org/crowd/enter/{batch_id}", f"DONE{batch_id[:4]}", "RETURN11")

    def restore(self, offer: Offer) -> None:
        """No room is lost."""

    def admit(self, batch_id: str, posted_id: str, pseudonyms: Sequence[str], limits: Any = None) -> None:
        self.admitted.setdefault((batch_id, posted_id), set()).update(pseudonyms)

    def answers(self, offer: Offer, pseudonym: str) -> Sequence[Answer]:
        return self.given.get((offer.batch.batch_id, pseudonym), [])


def no_fault(operation: str, moment: str) -> str:
    return ""


class Site:
    """The account of one researcher."""

    def __init__(self) -> None:
        self.token = "secret-" + secrets.token_hex(8)
        self.url = ""
        self.currency, self.balance, self.page, self.late = "USD", 10_000_00, 3, 0
        self.workspaces = ["f" * 24]
        self.studies: dict[str, Json] = {}
        self.submissions: dict[str, Json] = {}
        self.groups: dict[str, Group] = {}
        self.set_up: dict[str, list[tuple[str, int]]] = {}
        self.paid: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.bonuses: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.testers: dict[str, str] = {}  # e-mail address: participant
        self.test_internal_name = True  # whether a test study has its draft's, which Prolific does not say
        self.rooms = FakeRooms()
        self.fault: Callable[[str, str], str] = no_fault
        self.calls: list[str] = []
        self.pauses: list[float] = []
        self.retry_after = ""
        self.lock = threading.RLock()
        self._shown_after: list[tuple[int, str, int]] = []  # pauses, submission, cents

    def api(self) -> Api:
        return Api(self.token, self.url, self.pause)

    # What participants do

    def join(self, study_id: str, pid: str) -> str:
        """A participant begins; the submission's id."""
        with self.lock:
            study = self.studies[study_id]
            left_out = {
                member
                for one in study["filters"]
                if one["filter_id"] == "participant_group_blocklist"
                for group in one["selected_values"]
                for member in self.groups[group].members
            }
            before = any(one["study_id"] == study_id and one["participant_id"] == pid for one in self.of(study_id))
            if study["status"] != "ACTIVE" or self.taken(study_id) >= study["total_available_places"]:
                raise PlaceError(f"{study['status']}, {self.taken(study_id)} of {study['total_available_places']}")
            if before or pid in left_out or (study.get("test") and pid not in self.testers.values()):
                raise PlaceError("kept out")
            work = secrets.token_hex(12)
            self.submissions[work] = {"id": work, "study_id": study_id, "participant_id": pid, "status": "ACTIVE",
                                      "started_at": BEGIN, "completed_at": None, "bonus_payments": []}  # fmt: skip
            return work

    def submit(self, submission_id: str) -> None:
        self.leave(submission_id, "AWAITING REVIEW")

    def leave(self, submission_id: str, status: str) -> None:
        assert status in STATES
        with self.lock:
            one = self.submissions[submission_id]
            one.update(status=status, completed_at=END, time_taken=750)
            self._rest(one["study_id"])

    def pause(self, seconds: float) -> None:
        """For the client's waiting: nobody waits."""
        self.pauses.append(seconds)
        with self.lock:
            waiting, self._shown_after = self._shown_after, []
            for left, submission, cents in waiting:
                if left <= 1:
                    self.submissions[submission]["bonus_payments"].append(cents)
                else:
                    self._shown_after.append((left - 1, submission, cents))

    def of(self, study_id: str) -> list[Json]:
        return [one for one in self.submissions.values() if one["study_id"] == study_id]

    def taken(self, study_id: str) -> int:
        return sum(one["status"] not in FREE for one in self.of(study_id))

    def _rest(self, study_id: str) -> None:
        """A study whose places are all taken and done waits for review, and pauses when one of them gets free then."""
        study = self.studies[study_id]
        working = any(one["status"] == "ACTIVE" for one in self.of(study_id))
        full = self.taken(study_id) >= study["total_available_places"]
        if study["status"] == "ACTIVE" and not working and full:
            study["status"] = "AWAITING REVIEW"
        elif study["status"] == "AWAITING REVIEW" and not full and not study.get("stopped"):
            study["status"] = "PAUSED"

    # The API: each answers (status, content)

    def list_workspaces(self, query: Json, body: Json) -> Json:
        return self._page([{"id": one, "title": "Lab"} for one in self.workspaces], query)

    def project(self, query: Json, body: Json, key: str) -> Json:
        return {"id": key, "workspace": self.workspaces[-1]}

    def balance_of(self, query: Json, body: Json, key: str) -> Json:
        return {"currency_code": self.currency, "total_balance": self.balance, "available_balance": self.balance}

    def filters(self, query: Json, body: Json) -> Json:
        return {"results": [
            {"filter_id": "current-country-of-residence", "type": "select", "choices": COUNTRIES},
            {"filter_id": "fluent-languages", "type": "select", "choices": LANGUAGES},
            {"filter_id": "approval_rate", "type": "range", "min": 0, "max": 100},
        ]}  # fmt: skip

    def list_groups(self, query: Json, body: Json) -> Json:
        return self._page([{"id": key, "name": group.name} for key, group in self.groups.items()], query)

    def create_group(self, query: Json, body: Json) -> Json:
        key = secrets.token_hex(12)
        self.groups[key] = Group(body["name"])
        return {"id": key, "name": body["name"]}

    def add_to_group(self, query: Json, body: Json, key: str) -> Json:
        self._known(self.groups, key).members.update(body["participant_ids"])
        return {"results": [{"participant_id": one} for one in sorted(self.groups[key].members)]}

    def list_studies(self, query: Json, body: Json) -> Json:
        return self._page(list(self.studies.values()), query)

    def create_study(self, query: Json, body: Json) -> Json:
        if body["reward"] <= 0 or body["total_available_places"] < 1:
            raise RefusalError(400, "reward: Ensure this value is greater than 0")
        for one in body["filters"]:
            if one["filter_id"] == "participant_group_blocklist" and not set(one["selected_values"]) <= set(
                self.groups
            ):
                raise RefusalError(400, "filters: no such participant group")
        key = secrets.token_hex(12)
        self.studies[key] = {**body, "id": key, "status": "UNPUBLISHED"}
        return self.studies[key]

    def create_tester(self, query: Json, body: Json) -> Json:
        if body["email"] in self.testers:
            raise RefusalError(400, "email: already registered with Prolific")
        self.testers[body["email"]] = secrets.token_hex(12)
        return {"participant_id": self.testers[body["email"]]}

    def test_study(self, query: Json, body: Json, key: str) -> Json:
        draft = self.study({}, {}, key)
        if not self.testers or draft["status"] != "UNPUBLISHED":
            raise RefusalError(400, "at least one test participant and a draft study are needed")
        new = secrets.token_hex(12)
        internal = draft["internal_name"] if self.test_internal_name else ""
        self.studies[new] = {**draft, "id": new, "status": "ACTIVE", "test": True, "internal_name": internal}
        return {"study_id": new, "study_url": f"https://app.prolific.com/studies/{new}"}

    def study(self, query: Json, body: Json, key: str) -> Json:
        found: Json = self._known(self.studies, key)
        return found

    def update_study(self, query: Json, body: Json, key: str) -> Json:
        study = self.study({}, {}, key)
        if body["total_available_places"] < study["total_available_places"]:
            raise RefusalError(400, "total_available_places: can only be increased")
        study.update(body)
        if study["status"] == "AWAITING REVIEW":
            study["status"] = "ACTIVE"
        return study

    def transition_study(self, query: Json, body: Json, key: str) -> Json:
        study = self.study({}, {}, key)
        allowed = {"PUBLISH": ("UNPUBLISHED",), "PAUSE": ("ACTIVE",), "START": ("PAUSED",),
                   "STOP": ("ACTIVE", "PAUSED", "PUBLISHING", "SCHEDULED")}  # fmt: skip
        if study["status"] not in allowed[body["action"]]:
            raise RefusalError(400, f"Study {key} cannot {body['action']} from {study['status']}")
        if body["action"] == "PUBLISH" and study["reward"] * study["total_available_places"] > self.balance:
            raise RefusalError(400, "You do not have enough funds to publish this study")
        study["status"] = {"PAUSE": "PAUSED", "STOP": "AWAITING REVIEW"}.get(body["action"], "ACTIVE")
        study["stopped"] = body["action"] == "STOP"  # for good
        return study

    def list_submissions(self, query: Json, body: Json) -> Json:
        return self._page(self.of(query["study"]), query)

    def submission(self, query: Json, body: Json, key: str) -> Json:
        one = self._known(self.submissions, key)
        return {**{name: value for name, value in one.items() if name != "participant_id"},
                "participant": one["participant_id"]}  # fmt: skip

    def transition_submission(self, query: Json, body: Json, key: str) -> Json:
        one = self._known(self.submissions, key)
        if one["status"] != "AWAITING REVIEW":
            raise RefusalError(400, f"Submission {key} is {one['status']}")
        if body["action"] == "REJECT" and (len(body["message"]) < 100 or not body["rejection_category"]):
            raise RefusalError(400, "message: Ensure this field has at least 100 characters.")
        one["status"] = {"APPROVE": "APPROVED", "REJECT": "REJECTED"}[body["action"]]
        one["message"] = body.get("message", "")
        self._rest(one["study_id"])
        if body["action"] == "APPROVE" and not self.studies[one["study_id"]].get("test"):
            self._pay(one, self.studies[one["study_id"]]["reward"])
        return one

    def set_up_bonus(self, query: Json, body: Json) -> Json:
        lines = [line.split(",") for line in body["csv_bonuses"].splitlines()]
        wrong = [key for key, _ in lines if self.submissions.get(key, {}).get("study_id") != body["study_id"]]
        if wrong:
            raise RefusalError(400, f"these ids are wrong: {wrong}")
        own = [(key, round(float(amount) * 100)) for key, amount in lines]
        batch = secrets.token_hex(12)
        self.set_up[batch] = own
        return {"id": batch, "study": body["study_id"], "amount": sum(cents for _, cents in own)}

    def pay_bonus(self, query: Json, body: Json, key: str) -> Json:
        for submission, cents in self._known(self.set_up, key):  # a second call pays a second time, as Prolific says
            one = self.submissions[submission]
            self._pay(one, cents)
            self.bonuses[(one["participant_id"], submission)].append(cents)
            if self.late:
                self._shown_after.append((self.late, submission, cents))
            else:
                one["bonus_payments"].append(cents)
        return {}

    def _pay(self, one: Json, cents: int) -> None:
        self.balance -= cents
        self.paid[(one["participant_id"], one["id"])].append(cents)

    def _known(self, there: dict[str, Any], key: str) -> Any:
        if key not in there:
            raise RefusalError(404, f"{key} was not found")
        return there[key]

    def _page(self, items: list[Json], query: Json) -> Json:
        page = int(query.get("page", 1))
        part = items[(page - 1) * self.page : page * self.page]
        more = page * self.page < len(items)
        rest = "&".join(f"{name}={value}" for name, value in query.items() if name != "page")
        href = f"https://elsewhere.example.org/api/v1/?{rest}&page={page + 1}" if more else None
        return {"results": part, "_links": {"next": {"href": href}}, "meta": {"count": len(items)}}


KEY = "([^/]+)"
ROUTES: list[tuple[str, str, str]] = [
    ("GET", "workspaces/", "list_workspaces"),
    ("GET", f"workspaces/{KEY}/balance/", "balance_of"),
    ("GET", f"projects/{KEY}/", "project"),
    ("GET", "filters/", "filters"),
    ("GET", "participant-groups/", "list_groups"),
    ("POST", "participant-groups/", "create_group"),
    ("POST", f"participant-groups/{KEY}/participants/", "add_to_group"),
    ("GET", "studies/", "list_studies"),
    ("POST", "studies/", "create_study"),
    ("GET", f"studies/{KEY}/", "study"),
    ("PATCH", f"studies/{KEY}/", "update_study"),
    ("POST", f"studies/{KEY}/transition/", "transition_study"),
    ("POST", f"studies/{KEY}/test-study", "test_study"),
    ("POST", "researchers/participants/", "create_tester"),
    ("GET", "submissions/", "list_submissions"),
    ("POST", "submissions/bonus-payments/", "set_up_bonus"),
    ("GET", f"submissions/{KEY}/", "submission"),
    ("POST", f"submissions/{KEY}/transition/", "transition_submission"),
    ("POST", f"bulk-bonus-payments/{KEY}/pay/", "pay_bonus"),
]


class Handler(SiteHandler):
    site: Site

    def handle_any(self) -> None:
        content = self.body()
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        body = json.loads(content) if content else {}
        if self.headers.get("Authorization") != f"Token {self.site.token}":
            self.answer(401, {"error": {"status": 401, "title": "Unauthorized", "detail": "Invalid token."}})
            return
        for method, pattern, operation in ROUTES:
            match = re.fullmatch(f"/api/v1/{pattern}", parts.path)
            if match and method == self.command:
                self.perform(operation, query, body, match.groups())
                return
        self.answer(404, {"detail": f"no {self.command} {parts.path}"})

    do_GET = do_POST = do_PATCH = handle_any  # noqa: N815  # as the library calls them

    def perform(self, operation: str, query: Json, body: Json, keys: tuple[str, ...]) -> None:
        site = self.site
        site.calls.append(operation)
        if self.failed(site.fault(operation, "before")):
            return
        try:
            with site.lock:
                content = json.dumps(getattr(site, operation)(query, body, *keys))
        except RefusalError as refusal:
            self.answer(refusal.status, {"error": {"status": refusal.status, "detail": str(refusal)}})
            return
        if not self.failed(site.fault(operation, "after")):
            self.answer(202 if operation == "pay_bonus" else 200, content)

    def failed(self, fault: str) -> bool:
        if fault == "drop":
            self.close_connection = True
        elif fault:
            self.answer(int(fault), {"detail": "injected"})
        return bool(fault)

    def answer(self, status: int, content: Json | str) -> None:
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        later = {"Retry-After": self.site.retry_after} if status == 429 and self.site.retry_after else {}
        self.send(status, data, "application/json", **later)


@contextlib.contextmanager
def prolific_site() -> Iterator[Site]:
    site = Site()
    with serving(site, Handler) as site.url:
        yield site
