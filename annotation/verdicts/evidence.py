"""The evidence of verdicts: a campaign's records, and the facts that follow from them without any verdict."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self

import pandas as pd

from annotation.campaign.counting import by_pair, counting_ratings, coverage_of, imported, stays
from annotation.campaign.offering import offered_to_raters
from annotation.campaign.records import BLOCK_LOOKS, PAIRS, RATINGS, SUPPLY, CampaignRecords, pair_records
from annotation.ratings.signs import find_signs, not_looked_at
from annotation.records import Fixed, Sign, TakenLook
from annotation.sampling.queues import SCOPES, block_numbers
from annotation.statistics.summaries import Design
from annotation.statistics.systems import SideBySide
from annotation.verdicts.counted import Basis, Place, basis, with_enough
from annotation.verdicts.looks import BlockProgress
from annotation.verdicts.preferences import preferred
from annotation.verdicts.preregistration import first_rating, refuse_other_rules, rules_fixed, rules_now
from annotation.verdicts.systems import compared, couple_looks, with_comparisons
from plumbline.study import Study
from plumbline.study.transformations import EIGHT


class Evidence(CampaignRecords):
    """A campaign's records from the sample to the rules, with the facts that follow from them."""

    @classmethod
    def read(cls, study: Study) -> Self:
        """Open the records that exist in the study's folder.

        Raises DataError for damaged and replaced files.
        """
        return cls(study).read_all()

    def read_all(self) -> Self:
        """Read all records that may exist, and return self. Raises as `read`."""
        for name in ("decided", "collected", "rubric", "rules", "supply", "waves", "looks", "offered"):
            getattr(self, name)
        return self

    @classmethod
    def whole(cls, study: Study) -> Self:
        """Open the records, all of which must exist: the error for a missing file names the command that makes it."""
        return cls(study).read_whole()

    def read_whole(self) -> Self:
        """Read all records, which must exist, and return self. Raises as `whole`."""
        self.read_all()
        self.need(PAIRS, RATINGS)
        self.need(SUPPLY)
        return self

    @functools.cached_property
    def offered(self) -> bool:
        """Whether this campaign offered the sample to raters; true unless ratings are imported."""
        return not imported(self.collected.ratings).any() or offered_to_raters(self)

    @functools.cached_property
    def rules_now(self) -> Mapping[str, Any]:
        """The study's present rules, whether or not they hold."""
        return rules_now(self)

    @property
    def design(self) -> Design:
        """The study's questions and rule, with the looks that were taken."""
        design = Design.of(self.study, self.rubric)
        return replace(design, past_looks=tuple(self.block_looks)) if design.blocks else design

    @property
    def first(self) -> datetime | None:
        """The time of the first rating."""
        return first_rating(self.collected.ratings)

    @property
    def rules_fixed(self) -> tuple[Fixed, str]:
        """Whether the rules were fixed after the first rating, and doubts about that in words."""
        return rules_fixed(self.rules, self.collected.ratings, offered=self.offered)

    @functools.cached_property
    def signs(self) -> Sequence[Sign]:
        """The signs of careless answers in the ratings so far, controls and repeats included."""
        labelled = [question.name for question in self.rubric.asked() if question.labels]
        data, pairs = self.collected, self.collected.pairs  # a withdrawn pair's faults say nothing about its raters
        if self.study.sample.together:  # the original of a page is read once for all of its outputs
            beside = pairs["queue"].astype(str).map(self.study.shown_together) > 1
            pairs = pairs.assign(original=pairs["original"].astype(object).mask(beside, ""))
        return find_signs(data.ratings[stays(data.ratings)], pairs, self.rubric.quality, self.rubric.expected, labelled)

    @functools.cached_property
    def unlooked(self) -> Sequence[str]:
        """The rules by which some raters could not be checked, a line each (`not_looked_at`)."""
        staying = self.collected.ratings[stays(self.collected.ratings)]
        if staying.empty:
            return ()
        return not_looked_at(staying, self.collected.pairs, self.rubric.quality, self.rubric.expected)

    @functools.cached_property
    def blocks(self) -> Mapping[Place, BlockProgress]:
        """The progress of each group's blocks; empty for a rule without blocks."""
        blocks = self.rests.blocks if self.study.raters.blocks else {}
        return with_comparisons(blocks, self.side_by_side) if blocks else {}

    @functools.cached_property
    def rests(self) -> Basis:
        """The pairs and ratings that verdicts rest on, with the progress of blocks as far as verdicts need it."""
        return self._basis_of(self.counting)

    def _basis_of(self, counting: pd.DataFrame) -> Basis:
        data, design = self.collected, self.design
        coverage = coverage_of(data.coded_ratings, data.withdrawn) if design.blocks else None
        return basis(data.sample, counting, design, coverage)

    @functools.cached_property
    def counting(self) -> pd.DataFrame:
        """The sample's ratings that count."""
        return counting_ratings(self.collected.coded_ratings, self.design.per_pair)

    @functools.cached_property
    def side_by_side(self) -> SideBySide:
        """The study's systems on the same originals; no rows without two that share some."""
        return self._compared(self.counting, self.rests.blocks)

    @functools.cached_property
    def preferred(self) -> SideBySide:
        """The systems between whose outputs people chose; no rows without such choices."""
        return self._preferred(self.counting)

    @functools.cached_property
    def if_counted(self) -> Sequence[SideBySide]:
        """What `side_by_side` and `preferred` would be had excluded raters counted; empty if none is."""
        if not self._n_excluded:
            return ()
        every = counting_ratings(self.collected.coded_ratings, self.design.per_pair, with_excluded=True)
        return self._compared(every, self._basis_of(every).blocks), self._preferred(every)

    def _compared(self, counting: pd.DataFrame, blocks: Mapping[Place, BlockProgress]) -> SideBySide:
        design, sample = self.design, self.collected.sample
        pairs = pair_records(sample if design.blocks else sample[~sample["transformation"].isin(list(EIGHT))])
        done = compared(with_enough(counting, design), pairs, design, self.study.judging, blocks)
        return replace(done, excluded=self._n_excluded)

    def _preferred(self, counting: pd.DataFrame) -> SideBySide:
        sample = self.collected.sample
        done = preferred(with_enough(counting, self.design), pair_records(sample[sample["systems"] != ""]), self.design)
        return replace(done, excluded=self._n_excluded)

    @functools.cached_property
    def _n_excluded(self) -> int:
        """The number of excluded raters with ratings of pairs that stay."""
        ratings = self.collected.of_sample
        out = (ratings["status"] == "submitted") & (ratings["excluded"] != "") & stays(ratings)
        return int(ratings.loc[out, "rater_id"].nunique())

    @property
    def looks_due(self) -> list[TakenLook]:
        """The looks after blocks that are complete now and not on record with these results."""
        last, at = {(look.group, look.look): look for look in self.block_looks}, datetime.now(UTC)
        return [
            look
            for key, group in self.blocks.items()
            for look in group.taken(key, at, self.rule_id)
            if (recorded := last.get((key, look.look))) is None
            or repr(look) != repr(recorded.model_copy(update={"at": at}))
        ] + [look for look in couple_looks(self.side_by_side, at, self.rule_id) if (look.group, look.look) not in last]

    def unopened(self, ahead: Mapping[Place, int] | None = None) -> frozenset[str]:
        """Return pairs, controls and repeats of blocks that are not open to raters; none for a rule without blocks.

        `ahead` gives the minimum number of open blocks of undecided groups.
        """
        least, groups = ahead or {}, self.blocks.items()
        opened = {
            key: max(group.opened, least.get(key, 0)) if group.going_on else group.opened for key, group in groups
        }
        early = set(self.all_ratings["pair_id"]) - self.spared if opened else set()  # in blocks that were opened early
        return self._beyond(opened) - early

    @functools.cached_property
    def answers_by_pair(self) -> pd.DataFrame:
        """How many answers each pair of the sample has, and how many it still needs (`counting.by_pair`)."""
        read, study = self.collected, self.study
        least = study.acceptance.min_raters
        return by_pair(read.sample, read.of_sample, study.raters_of, least, read.withdrawn, self.unopened())

    @property
    def spared(self) -> frozenset[str]:
        """The pairs, controls and repeats that a look at earlier blocks has made unnecessary."""
        blocks = {key: group for key, group in self.blocks.items() if group.decision != "undecided"}
        return self._beyond({key: group.opened for key, group in blocks.items() if not group.going_on})

    @functools.cached_property
    def block_numbers(self) -> Mapping[str, int]:
        """The block, from 0, of each pair, control and repeat that has one."""
        return block_numbers(self.study, self.pairs, self.controls)

    def _beyond(self, opened: Mapping[Place, int]) -> frozenset[str]:
        """Return the pairs beyond the given number of blocks of each group, and those beyond its last block."""
        if not opened:
            return frozenset()
        numbers, names = self.block_numbers, SCOPES[self.study.acceptance.scope]
        keys = {pair.pair_id: tuple(str(getattr(pair, name)) for name in names) for pair in self.shown}
        return frozenset(
            pair_id
            for pair_id, key in keys.items()
            if key in opened and (pair_id not in numbers or numbers[pair_id] >= opened[key])
        )

    def refuse_other_rules(self) -> None:
        """Raise StudyError if the study's rules differ from those that hold since the first rating."""
        refuse_other_rules(self, self.rules_now, self.collected.ratings)


def write_looks(evidence: Evidence) -> None:
    """Write the looks after blocks that are due, before anybody acts on their results."""
    if new_looks := evidence.looks_due:
        evidence.noted.write_models(BLOCK_LOOKS.name, [*evidence.models(BLOCK_LOOKS), *new_looks])
        evidence.block_looks = [*evidence.block_looks, *new_looks]
        for following in ("rests", "blocks", "side_by_side", "if_counted", "answers_by_pair"):  # from earlier looks
            evidence.__dict__.pop(following, None)
