"""Prolific's Task Builder as its documentation has it: data sets, imports, batches, tasks, responses, and its refusals.

A batch's tasks are the rows of its data set, dealt out in groups of `tasks_per_group`; a study has so many places as
groups times annotators. Each import and each set-up takes `busy` looks. `answer` has a participant answer everything.
"""

from __future__ import annotations

import json
import secrets
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]
KEY = "([^/]+)"
TASK_BUILDER_ROUTES: list[tuple[str, str, str]] = [
    ("POST", "data-collection/datasets", "create_dataset"),
    ("GET", f"data-collection/datasets/{KEY}/upload-url/{KEY}", "upload_url"),
    ("GET", f"data-collection/datasets/{KEY}/imports/{KEY}", "data_import"),
    ("GET", "data-collection/batches", "list_batches"),
    ("POST", "data-collection/batches", "create_batch"),
    ("GET", f"data-collection/batches/{KEY}", "batch"),
    ("GET", f"data-collection/batches/{KEY}/status", "batch_status"),
    ("POST", f"data-collection/batches/{KEY}/setup", "set_up_batch"),
    ("GET", f"data-collection/batches/{KEY}/responses", "list_responses"),
]
METHOD = "AI_TASK_BUILDER_BATCH"


class RefusalError(Exception):
    """A call that Prolific refuses."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def items_of(batch: Json) -> Iterator[tuple[int, Json]]:
    """Each item of a batch's pages, with the number of its page."""
    for number, page in enumerate(batch["batch_items"]):
        for row in page["rows"]:
            for column in row["columns"]:
                for item in column["items"]:
                    yield number, item


