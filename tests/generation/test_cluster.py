"""`--ray` on a real cluster: two nodes of Ray on this machine, in the environment of `make engine`, which has Ray."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from generation.cluster import Worker
from generation.exceptions import StudyError
from generation.jobs import Plan
from generation.run import generate
from generation.store import write_json
from generation.study import ROOT, file_hash, load_study
from tests.generation.helpers import generate_at, server, small_study, write_study
from tests.generation.test_run import finish, tables
from tests.stubs import Asked, ChatStub, Reply, last_line, refuses, says

PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
TEXTS = tuple(f"text number {number}" for number in range(40))
UNITS = {"transformations": ["paraphrasing", "cross_translation", "expansion"]}  # 3 of 40 texts: 120 outputs
CONCURRENCY = 2  # of each worker
BARS = ("planning:", "generating:")

# With Ray's own tool for tests, because `ray start` joins no second node to a cluster that listens on 127.0.0.1 alone.
NODES = """
import sys
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "object_store_memory": 80_000_000}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
cluster.add_node(**node)
print("ready", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Cluster:
    """A running cluster, and the command on it."""

    process: subprocess.Popen[str]
    environment: dict[str, str]

    def start(self, study: Path, address: str = "auto") -> subprocess.Popen[str]:
        command = [str(PYTHON), "-m", "generation.run", "--study", str(study), "--ray", address]
        command += ["--exports", str(study.parent / "exports")]
        return subprocess.Popen(
            command, cwd=ROOT, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def processes(self, name: str = "") -> list[int]:
        """The ids of the cluster's living processes whose command line starts with a name."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                ours = os.getsid(int(folder.name)) == self.process.pid
                line = (folder / "cmdline").read_bytes().decode()  # empty for a process that has ended
            except OSError:
                continue
            if ours and line and line.startswith(name):
                found.append(int(folder.name))
        return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if not PYTHON.exists():
        if os.environ.get("CI"):
            pytest.fail("CI must have the environment with Ray: make engine")
        pytest.skip("no environment with Ray: make engine")
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # short: the paths of sockets have 107 characters
    (folder / "ray").mkdir()
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environment |= {
        "RAY_TMPDIR": str(folder),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # all ports on 127.0.0.1
    }
    with subprocess.Popen(
        [str(PYTHON), "-c", NODES],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        running = Cluster(process, environment)
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield running
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
            until(lambda: not running.processes())
            shutil.rmtree(folder)


@pytest.fixture
def stub() -> Iterator[ChatStub]:
    """A server that is slow until two workers ask it, and then takes a second and a half for the 120 outputs."""

    def script(asked: Asked) -> Reply:
        return says(last_line(asked)[::-1], seconds=0.05 if stub.most_at_once > CONCURRENCY else 0.5)

    with ChatStub(script) as stub:
        yield stub


def until(condition: Callable[[], bool]) -> None:
    """Wait; longer than a busy machine takes to start workers."""
    end = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_an_interrupted_run_goes_on_to_the_same_content_as_without_ray(
    cluster: Cluster, stub: ChatStub, tmp_path: Path
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


def test_a_worker_that_is_killed_loses_nothing(cluster: Cluster, stub: ChatStub, tmp_path: Path) -> None:
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


def test_what_a_worker_cannot_mend_is_one_line_with_its_node(cluster: Cluster, tmp_path: Path) -> None:
    with ChatStub(lambda _: refuses(401)) as stub:
        study = write_study(tmp_path, TEXTS, generator=server(stub.url))  # one unit: one worker
        status, _, err = finish(cluster.start(study))
    assert status == 2
    lines = [line for line in err.replace("\r", "\n").splitlines() if line.strip() and not line.startswith(BARS)]
    assert len(lines) == 1, err
    assert lines[0].startswith("error: node 127.0.0.1: ") and "OPENAI_API_KEY" in lines[0]


def test_no_cluster_is_one_line(cluster: Cluster, tmp_path: Path) -> None:
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
    with pytest.raises(StudyError, match="prompts are not those of the command"):
        prepare({**prompts, "paraphrasing": "0"}, hashed)
    with pytest.raises(StudyError, match="a folder that all nodes share"):
        prepare(prompts, "0")
    texts.unlink()
    with pytest.raises(StudyError, match="a folder that all nodes share"):
        prepare(prompts, hashed)
