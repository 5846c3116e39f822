"""What generators made of the texts: which outputs there are, their errors and lengths."""

from __future__ import annotations

import pandas as pd

from generation.compare import length_table, lengths_measure
from generation.errors import error_rates, errors_measure
from generation.tally import by_generator, is_counted, tally
from plumbline.study import Study
from streamlit_app import search
from streamlit_app.records import cached

_OUTPUTS = ("transformations/", "candidates/")


def units(study: Study) -> list[tuple[str, int]]:
    """The transformations and seeds that have outputs on disk."""
    wanted = [(name, seed) for name in study.transformations for seed in study.seeds]
    return [unit for unit in wanted if study.transformation_file(*unit).exists()]


@cached(watches=("texts.parquet", *_OUTPUTS))
def found(study: Study, query: str, where: str) -> tuple[pd.DataFrame, bool]:
    """`search.find` in all outputs that there are, once for all times that the page shows what it found."""
    return search.find(study, query, where, units(study))


@cached("texts.parquet", watches=_OUTPUTS)
def counted(study: Study) -> bool:
    """Whether `generation.run` has counted what the page shows, so that no outputs are read for it."""
    found = by_generator([study])
    errors_of = [errors_measure(study.transforming, after_retries=after) for after in (False, True)]
    return all(is_counted(found, measure) for measure in (*errors_of, lengths_measure()))


@cached("texts.parquet", watches=_OUTPUTS)
def errors(study: Study, by: str, *, after_retries: bool) -> pd.DataFrame:
    """`generation.errors.error_rates` of the generator and the candidates."""
    return error_rates(
        tally(by_generator([study]), errors_measure(study.transforming, after_retries=after_retries)), by
    )


@cached("texts.parquet", watches=_OUTPUTS)
def lengths(study: Study) -> pd.DataFrame:
    """`generation.compare.length_table` of the same."""
    return length_table(tally(by_generator([study]), lengths_measure()), study.transforming)
