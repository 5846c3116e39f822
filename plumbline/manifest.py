"""`manifest.json`: what each stage of a study used, made and took, so that anyone can see what rests on what."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import importlib.metadata
import json
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pandas as pd
from pydantic import AfterValidator, BaseModel, ValidationError

from plumbline.errors import DataError, StudyError
from plumbline.file_hashes import LARGE, cached_file_hash
from plumbline.identity import identity
from plumbline.records import Record
from plumbline.store import (
    as_models,
    hashed_bytes,
    is_remote,
    make_folder,
    read_frame,
    read_json,
    write_json,
    write_table,
)
from plumbline.study import Study, file_hash
from plumbline.study.base import first_complaint
from plumbline.study.places import FileState, file_state

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


def _time(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return text


class _Entry(BaseModel):
    """What must be true of a stage's entry for it to be read."""

    finished_at: Annotated[str, AfterValidator(_time)]
    inputs: dict[str, str] = {}
    outputs: dict[str, str] = {}
    settings: dict[str, Any] = {}


class Manifest(BaseModel):
    """What must be true of a manifest for it to be read, whatever else stands in it."""

    stages: dict[str, _Entry] = {}
    kept: dict[str, list[str]] = {}  # what files that are evidence say, as hashes (`write_kept`, `write_kept_table`)


_REPLACED = "is not what was written (edited by hand, or another copy's)"
_SHOWS = "it alone shows what rests on what, and that no hand changed the records"
_OFFERED = "offered.json"  # what every version that writes it notes in the manifest first
_manifests: dict[Path, tuple[FileState | None, dict[str, Any]]] = {}  # as they were when they were read last
_PACKAGES = ("argilla", "mteb", "numpy", "openai", "pandas", "scipy", "sentence-transformers", "torch")


@contextlib.contextmanager
def stage(
    study: Study,
    name: str,
    inputs: Iterable[Path] = (),
    outputs: Iterable[Path] = (),
    settings: Mapping[str, Any] | None = None,
) -> Iterator[dict[str, Any]]:
    """Run a stage and note in the manifest when it ran, on what, and what it left (hashes of existing files).

    Nothing is noted when the stage fails. `outputs` may be folders; `settings` are those of the study by which what
    was made would be other. What it gives is empty, and at the end the manifest as it was written.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    read_manifest(study)  # refused before the stage's work, not after it
    ran_on = study_hash(study)  # now: a file that is edited, moved or deleted meanwhile is not what the stage ran on
    written = dict[str, Any]()
    yield written
    entry = {
        "started_at": started.isoformat(timespec="seconds"),
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - clock, 3),
        "study_sha256": ran_on,
        "inputs": _hashes(study, inputs),
        "outputs": _hashes(study, outputs),
        **({"settings": dict(settings)} if settings is not None else {}),
    }
    with _changed(study) as manifest:
        manifest["versions"] = versions()
        manifest.setdefault("stages", {})[name] = entry
        written |= manifest


def study_hash(study: Study) -> str:
    """The hash of the study's file. Raises StudyError where it has been moved or deleted since it was read."""
    try:
        return file_hash(study.file)
    except FileNotFoundError:
        raise StudyError(
            f"the study file {study.file} was moved or deleted since it was read; bring it back, then run again"
        ) from None


def read_manifest(study: Study) -> dict[str, Any]:
    """The manifest, or an empty one before the first stage. It is read again when it changed."""
    path = study.folder / "manifest.json"
    if not path.exists():
        return {}
    state = file_state(path)
    if state is None or _manifests.get(path, (None,))[0] != state:
        _manifests[path] = state, _checked(path)
    return copy.deepcopy(_manifests[path][1])


def _checked(path: Path) -> dict[str, Any]:
    advice = f"bring it back from a copy: {_SHOWS}"
    manifest = read_json(path, "", advice)
    try:
        Manifest.model_validate(manifest)
    except ValidationError as error:
        raise DataError(f"{path} is no manifest of ours ({first_complaint(error)}); {advice}") from None
    checked: dict[str, Any] = manifest
    return checked


def write_kept(study: Study, name: str, records: Sequence[BaseModel]) -> None:
    """Write records that are evidence to a JSON file; `read_kept` notices whatever else changes it.

    What they will be is noted beside what is there before the file is written, so that a kill in between accuses
    nobody.
    """
    path, new = study.folder / name, _identity([json.loads(record.model_dump_json()) for record in records])
    _note_kept(study, name, [_content(path), new])
    write_json(path, list(records))
    _note_kept(study, name, [new])


def is_kept(study: Study, name: str) -> bool:
    """Whether the manifest notes what a file says."""
    return name in read_manifest(study).get("kept", {})


def refuse_unnoted(study: Study, name: str) -> None:
    """Raise DataError where a file stands there whose writing the manifest would have noted: it is not the same one."""
    _refuse_unnoted(study, name, read_manifest(study).get("kept", {}))


def _refuse_unnoted(study: Study, name: str, hashes: Mapping[str, list[str]]) -> None:
    if (study.folder / name).exists() and name not in hashes:
        path = study.folder / "manifest.json"
        what = f"knows nothing of {name} (another copy's?)" if path.exists() else f"is gone, and {name} is there"
        raise DataError(f"{path} {what}; bring it back from a copy: {_SHOWS}")


