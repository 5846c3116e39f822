"""`status` looks at the server that runs: answers that nobody has collected yet are counted."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import pytest

from annotation import server
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.campaign.records import CampaignData
from annotation.status.status import Status, read_status, with_server
from annotation.status.text import next_step, status_text
from annotation.verdicts.evidence import Evidence
from plumbline.manifest import stage
from plumbline.study import Study
from tests.annotation.campaigns import Make, answer, dataset, pending, rater, small
from tests.commands import here


def looked_at(study: Study, home: server.Home) -> Status:
    return with_server(read_status(Evidence(study), datetime.now(UTC)), CampaignData.read(study), home)


def test_answers_on_the_running_server_are_counted(
    argilla: Argilla, home: server.Home, variant: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = rater(argilla, "ada-now"), rater(argilla, "bob-now")
    study = small(variant, "now", transformations=["paraphrasing"], raters={"per_pair": 2})
    asked: dict[str, int] = {}
    with stage(study, "publish", [study.folder / "pairs.parquet"], settings=asked):
        asked["annotators"] = publish(study, argilla).admission.people
    records = pending(argilla, ada, dataset(study, argilla))
    for record in records:
        answer(argilla, ada, record, "submitted", quality=4, fluency=5)
    answer(argilla, bob, records[0], "submitted", quality=4, fluency=5)
    answer(argilla, bob, records[1], "draft", quality=4)

    methods: list[str] = []
    send = httpx.Client.send

    def noted(self: httpx.Client, request: httpx.Request, **options: object) -> httpx.Response:
        methods.append(request.method)
        return send(self, request, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(httpx.Client, "send", noted)
        status = looked_at(study, home)
    assert set(methods) == {"GET"}  # it is only read
    assert status.server is not None and status.server.by_account == {"ada-now": 4, "bob-now": 1}
    text = status_text(status)
    assert f"The server at {argilla.url} has 5 submitted answers from 2 accounts; 0 are collected" in text
    assert "5 answers on the server that are not collected yet" in str(next_step(status))

    place = ("--study", str(study.file), "--exports", str(study.folder.parent), "--data", str(home.path))
    assert "has 5 submitted answers from 2 accounts" in here("status", *place).stdout

    collect(study, argilla)
    after = looked_at(study, home)
    assert (after.uncollected, after.on_record) == (0, 5)
    assert "the server has and" not in str(next_step(after))
