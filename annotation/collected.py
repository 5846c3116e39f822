"""What raters were shown and what they answered, read once for all that look at it.

Frames and no records: a hundred thousand pairs are read in a tenth of a second, as records in one and a half. Ids are
categories (in their order), so that they are compared, counted and grouped by as numbers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pandas as pd

from annotation.controls import COMMAND as SAMPLE
from annotation.ratings import read_all_ratings
from generation.records import Pair
from generation.store import joined, read_table
from generation.study import Study


@dataclass(frozen=True)
class Collected:
    """The pairs before raters and their ratings, which nobody may change."""

    pairs: pd.DataFrame  #: rows of `Pair`: the sample, then controls and repeats; empty before there is a sample
    ratings: pd.DataFrame  #: rows of `Rating`, of all of them; empty before the first

    @classmethod
    def read(cls, study: Study) -> Collected:
        """What lies in the study's folder. Raises DataError for damaged files."""
        names = ("pairs.parquet", "controls.parquet") if (study.folder / "pairs.parquet").exists() else ()
        pairs = joined((read_table(study.folder / name, Pair, SAMPLE) for name in names), Pair)
        return cls(pairs, read_all_ratings(study).astype(dict.fromkeys(["pair_id", "rater_id"], "category")))

    @functools.cached_property
    def sample(self) -> pd.DataFrame:
        """The sample's pairs."""
        return self.pairs[self.pairs["control"] == ""]

    @functools.cached_property
    def known(self) -> pd.DataFrame:
        """The ratings of these pairs."""
        known = self.ratings["pair_id"].isin(self.pairs["pair_id"])
        return self.ratings if known.all() else self.ratings[known]

    @functools.cached_property
    def of_sample(self) -> pd.DataFrame:
        """The ratings of the sample's pairs."""
        controls = self.pairs.loc[self.pairs["control"] != "", "pair_id"]
        return self.known[~self.known["pair_id"].isin(controls)]
