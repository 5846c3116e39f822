"""Read and write `manifest.json`: what each stage of a study used and wrote, with hashes and durations.

`StudyRecords` opens a study's files: each is checked against the manifest and read once, on first use.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import functools
import json
import platform
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, cast

import pandas as pd
import pyarrow as pa
from pydantic import AfterValidator, BaseModel, ValidationError

from plumbline import store
from plumbline.errors import DataError, StudyError
from plumbline.file_hashes import LARGE, cached_file_hash
from plumbline.identity import identity
from plumbline.records import Record
from plumbline.resources import installed_versions, private
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
    """The fields that a stage's entry must have to be read."""

    finished_at: Annotated[str, AfterValidator(_time)]
    inputs: dict[str, str] = {}
    outputs: dict[str, str] = {}
    settings: dict[str, Any] = {}


class _ManifestContent(BaseModel):
    """The fields that a manifest must have to be read; others are allowed."""

    stages: dict[str, _Entry] = {}
    kept: dict[str, list[str]] = {}  # hashes of the content of files that are evidence (`write_models`, `write_table`)


_REPLACED = "differs from what was written (edited by hand, or from another copy)"
_SHOWS = "it alone proves which results rest on which records, and that nobody edited them"
OFFERED = "offered.json"
_manifests: dict[Path, tuple[FileState | None, dict[str, Any]]] = {}  # as last read
_PACKAGES = ("argilla", "mteb", "numpy", "openai", "pandas", "scipy", "sentence-transformers", "torch")


@contextlib.contextmanager
def stage(
    study: Study,
    name: str,
    inputs: Iterable[Path] = (),
    outputs: Iterable[Path] = (),
    settings: Mapping[str, Any] | None = None,
) -> Iterator[dict[str, Any]]:
    """Run a stage, and note in the manifest its time, its inputs and its outputs (hashes of existing files).

    Nothing is noted if the stage fails. `outputs` may be folders; `settings` are the study's settings that change the
    outputs. Yields an empty dictionary, which holds the written manifest at the end.
    """
    started, clock, noted = datetime.now(UTC), time.monotonic(), Manifest.of(study)
    noted.read()  # refused before the stage's work, not after it
    # hashed now: a file edited, moved or deleted during the stage would not be its input
    ran_on = study_hash(study.file)
    bases = (study.folder, study.file.parent)
    written = dict[str, Any]()
    yield written
    entry = {
        "started_at": started.isoformat(timespec="seconds"),
        "finished_at": datetime.now(UTC).isoformat(timespec="milliseconds"),  # some end in one second
        "seconds": round(time.monotonic() - clock, 3),
        "study_sha256": ran_on,
        "inputs": _hashes(bases, inputs),
        "outputs": _hashes(bases, outputs),
        **({"settings": dict(settings)} if settings is not None else {}),
    }
    with noted.changing() as manifest:
        manifest["versions"] = versions()
        manifest.setdefault("stages", {})[name] = entry
        written |= manifest


def study_hash(file: Path) -> str:
    """Return the hash of a study's file. Raises StudyError if it was moved or deleted since it was read."""
    try:
        return file_hash(file)
    except FileNotFoundError:
        raise StudyError(
            f"the study file {file} was moved or deleted since it was read; restore it, then run again"
        ) from None


