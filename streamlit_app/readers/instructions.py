"""What wordings of an instruction do to scores."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.instructions.analysis import Settings, analyse
from evaluation.instructions.charts import all_figures
from evaluation.instructions.exhibits import all_exhibits
from evaluation.instructions.headline import doubts, headline
from evaluation.instructions.scores import ITEMS, study_scores
from plumbline.exhibits.page import Figure
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study
from streamlit_app.readers.files import PROMPTED
from streamlit_app.records import shared


@dataclass(frozen=True)
class Wordings:
    """The report's parts: its sentences, what is doubtful, tables and figures by name, whether labels are simulated."""

    told: tuple[str, ...]
    doubtful: tuple[str, ...]
    exhibits: dict[str, Exhibit]
    figures: dict[str, Figure]
    simulated: bool


@shared(*PROMPTED, watches=(ITEMS,))
def wordings(study: Study) -> Wordings:
    """All of it, by the report's own choices."""
    one = analyse(*study_scores(study), Settings(seed=study.sample.seed), where=study.folder / PROMPTED[0])
    return Wordings(headline(one), tuple(doubts(one)), all_exhibits(one), all_figures(one), one.simulated)
