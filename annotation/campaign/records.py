"""A campaign's records, opened once: the one place that knows their files, contents and makers.

Pairs and ratings are frames and not records: a hundred thousand pairs are read in a tenth of a second, as records in
one and a half. Columns with few values are categories (in their order), so that they are compared, counted and grouped
as numbers.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pyarrow as pa

from annotation.campaign.counting import marked, withdrawals
from annotation.campaign.rubric import Rubric, load_rubric
from annotation.records import Decision, Look, OfferedAgain, Offering, RuleSet, Supply, TakenLook, Wave
from plumbline.errors import DataError
from plumbline.frames import rows_where
from plumbline.identity import identity
from plumbline.manifest import RecordFile, StudyRecords
from plumbline.records import Pair, Rating, Record, arrow_schema, with_decimals_of, with_words
from plumbline.store import as_record, joined
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec

PAIRS = RecordFile("pairs.parquet", Pair, "sample", noted=True)
CONTROLS = RecordFile("controls.parquet", Pair, "sample", noted=True)
RATINGS = RecordFile("ratings.parquet", Rating, "collect", noted=True)
CONTROL_RATINGS = RecordFile("control_ratings.parquet", Rating, "collect", noted=True)
_ONCE = "restore it from a copy, and do not delete it: no command can make it again"
DECISIONS = RecordFile("decisions.json", Decision, "review", noted=True, advice=_ONCE)
RULES = RecordFile(
    "rules.json",
    RuleSet,
    "publish",
    noted=True,
    advice="restore it from a copy: without it nothing shows when the rules were fixed",
)
SUPPLY = RecordFile("sample.json", Supply, "sample", noted=True)
WAVES = RecordFile("waves.json", Wave, "sample", "--extend REASON", noted=True)
OFFERED = RecordFile("offered.json", Offering, "publish", noted=True, advice=_ONCE)
AGAIN = RecordFile("offered_again.json", OfferedAgain, "publish", noted=True, advice=_ONCE)
BLOCK_LOOKS = RecordFile("block_looks.json", TakenLook, "publish", noted=True, advice=_ONCE)
LOOKS = RecordFile("looks.json", Look, "accept", noted=True, advice=_ONCE)
#: Print-outs of `accept` for readers, which no command reads.
VERDICTS, AGREEMENT, PAIR_MEANS = "verdicts.json", "agreement.json", "pair_means.parquet"
TRUTH = "truth.csv"  # right answers by pair and question that an import brought; no verdict rests on them
ITEM_IDS = "item_ids.parquet"  # beside an import's texts, what its files call the items: `item_id` by `pair_id`
NOT_IMPORTED = "not_imported.csv"  # rows of imported files that are not in the study; every import writes it

_OF_PAIRS = (
    *("pair_id", "transformation", "axis", "pool", "dataset", "task_type", "language", "output_language"),
    *("control", "repeats", "model", "generator_hash", "prompt_hash", "generator_kind"),
    *("fields", "expected", "systems", "queue"),
)
_OF_RATINGS = (
    *("pair_id", "transformation", "language", "rater_id", "question", "status"),
    *("source", "batch", "comment", "answer", "excluded", "withdrawn", "order"),
)


@dataclass(frozen=True)
class CampaignData:
    """The pairs before raters and their ratings, which nobody may change."""

    pairs: pd.DataFrame  #: rows of `Pair`: the sample, then controls and repeats; empty before there is a sample
    ratings: pd.DataFrame  #: rows of `Rating`, of all of them; empty before the first
    withdrawn: Mapping[str, str] = field(default_factory=dict)  #: why pairs were withdrawn, by id, repeats of them too

    @classmethod
    def read(cls, study: Study) -> CampaignData:
        """Read a study's pairs and ratings. Raises DataError for damaged files."""
        return CampaignRecords(study).collected

    @classmethod
    def of_tables(
        cls,
        pairs: Iterable[pa.Table],
        ratings: Iterable[pa.Table],
        decisions: Sequence[Decision],
        per_pair: int,
        again: Collection[tuple[str, str]] = (),
    ) -> CampaignData:
        """Build the data from tables of `Pair` and of `Rating`, and from what people decided.

        Which ratings count is computed: marks in the tables are not read. `per_pair` is `raters.per_pair`, `again` are
        the answers, (pair, rater), whose pairs were offered again.
        """
        frames = [_frame(pairs, Pair, _OF_PAIRS), _frame(ratings, Rating, _OF_RATINGS)]
        pa.default_memory_pool().release_unused()  # reading takes three times what is read
        of_pairs, of_ratings = (frame["pair_id"].cat.categories.astype("str") for frame in frames)
        ids = pd.CategoricalDtype(of_pairs.union(of_ratings))  # shared, so that a pair has one code
        data = cls(frames[0].astype({"pair_id": ids}), frames[1].astype({"pair_id": ids}))
        withdrawn = withdrawals(decisions, data.control_pairs) if decisions and len(data.pairs) else {}
        return cls(data.pairs, marked(data.ratings, decisions, per_pair, withdrawn, again), withdrawn)

    @functools.cached_property
    def sample(self) -> pd.DataFrame:
        """The sample's pairs."""
        return rows_where(self.pairs, (self.pairs["control"] == "").to_numpy())

    @functools.cached_property
    def sample_pairs(self) -> list[Pair]:
        """The sample as records."""
        return pair_records(self.sample)

    @functools.cached_property
    def control_pairs(self) -> list[Pair]:
        """Controls and repeats as records."""
        return pair_records(self.pairs[self.pairs["control"] != ""])

    @functools.cached_property
    def plain_ratings(self) -> pd.DataFrame:
        """All ratings as they are written, without categories."""
        return without_categories(self.ratings)

    @functools.cached_property
    def sample_ratings(self) -> pd.DataFrame:
        """The plain ratings without controls and repeats, which are in `ratings.parquet`."""
        return self.plain_ratings[~self._of_controls]

    @functools.cached_property
    def coded_ratings(self) -> pd.DataFrame:
        """The sample's ratings with words as categories, which are quick to group and to compare."""
        return rows_where(self.ratings, ~self._of_controls.to_numpy())

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
        return rows_where(self.ratings, self.ratings["pair_id"].isin(self.pairs["pair_id"]).to_numpy())

    @functools.cached_property
    def of_sample(self) -> pd.DataFrame:
        """The ratings of the sample's pairs."""
        return rows_where(self.known, ~self._of_controls[self.known.index].to_numpy())


