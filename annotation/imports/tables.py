"""A file of cells as a table, with its encoding and separator recognised.

Each row keeps its line number; lines that are not rows are listed. Cells are texts. A column keeps each distinct text
once, with a number for each row, so that a million rows take little memory and each distinct cell is examined once.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import mmap
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv as csv_reader

from plumbline.errors import DataError
from plumbline.reading import encoding_of
from plumbline.records import nfc
from plumbline.spreadsheets import EXCEL, excel_rows, one_file, refuse_sheet, unpacked
from plumbline.words import count, shows, trim

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MARK = "\x1e"  # before a name that no field of the file has
ENTRY = f"{MARK}entry"  # the column of an entry's number, where an entry of JSON gives several rows
AND_ALSO = "\x1f"  # between several labels in one cell
_Quoting = Literal[0, 3]  # the `csv` module's QUOTE_MINIMAL and QUOTE_NONE
_NAMED_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?\s*', re.I)
_NO_NAME = re.compile(r"[+-]?\d+\.\d+|https?://\S+")  # of a column: a cell of a table without a header
_HEAD = 200  # rows by which the separator is recognised
_MOST_COLUMNS = 5_000
_LARGEST_CELL = 2**24  # characters


@contextlib.contextmanager
def _large_cells() -> Iterator[None]:
    """Raise the `csv` module's limit on cells' sizes within a block."""
    limit = csv.field_size_limit(_LARGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


@dataclass(frozen=True)
class UnplacedRow:
    """A row, or an answer in it, that is missing from the study, and the reason."""

    file: str
    line: int
    reason: str
    column: str = ""


@dataclass(frozen=True)
class ObjectKeys:
    """What stands around a column of keys: the field that holds the objects, and the columns of what is in these."""

    holder: str = ""  #: empty for the file's own records
    within: frozenset[str] = frozenset()


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
    #: By column: rows that repeat the value of an entry with several rows.
    copies: Mapping[str, np.ndarray] = field(default_factory=dict)
    entry: str = ""  #: the column of entries' numbers, where entries give several rows
    keys: Mapping[str, ObjectKeys] = field(default_factory=dict)  #: columns of the keys above JSON's objects

    def values(self, column: str) -> list[str]:
        """Return the distinct texts of a column."""
        texts: list[str] = self.cells[column].cat.categories.tolist()
        return texts

    def listing(self, column: str, mask: Sequence[bool], reason: str) -> Iterator[UnplacedRow]:
        """Yield the rows whose text in a column is wrong; `mask` says it for each of its distinct texts."""
        for row in np.flatnonzero(np.array([*mask, False])[self.cells[column].cat.codes]):
            yield UnplacedRow(self.path.name, int(self.lines[row]), reason, column)


def coded_rows(
    header: Sequence[str], rows: Iterable[tuple[int, Sequence[str]]], *, composed: bool = True
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return numbered rows of cells as columns of categories, and the rows' lines.

    Texts are trimmed, in NFC if `composed`, and empty ones are missing. No row is kept as such, so that a million rows
    take little memory.
    """
    lines = array("q")
    columns = [(array("i"), dict[str, int]()) for _ in header]
    takers = [(codes.append, texts.setdefault, texts.__len__) for codes, texts in columns]
    for line, row in rows:
        lines.append(line)
        for (append, number, length), text in zip(takers, row, strict=True):
            append(number(text, length()))
    cells = {}
    for name, (codes, texts) in zip(header, columns, strict=True):
        cells[name] = _trimmed(np.array(codes, np.int32), list(texts), composed)
        texts.clear()
    return pd.DataFrame(cells, index=pd.RangeIndex(len(lines))), np.array(lines, np.int64)


def _trimmed(codes: np.ndarray, texts: Sequence[str], composed: bool) -> pd.Categorical[Any]:
    return merged(codes, [trim(nfc(text) if composed else text) for text in texts])


def merged(codes: np.ndarray, texts: Sequence[str]) -> pd.Categorical[Any]:
    """Return numbers of texts as a column of categories: equal texts share one, and empty ones are missing."""
    if all(texts) and len(set(texts)) == len(texts):
        return coded(codes.astype(np.int32), texts)
    numbers: dict[str, int] = {}
    same = [numbers.setdefault(text, len(numbers)) if text else -1 for text in texts]
    return coded(np.array([*same, -1], np.int32)[codes], list(numbers))


def renamed(column: pd.Categorical[Any], texts: Sequence[str]) -> pd.Categorical[Any]:
    """Return a column with other texts for its categories; those that show nothing are missing."""
    return merged(column.codes, [text if shows(text) else "" for text in texts])


