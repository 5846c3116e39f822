"""A study's records, opened once: each file is proved to be what the manifest says, and read, when it is asked for."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, cast

import pyarrow as pa
from pydantic import BaseModel

from plumbline.errors import DataError
from plumbline.manifest import Manifest
from plumbline.store import hashed_bytes, read_models, read_table
from plumbline.study import Study, file_hash

M = TypeVar("M", bound=BaseModel)


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
