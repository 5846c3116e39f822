"""What wordings of an instruction do to scores."""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt

from evaluation.instructions import charts
from evaluation.instructions.analysis import Settings, analyse
from evaluation.instructions.exhibits import all_exhibits
from evaluation.instructions.page import doubts, headline
from evaluation.instructions.scores import ITEMS, study_scores
from plumbline.exhibits.charts import figure
from plumbline.exhibits.page import Figure
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study
from streamlit_app.readers.files import PROMPTED
from streamlit_app.records import shared


@dataclass(frozen=True)
class WordingsReport:
    """The report's parts: its sentences, what is doubtful, tables and figures by name, whether labels are simulated.

    What the report has as panels side by side stands here in `panels`, by model.
    """

    sentences: tuple[str, ...]
    doubtful: tuple[str, ...]
    exhibits: dict[str, Exhibit]
    figures: dict[str, Figure]
    panels: dict[str, alt.LayerChart]
    simulated: bool


@shared(*PROMPTED, watches=(ITEMS,))
def wordings(study: Study) -> WordingsReport:
    """All of it, by the report's own choices."""
    analysis = analyse(*study_scores(study), Settings(seed=study.sample.seed), where=study.folder / PROMPTED[0])
    models, tasks, _ = charts.shown(analysis)
    figures = charts.all_figures(analysis)
    figures.pop("distribution")
    cells = analysis.distribution[analysis.distribution["cv"].notna() & analysis.distribution["model"].isin(models)]
    if "variation" in figures:
        figures["variation"] = figure(charts.variation_dots(cells), "A point a task; line: the median")
    panels = {model: charts.panel_of(analysis, [model], tasks) for model in models}
    return WordingsReport(
        headline(analysis), tuple(doubts(analysis)), all_exhibits(analysis), figures, panels, analysis.simulated
    )
