"""Pairs, how far models see them moved, and what raters made of them."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from annotation.sampling.sample import COMMAND as SAMPLE
from evaluation.measures.text_drift import FILE as TEXT_DRIFT
from evaluation.measures.text_drift import read_text_drift
from evaluation.report import sensitivity_tables
from evaluation.results import read_drift
from evaluation.tables import drift_by_quality, drift_correlations
from plumbline.exhibits.table import Exhibit
from plumbline.records import Pair
from plumbline.store import as_record, read_frame
from plumbline.study import Study
from streamlit_app.readers.files import RATED, SCORED
from streamlit_app.readers.ratings import answers
from streamlit_app.readers.scores import results, with_short_names, words_as_objects
from streamlit_app.records import cached, shared

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
    found = pairs(study)
    rows = found[found["pair_id"] == pair_id].to_dict(orient="records")
    return as_record({str(name): value for name, value in rows[0].items()}, Pair) if rows else None


@shared("drift.parquet")
def measured(study: Study) -> pd.DataFrame:
    """The drift of rated pairs, with models by their short names."""
    return with_short_names(study, words_as_objects(read_drift(study)))


@cached(*_MEASURED)
def choices(study: Study) -> DriftChoices:
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
    own = whole[whole["model"] == model].reset_index(drop=True)
    return own, drift_correlations(own, study.sample.seed)


@shared(watches=(TEXT_DRIFT,))
def of_texts(study: Study) -> pd.DataFrame:
    """The drift of all texts (`evaluation.measures.text_drift.TextDrift`), with models by their short names."""
    return with_short_names(study, read_text_drift(study))


@cached(*SCORED, watches=(TEXT_DRIFT,))
def table_of_texts(study: Study, model: str) -> Exhibit:
    """The drift of all texts, rated or not, in one model's space; empty where it was not measured."""
    rows = of_texts(study)
    return sensitivity_tables.text_drift(results(study), rows[rows["model"] == model])
