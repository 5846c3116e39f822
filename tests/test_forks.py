"""A forked process is, to whoever asked for it, what a started one is (`tests.forks`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forks

TOLD = """
import json, os, resource, signal, sys
print(json.dumps({
    "argv": sys.argv, "orig_argv": sys.orig_argv, "folder": os.getcwd(), "environment": dict(os.environ),
    "parent": os.getppid(), "session": os.getsid(0) == os.getpid(), "main": __name__, "path": sys.path,
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "pipe": signal.getsignal(signal.SIGPIPE),
    "files": sorted(os.listdir("/proc/self/fd"))[:4], "threads": len(os.listdir("/proc/self/task")),
    "ours": [name for name in sys.modules if name.split(".")[0] in ("plumbline", "generation", "annotation", "tests")],
    "said": sys.stdin.read(), "buffered": sys.stdout.line_buffering, "encoding": sys.stdout.encoding,
    "limit": resource.getrlimit(resource.RLIMIT_FSIZE), "umask": os.umask(0),
}))
"""
PIPE = subprocess.PIPE


@pytest.mark.parametrize("session", [False, True])
def test_what_it_finds_is_what_a_started_one_finds(tmp_path: Path, session: bool) -> None:
    found = []
    for popen in (subprocess.Popen, forks.Popen):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "TOLD": popen.__module__, "TZ": "Asia/Tokyo"}
        command = [sys.executable, "-c", TOLD, "a", "b c"]
        with popen(
            command, cwd=tmp_path, env=environment, stdin=PIPE, stdout=PIPE, text=True, start_new_session=session
        ) as process:
            out, _ = process.communicate("heard")
        assert process.returncode == 0
        assert process.pid > 0
        told = json.loads(out)
        assert told["environment"].pop("TOLD") == popen.__module__
        found.append(told)
    started, forked = found
    assert forked == started
    assert forked["parent"] == os.getpid()
    assert forked["session"] is session
    assert forked["said"] == "heard"
    assert forked["ours"] == []


def test_a_module_runs_as_by_python_m(tmp_path: Path) -> None:
    """Its folder comes first, its errors are its own, and its exit status."""
    (tmp_path / "own.py").write_text(
        "import sys\nprint(__name__, sys.argv, sys.path[0])\nsys.exit(3)\n", encoding="utf-8"
    )
    command = [sys.executable, "-m", "own", "x"]
    started = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    forked = forks.run(command, cwd=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == (3, started.stdout, started.stderr)
    (tmp_path / "own.py").write_text("raise ValueError('no')\n", encoding="utf-8")
    forked = forks.run(command, cwd=tmp_path)
    assert forked.returncode == 1
    assert forked.stderr.endswith("ValueError: no\n")


@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, -15), (signal.SIGINT, -signal.SIGINT)]
)
def test_signals_reach_it_and_its_end_is_seen(sent: signal.Signals, status: int) -> None:
    code = "import time\nprint('there', flush=True)\ntime.sleep(600)"
    with forks.Popen([sys.executable, "-c", code], stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        assert process.poll() is None
        process.send_signal(sent)
        assert process.wait(timeout=120) == status
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_it_stays_when_the_one_before_it_ends_and_nothing_is_left_behind() -> None:
    command = [sys.executable, "-c", "import os; print(os.getpid())"]
    first, second = forks.run(command), forks.run(command)
    assert first.stdout != second.stdout
    for done in (first, second):
        assert not Path("/proc", done.stdout.strip()).exists()
