"""Files by their form, which their content tells: tables of cells, and what annotation tools export."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from annotation.imports.tables import EXCEL, CellTable, read_csv, read_excel
from plumbline.errors import DataError


def read_file(path: Path, sheet: str = "") -> Iterable[CellTable]:
    """What a file holds. Raises DataError for one that cannot be read."""
    if not path.exists():
        raise DataError(f"{path}: there is no such file")
    if path.suffix.lower() in EXCEL:
        yield read_excel(path, sheet)
        return
    yield read_csv(path)
