"""Ends what a run has started when the run is killed: vLLM's processes would live on and hold the GPU's memory.

A program of its own, which `plumbline.models.vllm` starts and kills. It looks whether the run is still its parent:
a pipe from the run would stay open in the engine's processes, which vLLM forks from the run on a GPU host.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

import psutil

SECONDS = 0.5  # between two looks at which processes there are


def main() -> None:
    """Watch the process that started this one, then kill its children and theirs."""
    run, here = psutil.Process(int(sys.argv[1])), os.getpid()
    started: set[psutil.Process] = set()
    while os.getppid() == run.pid:
        with contextlib.suppress(psutil.NoSuchProcess):
            # Those seen before stay: a look at the very moment of the run's end finds it without children.
            started |= {process for process in run.children(recursive=True) if process.pid != here}
        time.sleep(SECONDS)
    for process in started:  # psutil knows a process by its start too: no other one that got its number is killed
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in (*process.children(recursive=True), process):
                if "resource_tracker" not in " ".join(child.cmdline()):  # frees shared memory, then ends by itself
                    child.kill()


if __name__ == "__main__":
    main()