def refuse_wide(path: Path, columns: int) -> None:
    """Raise DataError for more columns than a file of ratings has."""
    if columns > _MOST_COLUMNS:
        raise DataError(f"{path}: has more than {_MOST_COLUMNS:,} columns; keep those of texts, raters and answers")


def coded(codes: np.ndarray, texts: Sequence[str]) -> pd.Categorical[Any]:
    """Return numbers of texts as a column of categories; -1 is a missing text."""
    index: pd.Index[Any] = pd.Index(np.array(texts, object), dtype="str")
    column: pd.Categorical[Any] = pd.Categorical.from_codes(codes, index)
    return column


@_large_cells()
def read_csv(path: Path, *, composed: bool = True) -> CellTable:
    """Read a CSV or TSV file of any usual encoding and separator, in NFC if `composed`. Raises DataError."""
    encoding, remark = encoding_of(path)
    separator = _separator(path, encoding)
    bare = separator == "\t" and _has_bare_quotes(path, encoding)
    notes = [remark, "quotation marks are read as part of the texts" if bare else ""]
    listed, short = list[UnplacedRow](), Counter[int]()
    with path.open(encoding=encoding, newline="") as file:
        quoting: _Quoting = csv.QUOTE_NONE if bare else csv.QUOTE_MINIMAL
        reader = csv.reader(file, delimiter=separator, quoting=quoting, strict=True)
        rows = _numbered_rows(reader, path)
        start, names = next(rows, (0, []))
        if start == 1 and _NAMED_SEPARATOR.fullmatch(separator.join(names)):
            start, names = next(rows, (1, []))
        header = _header(names, path)
        at_once = encoding == "utf-8" and start == reader.line_num == 1 and not bare
        read = _plain_rows(path, separator, header, composed) if at_once else None
        full = _full_rows(rows, path, header, separator, listed, short)
        cells, lines = read or coded_rows(header, full, composed=composed)
    if not len(lines) and not listed:
        raise DataError(f"{path}: no rows in it, only a header (line {start or reader.line_num})")
    if short:
        verb = "ends before the last column" if short.total() == 1 else "end before the last columns"
        last = ", ".join(header[min(short) :][:5])
        notes.append(f"{count(short.total(), 'row')} {verb} ({last}), so these cells are empty")
    kind = "TSV" if separator == "\t" else "CSV"
    form = f"{kind} ({SEPARATORS[separator]})"
    return CellTable(path, form, cells, lines, tuple(listed), notes=tuple(filter(None, notes)))


def _plain_rows(
    path: Path, separator: str, header: Sequence[str], composed: bool
) -> tuple[pd.DataFrame, np.ndarray] | None:
    """Return all rows at once if each line is one like the header, else None: row by row takes four times as long."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        mark = re.escape(separator.encode())
        if re.search(rb'"(?<![%b\n"]")(?![%b\r\n"])' % (mark, mark), content):
            return None  # a quotation mark within a cell
        marks = [line.count(b'"') for line in file]
    if any(number % 2 for number in marks):
        return None  # one that is never closed, or a line's end within a cell
    numbers = list(map(str, range(len(header))))
    texts = csv_reader.ConvertOptions(
        column_types=dict.fromkeys(numbers, pa.dictionary(pa.int32(), pa.string())), strings_can_be_null=False
    )
    try:
        rows = csv_reader.read_csv(
            path, csv_reader.ReadOptions(column_names=numbers, skip_rows=1),
            csv_reader.ParseOptions(delimiter=separator), texts,
        ).unify_dictionaries()  # fmt: skip
    except pa.ArrowInvalid:
        return None
    if rows.num_rows != len(marks) - 1 or not rows.num_rows:
        return None
    cells = {}
    for name, column in zip(header, rows.itercolumns(), strict=True):
        coded_texts = column.combine_chunks()
        cells[name] = _trimmed(coded_texts.indices.to_numpy(), coded_texts.dictionary.to_pylist(), composed)
    filled = np.any([column.codes >= 0 for column in cells.values()], axis=0)
    return pd.DataFrame(cells)[filled].reset_index(drop=True), np.flatnonzero(filled) + 2


def _numbered_rows(reader: Any, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with its last line. Raises DataError for what is no CSV."""
    line = 0
    try:
        for row in reader:
            if any(map(str.strip, row)):
                line = reader.line_num
                yield line, row
    except csv.Error as error:
        raise DataError(
            f"{path}, lines {line + 1} to {reader.line_num}: cannot be read as CSV ({error}); close the quotation"
            ' mark, or write it twice ("") within a cell'
        ) from None


