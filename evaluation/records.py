"""The records that evaluation writes, and the opened records of an evaluated study."""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field

from annotation.campaign.records import RATINGS, without_categories
from annotation.verdicts.conclusion import Conclusion, looked_at
from annotation.verdicts.evidence import Evidence
from plumbline.manifest import RecordFile
from plumbline.records import DriftRecord, Number, Record, Score

COMMAND = "evaluate"
Status = Literal["evaluated", "included_rejected", "left_out"]


class MeasureRow(Record):
    """Fields common to all measures beside the scores."""

    KEY: ClassVar[tuple[str, ...]] = ("model", "dataset", "transformation", "seed")
    model: str = Field(description="the embedding model")
    dataset: str = Field(description="the data set")
    transformation: str = Field(description="the transformation's name")
    axis: str = Field(description="the transformation's axis")
    seed: int = Field(description="transformation seed")
    status: Status = Field(description="evaluated; included_rejected: scored but not accepted; left_out: not scored")
    unit_id: str = Field(description="hash of everything that affects the numbers; rows with the same hash are reused")


class AcceptedScore(MeasureRow):
    """One model's scores on the items of accepted pairs, before and after (`accepted_scores.parquet`)."""

    original: Number = Field(
        description="value of the task's main metric on the original texts of these items; NaN if unknown"
    )
    score: Number = Field(description="the metric's value on their transformed texts; NaN if unknown")
    n: int = Field(description="number of items whose pairs are all accepted; scored if there are enough")
    reason: str = Field(description="why there is no score; empty otherwise")


class AbstentionRow(MeasureRow):
    """One model's abstention on one data set by one confidence (`abstention.parquet`); see `statistics.abstention`.

    With several subsets nAUC is the mean, as mteb's scores are.
    """

    KEY = ("model", "dataset", "transformation", "seed", "confidence")
    confidence: Literal["max", "std", "diff1"] = Field(
        description="a query's confidence: max, its largest similarity; std, their standard deviation; diff1, the"
        " largest minus the second largest"
    )
    n: int = Field(description="number of queries")
    nauc: Number = Field(default=math.nan, description="nAUC with this confidence")
    nauc_error: Number = Field(default=math.nan, description="standard error of nauc over queries (bootstrap)")
    nauc_original: Number = Field(default=math.nan, description="nAUC of the original texts of these queries")
    reason: str = Field(description="why there is no nAUC; empty otherwise")


class Numbers(Record):
    """A model's score on a unit and on the same items' original texts."""

    score: Number = Field(default=math.nan, description="the metric's value; NaN if it is undefined")
    original: Number = Field(
        default=math.nan, description="its value on the originals of the same items if some were dropped; else NaN"
    )
    versions: str = Field(default="", description="packages that computed the score, with their versions")
    revision: str = Field(default="", description="the loaded model's revision")
    prompts: str = Field(default="", description="the model's prompts, as in `Score`")


class MadeScore(Numbers):
    """A score as it was made (`made/scores/<unit_id>.json`)."""

    model: str = Field(description="the model's name in the study")
    result: str = Field(description="mteb's whole result, as its file has it")


class MadeRows(Record):
    """The measured fields of a unit's rows in a table beside the scores (`made/<table>/<unit_id>.json`)."""

    rows: tuple[dict[str, Any], ...] = Field(description="the fields of each row that no study tells")


class ModelFailure(Record):
    """Why a model could not be evaluated (`made/failures/<model>.json`), until it works."""

    reason: str = Field(description="the reason in one line")


MADE = "made"  # folder of results by identity
SCORES = RecordFile("scores.parquet", Score, COMMAND, noted=True)
DRIFT = RecordFile("drift.parquet", DriftRecord, COMMAND, noted=True)
ACCEPTED_SCORES = RecordFile("accepted_scores.parquet", AcceptedScore, COMMAND, noted=True)
ABSTENTION = RecordFile("abstention.parquet", AbstentionRow, COMMAND, noted=True)


class EvaluationRecords(Evidence):
    """The records of a study from the sample to the scores, each read when it is first used."""

    @functools.cached_property
    def conclusion(self) -> Conclusion:
        """What follows from the ratings. Raises DataError if no look at it is on record."""
        return looked_at(self)

    @functools.cached_property
    def sample(self) -> pd.DataFrame:
        """The sample's pairs, one row each, as stored; none before it is drawn."""
        pairs = self.collected.pairs
        return without_categories(pairs[pairs["control"] == ""])

    @functools.cached_property
    def sample_ratings(self) -> pd.DataFrame | None:
        """The sample's ratings, as stored; None before there are any."""
        return self.collected.sample_ratings if self.has(RATINGS) else None

    @property
    def question(self) -> str:
        """The first question with a scale; empty if there is none."""
        return next(iter(self.rubric.rating_names()), "")

    @functools.cached_property
    def scores(self) -> pd.DataFrame:
        """The scores (`plumbline.records.Score`)."""
        return self._frame(SCORES)

    @functools.cached_property
    def drift(self) -> pd.DataFrame:
        """The drift of the sample's pairs (`plumbline.records.DriftRecord`)."""
        return self._frame(DRIFT)

    @functools.cached_property
    def accepted_scores(self) -> pd.DataFrame:
        """The rows of `AcceptedScore`; none without the file."""
        return self._frame_or_none(ACCEPTED_SCORES)

    @functools.cached_property
    def abstention(self) -> pd.DataFrame:
        """The rows of `AbstentionRow`; none without the file, or if the study does not ask for it."""
        if not self.study.evaluation.abstention:
            return pd.DataFrame(columns=list(AbstentionRow.model_fields))
        return self._frame_or_none(ABSTENTION)

    def _frame(self, file: RecordFile[Any]) -> pd.DataFrame:
        frame: pd.DataFrame = self.table(file).to_pandas()
        return frame

    def _frame_or_none(self, file: RecordFile[Any]) -> pd.DataFrame:
        return self._frame(file) if self.has(file) else pd.DataFrame(columns=list(file.record.model_fields))
