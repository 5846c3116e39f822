"""Read the campaign and its verdicts with their evidence, and the pairs behind them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from annotation.campaign.rubric import load_rubric
from annotation.ratings.decisions import pairs_to_read
from annotation.report import exhibits
from annotation.report.material import CampaignMaterial, campaign_material, read_material
from annotation.verdicts.evidence import Evidence
from plumbline.exhibits.table import Exhibit
from plumbline.fields import columns_read
from plumbline.records import Pair, nfc
from plumbline.store import as_record
from streamlit_app.readers import CONTROLS, JUDGED, RATED, RULES, StudyReader, cached

_ANSWERED = ["value", "answer", "status", "comment", "excluded", "withdrawn"]
_COUNTS = ["n_ratings", "comments"]


class CampaignReader(StudyReader):
    """Reads the verdicts' evidence, and the answers to each pair."""

    @cached(*JUDGED, watches=(*RULES, "judgements/"))
    def material(self) -> CampaignMaterial:
        """The material of the campaign's report: verdicts that hold, and their ratings."""
        return read_material(Evidence(self.study).changed(signs=self.signs()))

    @cached(*JUDGED, watches=RULES)
    def table(self, make: Callable[[CampaignMaterial], Exhibit]) -> Exhibit:
        """A table of `annotation.report.exhibits`."""
        return make(self.material())

    @cached(*RATED, watches=RULES)
    def crowd(self) -> Exhibit | None:
        """The crowd's cost against the plan; None without crowd workers."""
        material = campaign_material(Evidence(self.study).changed(signs=self.signs()))
        return exhibits.campaigns_exhibit(material) if material.crowd else None

    @cached(*JUDGED, watches=RULES)
    def shares(self) -> pd.DataFrame:
        """Shares of the points of each scale (`annotation.report.exhibits.shares_frame`)."""
        return exhibits.shares_frame(self.material())

    @cached("pairs.parquet", watches=("ratings.parquet", *CONTROLS))
    def browsed(self) -> pd.DataFrame:
        """The sample as a coordinator reads it: first `ratings.decisions.pairs_to_read`, then the unrated pairs."""
        pairs = self.pairs()
        first, _, *more = columns_read(pairs)
        read = pairs.assign(original=more[0].where(more[0] != "", first)) if more else pairs
        if "ratings.parquet" not in self:
            return read.assign(question="", **dict.fromkeys(_COUNTS, 0))
        rated = pairs_to_read(self.answers(), self.study.raters.per_pair, load_rubric(self.study).quality)
        table = rated.merge(read, on="pair_id", how="right")
        position = pd.Series(range(len(rated)), index=rated["pair_id"])
        table = table.iloc[table["pair_id"].map(position).fillna(len(rated)).argsort(kind="stable")]
        return table.fillna({"question": "", **dict.fromkeys(_COUNTS, 0)}).reset_index(drop=True)

    def found(self, query: str, **filters: str) -> pd.DataFrame:
        """`browsed` whose columns have these values (empty: all), and whose texts contain the query as it is written.

        Letter case does not matter.
        """
        table = self.browsed()
        for column, value in filters.items():
            table = table[table[column] == value] if value else table
        if words := nfc(query).casefold():
            texts = table["original"].astype(str) + "\n" + table["transformed"].astype(str)
            table = table[texts.str.casefold().str.contains(words, regex=False)]
        return table.reset_index(drop=True)

    def pair(self, pair_id: str) -> Pair | None:
        """One pair; None if the sample does not contain it (any more)."""
        sample = self.pairs()
        rows = sample[sample["pair_id"] == pair_id].to_dict(orient="records")
        return as_record({str(name): value for name, value in rows[0].items()}, Pair) if rows else None

    def answers_to(self, pair_id: str) -> pd.DataFrame:
        """Every answer to one pair, by raters' pseudonyms, with comments; no rows before there are ratings."""
        columns = ["rater_id", "question", *_ANSWERED, "submitted_at", "simulated"]
        if "ratings.parquet" not in self:
            return pd.DataFrame(columns=columns)
        ratings = self.answers()
        return ratings.loc[ratings["pair_id"] == pair_id, columns].reset_index(drop=True)
