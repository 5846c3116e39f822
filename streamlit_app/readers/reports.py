"""The reports on boards of models, on wordings and on people among models, as pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from evaluation import tables
from evaluation.benchmarks.checks import CHECKS, COLUMNS
from evaluation.benchmarks.selection_files import curve
from evaluation.human.exhibits import all_exhibits
from evaluation.human.material import differing, doubts, headline, read_material
from evaluation.human.records import HumanRecords
from evaluation.human.report import all_figures
from evaluation.instructions import charts as wording_charts
from evaluation.instructions import page as wording_page
from evaluation.instructions.analysis import Settings, analyse
from evaluation.instructions.scores import ITEMS, study_scores
from evaluation.records import EvaluationRecords
from evaluation.report import sensitivity_tables
from plumbline.errors import DataError
from plumbline.exhibits.charts import Chart, figure
from plumbline.exhibits.page import Figure
from plumbline.exhibits.table import Exhibit
from plumbline.reading import read_json
from plumbline.record_files import StudyRecords
from streamlit_app.readers.scores import ScoreReader
from streamlit_app.records import OF_PEOPLE, PROMPTED, SCORED, cached, shared

_CURVE, _SELECTION, _QUALITY = "selection/curve.csv", "selection/selection.json", f"quality/{CHECKS}"
_ABSTENTION = "abstention.parquet"


@dataclass(frozen=True)
class ReportParts:
    """A report's sentences, what is doubtful, its tables and figures by name, whether it rests on simulated answers.

    What the report has side by side stands in `panels`, by model; of people and models `apart` has all items of a task
    that people and its best model see differently, by task.
    """

    sentences: Sequence[str]
    doubtful: Sequence[str]
    exhibits: dict[str, Exhibit]
    figures: dict[str, Figure]
    simulated: bool
    panels: dict[str, Chart] = field(default_factory=dict)
    apart: dict[str, pd.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class SelectionExhibit:
    """What a selection in the study's folder came to: its one sentence, the curve's rows and its figure."""

    answer: str
    table: pd.DataFrame
    figure: Figure


class ReportReader(ScoreReader):
    """Reads reports that other commands write, by their own choices."""

    @shared(*OF_PEOPLE)
    def people(self) -> ReportParts:
        """People and models on the same items, as the report has them."""
        material = read_material(HumanRecords.open(self.study))
        exhibits = all_exhibits(material)
        exhibits.pop("items", None)
        groups = material.items.groupby("where", sort=False)
        items = {str(where): differing(material, str(where), of_task) for where, of_task in groups}
        return ReportParts(
            headline(material),
            tuple(doubts(material)),
            exhibits,
            all_figures(material),
            material.simulated,
            apart={where: frame for where, frame in items.items() if len(frame)},
        )

    @shared(*PROMPTED, watches=(ITEMS,))
    def wordings(self) -> ReportParts:
        """What wordings of an instruction do to scores."""
        settings = Settings(seed=self.study.sample.seed)
        records, where = StudyRecords.open(self.study), self.study.folder / PROMPTED[0]
        analysis = analyse(*study_scores(records), settings, where=where)
        models, tasks, _ = wording_charts.shown(analysis)
        figures = wording_charts.all_figures(analysis)
        figures.pop("distribution")
        cells = analysis.distribution[analysis.distribution["cv"].notna() & analysis.distribution["model"].isin(models)]
        if "variation" in figures:
            figures["variation"] = figure(wording_charts.variation_dots(cells), "A point a task; line: the median")
        return ReportParts(
            wording_page.headline(analysis),
            tuple(wording_page.doubts(analysis)),
            wording_page.all_exhibits(analysis),
            figures,
            analysis.simulated,
            panels={model: wording_charts.panel_of(analysis, [model], tasks) for model in models},
        )

    @cached(watches=(_CURVE, _SELECTION))
    def agreement(self) -> SelectionExhibit | None:
        """Agreement by number of tasks, as `plumbline select` left it in `selection/`; None where it did not."""
        if not (self.study.folder / _CURVE).exists() or not (self.study.folder / _SELECTION).exists():
            return None
        summary = read_json(self.study.folder / _SELECTION)
        table = _csv(self.study.folder / _CURVE, ("method", "tasks", "tau", "tau_low", "tau_high", "rho"))
        try:
            return SelectionExhibit(str(summary["answer"]), table, curve(table, int(summary["models"]["held_out"])))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{self.study.folder / _SELECTION} is damaged ({error});"
                " run `python -m evaluation.benchmarks select` again"
            ) from None

    @cached(watches=(_ABSTENTION, *SCORED))
    def abstaining(self) -> tuple[list[Exhibit], pd.DataFrame]:
        """Its tables, and the rows of its curves; nothing where it was not measured."""
        rows = self.with_short_names(EvaluationRecords.open(self.study).abstention)
        curves = tables.abstention_curves(rows)
        if curves.empty:
            return [], curves
        return [sensitivity_tables.nauc(rows), sensitivity_tables.abstention_thresholds(rows)], curves

    @cached(watches=(_QUALITY,))
    def quality(self) -> pd.DataFrame:
        """What `evaluation.benchmarks check` found, what fails first; empty where nothing was checked."""
        if not (self.study.folder / _QUALITY).exists():
            return pd.DataFrame(columns=list(COLUMNS))
        rows = _csv(self.study.folder / _QUALITY, COLUMNS)
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
