"""A file of cells as a table, with its encoding and separator recognised.

Each row keeps its line number; lines that are not rows are listed. Cells are texts. A column keeps each distinct text
once, with a number for each row, so that a million rows take little memory and each distinct cell is examined once.
"""

from __future__ import annotations

import codecs
import collections
import csv
import itertools
import unicodedata
import zipfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from plumbline.errors import DataError, StudyError
from plumbline.reading import refuse_no_file
from plumbline.resources import missing
from plumbline.words import count, count_words, trim

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
EXCEL = (".xlsx", ".xlsm")
Quoting = Literal[0, 3]  # QUOTE_MINIMAL, QUOTE_NONE
AND_ALSO = "\x1f"  # between several labels in one cell
_HEAD = 200  # rows by which the separator is recognised
_TITLES = 6  # first rows, which must include the header
_PIECE = 1 << 20
_LARGEST_CELL = 2**24  # characters
_LARGEST_BOOK = 2**29  # bytes of what a spreadsheet unpacks to


@contextmanager
def _large_cells() -> Iterator[None]:
    """Raise the `csv` module's limit on cells' sizes within a block."""
    before = csv.field_size_limit(_LARGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


@dataclass(frozen=True)
class UnplacedRow:
    """A row, or an answer in it, that is missing from the study, and the reason."""

    file: str
    line: int
    reason: str
    column: str = ""


@dataclass(frozen=True)
class CellTable:
    """The rows of one file: a column of categories for each name, all of them texts."""

    path: Path
    form: str  #: what the file was recognised as
    cells: pd.DataFrame
    lines: np.ndarray  #: of each row in the file
    listed: tuple[UnplacedRow, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)  #: of columns whose meaning the form itself defines
    notes: tuple[str, ...] = ()
    lower: frozenset[str] = frozenset()  #: questions where less is better, such as ranks
    scales: Mapping[str, str] = field(default_factory=dict)  #: of questions whose scale the form defines: 0..25

    def values(self, column: str) -> list[str]:
        """Return the distinct texts of a column."""
        return list(self.cells[column].cat.categories)


class TableBuilder:
    """Takes rows in; each column keeps its distinct texts and a number for each row."""

    def __init__(self) -> None:
        self._codes: dict[str, array[int]] = {}
        self._texts: dict[str, dict[str, int]] = {}
        self._lines = array("q")

    def add(self, row: Mapping[str, str], line: int) -> None:
        """Add one row by column; columns that it lacks are empty there."""
        number = len(self._lines)
        for name, text in row.items():
            codes = self._codes.get(name)
            if codes is None:
                codes, self._texts[name] = array("i", [-1]) * number, {}
                self._codes[name] = codes
            if len(codes) < number:
                codes.extend(itertools.repeat(-1, number - len(codes)))
            texts = self._texts[name]
            codes.append(texts.setdefault(text, len(texts)) if text else -1)
        self._lines.append(line)

    def add_all(self, header: Sequence[str], rows: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Add many rows of cells in the order of a header, quickly."""
        columns = []
        for name in header:
            self._codes[name], self._texts[name] = array("i"), {}
            texts = self._texts[name]
            columns.append((self._codes[name].append, texts.setdefault, texts.__len__))
        note = self._lines.append
        for line, row in rows:
            note(line)
            for (append, number, length), text in zip(columns, row, strict=True):
                append(number(text, length()))

    def frame(self, *, composed: bool = True) -> tuple[pd.DataFrame, np.ndarray]:
        """Return the columns and the rows' lines; texts are trimmed, in NFC if `composed`, empty ones missing."""
        lines = np.frombuffer(self._lines, np.int64) if len(self._lines) else np.empty(0, np.int64)
        columns = {}
        for name, codes in self._codes.items():
            codes.extend(itertools.repeat(-1, len(lines) - len(codes)))
            texts = (trim(text) for text in self._texts[name])
            columns[name] = _categories(np.frombuffer(codes, np.int32), list(map(_nfc, texts) if composed else texts))
            self._texts[name] = {}
        return pd.DataFrame(columns, index=pd.RangeIndex(len(lines))), lines


def _categories(codes: np.ndarray, texts: Sequence[str]) -> pd.Categorical[Any]:
    """Return numbers of texts as categories; texts that became equal share one."""
    numbers: dict[str, int] = {}
    same = np.fromiter((numbers.setdefault(text, len(numbers)) if text else -1 for text in texts), np.int32, len(texts))
    same = np.append(same, np.int32(-1))  # what was missing stays so
    return coded(same[codes], list(numbers))


def _nfc(text: str) -> str:
    return text if text.isascii() else trim(unicodedata.normalize("NFC", text))


def coded(codes: np.ndarray, texts: Sequence[str]) -> pd.Categorical[Any]:
    """Return numbers of texts as a column of categories; -1 is a missing text."""
    index: pd.Index[Any] = pd.Index(np.array(texts, object), dtype="str")
    column: pd.Categorical[Any] = pd.Categorical.from_codes(codes, index)
    return column


@_large_cells()
def read_csv(path: Path, *, composed: bool = True) -> CellTable:
    """Read a CSV or TSV file of any usual encoding and separator, in NFC if `composed`. Raises DataError."""
    encoding, notes = _encoding(path)
    try:
        separator = _separator(path, encoding)
    except csv.Error as error:
        raise DataError(f"{path}: cannot be read as CSV ({error}); save it again") from None
    quoting: Quoting = csv.QUOTE_NONE if _has_bare_quotes(path, encoding, separator) else csv.QUOTE_MINIMAL
    notes += ("quotation marks are read as part of the texts",) * (quoting == csv.QUOTE_NONE)
    builder, listed = TableBuilder(), list[UnplacedRow]()
    with path.open(encoding=encoding, newline="") as file:
        reader = csv.reader(file, delimiter=separator, quoting=quoting)
        try:
            filled = (row for row in reader if any(map(str.strip, row)))
            header, taken, more = _header(list(itertools.islice(filled, _TITLES)), path)
            file.seek(0)
            reader = csv.reader(file, delimiter=separator, quoting=quoting)
            collections.deque((next(row for row in reader if any(map(str.strip, row))) for _ in range(taken)), 0)
            start, notes = reader.line_num, (*notes, *more)
            builder.add_all(header, _whole_rows(reader, path, len(header), separator, listed))
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: cannot be read as CSV ({error}); save it again") from None
        end = reader.line_num
    cells, lines = builder.frame(composed=composed)
    if not len(lines) and not listed:
        raise DataError(f"{path}: no rows in it, only a header (line {start})")
    if len(lines) > 1 and lines[-1] == end and end - lines[-2] > 1000:
        raise DataError(
            f"{path}, line {lines[-2] + 1}: a quotation mark is closed only {end - lines[-2]} lines later; close it"
        )
    kind = "TSV" if separator == "\t" else "CSV"
    table = CellTable(path, f"{kind} ({SEPARATORS[separator]})", cells, lines, tuple(listed), notes=notes)
    _refuse_no_header(table)
    return table


def _encoding(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the encoding in which a file can be read, and remarks on it."""
    try:
        refuse_no_file(path)
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    if not start:
        raise DataError(f"{path} is empty; export it again")
    encoding, notes = "utf-8-sig", tuple[str, ...]()
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        encoding, notes = "utf-32", ("read as UTF-32",)
    elif start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding, notes = "utf-16", ("read as UTF-16",)
    elif max(zeros := [start[1::2].count(0), start[::2].count(0)]) > len(start) // 8:
        encoding = "utf-16-le" if zeros[0] > zeros[1] else "utf-16-be"
        notes = ("read as UTF-16 without a byte order mark",)
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        try:
            while piece := file.read(_PIECE):
                if "\0" in decoder.decode(piece):
                    raise DataError(f"{path} contains a null character, so it is not text; save it again as UTF-8")
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            if encoding != "utf-8-sig":
                raise DataError(f"{path} is cut off, or not {encoding.upper()}; export it again as UTF-8") from None
            return "cp1252", ("not UTF-8, so read as Windows-1252; check letters with accents",)
    return encoding, notes


def _separator(path: Path, encoding: str) -> str:
    """Return the separator that gives most of the first rows as many cells as the header."""
    with path.open(encoding=encoding, newline="") as file:
        head = list(itertools.islice(file, _HEAD))
    best, most = ",", (0, 0)
    readings: list[tuple[str, Quoting]] = [(mark, csv.QUOTE_MINIMAL) for mark in SEPARATORS]
    for separator, quoting in [*readings, ("\t", csv.QUOTE_NONE)]:
        sizes = [len(row) for row in csv.reader(head, delimiter=separator, quoting=quoting) if row]
        sizes = list(itertools.dropwhile(lambda size: size == 1, sizes))  # a title
        alike = sizes.count(sizes[0]) if sizes else 0
        if sizes and sizes[0] > 1 and (alike, sizes[0]) > most:
            best, most = separator, (alike, sizes[0])
    if not most[0]:
        raise DataError(f"{path}: no commas, semicolons, tabs or bars separate its cells; save it as CSV")
    return best


def _has_bare_quotes(path: Path, encoding: str, separator: str) -> bool:
    """Return whether lines have as many cells as the header only if quotation marks are ordinary characters."""
    if separator != "\t":
        return False
    with path.open(encoding=encoding, newline="") as file:
        width = file.readline().count(separator)
        odd = 0
        for line in file:
            if line.strip() and line.count(separator) != width:
                return False
            odd += any(cell.count('"') % 2 or cell[:1] == '"' != cell[-1:] for cell in line.rstrip("\r\n").split("\t"))
    return odd > 0


def _header(head: Sequence[Sequence[str]], path: Path) -> tuple[list[str], int, tuple[str, ...]]:
    """Return the columns' names, the number of rows that they take, and remarks on them.

    A title above is skipped; if a name spans several columns, the row below it names each of them. A column without a
    name gets its number.
    """
    rows, notes, taken = [[trim(name) for name in row] for row in head], list[str](), 1
    while taken < len(rows) and sum(map(bool, rows[taken - 1])) == 1:
        notes.append(f"skipped the title {next(filter(None, rows[taken - 1]))[:60]!r} above the header")
        taken += 1
    names = rows[taken - 1] if rows else []
    below = rows[taken] if taken < len(rows) else []
    filled = [number for number, name in enumerate(names) if name]
    gaps = [number for number, name in enumerate(names) if not name and number > filled[0]] if filled else []
    labels = [name for name in below if name]
    is_second = len(labels) < len(names) or len(set(labels)) < len(labels)
    if (
        gaps
        and len(below) == len(names)
        and all(below[n] for n in gaps)
        and is_second
        and not any(map(_is_number, labels))
    ):
        above: Iterator[str] = itertools.accumulate(names, lambda before, name: name or before)
        both = (
            (name, f"[{label}]" if count_words(label) > 2 else label) for name, label in zip(above, below, strict=True)
        )
        names, taken = [" ".join(filter(None, pair)) for pair in both], taken + 1
        notes.append("the header has two rows")
    header = [name or f"column {number}" for number, name in enumerate(names, 1)]
    if twice := [name for name, times in Counter(header).items() if times > 1]:
        raise DataError(f"{path}: two columns are called {twice[0][:60]!r}; rename one")
    return header, taken, tuple(notes)


def _whole_rows(
    reader: Any, path: Path, width: int, separator: str, listed: list[UnplacedRow]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with as many cells as the header, skip blank ones, and list the others."""
    for row in reader:
        if len(row) != width:
            if not any(map(str.strip, row)):
                continue
            if len(row) > width and not any(map(str.strip, row[width:])):
                yield reader.line_num, row[:width]
                continue
            also = next((name for mark, name in SEPARATORS.items() if mark != separator and mark in "".join(row)), "")
            hint = f"; check whether {also} separate the cells" if also and len(row) == 1 else ""
            listed.append(
                UnplacedRow(
                    path.name,
                    reader.line_num,
                    f"{count(len(row), 'cell')}, but the header has {width}{hint}",
                )
            )
            continue
        yield reader.line_num, row


def _refuse_no_header(table: CellTable) -> None:
    """Raise DataError if the first line looks like a row and not like column names."""
    names = [str(name) for name in table.cells.columns]
    like_rows = [name for name in names if _like_a_cell(name, table.values(name))]
    named_again = any("ImportId" in str(cell) for cell in table.cells.iloc[1]) if len(table.cells) > 1 else False
    if names and 2 * len(like_rows) > len(names) and not named_again:  # Qualtrics names its columns thrice
        raise DataError(
            f"{table.path}: its first line looks like a row ({like_rows[0][:40]!r} is hardly the name of a column);"
            " put a line of column names above it, such as item,rater,answer"
        )


def _like_a_cell(name: str, values: Sequence[str]) -> bool:
    return name in values or (_is_number(name) and bool(values) and all(map(_is_number, values[:1000])))


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace(".", "", 1).isdecimal()


def read_excel(path: Path, sheet: str = "") -> CellTable:
    """Read a sheet of an Excel file. Raises DataError if several sheets have rows and none is named."""
    try:
        import openpyxl  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise missing("an Excel file", error, "excel") from None
    try:
        if (
            zipfile.is_zipfile(path)
            and sum(part.file_size for part in zipfile.ZipFile(path).infolist()) > _LARGEST_BOOK
        ):
            raise DataError(f"{path}: unpacks to more than {_LARGEST_BOOK >> 20} MB; save the sheet as CSV")
        with path.open("rb") as file:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            return _sheet(path, book, sheet)
    except (DataError, StudyError):
        raise
    except Exception as error:  # a damaged file raises errors of zip, XML or openpyxl's own
        raise DataError(f"{path} cannot be read as Excel ({error}); save it again, as .xlsx or CSV") from None


def _sheet(path: Path, book: Any, sheet: str) -> CellTable:
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
        which = f"{len(filled)} sheets with rows ({', '.join(filled)}); name one with --sheet" if filled else "no rows"
        raise DataError(f"{path}: has {which}")
    (name, numbered), *_ = filled.items()
    header, taken, notes = _header([list(map(_text, row)) for _, row in numbered[:_TITLES]], path)
    builder = TableBuilder()
    width = len(header)
    whole = ((line, [*map(_text, row[:width]), *([""] * (width - len(row)))]) for line, row in numbered[taken:])
    builder.add_all(header, whole)
    cells, lines = builder.frame()
    return CellTable(path, f"Excel, sheet {name!r}", cells, lines, notes=notes)


def _text(cell: Any) -> str:
    """Return a cell of a spreadsheet, or a value of JSON, as text."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, (date, datetime)) else str(cell)


text_of = _text
