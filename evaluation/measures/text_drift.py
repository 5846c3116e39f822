"""How far a transformation moves all texts of a data set in a model's space, and not only the rated pairs'."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from pydantic import Field

from evaluation.measures.accepted_pairs import outputs_of
from evaluation.measures.rows import Fields, MeasureRow, read_rows
from evaluation.models.encoder import Encoder, drift_of_texts
from evaluation.tables.drift import QUANTILES
from evaluation.units import Model, Unit
from plumbline.identity import identity
from plumbline.study import Study

FILE = "text_drift.parquet"
_AT_ONCE = 8192  # texts whose embeddings are in memory at a time


class TextDrift(MeasureRow):
    """The drift (1 - cos, 0 to 2) of a data set's distinct texts, a distribution in numbers (`text_drift.parquet`)."""

    n: int = Field(description="distinct texts that have an output")
    mean: float = Field(description="mean drift")
    low: float = Field(description="5% of the texts drift less")
    lower_quartile: float = Field(description="25% do")
    median: float = Field(description="half do")
    upper_quartile: float = Field(description="75% do")
    high: float = Field(description="95% do")


class AllTexts:
    """How it is measured (an `evaluation.measures.rows.Measure`): by the default prompt, as for rated pairs."""

    record = TextDrift
    file = FILE
    originals = False

    def identity(self, unit: Unit, model: Model) -> str:
        """That of the model and of all texts, before and after."""
        return identity("text-drift-v1", unit.content_id, model.model_id)

    def blank(self, unit: Unit) -> Fields | None:
        """A model is always needed."""
        return None

    def measured(self, unit: Unit, encoder: Encoder) -> Fields:
        """Mean and quantiles. Raises DataError for embeddings that have no direction, or hold NaN."""
        made, originals = outputs_of(unit).made, unit.texts.originals(unit.spec, unit.revision)
        both = zip(originals.ids, originals.texts, strict=True)
        pairs = ((text, made[one]) for one, text in both if one in made)
        moved = []
        while part := list(itertools.islice(pairs, _AT_ONCE)):
            moved.append(drift_of_texts(encoder, *zip(*part, strict=True)))
        found = np.concatenate(moved)
        quantiles = np.quantile(found, list(QUANTILES.values())).tolist()
        return {"n": len(found), "mean": float(found.mean()), **dict(zip(QUANTILES, quantiles, strict=True))}


def read_text_drift(study: Study) -> pd.DataFrame:
    """The rows of `TextDrift`; none where there is no file yet."""
    return read_rows(study, FILE, TextDrift)
