"""`--ray` on a real cluster: two nodes of Ray on this machine, in the environment of `make engine`, which has Ray."""

from __future__ import annotations

import asyncio
import functools
import os
import pickle
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from generation.cluster import TRIES, JobQueue, Worker, made_of, other_version, versions_of
from generation.jobs import Job, Plan
from generation.production import generate
from plumbline.errors import StudyError
from plumbline.study import ROOT, load_study
from tests.generation.helpers import generate_at, server, small_study, write_study
from tests.generation.test_run import finish, tables
from tests.ray_cluster import PYTHON, Cluster, running, until
from tests.scale import scaled
from tests.stubs import Asked, ChatStub, Reply, last_line, refuses, says

pytestmark = pytest.mark.timeout(900)  # many processes start one after the other, on a busy machine
TEXTS = tuple(f"text number {number}" for number in range(40))
UNITS = {"transformations": ["paraphrasing", "cross_translation", "expansion"]}  # 3 of 40 texts: 120 outputs
CONCURRENCY = 2  # of each worker
BARS = ("planning:", "generating:")


@dataclass(frozen=True)
class Running(Cluster):
    """A running cluster, and the command on it."""

    def start(self, study: Path, address: str = "auto") -> subprocess.Popen[str]:
        command = [str(PYTHON), "-m", "plumbline", "generate", "--study", str(study), "--ray", address]
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


def slow(asked: Asked) -> Reply:
    """So that little is made until the command has heard of what happened, on a busy machine too."""
    return says(last_line(asked)[::-1], seconds=0.5)


def test_an_interrupted_run_goes_on_to_the_same_content_as_without_ray(
    cluster: Running, stub: ChatStub, tmp_path: Path
) -> None:
    generator = server(stub.url, concurrency=CONCURRENCY)
    study = write_study(tmp_path / "ray", TEXTS, **UNITS, generator=generator)
    process = cluster.start(study)
    until(lambda: stub.most_at_once > CONCURRENCY and stub.answered >= 30)
    fast, stub.script = stub.script, slow
    process.send_signal(signal.SIGINT)
    status, _, err = finish(process)
    stub.script = fast
    assert status == 130
    assert err.replace("\r", "\n").splitlines()[-1].startswith("interrupted; the files written so far are kept")
    until(lambda: not cluster.processes("ray::Worker"))
    assert stub.most_at_once <= 2 * CONCURRENCY
    assert len(stub.asked) < 120

    status, out, err = finish(cluster.start(study))
    assert (status, "died" in err) == (0, False), err
    assert "0 failed, 0 unanswered" in out
    # Asked for twice is what was in flight at the interrupt, 2 workers x 2 at most, and on a busy machine as many made.
    assert len(stub.asked) <= 120 + 4 * CONCURRENCY
    assert max(Counter(asked.message for asked in stub.asked).values()) <= 2
    assert [p.name for p in (tmp_path / "ray").rglob("*") if p.suffix in (".journal", ".tmp")] == []

    before = len(stub.asked)
    status, out, _ = finish(cluster.start(study))
    assert (status, len(stub.asked)) == (0, before)
    assert "0 texts transformed, 0 failed, 0 unanswered, 120 already stored" in out

    plain = write_study(tmp_path / "plain", TEXTS, **UNITS, generator=server(stub.url, concurrency=100))
    generate_at(plain)
    assert tables(study) == tables(plain)
    assert len(tables(study)) == 4  # the texts, and three units


def test_what_no_worker_can_mend_is_a_line_for_each_node(cluster: Running, tmp_path: Path) -> None:
    with ChatStub(lambda _: refuses(401)) as stub:
        study = write_study(tmp_path, TEXTS[:2], generator=server(stub.url))  # so few: one worker, then the other
        status, _, err = finish(cluster.start(study))
    assert status == 2
    written = [line for line in err.replace("\r", "\n").splitlines() if line.strip() and not line.startswith(BARS)]
    lines = [line for line in written if "multiple active Ray instances" not in line]  # other tests' clusters
    assert len(lines) == 2, err
    assert lines[0].startswith("node 127.0.0.1: ") and lines[0].endswith("OPENAI_API_KEY; the other workers continue")
    assert lines[1].startswith("error: node 127.0.0.1: ") and lines[1].endswith("OPENAI_API_KEY")


def test_no_cluster_is_one_line(cluster: Running, tmp_path: Path) -> None:
    study = write_study(tmp_path, generator=server("http://127.0.0.1:1/v1"))
    status, _, err = finish(cluster.start(study, "127.0.0.1:1"))
    assert status == 2
    assert "error: --ray 127.0.0.1:1: " in err and "`ray start --head`" in err and "Traceback" not in err


