"""What only pages after the first one show: `made` imports this module when the first of them is opened.

Half of the time until the first page is there would go into these imports. Nothing is computed here either.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pandas as pd

from annotation.report import crowd, exhibits
from annotation.report.material import Material, campaign_material, read_material
from annotation.sampling.sample import COMMAND as SAMPLE
from evaluation import tables
from evaluation.display import short_names
from evaluation.measures.text_drift import read_text_drift
from evaluation.report import dataset_tables, paper_tables, sensitivity_tables
from evaluation.report.outrun import refuse_outrun
from evaluation.report.page import notes_of
from evaluation.results import read_drift, read_scores
from evaluation.tables.profiles import ENGLISH, OTHERS
from evaluation.units import label
from generation import tally
from generation.compare import length_table, lengths_measure
from generation.errors import error_rates, errors_measure
from plumbline.errors import DataError
from plumbline.exhibits.table import Exhibit
from plumbline.records import Pair
from plumbline.store import read_frame
from plumbline.study import Study
from streamlit_app.readers.made import Choice, Source


def scores(source: Source) -> pd.DataFrame:
    """The scores, with models by their short names."""
    return _named(source.study, source.held("unnamed_scores"))


def unnamed_scores(source: Source) -> pd.DataFrame:
    """The scores as they stand in their file."""
    return _in_python(read_scores(source.study))


def drift(source: Source) -> pd.DataFrame:
    """The drift of rated pairs, with models by their short names."""
    return _named(source.study, _in_python(read_drift(source.study)))


def text_drift(source: Source) -> pd.DataFrame:
    """The drift of all texts (`evaluation.measures.text_drift.TextDrift`), with models by their short names."""
    return _named(source.study, read_text_drift(source.study))


def pairs(source: Source) -> pd.DataFrame:
    """The sample's pairs."""
    return _in_python(read_frame(source.study.folder / "pairs.parquet", Pair, source.study.command(SAMPLE)))


def material(source: Source) -> Material:
    """What the campaign's report rests on."""
    return read_material(source.study, signs=source.held("signs"))


def shares(source: Source) -> pd.DataFrame:
    """How often each point was given."""
    return exhibits.shares_frame(source.held("material"))


def means(source: Source) -> pd.DataFrame:
    """Means against the threshold."""
    return exhibits.means_frame(source.verdicts)


def _named(study: Study, frame: pd.DataFrame) -> pd.DataFrame:
    """Models by their short names, the same in all records."""
    short = short_names({label(study, spec) for spec in study.evaluation.models})
    names = [short.get(name, name) for name in frame["model"].to_numpy(object)]
    return frame.assign(model=pd.Series(names, index=frame.index, dtype=object))


