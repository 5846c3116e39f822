"""Files read by their form, recognised by content: tables of cells, and exports of annotation tools."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from annotation.imports.nested import read_json
from annotation.imports.sheets import spread
from annotation.imports.tables import EXCEL, CellTable, coded_rows, read_csv, read_excel, refuse_no_header, text_of
from plumbline.errors import DataError
from plumbline.reading import refuse_no_file

JSON = (".json", ".jsonl", ".ndjson")


def read_file(path: Path, sheet: str = "") -> list[CellTable]:
    """Read a file as tables of cells. Raises DataError for an unreadable file."""
    try:
        refuse_no_file(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    kind = path.suffix.lower()
    if kind in EXCEL:
        return [read_excel(path, sheet)]
    if kind in JSON or _begins_like_json(path):
        return read_json(path)
    plain = read_csv(path)
    table = spread(plain)
    if table is plain:  # a tool's own names are no cells, though Qualtrics writes them thrice
        refuse_no_header(table)
    return [table]


def read_frame(name: str, frame: pd.DataFrame) -> CellTable:
    """Return a frame as a table; a row's number in it is its line."""
    columns = list(map(str, frame.columns))
    if len(set(columns)) < len(columns):
        raise DataError(f"{name}: two columns have the same name; rename one")
    whole = frame.astype(object).where(frame.notna(), None)
    rows = ([text_of(cell) for cell in row] for row in whole.itertuples(index=False, name=None))
    cells, lines = coded_rows(columns, enumerate(rows, 1))
    if not len(lines):
        raise DataError(f"{name}: has no rows")
    return spread(CellTable(Path(name), "a frame", cells, lines))


def _begins_like_json(path: Path) -> bool:
    """Return whether a file of any name holds JSON: its first sign is a bracket that no header begins with."""
    with path.open("rb") as file:
        start = file.read(200).removeprefix(b"\xef\xbb\xbf").lstrip()
    return start[:2] in (b'{"', b"[{", b"[\n", b"[\r") or start[:1] == b"{"
