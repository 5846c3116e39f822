"""Prolific: a study on Prolific for each batch, its submissions and its money (docs.prolific.com/api-reference).

Participants work in our own Argilla (`workspaces`).

Prolific has no sandbox: in that mode studies are drafts, which cost nothing, which nobody sees and which are never
published. In a test, Prolific makes another study of the draft, for the workspace's test participants, at no cost.
A study has its operation's token as its internal name, which participants do not see, so that a study
created before a crash is found again; of several drafts with one token, only one is ever published.
"""

from __future__ import annotations

import html
import math
import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Self

from annotation.campaign.names import worker_pseudonym
from annotation.campaign.offering import Mode
from annotation.campaign.records import CampaignRecords
from annotation.crowd import pay
from annotation.crowd.page import consent_of
from annotation.crowd.platform import (
    Check,
    Decision,
    Offer,
    Opening,
    Platform,
    PlatformOffer,
    RefusedError,
    Submission,
    UncertainError,
    find_or_make,
)
from annotation.crowd.prolific.api import Api, plain, shortened, submission_of, token_of
from annotation.crowd.prolific.workspaces import ArgillaRooms, crowd_with_address, refuse_unshowable
from annotation.questions.entries import ENGLISH, worded
from annotation.ratings.answers import Answer
from annotation.sampling.queues import Queue
from plumbline.errors import ServiceError, StudyError
from plumbline.languages import display_name, territory_name
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec, PlatformName

PROJECT_VARIABLE = "PROLIFIC_PROJECT"
CURRENCY = "USD"
APP = "https://app.prolific.com"  # where participants sign in
RUNNING = ("SCHEDULED", "PUBLISHING", "PROCESSING", "ACTIVE")
COUNTRY, FLUENT = "current-country-of-residence", "fluent-languages"
LEAVE_OUT = "participant_group_blocklist"
#: Prolific's names of countries where CLDR has other names.
OTHER_NAMES = {"TR": ("turkey", "turkiye"), "CD": ("congo democratic republic", "democratic republic of the congo"),
               "CI": ("ivory coast",), "CZ": ("czech republic",), "HK": ("hong kong",), "MM": ("myanmar", "burma"),
               "CV": ("cape verde",), "SZ": ("swaziland",), "MK": ("macedonia",)}  # fmt: skip
OTHER_LANGUAGES = {"zh": ("mandarin", "chinese mandarin"), "fa": ("farsi",), "el": ("greek modern",)}
PARAMETERS = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


