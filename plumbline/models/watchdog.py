"""End the processes of a run that was killed: vLLM's would live on and hold the GPU's memory.

A separate program, started and stopped by `plumbline.models.vllm`. It checks whether the run is still its parent; a
pipe from the run would stay open in the engine's processes, which vLLM forks from the run on a GPU host.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

import psutil

SECONDS = 0.5  # seconds between two checks of processes


def main() -> None:
    """Watch the process that started this one, then kill its children and theirs."""
    run, here = psutil.Process(int(sys.argv[1])), os.getpid()
    started: set[psutil.Process] = set()
    while os.getppid() == run.pid:
        with contextlib.suppress(psutil.NoSuchProcess):
            # Children seen earlier stay in the list: a check at the moment the run ends finds none.
            started |= {process for process in run.children(recursive=True) if process.pid != here}
        time.sleep(SECONDS)
    for process in started:  # psutil also compares the start time: it kills no other process that got the same number
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in (*process.children(recursive=True), process):
                if "resource_tracker" not in " ".join(child.cmdline()):  # it frees shared memory, then ends by itself
                    child.kill()


if __name__ == "__main__":
    main()
