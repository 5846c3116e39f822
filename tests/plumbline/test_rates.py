"""What runs measure, and the hours that it comes to."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from plumbline.rates import Rate, Stopwatch, hours, keep_rates, read_rates
from plumbline.study import load_study
from tests.generation.helpers import small_study

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def rate(**changes: Any) -> Rate:
    """1,000 characters in 10 seconds on two GPUs."""
    known = {"work": "generation", "what": "paraphrasing", "model": "m", "identity": "i", "texts": 10}
    known |= {"characters": 1000, "seconds": 10.0, "gpu_seconds": 20.0, "gpu": "H200", "finished_at": NOON}
    return Rate.model_validate({**known, **changes})


def test_time_is_of_what_is_noted_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 100 s: 2 s for 5 texts with one GPU, 3 s for one more with four, 1 s for another kind of work with four."""
    times = iter([0.0, 100.0, 102.0, 105.0, 106.0])
    monkeypatch.setattr("plumbline.rates.time.monotonic", lambda: next(times))
    watch = Stopwatch(1, "H200")
    watch.start()
    watch.note("a", 5, 50)
    watch.gpus = 4
    watch.note("a", 1, 30)
    watch.note("b", 1, 7)
    measured = watch.rate("generation", "a", "m", "i")
    assert measured is not None
    assert (measured.texts, measured.characters, measured.seconds, measured.gpu_seconds) == (6, 80, 5.0, 2.0 + 4 * 3.0)
    other = watch.rate("generation", "b", "m", "i")
    assert other is not None and (other.seconds, other.gpu_seconds) == (1.0, 4.0)
    assert watch.rate("generation", "c", "m", "i") is None


def test_hours_are_by_characters_and_by_what_was_measured_of_the_same_work() -> None:
    """Two runs on the last kind of GPU: (20 + 40) GPU seconds for 2,000 characters; 600,000 of them take 5 h."""
    known = [
        rate(gpu="A100", gpu_seconds=5000.0),
        rate(finished_at=NOON + timedelta(1)),
        rate(finished_at=NOON + timedelta(2), gpu_seconds=40.0),
        rate(identity="another prompt", gpu_seconds=9999.0, finished_at=NOON + timedelta(3)),
        rate(what="expansion", identity="j", gpu="", gpu_seconds=0.0),
    ]
    left = {"paraphrasing": ("i", 600_000), "expansion": ("j", 720_000), "summarisation": ("k", 5)}
    by_gpu, alone, unmeasured = hours(known, left)
    assert by_gpu == {"H200": pytest.approx(60 / 2000 * 600_000 / 3600)} == {"H200": pytest.approx(5.0)}
    assert alone == pytest.approx(10 / 1000 * 720_000 / 3600) == pytest.approx(2.0)
    assert unmeasured == ["summarisation"]


def test_rates_are_kept_run_by_run_and_read_with_those_of_other_studies(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    other = small_study(tmp_path, name="pilot")
    keep_rates(study.folder, [rate(), None])
    keep_rates(study.folder, [None])
    keep_rates(other.folder, [rate(texts=11)])
    keep_rates(study.folder, [rate(texts=12)])
    assert len(list((study.folder / "rates").iterdir())) == 2
    assert sorted(one.texts for one in read_rates(study.folder)) == [10, 11, 12]
    far = load_study(study.file, "memory://rates")
    keep_rates(far.folder, [rate()])
    assert read_rates(far.folder) == [rate()]


def test_damaged_rates_are_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No record rests on them: another study's, too, stop no forecast."""
    study = small_study(tmp_path)
    other = small_study(tmp_path, name="pilot")
    keep_rates(study.folder, [rate()])
    keep_rates(other.folder, [rate(texts=11)])
    (other.folder / "rates" / "0.json").write_text("[{}]", encoding="utf-8")
    (other.folder / "rates" / "1.json").write_text('[{"work": "gen', encoding="utf-8")
    assert sorted(one.texts for one in read_rates(study.folder)) == [10, 11]
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"forecasts ignore a file: .*pilot/rates/0.json does not have the expected content \(.*\); delete it", first
    )
    assert re.fullmatch(r"forecasts ignore a file: .*pilot/rates/1.json is damaged \(.*\); delete it", second)


def test_what_a_killed_run_was_writing_goes_with_the_next(tmp_path: Path) -> None:
    (tmp_path / "rates").mkdir()
    left, writing = (tmp_path / "rates" / f".20260102T120000-0a.json.{pid}.tmp" for pid in (2**22 + 1, os.getpid()))
    left.touch()
    writing.touch()
    keep_rates(tmp_path, [rate()])
    assert not left.exists() and writing.exists() and len(list((tmp_path / "rates").glob("*.json"))) == 1
