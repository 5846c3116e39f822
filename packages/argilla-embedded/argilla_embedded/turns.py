"""Turns of writing: one request alone, or several answers together, over all processes of the server.

Who writes alone waits for all others, and who comes meanwhile waits behind: first come, first served within a process,
and between processes nobody is overtaken for long. Processes know of each other by two locked files; a lock ends with
the process that holds it, so one that is killed keeps nobody waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TextIO

TOGETHER = 8  #: answers of one process that are written at the same time; each takes a connection to the database
POLL_SECONDS = 0.002, 0.02  #: the first and the longest pause between two looks at a file that is locked


class Turns:
    """One process's part in it. Its files are opened at its first use: a lock belongs to whoever opened the file."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the same for all processes."""
        self._folder = folder
        self._entrance = asyncio.Lock()  # first come, first served
        self._places = asyncio.Semaphore(TOGETHER)
        self._inside = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._files: tuple[TextIO, TextIO] | None = None

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Nobody else writes meanwhile."""
        entrance, room = self._opened()
        async with self._entrance, locked(entrance, fcntl.LOCK_EX):
            await self._empty.wait()
            async with locked(room, fcntl.LOCK_EX):
                yield

    @contextlib.asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        """Others may do so as well, and nobody writes alone meanwhile."""
        entrance, room = self._opened()
        async with self._places:
            async with self._entrance, locked(entrance, fcntl.LOCK_SH):
                if not self._inside:
                    await lock(room, fcntl.LOCK_SH)
                self._inside += 1
                self._empty.clear()
            try:
                yield
            finally:
                self._inside -= 1
                if not self._inside:
                    fcntl.flock(room, fcntl.LOCK_UN)
                    self._empty.set()

    def _opened(self) -> tuple[TextIO, TextIO]:
        """The files: who stands at the entrance, and who is in the room."""
        if self._files is None:
            entrance, room = ((self._folder / name).open("a", encoding="utf-8") for name in ("entrance", "room"))
            self._files = entrance, room
        return self._files


@contextlib.asynccontextmanager
async def locked(file: TextIO, how: int) -> AsyncIterator[None]:
    """Hold a file's lock."""
    await lock(file, how)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


async def lock(file: TextIO, how: int) -> None:
    """Take a file's lock; without blocking the event loop."""
    pause, longest = POLL_SECONDS
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)
        else:
            return