def _frame(tables: Iterable[pa.Table], record: type[Record], words: Sequence[str]) -> pd.DataFrame:
    encoded = with_words(arrow_schema(record), words)
    return joined([table.cast(with_decimals_of(encoded, record, table.schema)) for table in tables], record, words)


def without_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with words instead of categories."""
    kinds = frame.dtypes.items()
    return frame.astype({name: kind.categories.dtype for name, kind in kinds if isinstance(kind, pd.CategoricalDtype)})


def pair_records(pairs: pd.DataFrame) -> list[Pair]:
    """Return rows of `Pair` as records, which take ten times the time and the memory of the frame."""
    columns = {str(name): pairs[name].tolist() for name in pairs}
    return [as_record(dict(zip(columns, row, strict=True)), Pair) for row in zip(*columns.values(), strict=True)]


def rule_id(acceptance: AcceptanceSpec, per_pair: int, blocks: Sequence[int] = ()) -> str:
    """Identity of the rule that ratings are judged by: the acceptance, how many ratings a pair count, and blocks."""
    return identity("rule-v1", acceptance.model_dump(), per_pair, list(blocks))


class CampaignRecords(StudyRecords):
    """The records of a campaign from the sample to the verdicts, each read on first use."""

    def changed(self, **values: Any) -> Self:
        """Return a copy with other values, such as rules that a command has just written."""
        copied = copy.copy(self)
        copied.__dict__ |= values
        return copied

    @functools.cached_property
    def rubric(self) -> Rubric:
        """The study's rubric."""
        return load_rubric(self.study)

    @functools.cached_property
    def collected(self) -> CampaignData:
        """The pairs before raters, and all ratings. Raises DataError for damaged and replaced files."""
        pairs = (self.table(file, _OF_PAIRS) for file in (PAIRS, CONTROLS) if self.has(PAIRS))
        ratings, per_pair = self._rating_tables(_OF_RATINGS), self.study.raters.per_pair
        return CampaignData.of_tables(pairs, ratings, self.decided, per_pair, self.answers_again)

    @functools.cached_property
    def pairs(self) -> list[Pair]:
        """The sample. Raises DataError where it was taken away or is not the one that was drawn."""
        if "collected" in self.__dict__ and self.has(PAIRS):
            return self.collected.sample_pairs
        return [as_record(row, Pair) for row in self.table(PAIRS).to_pylist()]

    @property
    def known_pairs(self) -> list[Pair]:
        """The sample; empty before it is drawn."""
        return self.pairs if self.has(PAIRS) else []

    @functools.cached_property
    def controls(self) -> list[Pair]:
        """The study's controls and repeats; `Pair.control` tells them apart."""
        if "collected" in self.__dict__ and self.has(PAIRS):
            return self.collected.control_pairs
        return [as_record(row, Pair) for row in self.table(CONTROLS).to_pylist()]

    @property
    def known_controls(self) -> list[Pair]:
        """The controls and repeats; empty before they are drawn."""
        return self.controls if self.has(CONTROLS) else []

    @property
    def shown(self) -> list[Pair]:
        """All pairs that raters see: the sample, controls and repeats."""
        return [*self.pairs, *self.controls]

    @functools.cached_property
    def shown_by_id(self) -> Mapping[str, Pair]:
        """All pairs that raters see, by id."""
        return {pair.pair_id: pair for pair in self.shown}

    @property
    def ratings(self) -> pd.DataFrame:
        """The sample's ratings collected so far. Raises DataError before the first."""
        self.need(RATINGS)
        return self.collected.sample_ratings

    @property
    def control_ratings(self) -> pd.DataFrame:
        """The ratings of controls and repeats collected so far. Raises DataError before the first."""
        self.need(CONTROL_RATINGS)
        return self.collected.control_ratings

    @property
    def all_ratings(self) -> pd.DataFrame:
        """All ratings, of the sample, controls and repeats; an empty frame before the first time."""
        return self.collected.plain_ratings

    def _rating_tables(self, words: Sequence[str]) -> Iterator[pa.Table]:
        files = [file for file in (RATINGS, CONTROL_RATINGS) if self.has(file)]
        yield from (self.table(file, words) for file in files)
        if files == [RATINGS] and self.noted.notes(CONTROL_RATINGS.name):
            command = CONTROL_RATINGS.command(self.study)
            advice = f"restore it from a copy, or move {RATINGS.name} away too and run `{command}` again"
            raise DataError(f"{self.path(CONTROL_RATINGS)} is gone; {advice}")

    @functools.cached_property
    def withdrawn(self) -> Mapping[str, str]:
        """The reasons of withdrawn pairs and their repeats, by id; none is offered, and no rating of them counts."""
        return withdrawals(self.withdrawals, self.controls) if self.withdrawals else {}

    @functools.cached_property
    def decided(self) -> list[Decision]:
        """All that people decided about raters and pairs, the oldest first; none before the first."""
        return self.models(DECISIONS)

    @functools.cached_property
    def decisions(self) -> list[Decision]:
        """The decisions about raters."""
        return [decision for decision in self.decided if decision.rater_id]

    @functools.cached_property
    def withdrawals(self) -> list[Decision]:
        """The decisions about pairs."""
        return [decision for decision in self.decided if decision.pair_id]

    @functools.cached_property
    def rules(self) -> list[RuleSet]:
        """The sets of rules that were fixed, the oldest first; none before publishing."""
        rules = self.models(RULES)
        if not rules and self.path(RULES).exists():
            raise DataError(f"{self.path(RULES)} is damaged; {RULES.advice}")
        return rules

    @functools.cached_property
    def supply(self) -> list[Supply]:
        """The outputs that the sample was drawn from; empty before it is drawn."""
        return self.models(SUPPLY)

    @property
    def drawn_from(self) -> list[Supply]:
        """The outputs that the sample was drawn from. Raises DataError before it is drawn."""
        supply = self.supply
        self.need(SUPPLY)
        return supply

    @functools.cached_property
    def offered_again(self) -> list[OfferedAgain]:
        """The answers of excluded raters whose pairs were offered again; also if taken back."""
        return self.models(AGAIN)

    @property
    def answers_again(self) -> set[tuple[str, str]]:
        """The answers of excluded raters whose pairs were offered again, as (pair, rater)."""
        return {(note.pair_id, note.rater_id) for note in self.offered_again}

    @functools.cached_property
    def waves(self) -> list[Wave]:
        """The extensions of the sample, the oldest first; empty for a sample that was never extended."""
        return self.models(WAVES)

    @functools.cached_property
    def offerings(self) -> list[Offering]:
        """The times at which the sample began to be offered, the oldest first."""
        return self.models(OFFERED)

    @functools.cached_property
    def block_looks(self) -> list[TakenLook]:
        """The looks after blocks that were taken by the rule that holds now, the first one first."""
        return [look for look in self.models(BLOCK_LOOKS) if look.rule_id == self.rule_id]

    @functools.cached_property
    def looks(self) -> list[Look]:
        """The times at which verdicts were reached, the oldest first, without those that changed nothing."""
        return self.models(LOOKS)

    @property
    def rule_id(self) -> str:
        """Identity of the rule that the study's ratings are judged by."""
        return rule_id(self.study.acceptance, self.study.raters.per_pair, self.study.raters.blocks)


def shown_files(folder: Path) -> list[Path]:
    """The files of all that raters see."""
    return [folder / PAIRS.name, folder / CONTROLS.name]


def collected_files(folder: Path) -> list[Path]:
    """The files that collecting writes."""
    return [folder / name for name in ("ratings.parquet", "control_ratings.parquet", "members.json")]
