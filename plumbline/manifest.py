"""`manifest.json`: what each stage of a study used, made and took, so that anyone can see what rests on what.

`StudyRecords` opens a study's files once: each is proved to be what the manifest says, and read, when it is asked for.
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
from typing import Annotated, Any, Generic, Self, TypeVar, cast

import pandas as pd
import pyarrow as pa
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
    read_models,
    read_table,
    write_json,
    write_table,
)
from plumbline.study import Study, file_hash
from plumbline.study.base import first_complaint
from plumbline.study.places import FileState, file_state
from plumbline.versions import installed_versions

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


class _ManifestContent(BaseModel):
    """What must be true of a manifest for it to be read, whatever else stands in it."""

    stages: dict[str, _Entry] = {}
    kept: dict[str, list[str]] = {}  # what files that are evidence say, as hashes (`write_models`, `write_table`)


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
    started, clock, noted = datetime.now(UTC), time.monotonic(), Manifest.of(study)
    noted.read()  # refused before the stage's work, not after it
    ran_on = study_hash(study.file)  # now: a file edited, moved or deleted meanwhile is not what the stage ran on
    bases = (study.folder, study.file.parent)
    written = dict[str, Any]()
    yield written
    entry = {
        "started_at": started.isoformat(timespec="seconds"),
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
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
    """The hash of a study's file. Raises StudyError where it has been moved or deleted since it was read."""
    try:
        return file_hash(file)
    except FileNotFoundError:
        raise StudyError(
            f"the study file {file} was moved or deleted since it was read; bring it back, then run again"
        ) from None


