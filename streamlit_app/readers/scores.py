"""Scores, and the evaluation's tables of them: for the pages on robustness, on one model and on rankings."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from evaluation.display import short_names
from evaluation.report import dataset_tables, paper_tables
from evaluation.report.outrun import refuse_outrun
from evaluation.report.page import notes_of
from evaluation.report.paper_tables import Results
from evaluation.results import read_scores
from evaluation.tables import ranking_table
from evaluation.tables.profiles import ENGLISH, OTHERS
from evaluation.units import label
from plumbline.errors import DataError
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study
from streamlit_app.readers.files import SCORED
from streamlit_app.readers.ratings import verdicts
from streamlit_app.records import cached, shared


@dataclass(frozen=True)
class ScoreChoices:
    """What scores can be filtered by."""

    models: tuple[str, ...]
    groups: tuple[str, ...]  #: of data sets, by language
    refused: bool  #: whether there are scores of what no verdict accepts


@shared("scores.parquet")
def stored(study: Study) -> pd.DataFrame:
    """The scores as they stand in their file."""
    return words_as_objects(read_scores(study))


@shared("scores.parquet")
def scores(study: Study) -> pd.DataFrame:
    """The scores, with models by their short names."""
    return with_short_names(study, stored(study))


@cached("scores.parquet")
def choices(study: Study) -> ScoreChoices:
    """What the scores can be filtered by."""
    found = scores(study)
    english = found["language"] == "en"
    groups = tuple(name for name, some in ((ENGLISH, english), (OTHERS, ~english)) if some.any())
    return ScoreChoices(tuple(found["model"].unique()), groups, bool((found["status"] == "included_rejected").any()))


@cached(*SCORED)
def outrun(study: Study) -> str:
    """Empty where the scores are those that the verdicts let through, else why not."""
    try:
        refuse_outrun(study, scores(study), verdicts(study))
    except DataError as error:
        return str(error)
    return ""


@cached(*SCORED)
def notes(study: Study) -> tuple[str, ...]:
    """What the scores lack, and why (`evaluation.report.page.notes_of`)."""
    return notes_of(study, stored(study), verdicts(study))


@cached(*SCORED)
def ranks(study: Study, group: str = "") -> pd.DataFrame:
    """Models' ranks by transformed scores beside those by the same items' originals."""
    found = results(study, group).scores
    before, after = (ranking_table(found, transformed=which, same_items=not which) for which in (False, True))
    both: pd.DataFrame = before.merge(after, on="model", suffixes=("_original", "_transformed"))
    return both


@cached(*SCORED)
def axes(study: Study, *, group: str = "", model: str = "", refused: bool = False) -> Exhibit:
    """`paper_tables.axes`, of a group of data sets or of one model; `refused`: with what no verdict accepts."""
    return paper_tables.axes(results(study, group, model), include_rejected=refused)


@cached(*SCORED)
def transformations(study: Study, *, group: str = "", model: str = "", refused: bool = False) -> Exhibit:
    """`paper_tables.transformations`, likewise."""
    return paper_tables.transformations(results(study, group, model), include_rejected=refused)


@cached(*SCORED)
def shifts(study: Study, group: str = "") -> Exhibit:
    """`paper_tables.shifts`."""
    return paper_tables.shifts(results(study, group))


@cached(*SCORED)
def datasets(study: Study, *, group: str = "", model: str = "") -> list[Exhibit]:
    """`dataset_tables.datasets`, in its parts."""
    return dataset_tables.datasets(results(study, group, model))


@cached(*SCORED)
def left_out(study: Study) -> Exhibit:
    """`paper_tables.left_out`."""
    return paper_tables.left_out(results(study))


@cached(*SCORED)
def kendall(study: Study, group: str = "") -> Exhibit:
    """`paper_tables.kendall`."""
    return paper_tables.kendall(results(study, group))


@cached(*SCORED)
def split_half(study: Study, group: str = "") -> Exhibit:
    """`paper_tables.split_half`."""
    return paper_tables.split_half(results(study, group))


@cached(*SCORED)
def rankings(study: Study, group: str = "") -> list[Exhibit]:
    """`paper_tables.ranking` by original and by transformed scores."""
    return [paper_tables.ranking(results(study, group), transformed=transformed) for transformed in (False, True)]


def results(study: Study, group: str = "", model: str = "") -> Results:
    """What tables are made of: the scores of a group of data sets (as in HTEB's Tables 14 and 15) and of one model."""
    found = scores(study)
    found = found[(found["language"] == "en") == (group == ENGLISH)] if group else found
    found = found[found["model"] == model] if model else found
    return Results(found, verdicts(study), (), study.sample.seed)


def with_short_names(study: Study, frame: pd.DataFrame) -> pd.DataFrame:
    """Models by their short names, the same in all records."""
    short = short_names({label(study, spec) for spec in study.evaluation.models})
    names = [short.get(name, name) for name in frame["model"].to_numpy(object)]
    return frame.assign(model=pd.Series(names, index=frame.index, dtype=object))


def words_as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its words as Python's strings: tables go through them often, and Arrow's take long."""
    words = {name: object for name, kind in frame.dtypes.items() if pd.api.types.is_string_dtype(kind)}
    return frame.astype(words)