@dataclass(frozen=True)
class Manifest:
    """The manifest in a study's `folder`, and the files that it notes; each is checked when read.

    `scratch` holds the lock that lets one command at a time change it; files are named by their path in the folder.
    `content` is the manifest as a command has read it; it is read again if a file does not match it.
    """

    folder: Path
    scratch: Path
    study_name: str
    content: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, study: Study, content: Mapping[str, Any] | None = None) -> Manifest:
        """Return a study's manifest; nothing is read yet."""
        return cls(study.folder, study.scratch, study.name, content)

    @property
    def path(self) -> Path:
        """The path of the manifest."""
        return self.folder / "manifest.json"

    def read(self) -> dict[str, Any]:
        """Return the manifest's content; empty before the first stage. A changed file is read again."""
        path = self.path
        if not path.exists():
            return {}
        state = file_state(path)
        if state is None or _manifests.get(path, (None,))[0] != state:
            advice = f"restore it from a copy: {_SHOWS}"
            manifest = store.read_json(path, "", advice)
            try:
                _ManifestContent.model_validate(manifest)
            except ValidationError as error:
                raise DataError(f"{path} is not a manifest of Plumbline ({first_complaint(error)}); {advice}") from None
            _manifests[path] = state, manifest
        return copy.deepcopy(_manifests[path][1])

    @contextlib.contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """Yield the content for changes; it is written at the end, by one command at a time."""
        store.make_folder(self.scratch)
        with open(self.scratch / ".manifest.lock", "w", opener=private) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            manifest = self.read()
            manifest["study"] = self.study_name
            yield manifest
            store.write_json(self.path, manifest)

    def notes(self, name: str) -> bool:
        """Tell whether the manifest notes a file's content."""
        return name in self._kept()

    def write_models(self, name: str, records: Sequence[BaseModel]) -> None:
        """Write evidence to a JSON file; `models` detects any later change by others.

        The new hash is noted beside the old one before the file is written, so that a kill in between raises no false
        alarm.
        """
        path, new = self.folder / name, _identity([json.loads(record.model_dump_json()) for record in records])
        self._note(name, [_content(path), new])
        store.write_json(path, list(records))
        self._note(name, [new])

    def models(self, name: str, model: type[M], made_by: str, advice: str = "") -> list[M]:
        """Return the records that `write_models` wrote; none before the first writing.

        `made_by` and `advice` are as for `read_json`. Raises DataError if the file is damaged, missing, or not the one
        last written.
        """
        path = self.folder / name

        def look() -> tuple[str, Any]:
            content = store.read_json(path, made_by, advice) if path.exists() else []
            return _identity(content) if path.exists() else "", content

        same, data = self._as_noted(name, look)
        if not same:
            fault = _REPLACED if path.exists() else "is gone"
            advice_line = "restore it from a copy: it proves what was decided, and when"
            raise DataError(f"{path} {fault}; {advice_line}")
        return store.as_models(data, path, model, advice or f"run `{made_by}` again")

    def write_table(self, name: str, rows: Iterable[Record] | pd.DataFrame, record: type[Record]) -> None:
        """Write a table that published numbers rest on; `refuse_replaced` detects any later change by others.

        As with `write_models`, a kill at any moment raises no false alarm.
        """
        path, new = self.folder / name, ""

        def noted(temporary: Path) -> bool:
            nonlocal new
            previous, new = _table_content(path), file_hash(temporary)
            if previous == new and self._kept().get(name) == [new]:
                return False
            self._note(name, [previous, new])
            return True

        store.write_table(path, rows, record, noted)
        if self._kept().get(name) != [new]:
            self._note(name, [new])

    def refuse_replaced(self, name: str, made_by: str) -> None:
        """Raise DataError if an existing table is not the one last written.

        `made_by` is the command that makes the table again.
        """
        path = self.folder / name
        if path.exists() and not self._as_noted(name, lambda: (_table_content(path), None))[0]:
            raise _replaced(path, made_by)

    def table_bytes(self, name: str, made_by: str) -> tuple[bytes, str]:
        """Return a table's bytes and their hash. Raises DataError if it is missing or not the one last written."""
        path = self.folder / name

        def look() -> tuple[str, tuple[bytes, str]]:
            content = store.hashed_bytes(path, made_by)
            return content[1], content

        same, content = self._as_noted(name, look)
        if not same:
            raise _replaced(path, made_by)
        return content

    def frame(self, name: str, record: type[Record], made_by: str) -> pd.DataFrame:
        """Return a table of `write_table` as a frame. Raises DataError if it is damaged or not the one last written."""
        frame = store.read_frame(self.folder / name, record, made_by)
        self.refuse_replaced(name, made_by)
        return frame

    def _kept(self) -> dict[str, list[str]]:
        hashes: dict[str, list[str]] = self.read().get("kept", {})
        return hashes

    def _refuse_unnoted(self, name: str, hashes: Mapping[str, list[str]]) -> None:
        if (self.folder / name).exists() and name not in hashes:
            fault = f"has no entry for {name} (is it from another copy?)"
            if not self.path.exists():
                fault = f"is missing, but {name} exists"
            raise DataError(f"{self.path} {fault}; restore it from a copy: {_SHOWS}")

    def _as_noted(self, name: str, look: Callable[[], tuple[str, T]]) -> tuple[bool, T]:
        """Tell whether a file is the noted one; also return what `look` finds in it.

        If a command is writing the file, it is checked again. Raises DataError for a file that the manifest does not
        note.
        """
        hashes, (content, data) = self._noted(name, self.content), look()
        while content not in hashes:
            previous, hashes = hashes, self._noted(name)
            if hashes == previous:
                self._refuse_unnoted(name, self._kept())
                return False, data
            content, data = look()
        return True, data

    def _noted(self, name: str, manifest: Mapping[str, Any] | None = None) -> list[str]:
        """Return the hashes noted for a file, here or on disk; that of no file if there are none.

        Raises DataError if the sample was offered and the manifest does not note it: it is from another copy.
        """
        hashes = self._kept() if manifest is None else manifest.get("kept", {})
        self._refuse_unnoted(OFFERED, hashes)
        return hashes.get(name, [""])

    def _note(self, name: str, contents: list[str]) -> None:
        with self.changing() as manifest:
            manifest.setdefault("kept", {})[name] = contents


