"""Whether a table's first line names its columns, or is a row that would be lost: told by what the other lines hold."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

import pandas as pd

from plumbline.errors import DataError

_NAMED = 4  # words; a column's name has fewer


def refuse_no_header(frame: pd.DataFrame, path: Path, usual: Collection[str]) -> None:
    """Raise DataError where the first line of a CSV or TSV file, which names the columns, looks like a row.

    It is none where one of its names is among `usual`.
    """
    names = [str(name).strip() for name in frame.columns]
    if path.suffix.lower() not in (".csv", ".tsv") or set(usual) & {name.lower() for name in names}:
        return
    if names == [str(number) for number in range(len(names))]:  # as tables without names are written
        return
    for index, name in enumerate(names):
        if why := _like_a_row(name, [str(cell).strip() for cell in frame.iloc[:, index]]):
            raise DataError(
                f"{path}: its first line looks like a row and not like names of columns, for {name[:60]!r} {why}; put a"
                " line of names above it, such as text or text,label (if it is a name, give that column a shorter one)"
            )


def _like_a_row(name: str, cells: Sequence[str]) -> str:
    """Why what stands on top of a column is one of its cells; empty where it may be its name."""
    if name and name in cells:
        return "stands in a later line of its column too"
    if _is_number(name) and cells and all(map(_is_number, cells)):
        return "is a number, as all of its column are"
    if len(name.split()) >= _NAMED or re.search(r"[.!?。！？]$", name):
        return "reads like a text"
    return ""


def _is_number(word: str) -> bool:
    return bool(re.fullmatch(r"[-+]?\d+([.,]\d+)?", word))
