"""`--ray` on a real cluster: two nodes of Ray on this machine, in the environment of `make engine`, which has Ray."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from generation.cluster import Worker
from generation.jobs import Plan
from generation.run import generate
from plumbline.errors import StudyError
from plumbline.store import write_json
from plumbline.study import ROOT, file_hash, load_study
from tests.generation.helpers import generate_at, server, small_study, write_study
from tests.generation.test_run import finish, tables
from tests.ray_cluster import PYTHON, Cluster, running, until
from tests.stubs import Asked, ChatStub, Reply, last_line, refuses, says

TEXTS = tuple(f"text number {number}" for number in range(40))
UNITS = {"transformations": ["paraphrasing", "cross_translation", "expansion"]}  # 3 of 40 texts: 120 outputs
CONCURRENCY = 2  # of each worker
BARS = ("planning:", "generating:")


@dataclass(frozen=True)
class Running(Cluster):
    """A running cluster, and the command on it."""

    def start(self, study: Path, address: str = "auto") -> subprocess.Popen[str]:
        command = [str(PYTHON), "-m", "generation.run", "--study", str(study), "--ray", address]
        command += ["--exports", str(study.parent / "exports")]
        return subprocess.Popen(
            command, cwd=ROOT, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with running(PYTHON) as found:
        yield Running(found.process, found.environment)


@pytest.fixture
def stub() -> Iterator[ChatStub]:
    """A server that is slow until two workers ask it, and then takes a second and a half for the 120 outputs."""

    def script(asked: Asked) -> Reply:
        return says(last_line(asked)[::-1], seconds=0.05 if stub.most_at_once > CONCURRENCY else 0.5)

    with ChatStub(script) as stub:
        yield stub


def test_an_interrupted_run_goes_on_to_the_same_content_as_without_ray(
    cluster: Running, stub: ChatStub, tmp_path: Path
) -> None:
    generator = server(stub.url, concurrency=CONCURRENCY)
    study = write_study(tmp_path / "ray", TEXTS, **UNITS, generator=generator)
    process = cluster.start(study)
    until(lambda: stub.most_at_once > CONCURRENCY and stub.answered >= 30)
    process.send_signal(signal.SIGINT)
    status, _, err = finish(process)
    assert status == 130
    assert err.replace("\r", "\n").splitlines()[-1].startswith("interrupted; what was written stays")
    until(lambda: not cluster.processes("ray::Worker"))
    assert stub.most_at_once <= 2 * CONCURRENCY
    assert len(stub.asked) < 120

    status, out, err = finish(cluster.start(study))
    assert (status, "died" in err) == (0, False), err
    assert "0 failed, 0 unanswered" in out
    # Asked for twice is what was in flight at the interrupt: 2 workers x 2 at most.
    assert len(stub.asked) <= 120 + 2 * CONCURRENCY
    assert max(Counter(asked.message for asked in stub.asked).values()) <= 2
    assert [p.name for p in (tmp_path / "ray").rglob("*") if p.suffix in (".journal", ".tmp")] == []

    before = len(stub.asked)
    status, out, _ = finish(cluster.start(study))
    assert (status, len(stub.asked)) == (0, before)
    assert "0 texts transformed, 0 failed, 0 unanswered, 120 were there" in out

    plain = write_study(tmp_path / "plain", TEXTS, **UNITS, generator={**generator, "concurrency": 100})
    generate_at(plain)
    assert tables(study) == tables(plain)
    assert len(tables(study)) == 4  # the texts, and three units


def test_a_worker_that_is_killed_loses_nothing(cluster: Running, stub: ChatStub, tmp_path: Path) -> None:
    study = write_study(tmp_path, TEXTS, **UNITS, generator=server(stub.url, concurrency=CONCURRENCY))
    process = cluster.start(study)
    until(lambda: stub.most_at_once > CONCURRENCY and stub.answered >= 40)
    os.kill(cluster.processes("ray::Worker")[0], signal.SIGKILL)
    status, out, err = finish(process)
    assert status == 0, err
    assert "node 127.0.0.1: a worker died at " in err
    assert len(out.splitlines()) == 1, out
    assert len(stub.asked) <= 120 + CONCURRENCY
    done, there = (int(part.split()[-1]) for part in (out.split(" texts transformed")[0], out.split(" were there")[0]))
    assert done + there == 120
    assert [len(rows) for rows in tables(study).values()] == [40, 40, 40, 40]


def test_what_a_worker_cannot_mend_is_one_line_with_its_node(cluster: Running, tmp_path: Path) -> None:
    with ChatStub(lambda _: refuses(401)) as stub:
        study = write_study(tmp_path, TEXTS, generator=server(stub.url))  # one unit: one worker
        status, _, err = finish(cluster.start(study))
    assert status == 2
    lines = [line for line in err.replace("\r", "\n").splitlines() if line.strip() and not line.startswith(BARS)]
    assert len(lines) == 1, err
    assert lines[0].startswith("error: node 127.0.0.1: ") and "OPENAI_API_KEY" in lines[0]


def test_no_cluster_is_one_line(cluster: Running, tmp_path: Path) -> None:
    study = write_study(tmp_path, generator=server("http://127.0.0.1:1/v1"))
    status, _, err = finish(cluster.start(study, "127.0.0.1:1"))
    assert status == 2
    assert "error: --ray 127.0.0.1:1: " in err and "`ray start --head`" in err and "Traceback" not in err


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    study = small_study(tmp_path, generator=server("http://127.0.0.1:1/v1"))
    with pytest.raises(StudyError, match=r"pip install '.\[ray\]'"):
        generate(study, cluster="auto")


def test_a_study_is_the_same_on_a_node(tmp_path: Path) -> None:
    candidate = server("http://127.0.0.1:1/v1", model="other")
    study = small_study(tmp_path, generator=server("http://127.0.0.1:1/v1"), candidates=[candidate])
    for one in (study, study.by(study.candidates[0]), load_study(study.file, "memory://studies")):
        there = pickle.loads(pickle.dumps(one))  # noqa: S301 (our own)
        assert there == one
        assert (there.file, there.folder, there.outputs, there.scratch) == (
            one.file,
            one.folder,
            one.outputs,
            one.scratch,
        )


def test_a_node_with_other_prompts_or_another_folder_is_refused(tmp_path: Path) -> None:
    study = small_study(tmp_path, generator=server("http://127.0.0.1:1/v1"))
    texts = study.folder / "texts.parquet"
    write_json(texts, "any content")
    prompts, hashed, unit = Plan(study).prompt_hashes, file_hash(texts), ("paraphrasing", 1)
    study.journal_file(*unit).parent.mkdir(parents=True)

    def prepare(prompts: dict[str, str], hashed: str) -> list[tuple[str, int]]:
        return asyncio.run(Worker(study, again=False).prepare(prompts, hashed, [unit]))

    assert prepare(prompts, hashed) == []
    study.journal_file(*unit).touch()
    assert prepare(prompts, hashed) == [unit]
    with pytest.raises(StudyError, match="are not those of the command"):
        prepare({**prompts, "paraphrasing": "0"}, hashed)
    with pytest.raises(StudyError, match="a folder that all nodes share"):
        prepare(prompts, "0")
    texts.unlink()
    with pytest.raises(StudyError, match="a folder that all nodes share"):
        prepare(prompts, hashed)
