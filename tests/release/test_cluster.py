"""`--ray` on a real cluster: two nodes of Ray on this machine, in the environment of `make engine`, which has Ray."""

from __future__ import annotations

import functools
import os
import pickle
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from plumbline.errors import StudyError
from plumbline.models.cluster import TRIES, refuse_other_versions
from plumbline.study import ROOT, load_study
from tests.generation.helpers import generate_at, server, small_study, write_study
from tests.generation.test_run import finish, tables
from tests.ray_cluster import Cluster, running, until
from tests.scale import scaled
from tests.stubs import Asked, ChatStub, Reply, last_line, refuses, says

pytestmark = pytest.mark.timeout(900)  # many processes start one after the other, on a busy machine
TEXTS = tuple(f"text number {number}" for number in range(40))
UNITS = {"transformations": ["paraphrasing", "cross_translation", "expansion"]}  # 3 of 40 texts: 120 outputs
CONCURRENCY = 2  # of each worker
BARS = ("planning:", "generating:")


def start(cluster: Cluster, study: Path, address: str = "auto") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "plumbline", "generate", "--study", str(study), "--ray", address]
    command += ["--exports", str(study.parent / "exports")]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=cluster.environment, text=True, stdout=pipe, stderr=pipe)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as found:
        yield found


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


def test_an_interrupted_run_goes_on(cluster: Cluster, stub: ChatStub, tmp_path: Path) -> None:
    generator = server(stub.url, concurrency=CONCURRENCY)
    study = write_study(tmp_path / "ray", TEXTS, **UNITS, generator=generator)
    process = start(cluster, study)
    until(lambda: stub.most_at_once > CONCURRENCY and stub.answered >= 30)
    fast, stub.script = stub.script, slow
    process.send_signal(signal.SIGINT)
    status, _, err = finish(process)
    stub.script = fast
    assert status == 130
    assert err.replace("\r", "\n").splitlines()[-1].startswith("interrupted; the files written so far are kept")
    until(lambda: not cluster.processes("ray::ChatWorker"))
    assert stub.most_at_once <= 2 * CONCURRENCY
    assert len(stub.asked) < 120

    status, out, err = finish(start(cluster, study))
    assert status == 0, err
    assert "0 failed, 0 unanswered" in out
    # Asked for twice is what was in flight at the interrupt, 2 workers x 2 at most, and on a busy machine as many made.
    assert len(stub.asked) <= 120 + 4 * CONCURRENCY
    assert max(Counter(asked.message for asked in stub.asked).values()) <= 2
    assert [p.name for p in (tmp_path / "ray").rglob("*") if p.suffix in (".journal", ".tmp")] == []


def test_what_no_worker_can_mend_is_a_line_for_each_node(cluster: Cluster, tmp_path: Path) -> None:
    with ChatStub(lambda _: refuses(401)) as stub:
        study = write_study(tmp_path, TEXTS[:2], generator=server(stub.url))
        status, _, err = finish(start(cluster, study))
    assert status == 2
    written = [line for line in err.replace("\r", "\n").splitlines() if line.strip() and not line.startswith(BARS)]
    lines = [line for line in written if "multiple active Ray instances" not in line]  # other tests' clusters
    assert len(lines) == 2, err
    assert lines[0].startswith("node 127.0.0.1: ") and lines[0].endswith("OPENAI_API_KEY; the other workers continue")
    assert lines[1].startswith("error: node 127.0.0.1: ") and lines[1].endswith("OPENAI_API_KEY")


def test_a_text_on_which_workers_die_is_unanswered_and_the_others_are_made(cluster: Cluster, tmp_path: Path) -> None:
    """The server answers the first text never: whoever asks for it is killed, three times."""

    def script(asked: Asked) -> Reply:
        return says(last_line(asked)[::-1], seconds=300.0 if last_line(asked) == TEXTS[0] else 0.0)

    with ChatStub(script) as stub:
        study = write_study(tmp_path, TEXTS[:8], generator=server(stub.url, concurrency=1))
        process = start(cluster, study)
        until(lambda: stub.answered == 7)
        for times in range(1, TRIES + 1):
            until(lambda times=times: sum(last_line(asked) == TEXTS[0] for asked in stub.asked) == times)  # type: ignore[misc]
            for worker in cluster.processes("ray::ChatWorker.ask"):
                os.kill(worker, signal.SIGKILL)
        status, out, err = finish(process)
    assert status == 0, err
    assert "7 texts transformed, 0 failed, 1 unanswered" in out
    assert "1: node 127.0.0.1: a worker died (killed, or out of memory?)" in out


def test_no_cluster_is_one_line(cluster: Cluster, tmp_path: Path) -> None:
    study = write_study(tmp_path, generator=server("http://127.0.0.1:1/v1"))
    status, _, err = finish(start(cluster, study, "127.0.0.1:1"))
    assert status == 2
    assert "error: --ray 127.0.0.1:1: " in err and "`ray start --head`" in err and "Traceback" not in err


def test_killed_workers_a_killed_command_and_a_lost_node_lose_nothing(
    cluster: Cluster, stub: ChatStub, tmp_path: Path
) -> None:
    """All of one unit: both workers make its texts. What a kill costs is what was in flight and had not been given.

    The last test on this cluster, which has one node afterwards.
    """
    texts = tuple(f"text number {number}" for number in range(120))
    study = write_study(tmp_path / "ray", texts, generator=server(stub.url, concurrency=CONCURRENCY))
    rng = random.Random(23)
    until(lambda: not cluster.processes("ray::ChatWorker"))
    process = start(cluster, study)
    moments = sorted(rng.sample(range(10, 60), scaled(1, 3)))
    for moment in moments:
        until(functools.partial(lambda least: stub.most_at_once > CONCURRENCY and stub.answered >= least, moment))
        fast, stub.script = stub.script, slow
        os.kill(rng.choice(cluster.processes("ray::ChatWorker")), signal.SIGKILL)
        assert process.stderr is not None
        said = next((line for line in process.stderr if "the run continues" in line), "")
        assert "node 127.0.0.1: " in said
        if moment == moments[0]:
            assert "a worker died" in said
        stub.script = fast
    late = rng.randrange(70, 90)
    until(lambda: stub.answered >= late)
    process.kill()
    finish(process)
    until(lambda: not cluster.processes("ray::ChatWorker"))

    process = start(cluster, study)
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


def test_a_node_with_another_version_is_refused() -> None:
    refuse_other_versions({"vllm": "0.32.0"}, {"vllm": "0.32.0", "transformers": "5"})
    with pytest.raises(StudyError, match="vllm is 0.33.0 there, but 0.32.0 on the machine"):
        refuse_other_versions({"vllm": "0.32.0"}, {"vllm": "0.33.0"})
    with pytest.raises(StudyError, match="vllm is missing there"):
        refuse_other_versions({"vllm": "0.32.0"}, {})
