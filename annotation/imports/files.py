"""Files by their form, which their content tells: tables of cells, and what annotation tools export."""

from __future__ import annotations

from pathlib import Path

from annotation.imports.nested import read_json
from annotation.imports.sheets import spread
from annotation.imports.tables import EXCEL, CellTable, read_csv, read_excel
from plumbline.errors import DataError

JSON = (".json", ".jsonl", ".ndjson")


def read_file(path: Path, sheet: str = "") -> list[CellTable]:
    """What a file holds. Raises DataError for one that cannot be read."""
    if not path.exists():
        raise DataError(f"{path}: there is no such file")
    kind = path.suffix.lower()
    if kind in EXCEL:
        return [read_excel(path, sheet)]
    if kind in JSON or _begins_like_json(path):
        return read_json(path)
    return [spread(read_csv(path))]


def _begins_like_json(path: Path) -> bool:
    """Whether a file of any name holds JSON: its first sign is a bracket that no header begins with."""
    with path.open("rb") as file:
        start = file.read(200).removeprefix(b"\xef\xbb\xbf").lstrip()
    return start[:2] in (b'{"', b"[{", b"[\n", b"[\r") or start[:1] == b"{"
