"""Read scores, drift and the evaluation's tables of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.verdicts.tables import SIMULATED
from evaluation.display import short_names
from evaluation.human import exhibits as people_tables
from evaluation.human.material import doubts as doubts_of_people
from evaluation.human.material import headline as answer_of_people
from evaluation.human.material import read_material
from evaluation.human.records import HumanRecords
from evaluation.human.report import all_figures
from evaluation.instructions import charts as wording_charts
from evaluation.instructions import page as wording_page
from evaluation.instructions.analysis import SIMULATED as SIMULATED_LABELS
from evaluation.instructions.analysis import Settings, analyse
from evaluation.models.encoder import ModelHost
from evaluation.records import COMMAND, EvaluationRecords
from evaluation.report.material import notes_of, refuse_outrun
from evaluation.report.page import answer
from evaluation.report.paper_tables import PaperResults, left_out_lines
from evaluation.score_frames import study_scores
from evaluation.tables.datasets import ENGLISH, OTHERS, drift_by_quality, drift_correlations
from plumbline.errors import DataError
from plumbline.exhibits.page import Figure
from plumbline.exhibits.table import Exhibit
from plumbline.manifest import StudyRecords
from streamlit_app.readers import OF_PEOPLE, PROMPTED, RATED, SCORED, cached, words_as_objects
from streamlit_app.readers.campaign import CampaignReader

WORDINGS = "sensitivity"  # the command that scores them
_MEASURED = (*RATED, "drift.parquet")


@dataclass(frozen=True)
class ReportParts:
    """A report's answer, the doubts about it, its main tables and figures, and a warning of simulated answers."""

    sentences: Sequence[str]
    doubts: Sequence[str]
    exhibits: Sequence[Exhibit]
    figures: dict[str, Figure]
    warning: str


class ScoreReader(CampaignReader):
    """Reads models' scores, and the drift of texts in their spaces."""

    @cached("scores.parquet")
    def scores(self) -> pd.DataFrame:
        """The scores, with models by their short names."""
        return self._with_short_names(words_as_objects(EvaluationRecords(self.study).scores))

    def groups(self) -> list[str]:
        """The groups of data sets, by language, that have scores."""
        english = self.scores()["language"] == "en"
        return [name for name, some in ((ENGLISH, english), (OTHERS, ~english)) if some.any()]

    @cached(*SCORED)
    def outrun(self) -> str:
        """Return why the scores do not match the verdicts or settings; empty if they do."""
        verdicts, changes = self.concluded()
        try:
            if not changes:
                refuse_outrun(self.study, self.scores(), verdicts)
        except DataError as error:
            return str(error)
        return changes

    @cached(*SCORED)
    def notes(self) -> tuple[str, ...]:
        """Notes on missing scores (`evaluation.report.material.notes_of`); what was left out stands in a table."""
        scores = EvaluationRecords(self.study).scores
        notes = notes_of(scores, (), ModelHost.of(self.study).labels, self.study.command(COMMAND))
        return notes[: len(notes) - len(left_out_lines(scores))]

    @cached(*SCORED)
    def scored(self, make: Callable[..., Exhibit], /, group: str = "", **options: bool) -> Exhibit:
        """A table of `evaluation.report.paper_tables`, of all data sets or of a group."""
        return make(self._results(group), **options)

    @cached(*SCORED)
    def answer(self) -> Sequence[str]:
        """Sentences on how scores change on accepted transformations (`evaluation.report.page.answer`)."""
        return answer(self._results())

    def sentences(self) -> tuple[Sequence[str], str]:
        """The first sentences of the report on scores that the study has, and a warning of simulated answers."""
        judging = self.study.judging
        if not judging.does_tasks and judging.scored_by != WORDINGS:
            return self.answer(), ""
        parts = self.people() if judging.does_tasks else self.wordings()
        return parts.sentences, parts.warning

    def _results(self, group: str = "") -> PaperResults:
        """Scores for tables: all, or those of a group of data sets (as in HTEB's Tables 14 and 15)."""
        rows = self.scores()
        rows = rows[(rows["language"] == "en") == (group == ENGLISH)] if group else rows
        return PaperResults(rows, self.verdicts(), (), self.study.sample.seed)

    @cached("drift.parquet")
    def measured(self) -> pd.DataFrame:
        """The drift of rated pairs, with models by their short names."""
        return self._with_short_names(words_as_objects(EvaluationRecords(self.study).drift))

    def drift_of(self, model: str) -> pd.Series[float]:
        """The drift of rated pairs in one model's space, by pair_id."""
        rows = self.measured()
        of_model: pd.Series[float] = rows[rows["model"] == model].set_index("pair_id")["drift"]
        return of_model

    @cached(*_MEASURED)
    def drifts(self, question: str, language: str = "", task: str = "") -> pd.DataFrame:
        """`evaluation.tables.datasets.drift_by_quality` of all models; an empty language or task stands for all."""
        chosen = self.pairs()
        for column, value in (("language", language), ("task_type", task)):
            chosen = chosen[chosen[column] == value] if value else chosen
        per_pair = self.study.raters.per_pair
        return drift_by_quality(chosen, self.answers(), self.measured(), per_pair=per_pair, question=question)

    @cached(*_MEASURED)
    def against_ratings(
        self, question: str, model: str, *, language: str = "", task: str = ""
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """`evaluation.tables.datasets.drift_by_quality` and `drift_correlations` of one model."""
        drifts = self.drifts(question, language, task)
        of_model = drifts[drifts["model"] == model].reset_index(drop=True)
        return of_model, drift_correlations(of_model, self.study.sample.seed)

    @cached(*OF_PEOPLE)
    def people(self) -> ReportParts:
        """People and models on the same items."""
        material = read_material(HumanRecords(self.study))
        figures = all_figures(material)
        main_figures = {name: drawn for name, drawn in figures.items() if name in ("ranges", "gaps")}
        sentences, doubts = answer_of_people(material), doubts_of_people(material)
        tables = [people_tables.ceiling(material), people_tables.agreement(material)]
        return ReportParts(sentences, doubts, tables, main_figures, SIMULATED if material.simulated else "")

    @cached(*PROMPTED)
    def wordings(self) -> ReportParts:
        """How scores and ranks change with the wording of instructions."""
        records, path = StudyRecords(self.study), self.study.folder / PROMPTED[0]
        analysis = analyse(study_scores(records), Settings(seed=self.study.sample.seed), location=path)
        figures = wording_charts.all_figures(analysis)
        main_figures = {name: drawn for name, drawn in figures.items() if name in ("ranks", "inflation")}
        tables = [wording_page.recommended(analysis), wording_page.inflation(analysis)]
        sentences, doubts = wording_page.headline(analysis), wording_page.doubts(analysis)
        return ReportParts(sentences, doubts, tables, main_figures, SIMULATED_LABELS if analysis.simulated else "")

    def _with_short_names(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Models by their short names, the same in all records."""
        short = short_names(ModelHost.of(self.study).labels)
        names = [short.get(name, name) for name in frame["model"].to_numpy(object)]
        return frame.assign(model=pd.Series(names, index=frame.index, dtype=object))
