"""A bundle's file: a folder packed as one zip file, read file by file without unpacking.

Equal folders give equal bytes. As somebody else made the file, names, kinds and sizes are checked before reading, and
sizes again while reading. No name in the archive decides where anything is written.
"""

from __future__ import annotations

import hashlib
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from evaluation.bundle.records import AGAIN, SUMS
from plumbline.errors import DataError
from plumbline.reading import refuse_no_file

MOST = 20_000  # files
LARGEST = 8 * 2**30  # bytes of all files; 200,000 texts in 24 variants are a tenth of it
LARGEST_READ = 2 * 2**30  # bytes of a file read at once
LARGEST_WORDS = 16 * 2**20  # of JSON
# The most memory for all files of a bundle: a constant, and a factor for each of its bytes.
CELLS, CELLS_A_BYTE = 250_000, 2.4  # the largest tables of ratings have 2.3 a byte
UNPACKED, UNPACKED_A_BYTE = 64 * 2**20, 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}(/[A-Za-z0-9][A-Za-z0-9._-]{0,150}){0,4}")
_KINDS = (".json", ".parquet", ".md", ".py")
_PIECE = 1 << 20
_AS_READ = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


def pack(folder: Path, file: IO[bytes]) -> None:
    """Write a folder's files as a zip archive, in order and without times and owners, with their hashes in SUMS."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    lines = []
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for name, path in sorted(paths.items()):
            content = path.read_bytes()
            lines.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
            _add(archive, name, content)
        _add(archive, SUMS, "".join(lines).encode())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a file. Parquet is compressed already, and stored as it is."""
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.create_system, member.external_attr = 3, (stat.S_IFREG | 0o644) << 16
    member.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
    archive.writestr(member, content, compresslevel=6)


class Archive:
    """A bundle's file, open for reading. Raises DataError if it is not a bundle or has unexpected files in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            refuse_no_file(path)
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError:
            raise DataError(f"no file {path}; `plumbline bundle export` makes a bundle from a study") from None
        except _AS_READ as error:
            raise self.bad(f"is cut off, or not a bundle ({error})") from None
        size = path.stat().st_size
        self._cells, self._unpacked = CELLS + int(CELLS_A_BYTE * size), UNPACKED + UNPACKED_A_BYTE * size
        self._charged: dict[str, tuple[int, int]] = {}
        self._members = {member.filename: member for member in self._zip.infolist()}
        try:
            self._refuse_unsafe()
        except DataError:
            self._zip.close()
            raise

    @property
    def names(self) -> list[str]:
        """The files' names except that of the checksums, in order."""
        return sorted(set(self._members) - {SUMS})

    def read(self, name: str, limit: int = LARGEST_READ) -> bytes:
        """Return a file's bytes. Raises DataError if it is missing, damaged, or larger than `limit`."""
        return b"".join(self._pieces(name, limit))

    def words(self, name: str) -> bytes:
        """Return the bytes of JSON or text. Raises as `read`, with a lower limit."""
        return self.read(name, LARGEST_WORDS)

    def sha256(self, name: str) -> str:
        """Return the hash of a file, read in pieces. Raises as `read`."""
        digest = hashlib.sha256()
        for piece in self._pieces(name, LARGEST):
            digest.update(piece)
        return digest.hexdigest()

    def charge(self, name: str, cells: int, size: int) -> None:
        """Count a table's memory. Raises DataError if all tables need more than a bundle of this size may use."""
        charged = self._charged.get(name, (0, 0))
        self._charged[name] = after = max(charged[0], cells), max(charged[1], size)
        self._cells -= after[0] - charged[0]
        self._unpacked -= after[1] - charged[1]
        if self._cells < 0 or self._unpacked < 0:
            raise self.bad(f"needs more memory for {name} than a bundle of its size may use")

    def bad(self, fault: str) -> DataError:
        """Return the error about this file."""
        return DataError(f"{self.path} {fault}; {AGAIN}")

    def _pieces(self, name: str, limit: int) -> Iterator[bytes]:
        if name not in self._members:
            raise self.bad(f"lacks {name}")
        size = self._members[name].file_size
        if size > limit:
            raise self.bad(f"has {name} with {size:,} bytes; at most {limit:,} are read")
        try:
            with self._zip.open(self._members[name]) as file:
                while piece := file.read(_PIECE):
                    size -= len(piece)
                    if size < 0:
                        break
                    yield piece
        except _AS_READ as error:
            raise self.bad(f"is damaged in {name} ({error})") from None
        if size:
            raise self.bad(f"declares another number of bytes for {name} than it has")

    def _refuse_unsafe(self) -> None:
        listed = self._zip.infolist()
        if len(listed) > MOST:
            raise self.bad(f"has {len(listed):,} files in it; at most {MOST:,} are read")
        for member in listed:
            name, kind = member.filename, stat.S_IFMT(member.external_attr >> 16)
            plain = _NAME.fullmatch(name) and ".." not in name and (name == SUMS or Path(name).suffix in _KINDS)
            if not plain or "\0" in getattr(member, "orig_filename", name):
                raise self.bad(f"has an unexpected file {name[:80]!a} in it")
            if kind not in (0, stat.S_IFREG):
                raise self.bad(f"has {name} in it, which is not a file (but a link, for example)")
            if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self.bad(f"has {name} encrypted or compressed in an unexpected way")
        if len(listed) > len(self._members):
            raise self.bad("has two files with the same name in it")
        total = sum(member.file_size for member in listed)
        if total > (most := min(LARGEST, self._unpacked)):
            raise self.bad(f"has {total:,} bytes when unpacked; at most {most:,} are read from a file of its size")
        if SUMS not in self._members:
            raise self.bad(f"has no {SUMS}: it is empty, or not a bundle")
