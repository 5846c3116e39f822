"""Shards of a study's texts: made by processes that share a folder and nothing else, and put together afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from generation.production import generate, generate_shard, read_transformed
from generation.unit import Shard
from plumbline.__main__ import run
from plumbline.errors import StudyError
from plumbline.store import only_one
from plumbline.study import ROOT, Study, load_study
from tests.generation.helpers import generate_at, server, start, write_study
from tests.generation.test_run import finish, tables, wait_until
from tests.stubs import Asked, ChatStub, Reply, last_line, says

EXAMPLE = ROOT / "docs" / "examples" / "generate.sbatch"
TEXTS = (*(f"text number {number}" for number in range(40)), "text number 7")  # one stands twice: 40 jobs
CONCURRENCY = 4


@pytest.fixture
def stub() -> Iterator[ChatStub]:
    def script(asked: Asked) -> Reply:
        return says(last_line(asked)[::-1], seconds=0.02)

    with ChatStub(script) as server:
        yield server


@pytest.fixture
def path(stub: ChatStub, tmp_path: Path) -> Path:
    return write_study(tmp_path / "shards", TEXTS, generator=server(stub.url, concurrency=CONCURRENCY))


@pytest.fixture
def study(path: Path) -> Study:
    return load_study(path, path.parent / "exports")


def journals(study: Study) -> list[str]:
    return sorted(path.name for path in study.folder.rglob("*.journal"))


def test_shards_are_put_together_to_what_one_process_makes(
    study: Study, path: Path, stub: ChatStub, tmp_path: Path
) -> None:
    counts = [generate_shard(study, Shard(number, 3))["ok"] for number in (3, 1, 2)]
    assert sum(counts) == len(stub.asked) == 40
    assert min(counts) > 5
    assert journals(study) == [f"1.shard-{number}-of-3.journal" for number in (1, 2, 3)]
    assert not study.transformation_file("paraphrasing", 1).exists()
    assert generate_shard(study, Shard(2, 3))["ok"] == 0
    assert generate_shard(study, Shard(1, 2))["ok"] == 0  # what shards of other sizes have made is there

    generate_at(path)
    assert len(stub.asked) == 40
    assert journals(study) == []
    plain = write_study(tmp_path / "plain", TEXTS, generator=server(stub.url, concurrency=CONCURRENCY))
    generate_at(plain)
    assert tables(path) == tables(plain)
    assert generate_shard(study, Shard(1, 3))["reused"] == counts[1]


def test_what_a_shard_of_another_size_made_stays_whichever_journal_is_the_newer_file(
    study: Study, path: Path, stub: ChatStub
) -> None:
    """A text fails in a shard of 3, one of 2 makes it, and the former's file is newer: it went on, or was copied."""
    good, lost = stub.script, "text number 7"
    shards = Shard(next(n for n in (1, 2, 3) if Shard(n, 3).has(lost)), 3), Shard(1 + (not Shard(1, 2).has(lost)), 2)
    stub.script = lambda asked: says("", seconds=0.0) if last_line(asked) == lost else good(asked)
    assert generate_shard(study, shards[0])["failed"] == 1
    stub.script = good
    assert generate_shard(study, shards[1], again=True)["ok"] > 0
    os.utime(study.journal_file("paraphrasing", 1, shards[0].name))
    stub.asked.clear()
    assert generate_shard(study, shards[0], again=True)["reused"] == sum(shards[0].has(text) for text in set(TEXTS))
    assert stub.asked == []
    generate_at(path)
    assert {row.text: row.output for row in read_transformed(study, "paraphrasing", 1)}[lost] == lost[::-1]


def test_a_killed_shard_goes_on_and_the_last_run_makes_what_is_left(path: Path, study: Study, stub: ChatStub) -> None:
    process = start(path, options=("--shard", "1/2"))
    wait_until(lambda: stub.answered >= 8)
    process.send_signal(signal.SIGKILL)
    finish(process)
    there = len(study.journal_file("paraphrasing", 1, "shard-1-of-2").read_bytes().splitlines())
    assert there >= 8 - CONCURRENCY
    with study.journal_file("paraphrasing", 1, "shard-1-of-2").open("ab") as file:
        file.write(b'{"key": "a line that the kill cut o')
    generate_shard(study, Shard(1, 2))
    assert max(Counter(asked.message for asked in stub.asked).values()) <= 2
    half = len({asked.message for asked in stub.asked})
    assert half < 30
    assert generate(study)["reused"] == half  # shard 2 of 2 never ran
    assert half + CONCURRENCY + 40 - half >= len(stub.asked) >= 40
    assert len(tables(path)["transformations/paraphrasing/1.parquet"]) == 40  # type: ignore[arg-type]


def test_shards_and_a_whole_run_refuse_each_other(study: Study) -> None:
    lock = study.scratch / ".generation.lock"
    with only_one(lock, "", shared=True):
        assert generate_shard(study, Shard(1, 2))["ok"] > 0  # beside another shard
        with pytest.raises(StudyError, match="another run is generating"):
            generate(study)
    with only_one(lock, ""), pytest.raises(StudyError, match="a run without --shard is generating"):
        generate_shard(study, Shard(1, 2))
    with (
        only_one(study.scratch / ".generation.shard-1-of-2.lock", ""),
        pytest.raises(StudyError, match="another run is generating shard 1/2 of 'small'"),
    ):
        generate_shard(study, Shard(1, 2))
    with pytest.raises(StudyError, match="--shard needs a folder"):
        generate_shard(load_study(study.file, "memory://studies"), Shard(1, 2))


@pytest.mark.parametrize("value", ["0/2", "3/2", "2", "a/b", "1/", "-1/2", "1/10000"])
def test_what_is_no_shard_is_one_line(path: Path, value: str) -> None:
    with pytest.raises(StudyError, match="is not a shard K/N, such as 3/16"):
        run(["generate", "--study", str(path), f"--shard={value}"])


def test_the_example_for_slurm_makes_shards_and_then_the_tables(
    path: Path, study: Study, stub: ChatStub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script itself, with a `plumbline` that prints what it is told; that is then run here."""
    (tmp_path / "plumbline").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    (tmp_path / "plumbline").chmod(0o755)
    places = [str(path), str(path.parent / "exports")]
    for task in ("1", "2", None):
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **({"SLURM_ARRAY_TASK_ID": task} if task else {})}
        command = ["bash", str(EXAMPLE), *places, *(["2"] if task else [])]
        told = subprocess.run(command, env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout
        assert run(told.splitlines()) == 0
    out = capsys.readouterr().out
    assert out.count("when all shards have ended, run again without --shard") == 2
    assert "small: 0 texts transformed, 0 failed, 0 unanswered, 40 already stored" in out
    assert len(stub.asked) == 40
