"""How models rank, how few tasks would do, when models should not answer, whether tasks are worth having."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from evaluation import tables
from evaluation.build.chart import curve
from evaluation.build.quality.files import CHECKS, COLUMNS
from evaluation.measures.abstention import read_abstention
from evaluation.report import abstention_exhibits, paper_tables
from plumbline.errors import DataError
from plumbline.exhibits.page import Figure
from plumbline.exhibits.table import Exhibit
from plumbline.reading import read_json
from plumbline.study import Study
from streamlit_app.readers import scores
from streamlit_app.readers.files import SCORED
from streamlit_app.records import cached

_CURVE, _SELECTION, _QUALITY = "selection/curve.csv", "selection/selection.json", f"quality/{CHECKS}"
_ABSTENTION = "abstention.parquet"


@dataclass(frozen=True)
class Agreement:
    """What a selection in the study's folder came to: its one sentence, the curve's rows and its figure."""

    answer: str
    table: pd.DataFrame
    figure: Figure


@cached(*SCORED)
def board(study: Study) -> Exhibit:
    """`paper_tables.ranking` of the original scores, with intervals."""
    return paper_tables.ranking(scores.results(study), transformed=False)


@cached(watches=(_CURVE, _SELECTION))
def agreement(study: Study) -> Agreement | None:
    """Agreement by number of tasks, as `evaluation.build select` left it in `selection/`; None where it did not."""
    if not (study.folder / _CURVE).exists() or not (study.folder / _SELECTION).exists():
        return None
    said = read_json(study.folder / _SELECTION)
    table = _csv(study.folder / _CURVE, ("method", "tasks", "tau", "tau_low", "tau_high", "rho"))
    try:
        return Agreement(str(said["answer"]), table, curve(table, int(said["models"]["held_out"])))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{study.folder / _SELECTION} is damaged ({error}); run `python -m evaluation.build select` again"
        ) from None


@cached(watches=(_ABSTENTION, *SCORED))
def abstaining(study: Study) -> tuple[list[Exhibit], pd.DataFrame]:
    """Its tables, and the rows of its curves; nothing where it was not measured."""
    rows = scores.with_short_names(study, read_abstention(study))
    curves = tables.abstention_curves(rows)
    if curves.empty:
        return [], curves
    results = scores.results(study)
    return [abstention_exhibits.nauc(results, rows), abstention_exhibits.thresholds(results, rows)], curves


@cached(watches=(_QUALITY,))
def quality(study: Study) -> pd.DataFrame:
    """What `evaluation.build check` found, what fails first; empty where nothing was checked."""
    if not (study.folder / _QUALITY).exists():
        return pd.DataFrame(columns=list(COLUMNS))
    found = _csv(study.folder / _QUALITY, COLUMNS)
    order = {"fail": 0, "look": 1, "pass": 2}
    return found.sort_values("verdict", key=lambda words: words.map(order), kind="stable").reset_index(drop=True)


def _csv(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """A table of the command line's. Raises DataError for one that is damaged."""
    try:
        table = pd.read_csv(path)
    except (ValueError, UnicodeDecodeError, pd.errors.ParserError) as error:
        raise DataError(f"{path} is damaged ({error}); make it again") from None
    if missing := [name for name in columns if name not in table]:
        raise DataError(f"{path} is damaged (no column {missing[0]!r}); make it again")
    words = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    return table.fillna(dict.fromkeys(words, "")) if words else table
