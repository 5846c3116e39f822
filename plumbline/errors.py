"""The errors that a person can mend.

Each fault is one line: what is wrong, where, and what to do. `plumbline.cli.run` prints it and
exits with status 2; any other exception is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

import difflib
import errno
import sqlite3

from plumbline.addresses import shown

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SQLITE_FULL = frozenset({
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
})  # fmt: skip


class PlumblineError(Exception):
    """Base of all expected errors; each argument is a fault, and becomes one line of `str(error)`."""

    def __str__(self) -> str:
        return "\n".join(shown(" ".join(str(fault).split())) for fault in self.args)


class StudyError(PlumblineError):
    """A study file, a prompt or a command line asks for something that cannot be."""


class DataError(PlumblineError):
    """A file on disk is missing, damaged or not in the expected form."""


class ServiceError(PlumblineError):
    """A server (generator, Argilla, crowd platform) does not answer, or refuses."""


class TextFailedError(PlumblineError):
    """One text cannot be transformed; its record says why, and the others go on."""


class TextRefusedError(TextFailedError):
    """A server or an engine refused to work on one text; it did not answer badly."""


class TextUnansweredError(TextFailedError):
    """One text got no answer this time (time-outs, overload); the next run asks for it again."""


def nearest(name: str, names: list[str]) -> str:
    """Return a hint for a wrong name: the nearest known one, or all of them if none is near."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"


def is_full(error: BaseException) -> bool:
    """Tell whether an error says that the disk is full."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) in _SQLITE_FULL
    return isinstance(error, OSError) and error.errno in _FULL
