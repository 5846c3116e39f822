"""How models rank, how few tasks would do, when models should not answer, whether tasks are worth having."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from evaluation import tables
from evaluation.benchmarks.quality.checks import CHECKS, COLUMNS
from evaluation.benchmarks.selection_files import curve
from evaluation.human.charts import all_figures
from evaluation.human.exhibits import all_exhibits
from evaluation.human.headline import differing, doubts, headline
from evaluation.human.material import read_material
from evaluation.measures.abstention import read_abstention
from evaluation.report import paper_tables, sensitivity_tables
from plumbline.errors import DataError
from plumbline.exhibits.page import Figure
from plumbline.exhibits.table import Exhibit
from plumbline.reading import read_json
from plumbline.study import Study
from streamlit_app.readers import scores
from streamlit_app.readers.files import OF_PEOPLE, SCORED
from streamlit_app.records import cached, shared


@dataclass(frozen=True)
class PeopleReport:
    """The report's parts: its sentences, what is doubtful, tables and figures by name, whether raters are simulated.

    `apart` has all items of a task that people and its best model see differently, by task.
    """

    sentences: tuple[str, ...]
    doubtful: tuple[str, ...]
    exhibits: dict[str, Exhibit]
    figures: dict[str, Figure]
    apart: dict[str, pd.DataFrame]
    simulated: bool


@shared(*OF_PEOPLE)
def people(study: Study) -> PeopleReport:
    """All of it, as the report has it."""
    material = read_material(study)
    exhibits = all_exhibits(material)
    exhibits.pop("items", None)
    items = {
        str(where): differing(material, str(where), task_items)
        for where, task_items in material.items.groupby("where", sort=False)
    }
    apart = {where: frame for where, frame in items.items() if len(frame)}
    return PeopleReport(
        headline(material), tuple(doubts(material)), exhibits, all_figures(material), apart, material.simulated
    )


_CURVE, _SELECTION, _QUALITY = "selection/curve.csv", "selection/selection.json", f"quality/{CHECKS}"
_ABSTENTION = "abstention.parquet"


@dataclass(frozen=True)
class SelectionExhibit:
    """What a selection in the study's folder came to: its one sentence, the curve's rows and its figure."""

    answer: str
    table: pd.DataFrame
    figure: Figure


@cached(*SCORED)
def board(study: Study) -> Exhibit:
    """`paper_tables.ranking` of the original scores, with intervals."""
    return paper_tables.ranking(scores.results(study), transformed=False)


@cached(watches=(_CURVE, _SELECTION))
def agreement(study: Study) -> SelectionExhibit | None:
    """Agreement by number of tasks, as `plumbline select` left it in `selection/`; None where it did not."""
    if not (study.folder / _CURVE).exists() or not (study.folder / _SELECTION).exists():
        return None
    summary = read_json(study.folder / _SELECTION)
    table = _csv(study.folder / _CURVE, ("method", "tasks", "tau", "tau_low", "tau_high", "rho"))
    try:
        return SelectionExhibit(str(summary["answer"]), table, curve(table, int(summary["models"]["held_out"])))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{study.folder / _SELECTION} is damaged ({error}); run `python -m evaluation.benchmarks select` again"
        ) from None


@cached(watches=(_ABSTENTION, *SCORED))
def abstaining(study: Study) -> tuple[list[Exhibit], pd.DataFrame]:
    """Its tables, and the rows of its curves; nothing where it was not measured."""
    rows = scores.with_short_names(study, read_abstention(study))
    curves = tables.abstention_curves(rows)
    if curves.empty:
        return [], curves
    results = scores.results(study)
    return [sensitivity_tables.nauc(results, rows), sensitivity_tables.abstention_thresholds(results, rows)], curves


@cached(watches=(_QUALITY,))
def quality(study: Study) -> pd.DataFrame:
    """What `evaluation.benchmarks check` found, what fails first; empty where nothing was checked."""
    if not (study.folder / _QUALITY).exists():
        return pd.DataFrame(columns=list(COLUMNS))
    rows = _csv(study.folder / _QUALITY, COLUMNS)
    order = {"fail": 0, "look": 1, "pass": 2}
    return rows.sort_values("verdict", key=lambda words: words.map(order), kind="stable").reset_index(drop=True)


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