class Prolific(Platform):
    """Prolific in one mode (`platform.Platform`), with participants in our own Argilla."""

    name: PlatformName = "prolific"
    title = "Prolific"
    guide = "docs/howto/prolific.md"
    refills = True
    patience = 900.0  # a bonus is paid "in the following minutes", and its call is not idempotent

    @classmethod
    def open(cls, opening: Opening) -> Self:
        rooms = ArgillaRooms.of(opening, cls.name)
        platform = cls(opening.study, opening.mode, opening.key, rooms)
        opening.ends.callback(platform.close_connections)
        return platform

    @classmethod
    def fee(cls, cents: int, places: int, crowd: CrowdSpec) -> int:
        """Cents by the share in the researcher's contract. Raises StudyError if the study does not say it."""
        if crowd.fee is None:
            raise StudyError("crowd.fee is missing: add Prolific's share from your contract, such as 0.333")
        return super().fee(cents, places, crowd)

    @classmethod
    def readers_of(cls, queue: Queue) -> Collection[str]:
        return queue.languages

    @classmethod
    def settings(cls, records: CampaignRecords) -> Iterator[Check]:
        yield from super().settings(records)
        yield partial(cls.fee, 100, 1, records.study.crowd or CrowdSpec())

    @classmethod
    def settings_to_launch(cls, records: CampaignRecords, mode: Mode) -> Iterator[Check]:
        yield partial(crowd_with_address, records.study, mode)
        yield token_of

    def __init__(self, study: Study, mode: Mode, key: bytes, rooms: ArgillaRooms, api: Api | None = None) -> None:
        """`key` makes pseudonyms; participants work in `rooms`; without `api`, the environment has token and address.

        Raises ServiceError or StudyError if these, or the study's crowd settings, cannot be used.
        """
        super().__init__(study, mode)
        self._key, self._rooms, self._crowd = key, rooms, crowd_with_address(study, mode)
        self._api = api or Api()
        self.pause = self._api.pause

    def close_connections(self) -> None:
        """Close the connections to Prolific."""
        self._api.close()

    # Shared by all offers

    def prepare(self) -> None:
        self._balance()
        _ = self._group

    def balance(self) -> int | None:
        """Cents that can be spent on participants and fees. Raises ServiceError for another currency."""
        available = self._balance().get("available_balance")
        return available if isinstance(available, int) else None

    def _balance(self) -> dict[str, Any]:
        balance = self._api.get(f"workspaces/{self._workspace}/balance/")
        if balance.get("currency_code") != CURRENCY:
            raise ServiceError(
                f"the Prolific workspace pays in {shortened(balance.get('currency_code'))}, but the study plans in"
                f" dollars; use a workspace in {CURRENCY}, and set {PROJECT_VARIABLE} to the id of a project in it"
            )
        return balance

    @cached_property
    def _project(self) -> str:
        return os.environ.get(PROJECT_VARIABLE, "").strip()

    @cached_property
    def _workspace(self) -> str:
        """The workspace that pays: the project's, or the only one."""
        if self._project:
            return str(self._api.get(f"projects/{self._project}/").get("workspace"))
        workspaces = [str(item.get("id")) for item in self._api.pages("workspaces/")]
        if len(workspaces) != 1:
            raise ServiceError(
                f"the Prolific account has {len(workspaces)} workspaces; set {PROJECT_VARIABLE} to the id of a"
                " project in the one that pays"
            )
        return workspaces[0]

    @cached_property
    def _group(self) -> str:
        """The participants who may take no other batch of this study in this mode."""
        name = f"Plumbline {self._study.name} ({self.mode}): no more batches"

        def find() -> str | None:  # a crash can leave two; all runs take the first
            groups = self._api.pages("participant-groups/", {"workspace_id": self._workspace})
            return min((str(item["id"]) for item in groups if item.get("name") == name), default=None)

        def make() -> None:
            self._api.change("POST", "participant-groups/", {"name": name, "workspace_id": self._workspace})

        return find_or_make(find, make, "Prolific has made a participant group")

    def add_tester(self, email: str) -> str:
        answer = self._api.change("POST", "researchers/participants/", {"email": email})
        return str(answer.get("participant_id"))

    # Offers

    def check(self, offer: Offer) -> None:
        self._filters(offer)
        refuse_unshowable(self._study, self._rubric, offer.batch.queue)

    def send_offer(self, offer: Offer, token: str) -> str:
        """Make a study for the batch, and publish it unless the campaign is a rehearsal."""
        refuse_unshowable(self._study, self._rubric, offer.batch.queue)
        body = self._study_body(offer, token, self._filters(offer)) | self._workplace(offer, token)
        answer = self._api.change("POST", "studies/", body)
        posted_id = answer.get("id")
        if not isinstance(posted_id, str):
            raise UncertainError("Prolific did not return the id of the new study; run the command again")
        if answer.get("total_available_places") != offer.places:  # such a study would cost another amount
            raise RefusedError(
                f"Prolific set the number of places to {shortened(answer.get('total_available_places'))} instead of"
                f" {offer.places}; the study was not published. Prolific seems to count places in another way"
                " now: update Plumbline, or report this to its maintainers"
            )
        self.admit(offer.batch.batch_id, posted_id, ())  # before anybody can come
        published_id = self.publish(posted_id)
        if published_id != posted_id:
            self.admit(offer.batch.batch_id, published_id, ())
        return published_id

    def _workplace(self, offer: Offer, token: str) -> dict[str, Any]:
        """Open the batch's room; return the study's fields that lead to it."""
        room = self._rooms.open(offer)
        return_reason = "You did not consent, or gave two wrong answers to a question about the instructions."
        returning = {"action": "REQUEST_RETURN", "return_reason": return_reason}
        return {
            "external_study_url": f"{room.address}?{PARAMETERS}" + (f"&TEST={token}" if self.mode == "test" else ""),
            "prolific_id_option": "url_parameters",
            "completion_codes": [
                {"code": room.code, "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]},
                {"code": room.return_code, "code_type": "OTHER", "actions": [returning]},
            ],
        }

    @cached_property
    def _choices(self) -> dict[str, dict[str, str]]:
        """The labels of each filter's choices, by filter and choice."""
        choices = {}
        for item in self._api.get("filters/").get("results") or []:
            if isinstance(item, dict) and isinstance(item.get("choices"), dict):
                choices[str(item.get("filter_id"))] = {str(key): str(label) for key, label in item["choices"].items()}
        return choices

    def _filters(self, offer: Offer) -> list[dict[str, Any]]:
        """Return the filters: people in the languages' countries, fluent in all, often approved, outside the group.

        Countries that Prolific does not offer are left out. Raises StudyError if it offers none, or not the language.
        """
        crowd, choices, file = self._crowd, self._choices, self._study.file
        readers = sorted(offer.batch.queue.languages)
        countries = dict.fromkeys(code for language in readers for code in crowd.countries_of(language))
        names = [name for code in countries for name in (_folded(territory_name(code)), *OTHER_NAMES.get(code, ()))]
        countries_offered = _matching(choices.get(COUNTRY, {}), names)
        if not countries_offered:
            raise StudyError(
                f"{file}: Prolific offers none of crowd.countries ({', '.join(countries)}); name other countries"
            )
        wanted: list[dict[str, Any]] = [{"filter_id": COUNTRY, "selected_values": countries_offered}]
        for language in readers:
            names = [_folded(display_name(language)), *OTHER_LANGUAGES.get(language, ())]
            fluent = _matching(choices.get(FLUENT, {}), names)
            if not fluent:
                raise StudyError(
                    f"{file}: Prolific cannot filter for readers of {language!r} (it lists no such fluent"
                    " language); use --platform link for it"
                )
            wanted.append({"filter_id": FLUENT, "selected_values": fluent})
        wanted.append({"filter_id": "approval_rate", "selected_range": {"lower": crowd.approval + 1, "upper": 100}})
        wanted.append({"filter_id": "approval_numbers", "selected_range": {"lower": crowd.approved}})
        wanted.append({"filter_id": LEAVE_OUT, "selected_values": [self._group]})
        return wanted

    def _study_body(self, offer: Offer, token: str, wanted: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a study's fields without its address; `token` is its internal name, `wanted` its filters."""
        name, description = self._shown(offer)
        hours = pay.assumed_hours([pair.transformation for pair in offer.pairs], self._crowd.pay)
        minutes = max(1, math.ceil(hours * 60))
        body = {
            "name": name,
            "internal_name": token,
            "description": description,
            "total_available_places": offer.places,
            "estimated_completion_time": minutes,
            "maximum_allowed_time": max(math.ceil(self._crowd.hours * 60), 2 * minutes + 5),
            "reward": offer.reward,
            "device_compatibility": list(dict.fromkeys(self._crowd.devices)),
            "peripheral_requirements": [],
            "submissions_config": {"max_submissions_per_participant": 1},
            "filters": wanted,
        }
        return body | ({"project": self._project} if self._project else {})

    def _shown(self, offer: Offer) -> tuple[str, str]:
        """Return the title in participants' list, and the description as HTML with the study's texts escaped."""
        batch, rubric, number = offer.batch, self._rubric, len(offer.pairs)
        codes = dict.fromkeys((batch.language, batch.output_language))
        languages = " and ".join(display_name(code) for code in codes)
        if rubric.fields.shown:  # the subject is not pairs of texts: its rubric names the work
            pool = rubric.pool(batch.pool)
            name = f"{worded(pool.title, ENGLISH)}: {number} items ({languages})"
            work = f"You will work on {number} items in {languages}. {worded(pool.asked, ENGLISH)}"
        else:
            name = f"Compare {number} pairs of texts ({languages})"
            work = (
                f"You will read {number} pairs of texts in {languages}. Each pair is a text and a version of it that a"
                " computer program has written. You rate how well the version was made."
            )
        consent = consent_of(self._crowd, rubric.language_for(batch.language, batch.output_language))
        parts = [
            work,
            "You work on our own pages. At the end you get a completion code there.",
            f"You will be asked to agree to this: {consent}",
            *([f"Questions: {self._study.raters.contact}"] if self._study.raters.contact else []),
        ]
        return name, "".join(f"<p>{html.escape(part)}</p>" for part in parts)

    def publish(self, posted_id: str) -> str:
        """Publish a draft, or in a test one that Prolific makes of it; return the id of the published study."""
        if self.mode == "sandbox" or self._study_at(posted_id)["status"] != "UNPUBLISHED":
            return posted_id
        if self.mode == "test":
            return self._test_of(posted_id) or self._publish_test(posted_id)
        try:
            self._api.change("POST", f"studies/{posted_id}/transition/", {"action": "PUBLISH"})
        except RefusedError:
            if self._study_at(posted_id)["status"] == "UNPUBLISHED":
                raise
        return posted_id

    def _publish_test(self, draft_id: str) -> str:
        """Have Prolific make and publish a test of a draft; return the id of the new study."""
        try:
            answer = self._api.change("POST", f"studies/{draft_id}/test-study")
        except RefusedError as error:
            raise RefusedError(
                f"{error}; a test needs a test participant (launch with --tester EMAIL once), and tests that Prolific's"
                " support has enabled for the workspace"
            ) from None
        if not isinstance(answer.get("study_id"), str):
            raise UncertainError("Prolific did not return the id of the test; run the command again")
        return str(answer["study_id"])

    def _test_of(self, draft_id: str) -> str | None:
        """Return the test that an earlier call made of a draft, by its address, which has the draft's token."""
        draft = self._study_at(draft_id)
        published = [item for item in self._api.pages("studies/") if item.get("status") != "UNPUBLISHED"]
        similar = [str(item["id"]) for item in published if draft["name"] in str(item.get("name", draft["name"]))]
        address = draft["external_study_url"]
        return next((key for key in similar if self._study_at(key).get("external_study_url") == address), None)

    def find_posted(self, token: str) -> str | None:
        """Return the study with this token, or the test of it, published now if a crash left it a draft."""
        studies = [item for item in self._api.pages("studies/") if item.get("internal_name") == token]
        if not studies:
            return None
        # A published study goes before drafts; among drafts, all runs take the first.
        posted_id = str(min(studies, key=lambda item: (item.get("status") == "UNPUBLISHED", str(item["id"])))["id"])
        return self.publish(posted_id)

    def posted(self, posted_id: str) -> PlatformOffer:
        """Return the present state of a study; Prolific's do not end by themselves."""
        study = self._study_at(posted_id)
        is_open = study["status"] in RUNNING or (
            study["status"] != "UNPUBLISHED"
            and any(submission.state == "working" for submission in self.submissions(posted_id))
        )
        return PlatformOffer(posted_id, int(study["total_available_places"]), None, is_open)

    def extend(self, posted_id: str, *, places: int, token: str) -> bool:
        """Open a study to `places` participants in all, and resume it if it was paused.

        Prolific frees a rejected participant's place by itself, and pauses the study if all other places were taken
        (its help, "Pausing & stopping a study"). So the places sent to Prolific do not count rejected participants.
        Raises RefusedError for a stopped study, which Prolific cannot reopen.
        """
        study = original = self._study_at(posted_id)
        states = [submission.state for submission in self.submissions(posted_id)]
        rejected, valid = states.count("rejected"), sum(state not in ("rejected", "returned") for state in states)
        if int(study["total_available_places"]) < places - rejected:
            self._api.change("PATCH", f"studies/{posted_id}/", {"total_available_places": places - rejected})
            study = self._study_at(posted_id)
        if study["status"] == "UNPUBLISHED":
            self.publish(posted_id)
        elif study["status"] == "PAUSED":
            self._api.change("POST", f"studies/{posted_id}/transition/", {"action": "START"})
        elif study["status"] not in RUNNING and valid < places - rejected:
            raise RefusedError(
                f"study {posted_id} was stopped on Prolific and cannot be reopened; close the campaign, or go on"
                " without the missing participants"
            )
        return self._study_at(posted_id) != original

    def close(self, posted_id: str) -> None:
        if self._study_at(posted_id)["status"] in (*RUNNING, "PAUSED"):
            self._api.change("POST", f"studies/{posted_id}/transition/", {"action": "STOP"})

    def _study_at(self, posted_id: str) -> dict[str, Any]:
        answer = self._api.get(f"studies/{posted_id}/")
        if not isinstance(answer.get("status"), str) or not isinstance(answer.get("total_available_places"), int):
            raise ServiceError("Prolific did not return a study's status; run the command again later")
        return {**answer, "status": plain(answer["status"])}

    def restore(self, offer: Offer) -> None:
        self._rooms.restore(offer)

    def admit(self, batch_id: str, posted_id: str, pseudonyms: Sequence[str]) -> None:
        self._rooms.admit(batch_id, posted_id, pseudonyms)

    def preview(self, posted_id: str) -> str:
        """Return the address of the participants' page, with made-up ids, for a coordinator; a test's is Prolific's."""
        if self.mode == "test":
            return f"{APP}/studies/{posted_id} (signed in as the test participant; set its password there first)"
        address = str(self._study_at(posted_id).get("external_study_url", ""))
        for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"):
            address = address.replace("{{%" + name + "%}}", "0" * 24)
        return address

    # Submissions

    def submissions(self, posted_id: str) -> Iterator[Submission]:
        for item in self._api.pages("submissions/", {"study": posted_id}):
            yield submission_of(item, posted_id)

    def submission(self, submission_id: str) -> Submission:
        answer = self._api.get(f"submissions/{submission_id}/")
        return submission_of(answer, str(answer.get("study_id", "")))

    def answers(self, submission: Submission, offer: Offer) -> Sequence[Answer]:
        return self._rooms.answers(offer, worker_pseudonym(self._key, self._study.name, self.name, submission.worker))

    def send_decision(self, submission_id: str, decision: Decision, reason: str) -> None:
        """Approve, which pays the reward, or reject: the participant reads the reason, who decided, and how to object.

        Prolific wants a category and a message of at least 100 characters: the added sentences alone are that long.
        """
        body = {"action": "APPROVE"}
        if decision == "rejected":
            message = (
                f"{reason.strip()}\n\nA person decided this about your submission {submission_id} to the study"
                f" {self._study.name}. If you think that it is wrong, please answer this message."
            )
            body = {"action": "REJECT", "message": message, "rejection_category": "OTHER"}
        self._api.change("POST", f"submissions/{submission_id}/transition/", body)

    def bonus(self, submission: Submission, cents: int, reason: str, token: str) -> None:
        """Pay a bonus, in two steps; Prolific knows neither tokens nor reasons."""
        line = f"{submission.submission_id},{pay.amount(cents)}"
        # A payment that is set up but not made costs nothing, so this step may happen twice.
        payment = self._api.harmless(
            "submissions/bonus-payments/", {"study_id": submission.posted_id, "csv_bonuses": line}
        )
        if payment.get("amount") != cents or not payment.get("id"):
            raise RefusedError(
                f"Prolific would pay a bonus of {shortened(payment.get('amount'))} instead of {cents} (in cents);"
                " nothing was paid. Prolific's format of amounts seems to have changed: update Plumbline, or report"
                " this to its maintainers"
            )
        self._api.change("POST", f"bulk-bonus-payments/{payment['id']}/pay/")

    def shows_bonus(self, submission_id: str, cents: int, reason: str) -> bool:
        return cents in self.submission(submission_id).bonuses

    def keep_out(self, worker: str) -> None:
        """Add the worker to the group that all studies of this campaign exclude, open ones included."""
        self._api.change("POST", f"participant-groups/{self._group}/participants/", {"participant_ids": [worker]})


def _matching(choices: Mapping[str, str], names: Iterable[str]) -> list[str]:
    by_label = {_folded(label): key for key, label in choices.items()}
    return list(dict.fromkeys(by_label[name] for name in names if name in by_label))


def _folded(label: str) -> str:
    """Remove accents, capitals and signs: `Türkiye` is turkiye, `Chinese (Mandarin)` chinese mandarin."""
    bare = "".join(mark for mark in unicodedata.normalize("NFKD", label) if not unicodedata.combining(mark))
    return " ".join("".join(mark if mark.isalnum() else " " for mark in bare.casefold()).split())
