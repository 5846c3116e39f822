"""The processor, and how much memory a process takes and took at most: as Linux or else the system tells."""

from __future__ import annotations

import platform
import resource
import subprocess
import sys
from pathlib import Path

import psutil

from plumbline.study import Study

PROC = Path("/proc")
_MB = 1 << 20
#: Runs a command and prints its status, seconds and peak. A process begins with the peak of the one that starts it, so
#: a small one starts what is measured.
_STARTER = (
    "import os, subprocess, sys; _, status, used = os.wait4(subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)"
    ".pid, 0); print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss)"
)


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
        return _peak(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    resident: int = psutil.Process(process).memory_info().rss
    return resident / _MB


def processor() -> str:
    """What Linux tells of the processor, its name and flags; elsewhere its name."""
    facts = PROC / "cpuinfo"
    return facts.read_text(encoding="utf-8") if facts.is_file() else f"model name : {platform.processor()}"


def command(study: Study, *words: str) -> tuple[float, float]:
    """Run a command on a study as `process` does."""
    return process(*words, "--study", str(study.file), "--exports", str(study.folder.parent))


def process(*words: str) -> tuple[float, float]:
    """Run a command as a process of its own; return its processor seconds and its peak of memory in GB.

    Processor time, since a wait for other programs is none of the command's. Raises RuntimeError if it fails.
    """
    starter = [sys.executable, "-c", _STARTER, sys.executable, "-m", "plumbline", *words]
    status, seconds, peak = subprocess.run(starter, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    if int(status):
        raise RuntimeError(f"{' '.join(words)} failed: nothing was measured")
    return float(seconds), _peak(int(peak)) * _MB / 1e9


def _peak(most: int) -> float:
    return most / (_MB if sys.platform == "darwin" else 1024)  # bytes on macOS, kilobytes elsewhere
