"""How much memory a process takes and took at most: as Linux keeps it, and elsewhere as far as the system tells."""

from __future__ import annotations

import resource
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
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / _MB if sys.platform == "darwin" else peak / 1024  # bytes on macOS, kilobytes elsewhere
    resident: int = psutil.Process(process).memory_info().rss
    return resident / _MB
