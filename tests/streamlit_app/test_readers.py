"""What is kept of a study's records, and searched in them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from annotation.campaign.offering import LEDGER
from annotation.campaign.records import CampaignRecords
from annotation.crowd.ledger import Ledger
from evaluation.records import EvaluationRecords
from evaluation.tables.datasets import drift_by_quality, drift_correlations
from plumbline.__main__ import run
from plumbline.errors import DataError
from plumbline.records import Pair
from plumbline.store import read_frame
from plumbline.study import ROOT, Study
from streamlit_app import readers, server
from streamlit_app.readers import NotYetError, PageReader, _stamps, cached
from streamlit_app.readers.scores import ScoreReader
from tests.conftest import DEMO
from tests.streamlit_app.conftest import MODELS


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_RESULTS", readers.NewestResults())


def test_only_the_newest_result_of_each_method_stays() -> None:
    results, made = readers.NewestResults(), list[int]()

    def read(stamp: int, key: str = "status") -> int:
        def make() -> int:
            made.append(stamp)
            return stamp

        return results.newest(key, stamp, make)

    assert [read(1), read(1), read(2), read(2), read(1)] == [1, 1, 2, 2, 1] and made == [1, 2, 1]
    for number in range(100):
        read(number, f"method {number}")
    assert len(results._newest) == 64 and read(99, "method 99") == 99 and len(made) == 103


def test_records_that_are_missing_are_told_from_damaged_ones(study: Study) -> None:
    (study.folder / "drift.parquet").unlink()
    with pytest.raises(NotYetError, match=r"drift\.parquet does not exist yet"):
        ScoreReader(study).against_ratings("quality", MODELS[0])
    (study.folder / "drift.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"drift\.parquet (is damaged|differs from what was written)") as caught:
        ScoreReader(study).against_ratings("quality", MODELS[0])
    assert not isinstance(caught.value, NotYetError)


def test_a_reader_runs_once_until_a_file_changes_however_its_options_are_given(study: Study) -> None:
    ran = []

    class ModelReader(PageReader):
        @cached("drift.parquet")
        def read(self, model: str = "first") -> str:
            ran.append(model)
            return model

    reader = ModelReader(study)
    assert [reader.read(), ModelReader(study).read("first"), reader.read(model="first"), reader.read("second")] == [
        "first",
        "first",
        "first",
        "second",
    ]
    assert ran == ["first", "second"]
    file = study.folder / "drift.parquet"
    status, content = file.stat(), file.read_bytes()
    file.write_bytes(content[::-1])
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # of equal size, with the time of writing put back
    reader.read()
    file.write_bytes(b"")
    reader.read()
    assert ran == ["first", "second", "first", "first"]


def test_reading_a_ledger_while_it_is_open_changes_nothing(study: Study) -> None:
    """Else each reader of a page would compute the status again while a crowd's command runs."""
    path = study.scratch / LEDGER
    with Ledger(path, study.name, "prolific", "live") as ledger:
        before = _stamps(study, ("*",))
        with Ledger(path, study.name, "prolific", "live") as second:
            second.payments()
        assert _stamps(study, ("*",)) == before
        ledger.once(("post", "batch-0", 960), {}, lambda _: None, lambda _: "an id")
        assert _stamps(study, ("*",)) != before


def test_a_models_correlations_are_those_of_the_reports(study: Study) -> None:
    """The reports make all models' at once, the page one model's."""
    pairs = read_frame(study.folder / "pairs.parquet", Pair, "")
    whole = drift_by_quality(
        pairs, CampaignRecords(study).all_ratings, EvaluationRecords(study).drift, per_pair=study.raters.per_pair
    )
    reported = drift_correlations(whole, study.sample.seed)
    for model in MODELS:
        of_model = reported[reported["model"] == model].reset_index(drop=True)
        pd.testing.assert_frame_equal(ScoreReader(study).against_ratings("quality", model)[1], of_model)


def test_functions_of_one_name_are_told_apart_by_their_modules(study: Study) -> None:
    """Tables of two modules may be made by functions of one name: a page never shows the one for the other."""

    class Tables(PageReader):
        @cached()
        def table(self, make: Callable[[], str]) -> str:
            return make()

    def numbered(number: int) -> Callable[[], str]:
        def table() -> str:
            return f"of module {number}"

        table.__module__ = f"module_{number}"
        return table

    assert [Tables(study).table(numbered(number)) for number in (1, 2)] == ["of module 1", "of module 2"]


def test_the_first_page_waits_for_no_others_modules() -> None:
    """What only other pages need, and clients of servers, would double the time until the first page is there."""
    program = "import sys, streamlit_app.app, streamlit_app.views.answer; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    assert not {"argilla", "httpx", "altair", "jinja2", "evaluation.results", "streamlit_app.readers.scores"} & set(
        loaded
    )


def test_a_port_is_streamlits_and_the_study_is_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that pages name repeat the pages' arguments, and no other command has a port."""
    calls: list[list[str]] = []
    monkeypatch.setattr(server, "prepare", lambda *_: None)
    monkeypatch.setattr(server.streamlit_cli, "main", lambda words, **_: calls.append(words))
    for port in ([], ["--port", "8599"]):
        run(["dashboard", "--study", str(DEMO), *port, "--exports", "e"])
    plain = ["--runner.magicEnabled", "false", "--", "--study", str(DEMO), "--exports", "e"]
    assert [words[2:] for words in calls] == [plain, ["--server.port", "8599", *plain]]


def test_it_binds_to_this_machine_and_tells_nobody() -> None:
    file = Path(ROOT) / "streamlit_app" / ".streamlit" / "config.toml"
    config = tomllib.loads(file.read_text(encoding="utf-8"))
    assert config["server"]["address"] == "127.0.0.1"
    assert config["server"]["fileWatcherType"] == "none"
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["disableDataExport"] is True


def test_answers_beyond_those_wanted_are_no_progress(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a block that decides, its verdict's other answers count, but nobody waits for them."""
    status = readers.StudyReader(study).status()
    row = status.progress.head(1).assign(wanted=10)
    progress = pd.concat([row.assign(counting=30, open=0), row.assign(counting=4, open=6)])
    monkeypatch.setattr(readers.StudyReader, "status", lambda _: replace(status, progress=progress))
    assert readers.StudyReader(study).so_far()["Answers that count"] == "14 of 20"


def test_a_record_that_is_gone_is_not_one_that_no_command_has_written_yet(study: Study) -> None:
    (study.folder / "looks.json").unlink()
    with pytest.raises(DataError, match="looks.json is gone; restore it") as gone:
        readers.StudyReader(study).verdicts()
    assert not isinstance(gone.value, NotYetError)