def _separator(path: Path, encoding: str) -> str:
    """Return the separator with which most of the first rows have as many cells as the header, or fewer.

    A mark within quotation marks separates nothing, and with a wrong separator these stand within cells: then a reading
    ends there. Excel names the separator in a first line of its own, `sep=;`.
    """
    with path.open(encoding=encoding, newline="") as file:
        head = list(itertools.islice(file, _HEAD))
    if head and (line := _NAMED_SEPARATOR.fullmatch(head[0])):
        return line[1]
    best, most = ",", (0, 0, 0)
    readings: list[tuple[str, _Quoting]] = [(mark, csv.QUOTE_MINIMAL) for mark in SEPARATORS]
    for separator, quoting in [*readings, ("\t", csv.QUOTE_NONE)]:
        sizes = list[int]()
        with contextlib.suppress(csv.Error):
            sizes += (len(row) for row in csv.reader(head, delimiter=separator, quoting=quoting, strict=True) if row)
        width = sizes[0] if sizes else 0
        fitting = sum(1 < size <= width for size in sizes)
        if width > 1 and (fitting, width, sizes.count(width)) > most:
            best, most = separator, (fitting, width, sizes.count(width))
    if not most[0]:
        raise DataError(f"{path}: no commas, semicolons, tabs or bars separate its cells; save it as CSV")
    return best


def _has_bare_quotes(path: Path, encoding: str) -> bool:
    """Return whether more rows of a TSV are as wide as its header if quotation marks are ordinary characters."""
    counts = []
    for quoting in (csv.QUOTE_NONE, csv.QUOTE_MINIMAL):
        with path.open(encoding=encoding, newline="") as file, contextlib.suppress(csv.Error):
            sizes = map(len, csv.reader(file, delimiter="\t", quoting=quoting, strict=True))
            counts.append(0)
            width = next(filter(None, sizes), 0)
            for size in sizes:
                counts[-1] += size == width
    return counts[0] > counts[1]


def _header(row: Sequence[str], path: Path) -> list[str]:
    """Return the columns' names; a column without a name gets its number."""
    refuse_wide(path, len(row))
    header = [trim(name) or f"column {number}" for number, name in enumerate(row, 1)]
    if twice := [name for name, times in Counter(header).items() if times > 1]:
        raise DataError(f"{path}: two columns are called {twice[0][:60]!r}; rename one")
    return header


def _full_rows(
    rows: Iterable[tuple[int, list[str]]],
    path: Path,
    header: Sequence[str],
    separator: str,
    listed: list[UnplacedRow],
    short: Counter[int],
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with as many cells as the header: shorter ones are filled up and counted, longer ones listed."""
    width = len(header)
    for line, row in rows:
        if len(row) == width or (len(row) > width and not any(map(str.strip, row[width:]))):
            yield line, row[:width]
            continue
        also = next((name for mark, name in SEPARATORS.items() if mark != separator and mark in "".join(row)), "")
        if len(row) < width and not (also and len(row) == 1):
            short[len(row)] += 1
            yield line, [*row, *([""] * (width - len(row)))]
            continue
        hint = f"; check whether {also} separate the cells" if also and len(row) == 1 else ""
        if len(row) == width + 1:  # a guess would move every answer of a file with decimal commas
            hint = "; quote cells that hold a separator (3,5), or name the first column if R wrote names of rows there"
        reason = f"{count(len(row), 'cell')}, but the header has {width}{hint}"
        listed.append(UnplacedRow(path.name, line, reason))


def refuse_no_header(table: CellTable) -> None:
    """Raise DataError if names of columns look like cells: one is a fraction or an address, or most stand below."""
    like_cells = [
        number
        for number, name in enumerate(map(str, table.cells.columns), 1)
        if name in (texts := table.values(name)) or (texts and _is_number(name) and all(map(_is_number, texts)))
    ]
    never_names = [number for number, name in enumerate(map(str, table.cells.columns), 1) if _NO_NAME.fullmatch(name)]
    if never_names or 2 * len(like_cells) > len(table.cells.columns):
        first = [*never_names, *like_cells][0]
        raise DataError(
            f"{table.path}: its first line looks like a row (in column {first}, for example); put a"
            " line of column names above it, such as item,rater,answer, or rename columns that are named by numbers"
        )


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace(".", "", 1).isdecimal()


def read_excel(path: Path, sheet: str = "") -> CellTable:
    """Read a sheet of an Excel file. Raises DataError if several sheets have rows and none is named."""
    name, ((_, names), *rows) = excel_rows(path, sheet)
    cells, lines = coded_rows(_header(names, path), rows)
    return CellTable(path, f"Excel, sheet {name!r}", cells, lines)


def read_cells(path: Path, sheet: str = "") -> CellTable:
    """Read a CSV or Excel file, which may be packed, with every letter as it is written. Raises DataError."""
    with unpacked(path) as files:
        file = one_file(path, files)
        if file.suffix.lower() in EXCEL:
            return read_excel(file, sheet)
        refuse_sheet(path, sheet)
        return read_csv(file, composed=False)
