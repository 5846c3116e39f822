"""What a killed run leaves behind is ended. With the real engine: `tests.release.test_vllm`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from plumbline.models import watchdog

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEPS) as process:
        yield process
        process.kill()


def watch(monkeypatch: pytest.MonkeyPatch, *looks: list[psutil.Process]) -> None:
    """The watchdog of a run that ends after these looks at its children."""
    seen, run = iter(looks), os.getppid()
    parents = iter([run] * len(looks) + [1])
    monkeypatch.setattr(sys, "argv", ["watchdog.py", str(run)])
    monkeypatch.setattr(watchdog.os, "getppid", lambda: next(parents))
    monkeypatch.setattr(watchdog, "SECONDS", 0)
    real = psutil.Process.children

    def children(self: psutil.Process, recursive: bool = False) -> Any:
        return next(seen) if self.pid == run else real(self, recursive)

    monkeypatch.setattr(psutil.Process, "children", children)
    watchdog.main()


def test_a_look_while_the_run_ends_forgets_nothing(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system hands a dead run's children on before the watchdog sees that it is dead."""
    watch(monkeypatch, [psutil.Process(child.pid)], [])
    assert child.wait(60) == -signal.SIGKILL


def test_what_ended_before_is_no_trouble(child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(SLEEPS) as other:
        gone = psutil.Process(other.pid)
        other.kill()
    watch(monkeypatch, [gone, psutil.Process(child.pid)])
    assert child.wait(60) == -signal.SIGKILL


def test_nothing_is_killed_but_what_was_seen(child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, [])
    assert child.poll() is None
