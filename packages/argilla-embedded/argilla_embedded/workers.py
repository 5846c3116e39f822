"""Several processes of one server: forked after all imports, restarted when killed, ended together.

The parent serves nothing. It holds the home, the port and the database, and one end of a pipe whose other end every
worker reads: however the parent ends, the pipe closes, and they end. Each has a socket of its own on the same port,
among which the system divides the connections; the parent keeps them open, so a client of a killed worker waits until
it has restarted.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable

from .errors import StartError

LOGGER = logging.getLogger("argilla_embedded.workers")
STOP_SECONDS = 12.0
POLL_SECONDS = 0.05
LOOK_SECONDS = 2.0  #: between two looks after what all processes share
AGAIN_SECONDS, MOST_FAILURES = 0.5, 4  #: of workers that end before they are ready
HEEDED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)

#: Serves as the worker of this number, until the file (a descriptor) closes; calls the function once it answers.
Serve = Callable[[int, int, Callable[[], object]], None]
#: Looks after what all share; the argument is whether one of them was cut off.
Look = Callable[[bool], None]


class Workers:
    """The workers of one parent; `run` returns when standard input closes or a signal ends them."""

    def __init__(self, number: int, serve: Serve, on_ready: Callable[[], None], look: Look) -> None:
        """`on_ready` is called once, when all of them answer; `look` every LOOK_SECONDS."""
        self.number, self.serve, self.on_ready, self.look = number, serve, on_ready, look
        self.ending, self.alive = os.pipe()
        self.readiness, self.ready = os.pipe()
        self.woken, self.waker = os.pipe()
        os.set_blocking(self.waker, False)
        self.pids: dict[int, int] = {}  #: process to worker
        self.unready = set(range(number))
        self.told, self.failures = False, 0
        self.looked, self.cut_off = time.monotonic(), 0

    def run(self) -> None:
        """Start the workers, and watch them until the end. Raises StartError if they end again and again."""
        for one in HEEDED:
            signal.signal(one, lambda *_: None)  # it is heard of through the pipe
        signal.set_wakeup_fd(self.waker)
        try:
            for worker in range(self.number):
                self.begin(worker)
            while self.heed(select.select([0, self.woken, self.readiness], [], [], LOOK_SECONDS)[0]):
                self.look_at_times()
        finally:
            self.end()

    def heed(self, readable: list[int]) -> bool:
        """Handle signals and messages of workers; return whether to go on."""
        if self.readiness in readable:
            self.unready -= set(os.read(self.readiness, 4096))
            if not self.unready and not self.told:
                self.told = True
                self.on_ready()
        if self.woken in readable:
            signals = os.read(self.woken, 4096)
            if signal.SIGTERM in signals or signal.SIGINT in signals:
                return False
            self.begin_again()
        return 0 not in readable or bool(os.read(0, 4096))

    def look_at_times(self) -> None:
        """Check what all workers share: twice after one was killed, because the database may lag behind."""
        if time.monotonic() - self.looked >= LOOK_SECONDS:
            self.look(self.cut_off > 0)
            self.looked, self.cut_off = time.monotonic(), max(0, self.cut_off - 1)

    def begin(self, worker: int) -> None:
        """Fork a worker."""
        sys.stderr.flush()
        process = os.fork()
        if process:
            self.pids[process] = worker
            return
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for one in HEEDED:
                signal.signal(one, signal.SIG_DFL)
            for mine in (self.alive, self.readiness, self.woken, self.waker):
                os.close(mine)
            self.serve(worker, self.ending, lambda: os.write(self.ready, bytes([worker])))
            status = 0
        except BaseException:  # whatever it was: this process must not go on as its parent
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def begin_again(self) -> None:
        """Restart processes that have ended."""
        for process, status in ended():
            worker = self.pids.pop(process)
            how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
            LOGGER.warning("process %d of the server ended (%s) and starts again", worker, how)
            self.failures = self.failures + 1 if worker in self.unready else 0
            if self.failures >= MOST_FAILURES:
                raise StartError("a process of the server ended before it was ready; the log above has the reason")
            if self.failures:
                time.sleep(AGAIN_SECONDS)
            self.unready.add(worker)
            self.cut_off = 2
            self.begin(worker)

    def end(self) -> None:
        """Ask all workers to end, and kill those that do not."""
        os.close(self.alive)
        deadline = time.monotonic() + STOP_SECONDS
        while self.pids:
            for process, _ in ended():
                self.pids.pop(process, None)
            if time.monotonic() > deadline:
                for process in self.pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
            time.sleep(POLL_SECONDS)


def ended() -> list[tuple[int, int]]:
    """Return the children that ended since the last call, with their statuses."""
    found = []
    with contextlib.suppress(ChildProcessError):
        while (one := os.waitpid(-1, os.WNOHANG))[0]:
            found.append(one)
    return found


def stop_at_the_end(server: object, ending: int, look: Callable[[], None] | None, troubles: list[StartError]) -> None:
    """Wait for the end of a file that the parent holds open, call `look` meanwhile, and ask the server to end."""
    try:
        while True:
            if look is not None and not select.select([ending], [], [], LOOK_SECONDS)[0]:
                look()
            # os.read and not sys.stdin: its buffer's lock would still be held when the interpreter ends.
            elif not os.read(ending, 4096):
                break
    except StartError as error:
        troubles.append(error)
    finally:  # whatever it was: nobody looks any more, nor would the end of the file be heard
        server.should_exit = True  # type: ignore[attr-defined]