def _replaced(path: Path, made_by: str) -> DataError:
    return DataError(f"{path} {_REPLACED}; restore it from a copy, or move it away and run `{made_by}` again")


def _table_content(path: Path) -> str:
    if not path.exists():
        return ""
    small = store.is_remote(path) or path.stat().st_size <= LARGE
    return file_hash(path) if small else cached_file_hash(path)


def _content(path: Path) -> str:
    return _identity(store.read_json(path, "the command that made it")) if path.exists() else ""


def _identity(content: Any) -> str:
    return identity("kept-v1", content)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute; packages that are not installed are left out."""
    return {"python": platform.python_version(), **installed_versions(_PACKAGES)}


def _hashes(bases: Sequence[Path], paths: Iterable[Path]) -> dict[str, str]:
    """Return hashes by path, relative to the study's records or else to its file's folder."""

    def name(path: Path) -> str:
        for base in bases:
            if store.is_remote(path) == store.is_remote(base) and path.is_relative_to(base):
                return str(path.relative_to(base))
        return str(path)

    return {name(path): file_hash(path) for path in paths if path.exists()}


@dataclass(frozen=True)
class RecordFile(Generic[M]):
    """A file of a study: its record type, the command that makes it, and whether the manifest notes its hash."""

    name: str
    record: type[M]
    made_by: str  #: the command that makes it, such as `plumbline accept`
    options: str = ""  #: options of that command
    noted: bool = False
    advice: str = ""  #: advice if it is damaged; empty: run the command again

    def command(self, study: Study) -> str:
        """The command that makes the file, as a user types it."""
        return f"{study.command(self.made_by)} {self.options}".rstrip()


class StudyRecords:
    """The records in a study's folder, each read once, on first use."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.noted = Manifest.of(study)  #: the hashes against which files are checked
        self._models = dict[str, list[Any]]()
        self._contents = dict[str, tuple[bytes, str]]()
        self._sha256 = dict[str, str]()

    @functools.cached_property
    def manifest(self) -> Mapping[str, Any]:
        """The inputs and outputs of each stage; empty before the first stage."""
        return self.noted.read()

    def path(self, file: RecordFile[Any]) -> Path:
        """Return the path of a file."""
        return self.study.folder / file.name

    def has(self, file: RecordFile[Any]) -> bool:
        """Tell whether a file exists."""
        return file.name in self._sha256 or self.path(file).exists()

    def need(self, *files: RecordFile[Any]) -> None:
        """Raise DataError, which names the command that makes the file, if the file is missing."""
        for file in files:
            if not self.has(file):
                raise DataError(f"{self.path(file)} does not exist yet; run `{file.command(self.study)}` first")

    def models(self, file: RecordFile[M]) -> list[M]:
        """Return a JSON list; empty if it is missing and optional. Raises DataError for a damaged or replaced one."""
        if file.name not in self._models:
            command = file.command(self.study)
            self._models[file.name] = (
                self.noted.models(file.name, file.record, command, file.advice)
                if file.noted
                else store.read_models(self.path(file), file.record, command)
            )
        return cast("list[M]", self._models[file.name])

    def sha256(self, file: RecordFile[Any]) -> str:
        """Return the hash of a file's bytes; empty if there is none. `table` checks them against the manifest."""
        if file.name not in self._sha256:
            if not self.path(file).exists():
                return ""
            if file.noted:
                self._sha256[file.name] = file_hash(self.path(file))
            else:
                self._content(file)
        return self._sha256[file.name]

    def table(self, file: RecordFile[M], words: Collection[str] = ()) -> pa.Table:
        """Return a table, checked as `read_table` does. Raises DataError if it is missing, damaged or replaced."""
        content = self._content(file)
        del self._contents[file.name]  # frames are cached, not the bytes
        command, record = file.command(self.study), cast("Any", file.record)
        return store.read_table(self.path(file), record, command, words=words, content=content)

    def _content(self, file: RecordFile[Any]) -> bytes:
        """Return a table's bytes and hash them at once: the bytes read are the bytes checked."""
        if file.name not in self._contents:
            path, command = self.path(file), file.command(self.study)
            read = self.noted.table_bytes(file.name, command) if file.noted else store.hashed_bytes(path, command)
            self._contents[file.name], self._sha256[file.name] = read, read[1]
        return self._contents[file.name][0]
