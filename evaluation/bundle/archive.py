"""One zip file, written so that equal contents are equal bytes, and read member by member without unpacking.

What is read was made by somebody else: names, kinds and sizes are checked before anything is read, sizes again while
it is, and each member's hash against the manifest's. Nothing is ever written to where a name in the archive says.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import stat
import subprocess
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from plumbline.errors import DataError, StudyError
from plumbline.reading import refuse_no_file

MANIFEST = "manifest.json"
MOST = 20_000  # members
LARGEST = 8 * 2**30  # bytes of all members; 200,000 texts in 24 variants are a tenth of it
LARGEST_READ = 2 * 2**30  # bytes of a member that is read at once
LARGEST_WORDS = 64 * 2**20  # of JSON
# What a bundle may come to in memory, all its members together: so much, and so much for each of its bytes.
CELLS, CELLS_A_BYTE = 250_000, 2.4  # the largest tables of ratings have 2.3 a byte
UNPACKED, UNPACKED_A_BYTE = 64 * 2**20, 32
DEEPEST = 100  # levels of JSON
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}(/[A-Za-z0-9][A-Za-z0-9._-]{0,150}){0,4}")
# All of JSON but what separates its values.
_MARKS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\[\]{},:"]++|"', re.DOTALL)
_KINDS = (".json", ".parquet", ".html")
_PIECE = 1 << 20
_AS_READ = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


class Archive:
    """A bundle's file, open for reading. Raises DataError for what is none, or holds what none does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            refuse_no_file(path)
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError:
            raise DataError(f"no bundle {path}; `python -m evaluation.bundle export` makes one of a study") from None
        except _AS_READ as error:
            raise self.bad(f"is cut off, or no bundle ({error})") from None
        size = path.stat().st_size
        self._cells, self._unpacked = CELLS + int(CELLS_A_BYTE * size), UNPACKED + UNPACKED_A_BYTE * size
        self._too_large = ""  # the first member for which it was too much
        self._charged: dict[str, tuple[int, int]] = {}
        self._members = {member.filename: member for member in self._zip.infolist()}
        try:
            self._refuse_strange()
        except DataError:
            self.close()
            raise

    @property
    def names(self) -> list[str]:
        """The members but the manifest, in order."""
        return sorted(set(self._members) - {MANIFEST})

    def size(self, name: str) -> int:
        """A member's bytes, as the archive declares them."""
        return self._members[name].file_size

    def read(self, name: str, limit: int = LARGEST_READ) -> bytes:
        """A member's bytes. Raises DataError where it is missing, damaged, or larger than `limit`."""
        return b"".join(self._pieces(name, limit))

    def sha256(self, name: str) -> str:
        """The hash of a member, read in pieces. Raises as `read`."""
        digest = hashlib.sha256()
        for piece in self._pieces(name, LARGEST):
            digest.update(piece)
        return digest.hexdigest()

    def charge(self, name: str, cells: int, size: int) -> None:
        """Note what a member comes to in memory. Raises DataError where all are more than a bundle of its size is."""
        before = self._charged.get(name, (0, 0))
        self._charged[name] = after = max(before[0], cells), max(before[1], size)
        self._cells -= after[0] - before[0]
        self._unpacked -= after[1] - before[1]
        if self._cells < 0 or self._unpacked < 0:
            self._too_large = self._too_large or name.removeprefix(f"{self.path}/")
            raise self.bad(f"needs more memory for {self._too_large} than any bundle of its size")

    def words(self, name: str) -> bytes:
        """A member that is JSON. Raises as `read`, and for more, or deeper, than is parsed."""
        content = self.read(name, LARGEST_WORDS)
        marks = _MARKS.sub(b"", content)
        self.charge(str(self.path / name), len(marks), len(content))
        depth = 0
        for mark in marks:
            depth += (mark in b"[{") - (mark in b"]}")
            if depth > DEEPEST:
                raise self.bad(f"holds {name}, which is nested too deep")
        return content

    def close(self) -> None:
        """Let go of the file."""
        self._zip.close()

    def bad(self, what: str) -> DataError:
        """The complaint about this file."""
        return DataError(f"{self.path} {what}; get it again from where it came from")

    def _pieces(self, name: str, limit: int) -> Iterator[bytes]:
        if name not in self._members:
            raise self.bad(f"lacks {name}")
        remaining = min(limit, self.size(name))
        if self.size(name) > limit:
            raise self.bad(f"holds {name} of {self.size(name):,} bytes, more than the {limit:,} that are read")
        try:
            with self._zip.open(self._members[name]) as file:
                while piece := file.read(_PIECE):
                    remaining -= len(piece)
                    if remaining < 0:
                        raise self.bad(f"holds more of {name} than it declares")
                    yield piece
        except _AS_READ as error:
            raise self.bad(f"is damaged in {name} ({error})") from None
        if remaining and limit >= self.size(name):
            raise self.bad(f"holds less of {name} than it declares")

    def _refuse_strange(self) -> None:
        listed = self._zip.infolist()
        if len(listed) > MOST:
            raise self.bad(f"holds {len(listed):,} members, more than the {MOST:,} that are read")
        for member in listed:
            name, kind = member.filename, stat.S_IFMT(member.external_attr >> 16)
            plain = _NAME.fullmatch(name) and ".." not in name and Path(name).suffix in _KINDS
            if not plain or "\0" in getattr(member, "orig_filename", name):
                raise self.bad(f"holds a member called {name[:80]!r}, which no bundle has")
            if kind not in (0, stat.S_IFREG):
                raise self.bad(f"holds {name} as something else than a file (a link, say), which no bundle has")
            if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self.bad(f"holds {name} encrypted or packed in a way that no bundle is")
        if len(listed) > len(self._members):
            raise self.bad("holds two members of one name")
        if (total := sum(member.file_size for member in listed)) > LARGEST:
            raise self.bad(f"is {total:,} bytes when unpacked, more than the {LARGEST:,} that are read")
        if total > self._unpacked:
            raise self.bad(f"is {total:,} bytes when unpacked, more than the {self._unpacked:,} of one of its size")
        if MANIFEST not in self._members:
            raise self.bad(f"has no {MANIFEST}: it is empty, or no bundle")