class TaskBuilderSite(ABC):
    """Task Builder's part of a researcher's account."""

    url: str
    lock: threading.RLock
    submissions: dict[str, Json]
    studies: dict[str, Json]

    def __init__(self) -> None:
        self.datasets: dict[str, Json] = {}
        self.imports: dict[str, Json] = {}
        self.batches: dict[str, Json] = {}
        self.responses: list[Json] = []
        self.busy = 1
        self.imports_end, self.set_up_ends = "complete", "READY"

    @abstractmethod
    def _known(self, there: dict[str, Any], key: str) -> Any: ...

    @abstractmethod
    def _page(self, items: list[Json], query: Json) -> Json: ...

    # What participants do

    def answer(self, submission_id: str, choose: Callable[[list[str], Json], object]) -> None:
        """Answer each question of each page: an option's value, several, or a text, by the page's texts."""
        with self.lock:
            one = self.submissions[submission_id]
            study = self.studies[one["study_id"]]
            batch = self.batches[study["data_collection_id"]]
            assert study["data_collection_method"] == METHOD and batch["status"] == "READY"
            (row,) = self.rows(batch)
            texts: dict[int, list[str]] = {}
            for number, item in items_of(batch):
                if item["type"] == "dataset_field":
                    texts.setdefault(number, []).append(row[item["field"]])
            for number, item in items_of(batch):
                if item["type"] in ("multiple_choice", "free_text"):
                    self._respond(one, batch, item, choose(texts[number], item))

    def _respond(self, one: Json, batch: Json, item: Json, chosen: Any) -> None:
        if item["type"] == "free_text":
            said: Json = {"text": chosen}
        else:
            chosen = chosen if isinstance(chosen, list) else [chosen]
            assert len(chosen) <= item["answer_limit"]
            assert set(chosen) <= {option["value"] for option in item["options"]}
            said = {"answer": [{"value": value} for value in chosen]}
        self.responses.append(
            {
                "id": str(uuid.uuid4()), "batch_id": batch["id"], "participant_id": one["participant_id"],
                "submission_id": one["id"], "task_id": f"task-{batch['id']}", "created_at": "2026-03-01T10:12:00Z",
                "response": {"instruction_id": item["id"], "type": item["type"], **said},
            }
        )  # fmt: skip

    # The API

    def create_dataset(self, query: Json, body: Json) -> Json:
        fields = body["schema"]["fields"]
        assert fields and all(field == {"type": "text"} for field in fields.values())
        key = str(uuid.uuid4())
        self.datasets[key] = {**body, "id": key, "rows": []}
        return {"id": key, "name": body["name"], "status": "UNINITIALISED"}

    def upload_url(self, query: Json, body: Json, key: str, file: str) -> Json:
        self._known(self.datasets, key)
        assert file.endswith((".jsonl", ".csv"))
        number = str(uuid.uuid4())
        self.imports[number] = {"dataset": key, "status": "pending", "left": self.busy}
        return {
            "upload_url": f"{self.url}/files/{number}?X-Amz-Signature={secrets.token_hex(8)}", "http_method": "PUT",
            "import_id": number, "content_type": "application/x-ndjson",
        }  # fmt: skip

    def put_file(self, query: Json, body: Json, key: str) -> Json:
        job = self._known(self.imports, key)
        rows = [json.loads(line) for line in body["content"].splitlines()]
        assert all(set(row) == set(self.datasets[job["dataset"]]["schema"]["fields"]) for row in rows)
        self.datasets[job["dataset"]]["rows"] = rows
        job["status"] = "processing"
        return {}

    def data_import(self, query: Json, body: Json, dataset: str, key: str) -> Json:
        job = self._known(self.imports, key)
        if job["status"] == "processing":
            job["left"] -= 1
            job["status"] = self.imports_end if job["left"] < 0 else "processing"
        return {"id": key, "status": job["status"]}

    def list_batches(self, query: Json, body: Json) -> Json:
        own = [one for one in self.batches.values() if one["workspace_id"] == query["workspace_id"]]
        return self._page([self.batch({}, {}, one["id"]) for one in own], query)

    def create_batch(self, query: Json, body: Json) -> Json:
        fields = self._known(self.datasets, body["dataset_id"])["schema"]["fields"]
        key = str(uuid.uuid4())
        batch = {**json.loads(json.dumps(body)), "id": key, "status": "UNINITIALISED", "total_task_count": 0, "left": 0}
        shown: set[tuple[int, str]] = set()
        for page in batch["batch_items"]:
            if not page["rows"] or any(len(row["columns"]) not in (1, 2) for row in page["rows"]):
                raise RefusalError(422, "batch_items: 1 or 2 columns per row")
        for number, item in items_of(batch):
            item["id"] = str(uuid.uuid4())
            place = number, item.get("field", "")
            if item["type"] == "dataset_field" and (item["field"] not in fields or place in shown):
                raise RefusalError(422, f"batch_items: page {number}: field {item['field']!r}")
            shown.add(place)
        self.batches[key] = batch
        return self.batch({}, {}, key)

    def batch(self, query: Json, body: Json, key: str) -> Json:
        batch: Json = self._known(self.batches, key)
        return {name: value for name, value in batch.items() if name not in ("left", "dataset_id", "groups")}

    def batch_status(self, query: Json, body: Json, key: str) -> Json:
        batch = self._known(self.batches, key)
        if batch["status"] == "PROCESSING":
            batch["left"] -= 1
            batch["status"] = self.set_up_ends if batch["left"] < 0 else "PROCESSING"
        return {"status": batch["status"]}

    def set_up_batch(self, query: Json, body: Json, key: str) -> Json:
        batch = self._known(self.batches, key)
        if batch["status"] != "UNINITIALISED":
            raise RefusalError(400, f"the batch is {batch['status']}")
        if not any(
            job["dataset"] == batch["dataset_id"] and job["status"] == "complete" for job in self.imports.values()
        ):
            raise RefusalError(400, "the dataset has no complete import")
        tasks = len(self.rows(batch))
        groups = -(-tasks // body["tasks_per_group"])
        batch.update(status="PROCESSING", left=self.busy, total_task_count=tasks, groups=groups)
        return {}

    def list_responses(self, query: Json, body: Json, key: str) -> Json:
        self._known(self.batches, key)
        return self._page([one for one in self.responses if one["batch_id"] == key], query)

    def rows(self, batch: Json) -> list[Json]:
        rows: list[Json] = self.datasets[batch["dataset_id"]]["rows"]
        return rows

    def counted(self, study: Json) -> Json:
        """How many places a study has, where Prolific counts them by its batch."""
        if study.get("data_collection_method") != METHOD:
            return {}
        batch = self._known(self.batches, study["data_collection_id"])
        if batch["status"] != "READY":
            raise RefusalError(400, "data_collection_id: the batch is not ready")
        return {"total_available_places": batch["groups"] * study["data_collection_metadata"]["annotators_per_task"]}
