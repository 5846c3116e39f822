"""Scores, and the evaluation's tables of them: for the pages on robustness, on one model and on rankings."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from annotation.sampling.sample import COMMAND as SAMPLE
from evaluation.display import short_names
from evaluation.measures.accepted_pairs import DRIFT_FILE as TEXT_DRIFT
from evaluation.measures.accepted_pairs import read_text_drift
from evaluation.report import paper_tables, sensitivity_tables
from evaluation.report.material import notes_of, refuse_outrun
from evaluation.report.paper_tables import PaperResults
from evaluation.results import read_drift, read_scores
from evaluation.tables import drift_by_quality, drift_correlations, ranking_table
from evaluation.tables.datasets import ENGLISH, OTHERS
from evaluation.units import label
from plumbline.errors import DataError
from plumbline.exhibits.table import Exhibit
from plumbline.records import Pair
from plumbline.store import as_record, read_frame
from plumbline.study import Study
from streamlit_app.readers.files import RATED, SCORED
from streamlit_app.readers.ratings import answers, verdicts
from streamlit_app.records import cached, shared


@dataclass(frozen=True)
class ScoreChoices:
    """What scores can be filtered by."""

    models: tuple[str, ...]
    groups: tuple[str, ...]  #: of data sets, by language
    refused: bool  #: whether there are scores of what no verdict accepts


@shared("scores.parquet")
def stored(study: Study) -> pd.DataFrame:
    """The scores as they stand in their file."""
    return words_as_objects(read_scores(study))


@shared("scores.parquet")
def scores(study: Study) -> pd.DataFrame:
    """The scores, with models by their short names."""
    return with_short_names(study, stored(study))


@cached("scores.parquet")
def choices(study: Study) -> ScoreChoices:
    """What the scores can be filtered by."""
    rows = scores(study)
    english = rows["language"] == "en"
    groups = tuple(name for name, some in ((ENGLISH, english), (OTHERS, ~english)) if some.any())
    return ScoreChoices(tuple(rows["model"].unique()), groups, bool((rows["status"] == "included_rejected").any()))


@cached(*SCORED)
def outrun(study: Study) -> str:
    """Empty where the scores are those that the verdicts let through, else why not."""
    try:
        refuse_outrun(study, scores(study), verdicts(study))
    except DataError as error:
        return str(error)
    return ""


@cached(*SCORED)
def notes(study: Study) -> tuple[str, ...]:
    """What the scores lack, and why (`evaluation.report.material.notes_of`)."""
    return notes_of(study, stored(study), verdicts(study))


@cached(*SCORED)
def ranks(study: Study, group: str = "") -> pd.DataFrame:
    """Models' ranks by transformed scores beside those by the same items' originals."""
    rows = results(study, group).scores
    before, after = (ranking_table(rows, transformed=which, same_items=not which) for which in (False, True))
    both: pd.DataFrame = before.merge(after, on="model", suffixes=("_original", "_transformed"))
    return both


@cached(*SCORED)
def axes(study: Study, *, group: str = "", model: str = "", refused: bool = False) -> Exhibit:
    """`paper_tables.axes`, of a group of data sets or of one model; `refused`: with what no verdict accepts."""
    return paper_tables.axes(results(study, group, model), include_rejected=refused)


@cached(*SCORED)
def transformations(study: Study, *, group: str = "", model: str = "", refused: bool = False) -> Exhibit:
    """`paper_tables.transformations`, likewise."""
    return paper_tables.transformations(results(study, group, model), include_rejected=refused)


@cached(*SCORED)
def shifts(study: Study, group: str = "") -> Exhibit:
    """`paper_tables.shifts`."""
    return paper_tables.shifts(results(study, group))


@cached(*SCORED)
def datasets(study: Study, *, group: str = "", model: str = "") -> list[Exhibit]:
    """`dataset_tables.datasets`, in its parts."""
    return paper_tables.datasets(results(study, group, model))


@cached(*SCORED)
def left_out(study: Study) -> Exhibit:
    """`paper_tables.left_out`."""
    return paper_tables.left_out(results(study))


@cached(*SCORED)
def kendall(study: Study, group: str = "") -> Exhibit:
    """`paper_tables.kendall`."""
    return paper_tables.kendall(results(study, group))


@cached(*SCORED)
def split_half(study: Study, group: str = "") -> Exhibit:
    """`paper_tables.split_half`."""
    return paper_tables.split_half(results(study, group))


@cached(*SCORED)
def rankings(study: Study, group: str = "") -> list[Exhibit]:
    """`paper_tables.ranking` by original and by transformed scores."""
    return [paper_tables.ranking(results(study, group), transformed=transformed) for transformed in (False, True)]


def results(study: Study, group: str = "", model: str = "") -> PaperResults:
    """What tables are made of: the scores of a group of data sets (as in HTEB's Tables 14 and 15) and of one model."""
    rows = scores(study)
    rows = rows[(rows["language"] == "en") == (group == ENGLISH)] if group else rows
    rows = rows[rows["model"] == model] if model else rows
    return PaperResults(rows, verdicts(study), (), study.sample.seed)


def with_short_names(study: Study, frame: pd.DataFrame) -> pd.DataFrame:
    """Models by their short names, the same in all records."""
    short = short_names({label(study, spec) for spec in study.evaluation.models})
    names = [short.get(name, name) for name in frame["model"].to_numpy(object)]
    return frame.assign(model=pd.Series(names, index=frame.index, dtype=object))


def words_as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its words as Python's strings: tables go through them often, and Arrow's take long."""
    words = {name: object for name, kind in frame.dtypes.items() if pd.api.types.is_string_dtype(kind)}
    return frame.astype(words)


_MEASURED = (*RATED, "drift.parquet")


@dataclass(frozen=True)
class DriftChoices:
    """What rated pairs with a drift can be filtered by."""

    models: tuple[str, ...]
    languages: tuple[str, ...]
    tasks: tuple[str, ...]


@shared("pairs.parquet")
def pairs(study: Study) -> pd.DataFrame:
    """The sample's pairs."""
    return words_as_objects(read_frame(study.folder / "pairs.parquet", Pair, study.command(SAMPLE)))


def pair(study: Study, pair_id: str) -> Pair | None:
    """One pair, or None where the sample does not hold it (any more)."""
    sample = pairs(study)
    rows = sample[sample["pair_id"] == pair_id].to_dict(orient="records")
    return as_record({str(name): value for name, value in rows[0].items()}, Pair) if rows else None


@shared("drift.parquet")
def measured(study: Study) -> pd.DataFrame:
    """The drift of rated pairs, with models by their short names."""
    return with_short_names(study, words_as_objects(read_drift(study)))


@cached(*_MEASURED)
def drift_choices(study: Study) -> DriftChoices:
    """The models, languages and tasks of rated pairs that have a drift."""
    sampled = pairs(study)
    rated = sampled[sampled["pair_id"].isin(answers(study)["pair_id"])]
    models = tuple(measured(study)["model"].unique())
    return DriftChoices(models, tuple(sorted(set(rated["language"]))), tuple(sorted(set(rated["task_type"]))))


@shared(*_MEASURED)
def of_all_models(study: Study, question: str, language: str, task: str) -> pd.DataFrame:
    """`evaluation.tables.drift_by_quality` of all models; an empty language or task stands for all."""
    chosen = pairs(study)
    for column, value in (("language", language), ("task_type", task)):
        chosen = chosen[chosen[column] == value] if value else chosen
    drift, per_pair = measured(study), study.raters.per_pair
    return drift_by_quality(chosen, answers(study), drift, per_pair=per_pair, question=question)


@cached(*_MEASURED)
def against_ratings(
    study: Study, question: str, model: str, *, language: str = "", task: str = ""
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`evaluation.tables.drift_by_quality` and `drift_correlations` of one model."""
    whole = of_all_models(study, question, language, task)
    of_model = whole[whole["model"] == model].reset_index(drop=True)
    return of_model, drift_correlations(of_model, study.sample.seed)


@shared(watches=(TEXT_DRIFT,))
def of_texts(study: Study) -> pd.DataFrame:
    """The drift of all texts (`evaluation.measures.accepted_pairs.TextDrift`), with models by their short names."""
    return with_short_names(study, read_text_drift(study))


@cached(*SCORED, watches=(TEXT_DRIFT,))
def table_of_texts(study: Study, model: str) -> Exhibit:
    """The drift of all texts, rated or not, in one model's space; empty where it was not measured."""
    rows = of_texts(study)
    return sensitivity_tables.text_drift(results(study), rows[rows["model"] == model])