def _in_python(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its words as Python's strings: tables go through them often, and Arrow's take long."""
    words = {name: object for name, kind in frame.dtypes.items() if pd.api.types.is_string_dtype(kind)}
    return frame.astype(words)


def judged(source: Source) -> dict[str, Exhibit]:
    """Tables of the campaign's report, by name."""
    material = source.held("material")
    return {one.name: one for one in (exhibits.table_two_exhibit(material), exhibits.agreement_exhibit(material))}


def campaign(source: Source) -> dict[str, Exhibit]:
    """Tables on raters and crowds, by name."""
    material = campaign_material(source.study, signs=source.held("signs"))
    makers: tuple[Callable[[Material], Exhibit], ...] = (
        exhibits.raters_exhibit,
        exhibits.signs_exhibit,
        exhibits.decisions_exhibit,
        exhibits.exclusions_exhibit,
    )
    if material.crowd:
        makers += (crowd.campaigns_exhibit, crowd.crowd_decisions_exhibit)
    return {one.name: one for one in (make(material) for make in makers)}


def outrun(source: Source) -> str:
    """Why the scores are not those that the verdicts let through; empty where they are."""
    try:
        refuse_outrun(source.study, source.held("scores"), source.verdicts)
    except DataError as error:
        return str(error)
    return ""


def notes(source: Source) -> tuple[str, ...]:
    """What the scores lack, and why."""
    return notes_of(source.study, source.held("unnamed_scores"), source.verdicts)


def decisions_at(source: Source, *thresholds: float) -> pd.DataFrame:
    """What would be decided at thresholds."""
    return tables.threshold_decisions(source.verdicts, source.study.acceptance, thresholds)


def scores_at(source: Source, *thresholds: float) -> pd.DataFrame:
    """Scores as they would be at thresholds."""
    return tables.threshold_table(source.held("scores"), source.verdicts, source.study.acceptance, thresholds)


def drift_choices(source: Source) -> dict[str, list[str]]:
    """What rated pairs with a drift can be filtered by."""
    sampled = source.held("pairs")
    rated = sampled[sampled["pair_id"].isin(source.held("ratings")["pair_id"])]
    return {
        "models": list(source.held("drift")["model"].drop_duplicates()),
        "languages": sorted(set(rated["language"])),
        "tasks": sorted(set(rated["task_type"])),
    }


def moved(source: Source, question: str, language: str, task: str) -> pd.DataFrame:
    """`evaluation.tables.drift_by_quality` of all models."""
    chosen = source.held("pairs")
    for column, value in (("language", language), ("task_type", task)):
        chosen = chosen[chosen[column] == value] if value else chosen
    return tables.drift_by_quality(
        chosen, source.held("ratings"), source.held("drift"), per_pair=source.study.raters.per_pair, question=question
    )


def drift_by_quality(source: Source, choice: Choice) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(points, correlations) of one model."""
    whole = source.held("moved", choice.question, choice.language, choice.task)
    own = whole[whole["model"] == choice.model].reset_index(drop=True)
    return own, tables.drift_correlations(own, source.study.sample.seed)


def text_drift_of(source: Source, model: str) -> Exhibit:
    """The drift of all texts in one model's space (`evaluation.report.sensitivity_tables.text_drift`)."""
    rows = source.held("text_drift")
    return sensitivity_tables.text_drift(_results(source, "", ""), rows[rows["model"] == model])


def score_choices(source: Source) -> dict[str, list[str]]:
    """What scores can be filtered by."""
    found = source.held("scores")
    english = found["language"] == "en"
    groups = [name for name, some in ((ENGLISH, english), (OTHERS, ~english)) if some.any()]
    refused = ["included"] if (found["status"] == "included_rejected").any() else []
    return {"models": list(found["model"].drop_duplicates()), "groups": groups, "refused": refused}


def table(source: Source, name: str, group: str, refused: bool, model: str) -> list[Exhibit]:
    """A table of `evaluation.report.paper_tables`, in its parts."""
    results = _results(source, group, model)
    if name == "axes":
        return [paper_tables.axes(results, include_rejected=refused)]
    if name == "transformations":
        return [paper_tables.transformations(results, include_rejected=refused)]
    if name == "ranking":
        return [paper_tables.ranking(results, transformed=transformed) for transformed in (False, True)]
    if name == "datasets":
        return dataset_tables.datasets(results)
    makers = {
        "shifts": paper_tables.shifts,
        "kendall": paper_tables.kendall,
        "split_half": paper_tables.split_half,
        "left_out": paper_tables.left_out,
    }
    return [makers[name](results)]


def ranks(source: Source, group: str) -> pd.DataFrame:
    """`evaluation.tables.ranking_table` of transformed scores beside that of the same items' originals."""
    found = _results(source, group, "").scores
    before, after = (tables.ranking_table(found, transformed=which, same_items=not which) for which in (False, True))
    both: pd.DataFrame = before.merge(after, on="model", suffixes=("_original", "_transformed"))
    return both


def _results(source: Source, group: str, model: str) -> paper_tables.Results:
    """What tables are made of: the scores of a group of data sets (as in HTEB's Tables 14 and 15) and of one model."""
    found: pd.DataFrame = source.held("scores")
    found = found[(found["language"] == "en") == (group == ENGLISH)] if group else found
    found = found[found["model"] == model] if model else found
    return paper_tables.Results(found, source.verdicts, (), source.study.sample.seed)


def _generators(study: Study) -> list[Study]:
    """A study for each generator and candidate that has outputs."""
    return tally.studies_of(argparse.Namespace(study=[str(study.file)], exports=str(study.folder.parent)))


def errors(source: Source, by: str, after_retries: bool) -> pd.DataFrame:
    """Error rates of the generator and the candidates."""
    return error_rates(tally.tally(_generators(source.study), errors_measure(after_retries=after_retries)), by)


def lengths(source: Source) -> pd.DataFrame:
    """Lengths and edits of their outputs."""
    return length_table(tally.tally(_generators(source.study), lengths_measure()))
