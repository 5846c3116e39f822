"""Files that reports leave: tables as CSV that a spreadsheet reads and cannot run, and the folder of a report.

What reports wrote in their folder goes with the next one, everything else there is the user's and stays.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pandas as pd

from plumbline.errors import DataError
from plumbline.reading import read_json
from plumbline.store import atomic, is_remote, write_json
from plumbline.words import readable

LIST = "files.json"

# A spreadsheet takes a cell that starts with one of these for a formula (full-width ones too).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """The frame as CSV (UTF-8 with mark, as spreadsheets want it); texts that would run get a leading apostrophe.

    What no reader of CSV gets through (a null, say) is U+FFFD.
    """
    safe, returns = frame.copy(), False
    for column in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[column]):
            safe[column] = safe[column].map(_inert)
            returns |= any("\r" in cell for cell in safe[column] if isinstance(cell, str))
    # A carriage return ends a row, and Python's writer sees no need to quote it.
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    text: str = safe.rename(columns=_inert).to_csv(index=False, quoting=quoting)
    return text.encode("utf-8-sig")


def plain(value: Any) -> Any:
    """What JSON can hold: undefined numbers are null."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_file(value: Any) -> bytes:
    """A value as a file of JSON (UTF-8): undefined numbers are null, and what JSON does not have is its words."""
    return (json.dumps(plain(value), indent=2, ensure_ascii=False, default=str) + "\n").encode()


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a table, atomically."""
    with atomic(path) as file:
        file.write(csv_bytes(frame))


def _inert(value: object) -> object:
    if not isinstance(value, str):
        return value
    return readable(f"'{value}" if value.startswith(_FORMULA) else value)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a report's files (names below the folder, with `/`) atomically; those of the report before it go.

    A list in the folder holds their names and hashes: a file that is not in it, or is not as it was written, stays.
    Raises DataError, before anything is written, where a folder has a file's name or a file a folder's, and for a name
    that leads out of the folder: names may come from records that others wrote.
    """
    if strange := next((name for name in files if not _below(name)), ""):
        raise DataError(f"{folder}: no file there can be called {strange[:100]!a}; look where that name comes from")
    for name in () if is_remote(folder) else (LIST, *files):
        _refuse_unfit(folder, name)
    before = _listed(folder)
    now = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    # Listed first: a report that is killed leaves no file that the next one does not know.
    write_json(folder / LIST, before | now)
    for name, content in files.items():
        with atomic(folder / name) as file:
            file.write(content)
    for name in before.keys() - now.keys():
        path = folder / name
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == before[name]:
            path.unlink()
    write_json(folder / LIST, now)


def _listed(folder: Path) -> dict[str, str]:
    """What the last report wrote, with hashes; nothing where the list is not there, or is not one."""
    try:
        digests = read_json(folder / LIST)
    except (FileNotFoundError, DataError):
        return {}
    if not isinstance(digests, dict):
        return {}
    return {name: str(digest) for name, digest in digests.items() if _below(name)}


def _refuse_unfit(folder: Path, name: str) -> None:
    path = folder / name
    if path.is_dir():
        raise DataError(f"{path}: a folder is there, and a file is to be written; move it away")
    for above in list(path.parents)[: len(PurePosixPath(name).parts) - 1]:
        if above.exists() and not above.is_dir():
            raise DataError(f"{above}: a file is there, and a folder is to be made; move it away")


def _below(name: str) -> bool:
    path = PurePosixPath(name)
    return name.isprintable() and not path.is_absolute() and ".." not in path.parts