def test_killed_workers_a_killed_command_and_a_lost_node_lose_nothing(
    cluster: Running, stub: ChatStub, tmp_path: Path
) -> None:
    """All of one unit: both workers make its texts. What a kill costs is what was in flight and had not been given.

    The last test on this cluster, which has one node afterwards.
    """
    texts = tuple(f"text number {number}" for number in range(120))
    study = write_study(tmp_path / "ray", texts, generator=server(stub.url, concurrency=CONCURRENCY))
    rng = random.Random(23)
    until(lambda: not cluster.processes("ray::Worker"))
    process = cluster.start(study)
    moments = sorted(rng.sample(range(10, 60), scaled(1, 3)))
    for moment in moments:
        until(functools.partial(lambda least: stub.most_at_once > CONCURRENCY and stub.answered >= least, moment))
        fast, stub.script = stub.script, slow
        os.kill(rng.choice(cluster.processes("ray::Worker")), signal.SIGKILL)
        assert process.stderr is not None
        said = next((line for line in process.stderr if "the other workers continue" in line), "")
        assert "node 127.0.0.1: " in said
        if moment == moments[0]:
            assert "a worker died with " in said
        stub.script = fast
    late = rng.randrange(70, 90)
    until(lambda: stub.answered >= late)
    process.kill()
    finish(process)
    until(lambda: not cluster.processes("ray::Worker"))

    process = cluster.start(study)
    before = stub.answered
    until(lambda: stub.answered >= before + 8)
    cluster.kill_node()
    status, out, err = finish(process)
    assert status == 0, err
    done, there = (
        int(part.split()[-1]) for part in (out.split(" texts transformed")[0], out.split(" already stored")[0])
    )
    assert done + there == 120 and there >= 40
    kills = (
        len(moments) + 3
    )  # two workers end with the command, one with its node; each had two in flight, and few made and not given
    assert len(stub.asked) <= 120 + kills * 3 * CONCURRENCY
    plain = write_study(tmp_path / "plain", texts, generator=server(stub.url, concurrency=100))
    generate_at(plain)
    assert tables(study) == tables(plain)
    assert pq.read_metadata(study.parent / "exports/small/transformations/paraphrasing/1.parquet").num_rows == 120


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    study = small_study(tmp_path, generator=server("http://127.0.0.1:1/v1"))
    with pytest.raises(StudyError, match=r"pip install -e '.\[ray\]'"):
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


def test_a_node_with_other_prompts_is_refused(tmp_path: Path) -> None:
    study = small_study(tmp_path, generator=server("http://127.0.0.1:1/v1", concurrency=3))
    prompts = made_of(Plan(study))

    def prepare(prompts: dict[str, str]) -> tuple[int, str, dict[str, str]]:
        async def prepared() -> tuple[int, str, dict[str, str]]:
            worker = Worker(study, ["paraphrasing"])
            try:
                return await worker.prepare(prompts)
            finally:
                await worker.close()

        return asyncio.run(prepared())

    assert prepare(prompts) == (3, "", versions_of(study.generator))
    with pytest.raises(StudyError, match="differ from those on the machine"):
        prepare({**prompts, "paraphrasing": "0"})


def test_a_node_with_another_version_is_refused() -> None:
    """What the command has is the measure; of vLLM, which it does not need, what the first node has."""
    due = {"rapidfuzz": "3.14.1"}
    assert not other_version({"rapidfuzz": "3.14.1", "vllm": "0.32.0"}, due)
    assert not other_version({"rapidfuzz": "3.14.1", "vllm": "0.32.0"}, due)
    assert (
        other_version({"rapidfuzz": "3.14.1", "vllm": "0.33.0"}, due)
        == "vllm is 0.33.0 on this node, but 0.32.0 elsewhere"
    )
    assert other_version({"rapidfuzz": "3.13.0"}, due) == "rapidfuzz is 3.13.0 on this node, but 3.14.1 elsewhere"


def jobs(number: int) -> list[Job]:
    return [Job(f"key {one}", "id", "text", "en", "paraphrasing", 1, None, ()) for one in range(number)]


def test_what_a_dead_worker_had_is_handed_out_before_all_else() -> None:
    all_jobs = jobs(10)
    queue = JobQueue(all_jobs)
    one: dict[str, Job] = {}
    other: dict[str, Job] = {}
    assert queue.take(one, 3) == all_jobs[:3]
    assert queue.take(other, 2) == all_jobs[3:5]
    del one["key 1"]  # it came back
    queue.put_back(one, died=True)
    assert not one
    assert queue.take(other, 4) == [all_jobs[0], all_jobs[2], all_jobs[5], all_jobs[6]]
    assert queue.take(other, 0) == []
    assert queue.take(one, 9) == all_jobs[7:]


def test_a_text_that_workers_die_over_takes_no_others_along() -> None:
    """Any worker that has text 4 dies at once. The first two deaths cost nobody anything, the third only the text."""
    poison, made, deaths = "key 4", set(), 0
    queue = JobQueue(jobs(12))
    workers: list[dict[str, Job]] = [{}, {}]  # what each has in flight
    while any(queue.take(in_flight, 4 - len(in_flight)) or in_flight for in_flight in workers):
        for in_flight in workers:
            if poison in in_flight:
                deaths += 1
                queue.put_back(in_flight, died=True)
            elif in_flight:
                made.add(in_flight.pop(next(iter(in_flight))).key)
    assert [job.key for job in queue.lost] == [poison]
    assert (deaths, len(made)) == (TRIES, 11)


def test_a_worker_that_fails_spends_no_try() -> None:
    queue = JobQueue(jobs(2))
    in_flight: dict[str, Job] = {}
    for _ in range(TRIES + 1):
        assert len(queue.take(in_flight, 2)) == 2
        queue.put_back(in_flight, died=False)
    assert queue.lost == []
