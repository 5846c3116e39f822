"""Turns of writing: one request alone, or several answers together, over all processes of the server.

A request that writes alone waits for all others, and later requests wait behind it: first come, first served within a
process, and between processes nobody is overtaken for long. Processes coordinate by two locked files; a lock ends with
the process that holds it, so a killed process blocks nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TextIO

TOGETHER = 8  #: answers of one process that are written at the same time; each takes a connection to the database
POLL_SECONDS = 0.002, 0.02  #: the first and the longest pause between two looks at a file that is locked


class Turns:
    """One process's turns. Its files are opened at their first use: a lock belongs to the process that opened them."""

    def __init__(self, folder: Path, writers: int) -> None:
        """`folder` is the same for all processes; the database lets `writers` transactions change it at once."""
        self._folder, self.writers = folder, writers
        self._entrance = asyncio.Lock()  # first come, first served
        self._places = asyncio.Semaphore(TOGETHER)
        self._inside = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._files: tuple[TextIO, TextIO] | None = None

    def answer(self) -> AbstractAsyncContextManager[None]:
        """The turn of an answer that Argilla's handlers store: they read, and later write."""
        return self.alone() if self.writers == 1 else self.together()

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Let nobody else write inside the block."""
        entrance, room = self._opened()
        async with self._entrance, locked(entrance, fcntl.LOCK_EX):
            await self._empty.wait()
            async with locked(room, fcntl.LOCK_EX):
                yield

    @contextlib.asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        """Let other answers be written at the same time, but no request that writes alone."""
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
        """The locked files: one for waiting requests, one for those that write."""
        if self._files is None:
            entrance, room = ((self._folder / name).open("a", encoding="utf-8") for name in ("entrance", "room"))
            self._files = entrance, room
        return self._files


@contextlib.asynccontextmanager
async def locked(file: TextIO, how: int) -> AsyncIterator[None]:
    """Lock a file inside the block."""
    await lock(file, how)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


async def lock(file: TextIO, how: int) -> None:
    """Lock a file without blocking the event loop."""
    pause, longest = POLL_SECONDS
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)
        else:
            return
