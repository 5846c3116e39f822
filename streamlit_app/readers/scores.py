"""Scores, drift and the evaluation's tables of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from evaluation import tables
from evaluation.benchmarks.checks import CHECKS, COLUMNS
from evaluation.benchmarks.selection_files import curve
from evaluation.display import short_names
from evaluation.human.exhibits import all_exhibits
from evaluation.human.material import differing, doubts, headline, read_material
from evaluation.human.records import HumanRecords
from evaluation.human.report import all_figures
from evaluation.instructions import charts as wording_charts
from evaluation.instructions import page as wording_page
from evaluation.instructions.analysis import Settings, analyse
from evaluation.instructions.scores import ITEMS, study_scores
from evaluation.models.encoder import ModelHost
from evaluation.records import COMMAND, TEXT_DRIFT, EvaluationRecords
from evaluation.report import paper_tables, sensitivity_tables
from evaluation.report.material import notes_of, refuse_outrun
from evaluation.report.paper_tables import PaperResults
from evaluation.tables import drift_by_quality, drift_correlations, ranking_table, sensitivity
from evaluation.tables.datasets import ENGLISH, OTHERS
from plumbline.errors import DataError
from plumbline.exhibits.charts import Chart, figure
from plumbline.exhibits.page import Figure
from plumbline.exhibits.table import Exhibit
from plumbline.manifest import StudyRecords
from plumbline.reading import read_json
from streamlit_app.readers import OF_PEOPLE, PROMPTED, RATED, SCORED, OverviewReader, cached, shared, words_as_objects

_MEASURED = (*RATED, "drift.parquet")


@dataclass(frozen=True)
class ScoreChoices:
    """The filters of pages on scores."""

    models: tuple[str, ...]
    groups: tuple[str, ...]  #: of data sets, by language
    refused: bool  #: whether there are scores that no verdict accepts


@dataclass(frozen=True)
class DriftChoices:
    """The filters of rated pairs with a drift."""

    models: tuple[str, ...]
    languages: tuple[str, ...]
    tasks: tuple[str, ...]


class ScoreReader(OverviewReader):
    """Reads models' scores, and the drift of texts in their spaces."""

    @shared("scores.parquet")
    def stored(self) -> pd.DataFrame:
        """The scores as stored."""
        return words_as_objects(EvaluationRecords.open(self.study).scores)

    @shared("scores.parquet")
    def scores(self) -> pd.DataFrame:
        """The scores, with models by their short names."""
        return self.with_short_names(self.stored())

    @cached("scores.parquet")
    def choices(self) -> ScoreChoices:
        """The models, groups of data sets and refused scores that pages can filter by."""
        rows = self.scores()
        english = rows["language"] == "en"
        groups = tuple(name for name, some in ((ENGLISH, english), (OTHERS, ~english)) if some.any())
        return ScoreChoices(tuple(rows["model"].unique()), groups, bool((rows["status"] == "included_rejected").any()))

    @cached(*SCORED)
    def outrun(self) -> str:
        """Return why the scores do not match the verdicts or settings; empty if they do."""
        try:
            refuse_outrun(self.study, self.scores(), self.verdicts())
        except DataError as error:
            return str(error)
        return ""

    @cached(*SCORED)
    def notes(self) -> tuple[str, ...]:
        """Notes on missing scores, with reasons (`evaluation.report.material.notes_of`)."""
        return notes_of(self.stored(), self.verdicts(), ModelHost.of(self.study).labels, self.study.command(COMMAND))

    @cached(*SCORED)
    def ranks(self, group: str = "") -> pd.DataFrame:
        """Models' ranks by transformed scores beside those by the same items' originals."""
        rows = self.results(group).scores
        before, after = (ranking_table(rows, transformed=which, same_items=not which) for which in (False, True))
        both: pd.DataFrame = before.merge(after, on="model", suffixes=("_original", "_transformed"))
        return both

    @cached(*SCORED)
    def table(self, make: Callable[..., Exhibit], /, group: str = "", model: str = "", **options: Any) -> Exhibit:
        """A table of `evaluation.report.paper_tables`, of a group of data sets or of one model."""
        return make(self.results(group, model), **options)

    @cached(*SCORED)
    def datasets(self, group: str = "", model: str = "") -> list[Exhibit]:
        """The parts of `paper_tables.datasets`, for a group of data sets or for one model."""
        return paper_tables.datasets(self.results(group, model))

    def results(self, group: str = "", model: str = "") -> PaperResults:
        """Scores for tables: all, or those of a group of data sets (as in HTEB's Tables 14 and 15) and of one model."""
        rows = self.scores()
        rows = rows[(rows["language"] == "en") == (group == ENGLISH)] if group else rows
        rows = rows[rows["model"] == model] if model else rows
        return PaperResults(rows, self.verdicts(), (), self.study.sample.seed)

    @cached("verdicts.json")
    def decisions_at(self, *thresholds: float) -> pd.DataFrame:
        """Decisions at other thresholds (`evaluation.tables.sensitivity.threshold_decisions`)."""
        return sensitivity.threshold_decisions(self.verdicts(), self.study.acceptance, thresholds)

    @cached(*SCORED)
    def scores_at(self, *thresholds: float) -> pd.DataFrame:
        """Scores as they would be at thresholds (`evaluation.tables.sensitivity.threshold_table`)."""
        return sensitivity.threshold_table(self.scores(), self.verdicts(), self.study.acceptance, thresholds)

    @shared("drift.parquet")
    def measured(self) -> pd.DataFrame:
        """The drift of rated pairs, with models by their short names."""
        return self.with_short_names(words_as_objects(EvaluationRecords.open(self.study).drift))

    @cached(*_MEASURED)
    def drift_choices(self) -> DriftChoices:
        """The models, languages and tasks of rated pairs that have a drift."""
        sampled = self.pairs()
        rated = sampled[sampled["pair_id"].isin(self.answers()["pair_id"])]
        models = tuple(self.measured()["model"].unique())
        return DriftChoices(models, tuple(sorted(set(rated["language"]))), tuple(sorted(set(rated["task_type"]))))

    @shared(*_MEASURED)
    def of_all_models(self, question: str, language: str, task: str) -> pd.DataFrame:
        """`evaluation.tables.drift_by_quality` of all models; an empty language or task stands for all."""
        chosen = self.pairs()
        for column, value in (("language", language), ("task_type", task)):
            chosen = chosen[chosen[column] == value] if value else chosen
        drift, per_pair = self.measured(), self.study.raters.per_pair
        return drift_by_quality(chosen, self.answers(), drift, per_pair=per_pair, question=question)

    @cached(*_MEASURED)
    def against_ratings(
        self, question: str, model: str, *, language: str = "", task: str = ""
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """`evaluation.tables.drift_by_quality` and `drift_correlations` of one model."""
        whole = self.of_all_models(question, language, task)
        of_model = whole[whole["model"] == model].reset_index(drop=True)
        return of_model, drift_correlations(of_model, self.study.sample.seed)

    @shared(watches=(TEXT_DRIFT.name,))
    def of_texts(self) -> pd.DataFrame:
        """The drift of all texts (`evaluation.records.TextDrift`), with models by their short names."""
        return self.with_short_names(EvaluationRecords.open(self.study).text_drift)

    @cached(*SCORED, watches=(TEXT_DRIFT.name,))
    def table_of_texts(self, model: str) -> Exhibit:
        """The drift of all texts, rated or not, in one model's space; empty if it was not measured."""
        rows = self.of_texts()
        return sensitivity_tables.text_drift(rows[rows["model"] == model])

    def with_short_names(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Models by their short names, the same in all records."""
        short = short_names(ModelHost.of(self.study).labels)
        names = [short.get(name, name) for name in frame["model"].to_numpy(object)]
        return frame.assign(model=pd.Series(names, index=frame.index, dtype=object))


_CURVE, _SELECTION, _QUALITY = "selection/curve.csv", "selection/selection.json", f"quality/{CHECKS}"
_ABSTENTION = "abstention.parquet"


@dataclass(frozen=True)
class ReportParts:
    """A report's sentences, doubts, tables and figures by name, and whether it rests on simulated answers.

    `panels` are the panels of a figure by model. `apart` has, by task, all items on which people and the best model
    differ (reports on people and models).
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
    """A selection of tasks in the study's folder: a sentence with the answer, and the curve as a table and a figure."""

    answer: str
    table: pd.DataFrame
    figure: Figure


class ReportReader(ScoreReader):
    """Reads the reports of other commands, with their settings."""

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
        """The report on wordings of instructions, in parts."""
        settings = Settings(seed=self.study.sample.seed)
        records, where = StudyRecords.open(self.study), self.study.folder / PROMPTED[0]
        analysis = analyse(*study_scores(records), settings, where=where)
        models, tasks, _ = wording_charts.shown(analysis)
        figures = wording_charts.all_figures(analysis)
        figures.pop("distribution")
        cells = analysis.distribution[analysis.distribution["cv"].notna() & analysis.distribution["model"].isin(models)]
        if "variation" in figures:
            figures["variation"] = figure(wording_charts.variation_dots(cells), "One point per task; line: the median")
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
        """Agreement by number of tasks, as `plumbline select` wrote it in `selection/`; None if it has not run."""
        if not (self.study.folder / _CURVE).exists() or not (self.study.folder / _SELECTION).exists():
            return None
        summary = read_json(self.study.folder / _SELECTION)
        table = _csv(self.study.folder / _CURVE, ("method", "tasks", "tau", "tau_low", "tau_high", "rho"))
        try:
            return SelectionExhibit(str(summary["answer"]), table, curve(table, int(summary["models"]["held_out"])))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{self.study.folder / _SELECTION} is damaged ({error}); run `plumbline select` again"
            ) from None

    @cached(watches=(_ABSTENTION, *SCORED))
    def abstaining(self) -> tuple[list[Exhibit], pd.DataFrame]:
        """The tables on abstention, and the rows of its curves; empty if it was not measured."""
        rows = self.with_short_names(EvaluationRecords.open(self.study).abstention)
        curves = tables.abstention_curves(rows)
        if curves.empty:
            return [], curves
        return [sensitivity_tables.nauc(rows), sensitivity_tables.abstention_thresholds(rows)], curves

    @cached(watches=(_QUALITY,))
    def quality(self) -> pd.DataFrame:
        """Checks of tasks by `plumbline check`, failures first; empty if it has not run."""
        if not (self.study.folder / _QUALITY).exists():
            return pd.DataFrame(columns=list(COLUMNS))
        rows = _csv(self.study.folder / _QUALITY, COLUMNS)
        order = {"fail": 0, "look": 1, "pass": 2}
        return rows.sort_values("verdict", key=lambda words: words.map(order), kind="stable").reset_index(drop=True)


def _csv(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """Return a table that a command wrote. Raises DataError if it is damaged."""
    try:
        table = pd.read_csv(path)
    except (ValueError, UnicodeDecodeError, pd.errors.ParserError) as error:
        raise DataError(f"{path} is damaged ({error}); run again the command that wrote it") from None
    if missing := [name for name in columns if name not in table]:
        raise DataError(f"{path} is damaged (no column {missing[0]!r}); run again the command that wrote it")
    words = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    return table.fillna(dict.fromkeys(words, "")) if words else table
