"""How much memory a process takes and took at most: as Linux keeps it, and elsewhere as far as the system tells."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import psutil

PROC = Path("/proc")
_MB = 1 << 20


def forget_peak() -> None:
    """Let the peak of this process start anew here. Elsewhere than on Linux it stays that of the whole process."""
    if PROC.is_dir():
        (PROC / "self" / "clear_refs").write_text("5", encoding="ascii")


def memory(name: str, process: int | None = None) -> float:
    """A figure of a process's memory in MB: `VmRSS` is what it takes, `VmHWM` the peak.

    Elsewhere than on Linux, another process has no peak: what it takes now stands for it.
    """
    if PROC.is_dir():
        lines = (PROC / str(process or "self") / "status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024
    if name == "VmHWM" and process is None:
        return _peak(resource.getrusage(resource.RUSAGE_SELF))
    resident: int = psutil.Process(process).memory_info().rss
    return resident / _MB


def wait(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Wait until a process ends; return its exit status and the peak of its memory in MB."""
    _, status, used = os.wait4(process.pid, 0)
    return os.waitstatus_to_exitcode(status), _peak(used)


def _peak(used: resource.struct_rusage) -> float:
    return used.ru_maxrss / (_MB if sys.platform == "darwin" else 1024)  # bytes on macOS, kilobytes elsewhere
