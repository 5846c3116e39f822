"""What verdicts rest on, and what another threshold would make of them."""

from __future__ import annotations

import pandas as pd

from annotation.report import exhibits
from annotation.report.material import Material, read_material
from evaluation.tables import sensitivity
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study
from streamlit_app.readers.files import JUDGED, RULES, SCORED
from streamlit_app.readers.ratings import signs, verdicts
from streamlit_app.readers.scores import scores
from streamlit_app.records import cached, shared


@shared(*JUDGED, watches=(*RULES, "judgements/"))
def material(study: Study) -> Material:
    """What the campaign's report rests on: verdicts that hold, and their ratings."""
    return read_material(study, signs=signs(study))


@cached(*JUDGED, watches=RULES)
def table_two(study: Study) -> Exhibit:
    """Ratings and agreement (HTEB, Table 2)."""
    return exhibits.table_two_exhibit(material(study))


@cached(*JUDGED, watches=RULES)
def agreement(study: Study) -> Exhibit:
    """Every coefficient of agreement, with its interval."""
    return exhibits.agreement_exhibit(material(study))


@cached(*JUDGED, watches=RULES)
def labels(study: Study) -> Exhibit:
    """Shares and ranks of labels, and agreement on them."""
    return exhibits.labels_exhibit(material(study))


@cached(*JUDGED, watches=RULES)
def shares(study: Study) -> pd.DataFrame:
    """How often each point was given (`annotation.report.exhibits.shares_frame`)."""
    return exhibits.shares_frame(material(study))


@cached("verdicts.json")
def means(study: Study) -> pd.DataFrame:
    """Means against the threshold, a row a verdict and question (`annotation.report.exhibits.means_frame`)."""
    return exhibits.means_frame(verdicts(study))


@cached("verdicts.json")
def decisions_at(study: Study, *thresholds: float) -> pd.DataFrame:
    """What would be decided at thresholds (`evaluation.tables.sensitivity.threshold_decisions`)."""
    return sensitivity.threshold_decisions(verdicts(study), study.acceptance, thresholds)


@cached(*SCORED)
def scores_at(study: Study, *thresholds: float) -> pd.DataFrame:
    """Scores as they would be at thresholds (`evaluation.tables.sensitivity.threshold_table`)."""
    return sensitivity.threshold_table(scores(study), verdicts(study), study.acceptance, thresholds)
