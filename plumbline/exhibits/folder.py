"""The folder of a report: what reports wrote there goes with the next one, everything else is the user's and stays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from plumbline.errors import DataError
from plumbline.reading import read_json
from plumbline.store import atomic, is_remote, write_json

LIST = "files.json"


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
