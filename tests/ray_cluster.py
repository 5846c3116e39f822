"""A real Ray cluster for tests and benchmarks: nodes on this machine, of `make engine`'s environment."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from plumbline.study import ROOT

ENGINE = ROOT / ".venv-vllm"
LINKED = ("ray", "ray-*.dist-info", "msgpack", "msgpack-*.dist-info")  # what the tests' environment needs of that one
# With Ray's own tool for tests, because `ray start` joins no second node to a cluster that listens on 127.0.0.1 alone.
NODES = """
import sys
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "object_store_memory": 80_000_000}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
for _ in range(int(sys.argv[1]) - 1):
    cluster.add_node(**node)
print("ready", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Cluster:
    """A running cluster, and the environment in which a command finds it."""

    process: subprocess.Popen[str]
    environment: dict[str, str]

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

    def kill_node(self) -> None:
        """End the node that joined, as one does that loses its power."""
        lines = [(one, _line(one).split("\0")) for one in self.processes()]
        (joined,) = [one for one, line in lines if line[0].endswith("raylet/raylet") and "--head" not in line]
        os.kill(joined, signal.SIGKILL)


def _line(process: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().decode()
    return ""


@contextlib.contextmanager
def running(nodes: int = 2) -> Iterator[Cluster]:
    """A cluster of nodes that run the tests' Python; only Ray is linked to, from its own environment."""
    if not ENGINE.exists():
        if os.environ.get("CI"):
            pytest.fail("CI must have the environment with Ray: make engine")
        pytest.skip("no environment with Ray: make engine")
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # short: the paths of sockets have 107 characters
    (folder / "ray").mkdir()
    (folder / "packages").mkdir()
    for there in (ENGINE / "lib").glob("python3*/site-packages"):
        for found in (path for name in LINKED for path in there.glob(name)):
            (folder / "packages" / found.name).symlink_to(found)
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environment |= {
        "RAY_TMPDIR": str(folder),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # by default its workers give way to all other tests
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # all ports on 127.0.0.1
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder / "packages")]),
    }
    with subprocess.Popen(
        [sys.executable, "-c", NODES, str(nodes)],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        cluster = Cluster(process, environment)
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield cluster
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
            until(lambda: not cluster.processes())
            shutil.rmtree(folder, ignore_errors=True)


def until(condition: Callable[[], bool]) -> None:
    """Wait; longer than a busy machine takes to start workers."""
    end = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
