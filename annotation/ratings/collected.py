"""What raters were shown and what they answered, read once for all that look at it.

Frames and no records: a hundred thousand pairs are read in a tenth of a second, as records in one and a half. What is
often the same is categories (in their order), so that it is compared, counted and grouped by as numbers.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa

from annotation.ratings.exclusions import withdrawn_pairs
from annotation.ratings.ratings import read_all_ratings
from annotation.sampling.controls import COMMAND as SAMPLE
from plumbline.records import Pair, Rating, Record
from plumbline.schemas import arrow_schema, with_words
from plumbline.store import as_record, joined, read_table
from plumbline.study import Study

_OF_PAIRS = (
    *("transformation", "axis", "pool", "dataset", "task_type", "language", "output_language"),
    *("control", "model", "generator_hash", "prompt_hash"),
)
_OF_RATINGS = (
    *("pair_id", "transformation", "language", "rater_id", "question", "status"),
    *("source", "batch", "comment", "answer", "excluded", "withdrawn"),
)


@dataclass(frozen=True)
class CampaignData:
    """The pairs before raters and their ratings, which nobody may change."""

    pairs: pd.DataFrame  #: rows of `Pair`: the sample, then controls and repeats; empty before there is a sample
    ratings: pd.DataFrame  #: rows of `Rating`, of all of them; empty before the first
    withdrawn: Mapping[str, str] = field(default_factory=dict)  #: why pairs were withdrawn, by id, repeats of them too

    @classmethod
    def read(cls, study: Study) -> CampaignData:
        """What lies in the study's folder. Raises DataError for damaged files."""
        names = ("pairs.parquet", "controls.parquet") if (study.folder / "pairs.parquet").exists() else ()
        tables = (read_table(study.folder / name, Pair, study.command(SAMPLE), words=_OF_PAIRS) for name in names)
        pairs = joined(tables, Pair, _OF_PAIRS)
        return cls(pairs, read_all_ratings(study, _OF_RATINGS), withdrawn_pairs(study) if names else {})

    @classmethod
    def of_tables(
        cls, pairs: Iterable[pa.Table], ratings: Iterable[pa.Table], withdrawn: Mapping[str, str]
    ) -> CampaignData:
        """What somebody has read already: tables of `Pair` and of `Rating`."""

        def frame(tables: Iterable[pa.Table], record: type[Record], words: Sequence[str]) -> pd.DataFrame:
            encoded = with_words(arrow_schema(record), words)
            return joined([table.cast(encoded) for table in tables], record, words)

        return cls(frame(pairs, Pair, _OF_PAIRS), frame(ratings, Rating, _OF_RATINGS), withdrawn)

    @functools.cached_property
    def sample(self) -> pd.DataFrame:
        """The sample's pairs, without their texts."""
        return self.pairs.drop(columns=["original", "transformed", "fields"])[self.pairs["control"] == ""]

    @functools.cached_property
    def sample_pairs(self) -> list[Pair]:
        """The sample as records."""
        return _records(self.pairs[self.pairs["control"] == ""])

    @functools.cached_property
    def control_pairs(self) -> list[Pair]:
        """Controls and repeats as records."""
        return _records(self.pairs[self.pairs["control"] != ""])

    @functools.cached_property
    def plain_ratings(self) -> pd.DataFrame:
        """All ratings, as they are written: no column is categories."""
        return self.ratings.astype({name: self.ratings[name].cat.categories.dtype for name in _OF_RATINGS})

    @functools.cached_property
    def sample_ratings(self) -> pd.DataFrame:
        """The plain ratings of all but controls and repeats: those of `ratings.parquet`."""
        return self.plain_ratings[~self._of_controls]

    @functools.cached_property
    def control_ratings(self) -> pd.DataFrame:
        """The plain ratings of controls and repeats."""
        return self.plain_ratings[self._of_controls]

    @functools.cached_property
    def _of_controls(self) -> pd.Series:
        return self.ratings["pair_id"].isin(self.pairs.loc[self.pairs["control"] != "", "pair_id"])

    @functools.cached_property
    def known(self) -> pd.DataFrame:
        """The ratings of these pairs."""
        mask = self.ratings["pair_id"].isin(self.pairs["pair_id"])
        return self.ratings if mask.all() else self.ratings[mask]

    @functools.cached_property
    def of_sample(self) -> pd.DataFrame:
        """The ratings of the sample's pairs."""
        return self.known[~self._of_controls[self.known.index]]


def _records(pairs: pd.DataFrame) -> list[Pair]:
    return [as_record(typing.cast("dict[str, Any]", row), Pair) for row in pairs.to_dict("records")]
