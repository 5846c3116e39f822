"""`status` and `users remind` look at the server that runs: answers that nobody has collected yet are counted."""

from __future__ import annotations

import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from annotation import server
from annotation.__main__ import main
from annotation.argilla.accounts import answered_now
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.campaign_records import CampaignData
from annotation.status.status import Status, read_status, with_server
from annotation.status.text import next_step, status_text
from annotation.verdicts.evidence import Evidence
from plumbline.manifest import stage
from plumbline.study import Study
from tests.annotation.campaigns import Make, answer, dataset, pending, rater, small


def published_study(argilla: Argilla, variant: Make, name: str) -> Study:
    study = small(variant, name, transformations=["paraphrasing"], raters={"per_pair": 2})
    asked: dict[str, int] = {}
    with stage(study, "publish", [study.folder / "pairs.parquet"], settings=asked):
        asked["annotators"] = publish(study, argilla).admission.people
    return study


def looked_at(study: Study, home: server.Home) -> Status:
    return with_server(read_status(Evidence.open(study), datetime.now(UTC)), CampaignData.read(study), home)


def home_of(argilla: Argilla) -> server.Home:
    assert argilla.connection is not None and argilla.connection.home is not None
    return argilla.connection.home


def test_answers_on_the_running_server_are_counted(
    argilla: Argilla, variant: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = rater(argilla, "ada-now"), rater(argilla, "bob-now")
    study, home = published_study(argilla, variant, "now"), home_of(argilla)
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
    text = status_text(status, study.arguments)
    assert f"The server at {argilla.url} has 5 submitted answers from 2 accounts; 0 are collected" in text
    assert "5 answers on the server that are not collected yet" in next_step(status, study.arguments)

    place = ["--study", str(study.file), "--exports", str(study.folder.parent), "--data", str(home.path)]
    monkeypatch.setattr("sys.argv", ["annotation", "status", *place])
    assert main() == 0
    assert "has 5 submitted answers from 2 accounts" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["annotation", "users", "remind", *place])
    assert main() == 0
    said = capsys.readouterr().out
    assert "has 5 submitted answers from 2 accounts" in said
    assert [line.split()[:2] for line in said.splitlines() if line.startswith("ada-now")] == [["ada-now", "4"]]

    collect(study, argilla)
    after = looked_at(study, home)
    assert (after.uncollected, after.on_record) == (0, 5)
    assert "the server has and" not in next_step(after, study.arguments)


def test_who_answered_since_is_not_reminded_as_behind(argilla: Argilla, variant: Make) -> None:
    from annotation.annotators import AnnotatorProgress, answered_since

    behind = AnnotatorProgress("ada", "rater-1", 1, 3, None, False, False, {"behind": "few answers", "fast": "4 of 4"})
    idle = AnnotatorProgress("bob", "rater-2", 0, 4, None, False, False, {"behind": "no answer for 8 days"})
    found = answered_since([behind, idle], {"ada": 3, "cy": 2})
    assert [(one.name, one.answers, one.open, dict(one.remarks)) for one in found] == [
        ("ada", 3, 1, {"fast": "4 of 4"}),
        ("bob", 0, 4, {"behind": "no answer for 8 days"}),
        ("cy", 2, None, {}),
    ]


def test_a_server_that_does_not_run_is_a_sentence_and_none_is_started(
    argilla: Argilla, variant: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, home = published_study(argilla, variant, "off"), server.Home(tmp_path / "nowhere")
    status = looked_at(study, home)
    assert "The study's server could not be asked (it does not run)" in status_text(status, study.arguments)
    assert not home.path.exists()

    with socket.create_server(("127.0.0.1", 0)) as hanging:  # takes the connection and says nothing
        monkeypatch.setenv("ARGILLA_API_URL", f"http://127.0.0.1:{hanging.getsockname()[1]}")
        monkeypatch.setenv("ARGILLA_API_KEY", "key")
        began = time.monotonic()
        found = answered_now(study.name, home, ["x"])
        assert "does not answer" in found.trouble and time.monotonic() - began < 8
    monkeypatch.setenv("ARGILLA_API_URL", argilla.url)
    assert "refused with status 401" in answered_now(study.name, home, ["x"]).trouble
    monkeypatch.delenv("ARGILLA_API_KEY")
    assert answered_now(study.name, home, ["x"]).trouble
    assert "ARGILLA_API_URL" in os.environ


def test_a_study_that_was_never_published_asks_no_server(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "files", transformations=["paraphrasing"])
    assert looked_at(study, home_of(argilla)).server is None