@dataclass(frozen=True)
class Manifest:
    """The manifest of a study's `folder`, and the files there that it notes: each is proved as it is read.

    `scratch` has the lock by which one command at a time changes it; files are named by their path in the folder.
    `content` is what it says, for a command that has it already; where a file is another than this notes, it is read.
    """

    folder: Path
    scratch: Path
    study_name: str
    content: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, study: Study, content: Mapping[str, Any] | None = None) -> Manifest:
        """A study's; nothing is read yet."""
        return cls(study.folder, study.scratch, study.name, content)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.folder / "manifest.json"

    def read(self) -> dict[str, Any]:
        """All that it says, or nothing before the first stage. It is read again when it changed."""
        path = self.path
        if not path.exists():
            return {}
        state = file_state(path)
        if state is None or _manifests.get(path, (None,))[0] != state:
            _manifests[path] = state, _checked(path)
        return copy.deepcopy(_manifests[path][1])

    @contextlib.contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """What it says, to be changed: it is written at the end, by one command at a time."""
        make_folder(self.scratch)
        with (self.scratch / ".manifest.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            manifest = self.read()
            manifest["study"] = self.study_name
            yield manifest
            write_json(self.path, manifest)

    def notes(self, name: str) -> bool:
        """Whether it notes what a file says."""
        return name in self._kept()

    def refuse_unnoted(self, name: str) -> None:
        """Raise DataError where a file is there whose writing it would have noted: it is not the same one."""
        self._refuse_unnoted(name, self._kept())

    def write_models(self, name: str, records: Sequence[BaseModel]) -> None:
        """Write records that are evidence to a JSON file; `models` notices whatever else changes it.

        What they will be is noted beside what is there before the file is written, so that a kill in between accuses
        nobody.
        """
        path, new = self.folder / name, _identity([json.loads(record.model_dump_json()) for record in records])
        self._note(name, [_content(path), new])
        write_json(path, list(records))
        self._note(name, [new])

    def models(self, name: str, model: type[M], made_by: str, advice: str = "") -> list[M]:
        """What `write_models` wrote; nothing where nothing was written yet.

        `made_by` and `advice` are as for `read_json`. Raises DataError where the file is damaged, is not the one that
        was written last, or is gone. Of studies whose manifest knows nothing of it (of earlier versions) nothing can
        be said.
        """
        path = self.folder / name

        def look() -> tuple[str, Any]:
            content = read_json(path, made_by, advice) if path.exists() else []
            return _identity(content) if path.exists() else "", content

        same, data = self._as_noted(name, look)
        if not same:
            what = _REPLACED if path.exists() else "is gone"
            says = "bring it back from a copy: it is the evidence of what was decided, and when"
            raise DataError(f"{path} {what}; {says}")
        return as_models(data, path, model, advice or f"run `{made_by}` again")

    def write_table(self, name: str, rows: Iterable[Record] | pd.DataFrame, record: type[Record]) -> None:
        """Write a table that published numbers rest on; `refuse_replaced` notices whatever else changes it.

        As with `write_models`, a kill at any moment accuses nobody.
        """
        path, new = self.folder / name, ""

        def noted(temporary: Path) -> bool:
            nonlocal new
            before, new = _table_content(path), file_hash(temporary)
            if before == new and self._kept().get(name) == [new]:
                return False
            self._note(name, [before, new])
            return True

        write_table(path, rows, record, noted)
        if self._kept().get(name) != [new]:
            self._note(name, [new])

    def refuse_replaced(self, name: str, made_by: str) -> None:
        """Raise DataError where a table that is there is not the one that was written last.

        Of tables by earlier versions nothing can be said. `made_by` is the command that makes the table again.
        """
        path = self.folder / name
        if path.exists() and not self._as_noted(name, lambda: (_table_content(path), None))[0]:
            raise _replaced(path, made_by)

    def table_bytes(self, name: str, made_by: str) -> tuple[bytes, str]:
        """The bytes of a table and their hash. Raises DataError where it is not there, or another than was written."""
        path = self.folder / name

        def look() -> tuple[str, tuple[bytes, str]]:
            content = hashed_bytes(path, made_by)
            return content[1], content

        same, content = self._as_noted(name, look)
        if not same:
            raise _replaced(path, made_by)
        return content

    def frame(self, name: str, record: type[Record], made_by: str) -> pd.DataFrame:
        """A table that `write_table` wrote. Raises DataError where it is damaged, or another than was written."""
        frame = read_frame(self.folder / name, record, made_by)
        self.refuse_replaced(name, made_by)
        return frame

    def _kept(self) -> dict[str, list[str]]:
        """What it notes of files, by their names."""
        hashes: dict[str, list[str]] = self.read().get("kept", {})
        return hashes

    def _refuse_unnoted(self, name: str, hashes: Mapping[str, list[str]]) -> None:
        if (self.folder / name).exists() and name not in hashes:
            what = f"knows nothing of {name} (another copy's?)"
            if not self.path.exists():
                what = f"is gone, and {name} is there"
            raise DataError(f"{self.path} {what}; bring it back from a copy: {_SHOWS}")

    def _as_noted(self, name: str, look: Callable[[], tuple[str, T]]) -> tuple[bool, T]:
        """Whether a file is the one that is noted, and what `look` finds in it beside its content's identity.

        While a command is writing the file, it is looked at again.
        """
        hashes, (content, data) = self._noted(name, self.content), look()
        while hashes and content not in hashes:
            before, hashes = hashes, self._noted(name)
            if hashes == before:
                return False, data
            content, data = look()
        return True, data

    def _noted(self, name: str, manifest: Mapping[str, Any] | None = None) -> list[str] | None:
        """What is noted of a file, in this manifest or in that on disk; None where nothing is known of it."""
        hashes = self._kept() if manifest is None else manifest.get("kept", {})
        self._refuse_unnoted(_OFFERED, hashes)
        return hashes.get(name)

    def _note(self, name: str, contents: list[str]) -> None:
        with self.changing() as manifest:
            manifest.setdefault("kept", {})[name] = contents


def _checked(path: Path) -> dict[str, Any]:
    advice = f"bring it back from a copy: {_SHOWS}"
    manifest = read_json(path, "", advice)
    try:
        _ManifestContent.model_validate(manifest)
    except ValidationError as error:
        raise DataError(f"{path} is no manifest of ours ({first_complaint(error)}); {advice}") from None
    checked: dict[str, Any] = manifest
    return checked


def _replaced(path: Path, made_by: str) -> DataError:
    return DataError(f"{path} {_REPLACED}; bring it back from a copy, or move it away and run `{made_by}` again")


def _table_content(path: Path) -> str:
    if not path.exists():
        return ""
    small = is_remote(path) or path.stat().st_size <= LARGE
    return file_hash(path) if small else cached_file_hash(path)


def _content(path: Path) -> str:
    """Identity of what a JSON file says; empty where there is none."""
    return _identity(read_json(path, "the command that made it")) if path.exists() else ""


def _identity(content: Any) -> str:
    return identity("kept-v1", content)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that make the numbers; packages that are not installed are left out."""
    return {"python": platform.python_version(), **installed_versions(_PACKAGES)}


def _hashes(bases: Sequence[Path], paths: Iterable[Path]) -> dict[str, str]:
    """Hashes by path, relative to the first base that it lies below: a study's records, or its file's folder."""

    def name(path: Path) -> str:
        for base in bases:
            if is_remote(path) == is_remote(base) and path.is_relative_to(base):
                return str(path.relative_to(base))
        return str(path)

    return {name(path): file_hash(path) for path in paths if path.exists()}


@dataclass(frozen=True)
class RecordFile(Generic[M]):
    """A file of a study: what it holds, which command makes it, and whether the manifest notes what it says."""

    name: str
    record: type[M]
    made_by: str  #: words of the command, such as `annotation accept`
    options: str = ""  #: of that command
    noted: bool = False
    advice: str = ""  #: what to do where it is damaged; empty: run the command again

    def command(self, study: Study) -> str:
        """The command that makes it, as a user types it."""
        return f"{study.command(self.made_by)} {self.options}".rstrip()


class StudyRecords:
    """The records in a study's folder as they are when they are first asked for, each read once."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.noted = Manifest.of(study)  #: what is noted of files, by which each is proved
        self._models = dict[str, list[Any]]()
        self._contents = dict[str, tuple[bytes, str]]()
        self._sha256 = dict[str, str]()

    @classmethod
    def open(cls, study: Study) -> Self:
        """The records of a study; nothing is read yet."""
        return cls(study)

    @functools.cached_property
    def manifest(self) -> Mapping[str, Any]:
        """What each stage ran on and left; empty before the first."""
        return self.noted.read()

    def path(self, file: RecordFile[Any]) -> Path:
        """Where a file is."""
        return self.study.folder / file.name

    def has(self, file: RecordFile[Any]) -> bool:
        """Whether a file is there."""
        return file.name in self._sha256 or self.path(file).exists()

    def need(self, *files: RecordFile[Any]) -> None:
        """Raise DataError, which names the command that makes it, where a file is not there."""
        for file in files:
            if not self.has(file):
                raise DataError(f"{self.path(file)} is not there yet; run `{file.command(self.study)}` first")

    def is_noted(self, file: RecordFile[Any]) -> bool:
        """Whether the manifest notes what a file says."""
        return self.noted.notes(file.name)

    def models(self, file: RecordFile[M]) -> list[M]:
        """A JSON list; empty where it is not there and need not be. Raises DataError for a damaged or replaced one."""
        if file.name not in self._models:
            self._models[file.name] = list(self._read(file))
        return cast("list[M]", self._models[file.name])

    def _read(self, file: RecordFile[M]) -> list[M]:
        command = file.command(self.study)
        if file.noted:
            return self.noted.models(file.name, file.record, command, file.advice)
        return read_models(self.path(file), file.record, command)

    def sha256(self, file: RecordFile[Any]) -> str:
        """The hash of a file's bytes; empty where there is none. Whether it is what was written, `table` tells."""
        if file.name not in self._sha256:
            if not self.path(file).exists():
                return ""
            if file.noted:
                self._sha256[file.name] = file_hash(self.path(file))
            else:
                self._content(file)
        return self._sha256[file.name]

    def table(self, file: RecordFile[M], words: Collection[str] = ()) -> pa.Table:
        """A table, checked as by `read_table`. Raises DataError for one that is damaged or replaced, or not there."""
        content = self._content(file)
        del self._contents[file.name]  # frames are kept, not what they were read from
        command, record = file.command(self.study), cast("Any", file.record)
        return read_table(self.path(file), record, command, words=words, content=content)

    def _content(self, file: RecordFile[Any]) -> bytes:
        """The bytes of a table, of which the hash is taken at once: what is read is what was proved."""
        if file.name not in self._contents:
            path, command = self.path(file), file.command(self.study)
            read = self.noted.table_bytes(file.name, command) if file.noted else hashed_bytes(path, command)
            self._contents[file.name], self._sha256[file.name] = read, read[1]
        return self._contents[file.name][0]
