"""Tables on the campaign, and the pairs to read: they are there before verdicts are."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from annotation.ratings.notable import pairs_to_read
from annotation.report import crowd, exhibits
from annotation.report.material import campaign_material
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study
from streamlit_app.readers.drift import pairs
from streamlit_app.readers.files import RATED, RULES
from streamlit_app.readers.ratings import answers, signs
from streamlit_app.records import cached


@dataclass(frozen=True)
class CampaignTables:
    """What raters did, and what people decided about them; of a crowd also its cost against plan, and decisions."""

    raters: Exhibit
    signs: Exhibit
    decisions: Exhibit
    exclusions: Exhibit
    crowd: tuple[Exhibit, ...]  #: empty where no crowd workers were asked


@cached(*RATED, "control_ratings.parquet", watches=RULES)
def tables(study: Study) -> CampaignTables:
    """The tables on raters and crowds."""
    material = campaign_material(study, signs=signs(study))
    asked = (crowd.campaigns_exhibit(material), crowd.crowd_decisions_exhibit(material)) if material.crowd else ()
    return CampaignTables(
        exhibits.raters_exhibit(material),
        exhibits.signs_exhibit(material),
        exhibits.decisions_exhibit(material),
        exhibits.exclusions_exhibit(material),
        asked,
    )


@cached("pairs.parquet", "ratings.parquet")
def to_read(study: Study) -> pd.DataFrame:
    """`annotation.ratings.notable.pairs_to_read` of the study."""
    return pairs_to_read(pairs(study), answers(study), study.raters.per_pair)
