"""Prolific's participants on its own page, Task Builder, for researchers without a public server.

Our batch becomes a data set and a batch on Prolific (`task_pages`), which cost nothing and which nobody sees before a
study names them. So they are created first; after a crash, a half-made one is finished or left unused. The study itself
is created, published and paid as for rooms.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from annotation.crowd.mturk.form import Sheet
from annotation.crowd.platform import Offer, RefusedError, Submission, UncertainError, found_or_made
from annotation.crowd.prolific.adapter import ProlificStudies, completed
from annotation.crowd.prolific.api import shortened
from annotation.crowd.prolific.task_pages import (
    details_of,
    fields_of_responses,
    pages_of,
    question_ids,
    refuse_unshowable,
    row_of,
    schema_of,
)
from annotation.crowd.prolific.workspaces import room_of
from annotation.ratings.answers import Answer
from plumbline.errors import DataError
from plumbline.identity import identity

DATASETS, BATCHES = "data-collection/datasets", "data-collection/batches"
PEOPLES_PAGES = "https://app.prolific.com/researcher/studies"
FILE, CONTENT_TYPE = "batch.jsonl", "application/x-ndjson"
POLL, LOOKS = 3.0, 200  # seconds between two checks whether Prolific is done; the most checks


class TaskBuilder(ProlificStudies):
    """Prolific's participants on Prolific's page."""

    where = "You work on Prolific's own pages."
    consent = "By taking part you agree to this:"

    def refuse_unshowable(self, offer: Offer) -> None:
        """Raise StudyError for a batch that Task Builder cannot show."""
        refuse_unshowable(self._study, self._rubric, offer)

    def workplace(self, offer: Offer) -> dict[str, Any]:
        """Prepare the batch on Prolific; return the study's fields that lead to it."""
        code = room_of(self._study.name, "", self.mode, self._key, offer.batch.batch_id).code
        return {
            "data_collection_method": "AI_TASK_BUILDER_BATCH",
            "data_collection_id": self._ready_batch(offer),
            "prolific_id_option": "not_required",
            "completion_codes": [completed(code)],
            **self.widened(offer.places),
        }

    def widened(self, places: int) -> dict[str, Any]:
        """Return the fields that open a study to `places` participants: its one task has that many annotators."""
        return {"data_collection_metadata": {"annotators_per_task": places}}

    def publish(self, posted_id: str) -> None:
        """Publish a draft in live mode. Raises RefusedError if Prolific counts other places than requested."""
        study = self._study_at(posted_id)
        self._refuse_other_places(study, (study.get("data_collection_metadata") or {}).get("annotators_per_task"))
        super().publish(posted_id)

    def preview(self, posted_id: str) -> str:
        """Return the address at which a coordinator sees the study and a preview of its tasks."""
        return f"{PEOPLES_PAGES}/{posted_id}"

    def _ready_batch(self, offer: Offer) -> str:
        """Find the batch on Prolific by its name, which has a hash of its content, or create it; return its id."""
        row, pages = row_of(offer.pairs), pages_of(self._rubric, offer)
        details = details_of(self._crowd, self._rubric, offer.batch.queue)
        shown = identity("task-builder-v1", self.mode, json.dumps([row, pages, details], sort_keys=True))
        name = f"Plumbline {self._study.name} {self.mode} {offer.batch.batch_id} {shown[:16]}"

        def find() -> str | None:  # a crash can leave two; all runs take the first
            batches = self._api.pages(BATCHES, {"workspace_id": self._workspace})
            usable = [item for item in batches if item.get("name") == name and item.get("status") != "ERROR"]
            return min((str(item["id"]) for item in usable), default=None)

        def make() -> str | None:
            body: dict[str, Any] = {
                "name": name,
                "workspace_id": self._workspace,
                "dataset_id": self._dataset(name, row),
            }
            body |= {"task_details": details, "batch_items": pages}
            new_id = self._api.change("POST", BATCHES, body).get("id")
            return new_id if isinstance(new_id, str) else None

        batch_id = found_or_made(find, make, "Prolific has made a Task Builder batch")
        if self._api.get(f"{BATCHES}/{batch_id}/status").get("status") == "UNINITIALISED":
            self._api.change("POST", f"{BATCHES}/{batch_id}/setup", {"tasks_per_group": 1})
        self._wait(f"{BATCHES}/{batch_id}/status", "READY")
        tasks = self._api.get(f"{BATCHES}/{batch_id}").get("total_task_count")
        if tasks != 1:
            raise RefusedError(
                f"Prolific made {shortened(tasks)} tasks instead of 1 from batch {offer.batch.batch_id}, so"
                " participants would get only parts of the batch; nothing was offered"
            )
        return batch_id

    def _dataset(self, name: str, row: dict[str, str]) -> str:
        """Create a data set with one row, imported by Prolific; one left by a crash is never used and costs nothing."""
        body = {"name": name, "workspace_id": self._workspace, "schema": schema_of(row)}
        dataset_id = self._api.harmless(DATASETS, body).get("id")
        upload = self._api.get(f"{DATASETS}/{dataset_id}/upload-url/{FILE}")
        # JSON and not CSV: it keeps line breaks and quotes in texts, and nothing reads a text as a formula.
        content = json.dumps(row, ensure_ascii=False).encode() + b"\n"
        self._api.upload(str(upload.get("upload_url")), content, str(upload.get("content_type") or CONTENT_TYPE))
        self._wait(f"{DATASETS}/{dataset_id}/imports/{upload.get('import_id')}", "COMPLETE")
        return str(dataset_id)

    def _wait(self, path: str, wanted: str) -> None:
        """Wait until the job at a path is done. RefusedError if it failed, UncertainError if it takes too long."""
        for look in range(LOOKS):
            if look:
                self.pause(POLL)
            status = str(self._api.get(path).get("status")).upper()
            if status == wanted:
                return
            if status in ("ERROR", "FAILED", "PARTIAL"):
                raise RefusedError(
                    f"Prolific could not read a batch's texts ({status}); nothing was offered; run the command again"
                )
        raise UncertainError(
            f"Prolific is still processing a batch's texts ({shortened(status)}); nothing was offered; run the command"
            " again later"
        )

    def answers(self, submission: Submission, offer: Offer) -> Sequence[Answer]:
        """Return the participant's answers on Prolific's page. Raises DataError for unreadable answers."""
        where = f"submission {submission.submission_id}"
        batch_id = self._study_at(submission.posted_id).get("data_collection_id")
        if not isinstance(batch_id, str):
            raise DataError(
                f"{where}: its batch was not offered on Task Builder; set crowd.address as it was at the launch"
            )
        responses = [  # Prolific's own client has both ids (github.com/prolific-oss/cli)
            response
            for response in self._api.pages(f"{BATCHES}/{batch_id}/responses")
            if response.get("participant_id") == submission.worker
            and response.get("submission_id") in (None, "", submission.submission_id)
        ]
        if not responses or submission.submitted_at is None:
            raise DataError(f"{where}: Prolific has no answers for it")
        ids = question_ids(self._rubric, offer, self._api.get(f"{BATCHES}/{batch_id}").get("batch_items"), where)
        fields = fields_of_responses(responses, ids, where)
        pools = {pair.pair_id: pair.pool for pair in offer.pairs}
        sheet = Sheet(self._study.name, self._rubric, pools, where)
        return sheet.answers(fields, offer.batch.pair_ids, submission.submitted_at.isoformat())
