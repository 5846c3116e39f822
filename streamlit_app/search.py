"""Search in a study's texts and outputs: files are read in pieces, up to the first matches that a page can show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from generation.unit import COMMAND
from plumbline.records import Text, TransformedText, nfc
from plumbline.store import read_batches
from plumbline.study import Study
from plumbline.transformations import ORIGINAL

SHOWN = 100  # matches
_TEXT = ["dataset", "split", "item", "field", "language", "text_id", "text"]
_OUTPUT = ["text_id", "text", "source_language", "transformation", "seed", "language", "output", "status", "reason"]
_OUTPUT += ["flags", "attempts", "model"]


def find(study: Study, query: str, where: str, units: Sequence[tuple[str, int]]) -> tuple[pd.DataFrame, bool]:
    """(the first matches, whether there may be more).

    `where` is `original` (the data sets' texts) or a transformation (outputs and their originals, of all seeds in
    `units`), or empty for all transformations. Letter case does not matter; the query is a piece of text, no pattern.
    Raises DataError for damaged files.
    """
    tables: list[pa.Table] = []
    number = 0
    for batch in _batches(study, where, units):
        columns = [batch["text"]] if where == ORIGINAL else [batch["text"], batch["output"]]
        hits = pc.match_substring(columns[0], nfc(query), ignore_case=True)
        for column in columns[1:]:
            hits = pc.or_(hits, pc.match_substring(column, nfc(query), ignore_case=True))
        tables.append(batch.filter(hits))
        number += tables[-1].num_rows
        if number > SHOWN:
            break
    frame = pa.concat_tables(tables).to_pandas() if tables else pd.DataFrame(columns=_OUTPUT)
    return frame.head(SHOWN), len(frame) > SHOWN


def _batches(study: Study, where: str, units: Sequence[tuple[str, int]]) -> Iterator[pa.Table]:
    if where == ORIGINAL:
        yield from read_batches(study.folder / "texts.parquet", Text, study.command(COMMAND), _TEXT)
        return
    for transformation, seed in units:
        if where in ("", transformation):
            path = study.transformation_file(transformation, seed)
            yield from read_batches(path, TransformedText, study.command(COMMAND), _OUTPUT)
