"""People and models on the same items."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from evaluation.human.charts import all_figures
from evaluation.human.differing import differing
from evaluation.human.exhibits import all_exhibits
from evaluation.human.headline import doubts, headline
from evaluation.human.material import read_material
from plumbline.exhibits.page import Figure
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study
from streamlit_app.readers.files import OF_PEOPLE
from streamlit_app.records import shared


@dataclass(frozen=True)
class People:
    """The report's parts: its sentences, what is doubtful, tables and figures by name, whether raters are simulated.

    `apart` has all items of a task that people and its best model see differently, by task.
    """

    told: tuple[str, ...]
    doubtful: tuple[str, ...]
    exhibits: dict[str, Exhibit]
    figures: dict[str, Figure]
    apart: dict[str, pd.DataFrame]
    simulated: bool


@shared(*OF_PEOPLE)
def people(study: Study) -> People:
    """All of it, as the report has it."""
    one = read_material(study)
    exhibits = all_exhibits(one)
    exhibits.pop("items", None)
    found = {str(where): differing(one, str(where), own) for where, own in one.items.groupby("where", sort=False)}
    apart = {where: frame for where, frame in found.items() if len(frame)}
    return People(headline(one), tuple(doubts(one)), exhibits, all_figures(one), apart, one.simulated)