def read_kept(study: Study, name: str, model: type[M], made_by: str, advice: str = "") -> list[M]:
    """What `write_kept` wrote; nothing where nothing was written yet.

    `made_by` and `advice` are as for `read_json`. Raises DataError where the file is damaged, is not the one that was
    written last, or is gone. Of studies whose manifest knows nothing of it (of earlier versions) nothing can be said.
    """
    path = study.folder / name

    def look() -> tuple[str, Any]:
        content = read_json(path, made_by, advice) if path.exists() else []
        return _identity(content) if path.exists() else "", content

    same, data = _as_noted(study, name, look)
    if not same:
        what = _REPLACED if path.exists() else "is gone"
        raise DataError(f"{path} {what}; bring it back from a copy: it is the evidence of what was decided, and when")
    return as_models(data, path, model, advice or f"run `{made_by}` again")


def write_kept_table(study: Study, name: str, rows: Iterable[Record] | pd.DataFrame, record: type[Record]) -> None:
    """Write a table that published numbers rest on; `refuse_replaced_table` notices whatever else changes it.

    As with `write_kept`, a kill at any moment accuses nobody. `name` is a path in the study's folder.
    """
    path, new = study.folder / name, ""

    def noted(temporary: Path) -> bool:
        nonlocal new
        before, new = _table_content(path), file_hash(temporary)
        if before == new and read_manifest(study).get("kept", {}).get(name) == [new]:
            return False
        _note_kept(study, name, [before, new])
        return True

    write_table(path, rows, record, noted)
    if read_manifest(study).get("kept", {}).get(name) != [new]:
        _note_kept(study, name, [new])


def refuse_replaced_table(study: Study, name: str, made_by: str) -> None:
    """Raise DataError where a table that is there is not the one that was written last.

    Of tables by earlier versions nothing can be said. `made_by` is the command that makes the table again.
    """
    path = study.folder / name
    if path.exists() and not _as_noted(study, name, lambda: (_table_content(path), None))[0]:
        raise DataError(f"{path} {_REPLACED}; bring it back from a copy, or move it away and run `{made_by}` again")


def read_kept_table(study: Study, name: str, made_by: str) -> tuple[bytes, str]:
    """The bytes of a table and their hash. Raises DataError where it is not there, or another than was written."""
    path = study.folder / name

    def look() -> tuple[str, tuple[bytes, str]]:
        content = hashed_bytes(path, made_by)
        return content[1], content

    same, content = _as_noted(study, name, look)
    if not same:
        raise DataError(f"{path} {_REPLACED}; bring it back from a copy, or move it away and run `{made_by}` again")
    return content


def read_kept_frame(study: Study, name: str, record: type[Record], made_by: str) -> pd.DataFrame:
    """A table that `write_kept_table` wrote. Raises DataError where it is damaged, or another than was written."""
    frame = read_frame(study.folder / name, record, made_by)
    refuse_replaced_table(study, name, made_by)
    return frame


def _as_noted(study: Study, name: str, look: Callable[[], tuple[str, T]]) -> tuple[bool, T]:
    """Whether a file is the one that the manifest notes, and what `look` finds in it beside its content's identity.

    While a command is writing the file, it is looked at again.
    """
    hashes, (content, data) = _noted(study, name), look()
    while hashes and content not in hashes:
        before, hashes = hashes, _noted(study, name)
        if hashes == before:
            return False, data
        content, data = look()
    return True, data


def _noted(study: Study, name: str) -> list[str] | None:
    """What the manifest notes of a file; None where it knows nothing of it."""
    hashes: dict[str, list[str]] = read_manifest(study).get("kept", {})
    _refuse_unnoted(study, _OFFERED, hashes)
    return hashes.get(name)


def _table_content(path: Path) -> str:
    if not path.exists():
        return ""
    small = is_remote(path) or path.stat().st_size <= LARGE
    return file_hash(path) if small else cached_file_hash(path)


def _note_kept(study: Study, name: str, contents: list[str]) -> None:
    with _changed(study) as manifest:
        manifest.setdefault("kept", {})[name] = contents


def _content(path: Path) -> str:
    """Identity of what a JSON file says; empty where there is none."""
    return _identity(read_json(path, "the command that made it")) if path.exists() else ""


def _identity(content: Any) -> str:
    return identity("kept-v1", content)


@contextlib.contextmanager
def _changed(study: Study) -> Iterator[dict[str, Any]]:
    """The manifest, to be changed: it is written at the end, by one command at a time."""
    make_folder(study.scratch)
    with (study.scratch / ".manifest.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        manifest = read_manifest(study)
        manifest["study"] = study.name
        yield manifest
        write_json(study.folder / "manifest.json", manifest)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that make the numbers; packages that are not installed are left out."""
    releases = {"python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            releases[package] = importlib.metadata.version(package)
    return releases


def _hashes(study: Study, paths: Iterable[Path]) -> dict[str, str]:
    """Hashes by path, relative to the study's records or to the study file where it lies below them."""

    def name(path: Path) -> str:
        for base in (study.folder, study.file.parent):
            if is_remote(path) == is_remote(base) and path.is_relative_to(base):
                return str(path.relative_to(base))
        return str(path)

    return {name(path): file_hash(path) for path in paths if path.exists()}
