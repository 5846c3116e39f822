"""The command line as a person runs it: stopped, killed, run twice, given bad files."""

from __future__ import annotations

import multiprocessing
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from plumbline.__main__ import run
from plumbline.errors import ServiceError
from plumbline.models import servers
from plumbline.study import ROOT
from tests.commands import here
from tests.disks import small_disk
from tests.generation.helpers import complaint, generate_at, server, start, write_study
from tests.scale import scaled
from tests.stubs import Asked, ChatStub, Reply, last_line, says

DEMO = ROOT / "studies" / "demo.yaml"
TEXTS = tuple(f"text number {number}" for number in range(60))
CONCURRENCY = 4


# A process for each run, forked from one that has imported everything: a start takes milliseconds.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.generation.helpers", "plumbline.models.openai", "uvloop"])


def slow(asked: Asked) -> Reply:
    return says(last_line(asked)[::-1], seconds=0.05)


@pytest.fixture
def stub() -> Iterator[ChatStub]:
    with ChatStub(slow) as server:
        yield server


def study_at(stub: ChatStub, folder: Path) -> Path:
    generator = server(stub.url, concurrency=CONCURRENCY)
    return write_study(folder, TEXTS, transformations=["paraphrasing", "cross_translation"], generator=generator)


def stop_midway(stub: ChatStub, study: Path, how: int) -> subprocess.Popen[str]:
    process = start(study)
    wait_until(lambda: stub.answered >= 70)  # of 120: within the second of two units
    process.send_signal(how)
    return process


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def tables(study: Path) -> dict[str, object]:
    """Everything in the tables but when it was received."""
    folder = study.parent / "exports" / "small"
    files = sorted(folder.rglob("*.parquet"))
    return {
        str(file.relative_to(folder)): [
            {name: value for name, value in row.items() if name != "finished_at"}
            for row in pq.read_table(file, partitioning=None).to_pylist()
        ]
        for file in files
    }


def run_here(study: Path, exports: Path | None = None) -> tuple[int, str]:
    """Exit status and output of a run in this process."""
    done = here("generate", "--study", str(study), "--exports", str(exports or study.parent / "exports"))
    return done.returncode, done.stdout


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def killed_and_resumed(folder: Path, stub: ChatStub, answers: int, seconds: float) -> Path:
    """A study whose run was killed so many seconds after so many answers, and then run to its end."""
    # In Rundi, which no outputs are held against: a hundred processes need not load the model that tells languages.
    words = {"name": "words", "task": "clustering", "path": "words.csv", "language": "rn"}
    study = write_study(
        folder,
        TEXTS[:30],
        datasets=[words],
        transformations=["paraphrasing", "style_change"],
        generator=server(stub.url, concurrency=CONCURRENCY),
    )
    stub.answered = 0
    process = FORKS.Process(target=generate_at, args=(study,))
    process.start()
    wait_until(lambda: stub.answered >= answers or not process.is_alive())
    process.join(seconds)
    process.kill()
    process.join()
    again = FORKS.Process(target=generate_at, args=(study,))
    again.start()
    again.join(240)
    assert again.exitcode == 0
    return study


def test_runs_killed_at_random_moments_end_like_an_unbroken_one(tmp_path: Path) -> None:
    """2 transformations of 30 texts, 4 in flight, 5 ms each: killed while it starts, works, and settles its tables."""
    rng, number = random.Random(20261121), scaled(5, 50)
    with ChatStub(lambda asked: says(last_line(asked)[::-1], seconds=0.005)) as stub:
        unbroken = tables(killed_and_resumed(tmp_path / "unbroken", stub, answers=60, seconds=60))
        assert len(stub.asked) == 60
        cut_off = 0
        for run in range(number):
            stub.asked.clear()
            study = killed_and_resumed(tmp_path / str(run), stub, rng.randint(0, 60), rng.uniform(0.0, 0.03))
            assert tables(study) == unbroken
            assert 60 <= len(stub.asked) <= 60 + CONCURRENCY
            cut_off += len(stub.asked) > 60
            left = [p for p in study.parent.rglob("*") if p.suffix in (".journal", ".tmp")]
            assert [p for p in left if p.parent.name != "rates"] == []  # rates go with the next run that has work
    assert cut_off >= number / 5  # the moments were not all before or after the work


def test_an_interrupt_is_130_and_keeps_what_came(stub: ChatStub, tmp_path: Path) -> None:
    study = study_at(stub, tmp_path)
    status, _, err = finish(stop_midway(stub, study, signal.SIGINT))
    assert status == 130
    assert complaint(err).startswith("interrupted; the files written so far are kept")
    generate_at(study)
    assert 120 <= len(stub.asked) <= 120 + CONCURRENCY


def test_a_server_that_dies_midway_is_one_line_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(asked: Asked) -> Reply:
        return Reply(b"", cut=True) if stub.answered >= 20 else slow(asked)

    monkeypatch.setattr(servers, "FIRST_DELAY", 0.001)
    with ChatStub(dying) as stub:
        study = write_study(tmp_path, TEXTS, generator=server(stub.url, concurrency=CONCURRENCY))
        with pytest.raises(ServiceError) as error:
            run(["generate", "--study", str(study), "--exports", str(tmp_path / "exports")])
        assert str(error.value).startswith(f"{stub.url} did not answer: asked 7 times")
        stub.script = slow
        status, out = run_here(study)
    assert status == 0
    reused = int(out.split(" already stored")[0].split()[-1])
    assert 20 - 2 * CONCURRENCY <= reused < 60


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "256k") as disk:
        status, _, err = finish(start(DEMO, disk))
        assert status == 2
        assert complaint(err).startswith("error: No space left on device")
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        status, out = run_here(DEMO, disk)
    assert status == 0
    reused = int(out.split(" already stored")[0].split()[-1])
    assert 0 < reused < 916
    made, failed = (int(number) for number in re.findall(r"(\d+) texts transformed, (\d+) failed", out)[0])
    assert made + failed == 916 - reused
