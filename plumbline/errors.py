"""The errors that a person can mend.

Each fault is one line: what is wrong, where, and what to do. `plumbline.cli.run` prints it and
exits with status 2; any other exception is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

import difflib
import errno
import sqlite3
from collections.abc import Callable, Iterable
from typing import TypeVar

from plumbline.addresses import shown

V = TypeVar("V")
R = TypeVar("R")
_MOST_LINES = 30  # faults that are named
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SQLITE_FULL = frozenset({
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
})  # fmt: skip


class PlumblineError(Exception):
    """Base of all expected errors; each argument is a fault, and becomes one line of `str(error)`."""

    def __str__(self) -> str:
        lines = [shown(" ".join(str(fault).split())) for fault in self.args[:_MOST_LINES]]
        more = len(self.args) - len(lines)
        return "\n".join([*lines, f"... and {more:,} more"] if more else lines)


class StudyError(PlumblineError):
    """A study file, a prompt or a command line asks for something that cannot be."""


class LanguageError(StudyError, ValueError):
    """A language code is not known; also a ValueError, so that fields of a study can be checked by their codes."""


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


def read_each(values: Iterable[V], read: Callable[[V], R]) -> list[R]:
    """Return what `read` makes of each value, such as a row of a file.

    Raises DataError with the faults of all values for which `read` raises one, and with one that ends the values.

    >>> def number(row: str) -> int:
    ...     if not row.isdecimal():
    ...         raise DataError(f"{row!r} is not a number")
    ...     return int(row)
    >>> read_each(["1", "2"], number)
    [1, 2]
    >>> read_each(["one", "2", "three"], number)
    Traceback (most recent call last):
    plumbline.errors.DataError: 'one' is not a number
    'three' is not a number
    """
    results, faults = list[R](), list[str]()
    try:
        for value in values:
            try:
                results.append(read(value))
            except DataError as error:
                faults += error.args
    except DataError as error:
        faults += error.args
    if faults:
        raise DataError(*faults)
    return results


def nearest(name: str, names: list[str], otherwise: str = "") -> str:
    """Return a hint for a wrong name: the nearest known one, or if none is near, `otherwise` or all of them."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else otherwise or f"known: {', '.join(names)}"


def is_full(error: BaseException) -> bool:
    """Tell whether an error says that the disk is full."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) in _SQLITE_FULL
    return isinstance(error, OSError) and error.errno in _FULL
