"""Starts Python programs for the tests of vLLM, each as a process of its own.

    .venv-vllm/bin/python -m tests.generation.engines

An engine is three Pythons, and each takes seven seconds to import vLLM. Here one imports it and the others are forked
from it, as vLLM by itself forks them on a GPU host (on a CPU it starts them anew). In `make test-all` every process
starts from nothing, as a person's does.

Standard input names programs, a line of JSON each: `folder`, where `out` and `err` go, and `words`, which stand after
`python -m`. Standard output answers with the process's number, and with number and exit status once it has ended.
"""

from __future__ import annotations

import gc
import importlib
import json
import multiprocessing
import os
import runpy
import select
import signal
import sys
from pathlib import Path
from typing import Any

from tests.scale import FULL

HEAVY = ("vllm.entrypoints.openai.api_server", "vllm.v1.engine.async_llm", "vllm.v1.worker.cpu_worker")


def become(folder: Path, words: list[str]) -> None:
    """`python -m words`, in a session of its own."""
    os.setsid()
    for name, place in (("out", 1), ("err", 2)):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_APPEND), place)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if FULL:
        os.execv(sys.executable, [sys.executable, "-m", *words])  # noqa: S606
    context: Any = multiprocessing.get_context
    multiprocessing.get_context = lambda method=None: context("fork" if method == "spawn" else method)
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not FULL:
        for name in HEAVY:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()  # else each process's collections copy all that was imported
    running: set[int] = set()
    asked = ""
    while True:
        if select.select([0], [], [], 0.1)[0]:
            given = os.read(0, 65536).decode()
            if not given:
                break
            asked += given
        while "\n" in asked:
            line, asked = asked.split("\n", 1)
            order = json.loads(line)
            if not (pid := os.fork()):
                become(Path(order["folder"]), order["words"])
                sys.exit()
            running.add(pid)
            print(pid, flush=True)
        for pid in list(running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                running.remove(pid)
                print(pid, os.waitstatus_to_exitcode(status), flush=True)
    for pid in running:
        os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
