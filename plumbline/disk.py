"""Folders and files that others cannot read; a folder that cannot be made and a full disk, said as what they are."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from plumbline.errors import DataError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SQLITE_FULL = frozenset({
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
})  # fmt: skip


def is_full(error: BaseException) -> bool:
    """Whether an error says that there is no more room."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) in _SQLITE_FULL
    return isinstance(error, OSError) and error.errno in FULL


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, for its user alone; what is there stays as it is.

    Raises DataError where there can be none.
    """
    try:
        for part in (*reversed(folder.parents), folder):
            if not part.exists():
                part.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(exist_ok=True)  # refuses a file in its place
    except FileNotFoundError:  # /proc is there, and takes no folders
        raise DataError(f"{folder}: no folder can be made there; name another") from None


def let_in(file: IO[bytes], path: Path, *, public: bool) -> None:
    """Let those read a new file who could read the one in its place; or the folder's group, where it has one.

    A folder that everybody may enter, as folders are by themselves, says nothing of who shall read people's answers.
    """
    with contextlib.suppress(OSError):  # no file there yet; or of a file system without modes
        folder = path.parent.stat().st_mode
        if not public and not folder & 0o007:
            os.fchmod(file.fileno(), 0o600 | (folder & 0o040))
        os.fchmod(file.fileno(), 0o600 | (path.stat().st_mode & 0o066))


def clear_left(path: Path) -> None:
    """Remove what killed processes left of their writing of a file or a folder: `.NAME.PROCESS.tmp` beside it."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        writer = left.name.rsplit(".", 2)[1]
        if not writer.isdecimal() or Path("/proc", writer).exists():
            continue
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Inside, `path` is written: a full disk that does not say where it is becomes an OSError that names it."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    except sqlite3.Error as error:
        if not is_full(error):
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
