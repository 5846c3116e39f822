"""Files that hold tables in another wrapping: Excel's sheets, gzip and zip."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from plumbline.errors import DataError
from plumbline.importing import openpyxl
from plumbline.reading import refuse_no_file
from plumbline.resources import missing_package

EXCEL = (".xlsx", ".xlsm")
_PACKED = (".gz", ".zip")
_LARGEST_BOOK = 2**29  # bytes of what a spreadsheet unpacks to
_LARGEST = 2**33  # bytes of what a packed file unpacks to
_FAR = 256  # empty columns between two named ones
_DAMAGED = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Sequence[Path]]:
    """Yield the files in a gzip or zip file, which exist within the block; or a file of another kind itself.

    Raises DataError for a damaged file; faults within the block name the file and where it is packed.
    """
    if path.suffix.lower() not in _PACKED:
        yield [path]
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            refuse_no_file(path)
            if path.suffix.lower() == ".zip":
                _unpack_zip(path, Path(folder))
            else:
                with gzip.open(path) as source, (Path(folder) / (path.stem or "file")).open("wb") as file:
                    while piece := source.read(1 << 20):
                        file.write(piece)
                        _refuse_large(path, file.tell())
        except _DAMAGED as error:
            raise DataError(f"{path} cannot be unpacked: {getattr(error, 'strerror', '') or error}") from None
        files = [file for file in sorted(Path(folder).rglob("*")) if file.is_file()]
        if not files:
            raise DataError(f"{path}: no file is in it")
        if packed := [file.name for file in files if file.suffix.lower() in _PACKED]:
            raise DataError(f"{path}: {packed[0]!r} in it is packed again; unpack it first")
        try:
            yield files
        except DataError as error:
            raise DataError(*(str(fault).replace(folder, str(path)) for fault in error.args)) from None


def _unpack_zip(path: Path, folder: Path) -> None:
    with zipfile.ZipFile(path) as packed:
        members = [member for member in packed.infolist() if not member.is_dir()]
        _refuse_large(path, sum(member.file_size for member in members))
        files = [
            packed.extract(member, folder)
            for member in members
            if not any(part.startswith((".", "__MACOSX")) for part in Path(member.filename).parts)
        ]
    if len(set(files)) < len(files) or not all(map(str.isprintable, files)):
        raise DataError(f"{path}: two files in it have one name, or a name has control characters; rename these files")


def _refuse_large(path: Path, size: int) -> None:
    if size > _LARGEST:
        raise DataError(f"{path}: unpacks to more than {_LARGEST >> 30} GB")


def one_file(path: Path, files: Sequence[Path]) -> Path:
    """Return the only file of a packed one. Raises DataError for several."""
    if len(files) > 1:
        names = ", ".join(file.name for file in files[:5])
        raise DataError(f"{path}: {len(files)} files are in it ({names}); unpack it, and name one")
    return files[0]


def refuse_sheet(path: Path, sheet: str) -> None:
    """Raise DataError for a sheet that was asked for of a file without sheets."""
    if sheet:
        raise DataError(f"{path}: only Excel files have sheets; take the sheet {sheet[:60]!r} out")


def excel_rows(path: Path, sheet: str = "") -> tuple[str, list[tuple[int, list[str]]]]:
    """Return a sheet's name, and its rows that are not empty with their numbers, as texts and as long as the first.

    Raises DataError if several sheets have rows and none is named.
    """
    try:
        load = openpyxl.load_workbook
        if (
            zipfile.is_zipfile(path)
            and sum(part.file_size for part in zipfile.ZipFile(path).infolist()) > _LARGEST_BOOK
        ):
            raise DataError(f"{path}: unpacks to more than {_LARGEST_BOOK >> 20} MB; save the sheet as CSV")
        with path.open("rb") as file:
            book = load(file, read_only=True, data_only=True)
            return _sheet_rows(path, book, sheet)
    except ModuleNotFoundError as error:
        raise missing_package("an Excel file", error, "excel") from None
    except DataError:
        raise
    except Exception as error:  # a damaged file raises errors of zip, XML or openpyxl's own
        raise DataError(f"{path} cannot be read as Excel ({error}); save it again, as .xlsx or CSV") from None


def _sheet_rows(path: Path, book: Any, sheet: str) -> tuple[str, list[tuple[int, list[str]]]]:
    names = [sheet] if sheet else book.sheetnames
    if sheet and sheet not in book.sheetnames:
        raise DataError(f"{path}: no sheet {sheet!r}; it has {', '.join(book.sheetnames)}")
    filled = {}
    for name in names:
        book[name].reset_dimensions()  # a lone cell far to the right would widen every row
        rows = book[name].iter_rows(values_only=True)
        numbered = [(line, row) for line, row in enumerate(rows, 1) if any(cell is not None for cell in row)]
        if len(numbered) > 1:
            filled[name] = numbered
    if len(filled) != 1:
        advice = "name one (--sheet, or `sheet` beside a data set's `path`), or keep only one"
        which = f"{len(filled)} sheets with rows ({', '.join(filled)}); {advice}" if filled else "no rows"
        raise DataError(f"{path}: has {which}")
    (name, numbered), *_ = filled.items()
    width = _width(path, numbered[0][1])
    if wide := next((line for line, row in numbered if any(map(str.strip, map(text_of, row[width:])))), 0):
        fault = f"row {wide} has cells to the right of the first row, which names the columns"
        raise DataError(f"{path}: {fault}; name each column there, or remove these cells")
    return name, [(line, [*map(text_of, row[:width]), *([""] * (width - len(row)))]) for line, row in numbered]


def _width(path: Path, header: Sequence[Any]) -> int:
    """Return the columns that a first row names. Raises DataError for a cell that stands alone far to the right."""
    filled = [number for number, cell in enumerate(header, 1) if text_of(cell).strip()]
    for before, after in itertools.pairwise(filled):
        if after - before > _FAR:
            raise DataError(
                f"{path}: in the first row, which names the columns, a cell stands alone in column {after}, far to the"
                f" right of column {before}; remove it"
            )
    return max(filled, default=len(header))


def text_of(cell: Any) -> str:
    """Return a cell of a spreadsheet, or a value of JSON, as text."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, (date, datetime)) else str(cell)