class Writer:
    """A bundle that is being written: members in the order in which they are added, without times and owners."""

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", allowZip64=True)
        self.members: dict[str, tuple[str, int]] = {}
        """Hash and bytes of each member."""

    def add(self, name: str, content: bytes | memoryview) -> None:
        """Add a member. What is compressed already (Parquet) is stored as it is."""
        member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        member.create_system, member.external_attr = 3, (stat.S_IFREG | 0o644) << 16
        member.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
        self._zip.writestr(member, content, compresslevel=6)
        self.members[name] = (hashlib.sha256(content).hexdigest(), len(content))

    def close(self) -> None:
        """End the archive."""
        self._zip.close()


_SECONDS = 120


def signature_of(path: Path) -> Path:
    """Where a bundle's signature is expected: beside it, as minisign puts it."""
    return path.with_name(f"{path.name}.minisig")


def check_signature(path: Path, key: str) -> str:
    """What minisign says of a bundle's signature, its trusted comment too. `key` is a public key, or the file of one.

    Raises StudyError where minisign is not installed, DataError where there is no signature, or not by this key.
    """
    signature, tool = signature_of(path), shutil.which("minisign")
    if not signature.is_file():
        raise DataError(f"{path} is not signed: there is no {signature}; ask its maker, or leave out --key")
    if tool is None:
        raise StudyError("--key: signatures are checked by minisign, which is not installed (apt install minisign)")
    by = ["-p", key] if Path(key).is_file() else ["-P", key]
    command = [tool, "-V", *by, "-x", str(signature), "-m", str(path)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace", timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StudyError(f"--key: {tool} cannot be run ({error})") from None
    if done.returncode:
        why = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[0]
        raise DataError(f"{path}: its signature does not hold for this key ({why}); do not build on it")
    return done.stdout.strip().replace("\n", "; ")
