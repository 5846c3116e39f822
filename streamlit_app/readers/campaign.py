"""Tables on the campaign, and the pairs to read: they are there before verdicts are."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from annotation.preview import preview_html
from annotation.ratings.review import pairs_to_read
from annotation.report import crowd, exhibits
from annotation.report.material import campaign_material
from generation.compare import length_table, lengths_measure
from generation.errors import error_rates, errors_measure
from generation.output_statistics import by_generator, is_counted, tally
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study
from streamlit_app import search
from streamlit_app.readers.files import RATED, RULES
from streamlit_app.readers.ratings import answers, signs
from streamlit_app.readers.scores import pairs
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
    crowd_tables = (
        (crowd.campaigns_exhibit(material), crowd.crowd_decisions_exhibit(material)) if material.crowd else ()
    )
    return CampaignTables(
        exhibits.raters_exhibit(material),
        exhibits.signs_exhibit(material),
        exhibits.decisions_exhibit(material),
        exhibits.exclusions_exhibit(material),
        crowd_tables,
    )


@cached("pairs.parquet", "ratings.parquet")
def to_read(study: Study) -> pd.DataFrame:
    """`annotation.ratings.review.pairs_to_read` of the study."""
    return pairs_to_read(pairs(study), answers(study), study.raters.per_pair)


@cached("pairs.parquet", watches=("controls.parquet", "rules.json", "ratings.parquet", "control_ratings.parquet"))
def page(study: Study) -> str:
    """The page of `annotation preview`, for a page that has a heading."""
    return preview_html(study, headed=False)


_OUTPUTS = ("transformations/", "candidates/")


def units(study: Study) -> list[tuple[str, int]]:
    """The transformations and seeds that have outputs on disk."""
    wanted = [(name, seed) for name in study.transformations for seed in study.seeds]
    return [unit for unit in wanted if study.transformation_file(*unit).exists()]


@cached(watches=("texts.parquet", *_OUTPUTS))
def found(study: Study, query: str, where: str) -> tuple[pd.DataFrame, bool]:
    """`search.find` in all outputs that there are, once for all times that the page shows what it found."""
    return search.find(study, query, where, units(study))


@cached("texts.parquet", watches=_OUTPUTS)
def counted(study: Study) -> bool:
    """Whether `generation.run` has counted what the page shows, so that no outputs are read for it."""
    sources = by_generator([study])
    errors_of = [errors_measure(study.transforming, after_retries=after) for after in (False, True)]
    return all(is_counted(sources, measure) for measure in (*errors_of, lengths_measure()))


@cached("texts.parquet", watches=_OUTPUTS)
def errors(study: Study, by: str, *, after_retries: bool) -> pd.DataFrame:
    """`generation.errors.error_rates` of the generator and the candidates."""
    return error_rates(
        tally(by_generator([study]), errors_measure(study.transforming, after_retries=after_retries)), by
    )


@cached("texts.parquet", watches=_OUTPUTS)
def lengths(study: Study) -> pd.DataFrame:
    """`generation.compare.length_table` of the same."""
    return length_table(tally(by_generator([study]), lengths_measure()), study.transforming)
