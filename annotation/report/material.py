"""The material of a report on a campaign, read once; contradictory records are refused."""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from annotation.campaign.counting import counting_ratings
from annotation.campaign.records import NOT_IMPORTED, TRUTH
from annotation.campaign.rubric import Rubric
from annotation.crowd.summary import CrowdSummary, read_summaries, whole_tally
from annotation.crowd.tally import Tally
from annotation.human.records import HumanTask
from annotation.human.tasks import read_tasks
from annotation.judges.powered import JudgesOutcome, read_outcome
from annotation.page.training import TrainingResult, read_trained
from annotation.records import Decision, Group, Look, RuleSet, Sign, Supply, Verdict, Wave
from annotation.statistics.systems import SideBySide
from annotation.verdicts.conclusion import looked_at
from annotation.verdicts.doubts import after_ratings, doubts_of
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preferences import NO_CHOICES
from annotation.verdicts.preregistration import binding, first_rating, rubric_of, rules_at_start
from annotation.verdicts.systems import NONE
from plumbline.records import Pair
from plumbline.study import Study


@dataclass(frozen=True)
class CampaignMaterial:
    """A study's records from the sample to the verdicts, and when they were read (UTC)."""

    study: Study
    rubric: Rubric
    pairs: Sequence[Pair]
    controls: Sequence[Pair]
    supply: Sequence[Supply]
    ratings: pd.DataFrame  #: of the sample, drafts and all
    counting: pd.DataFrame  #: those of them that count
    control_ratings: pd.DataFrame
    verdicts: Sequence[Verdict]
    groups: Sequence[Group]
    signs: Sequence[Sign]
    decisions: Sequence[Decision]  #: about raters
    rules: Sequence[RuleSet]
    looks: Sequence[Look]
    waves: Sequence[Wave]
    crowd: Sequence[CrowdSummary]
    manifest: Mapping[str, Any]
    read_at: datetime
    asked_for: Tally | None = None  #: what the study asks of people; None where ratings were given elsewhere
    side_by_side: SideBySide = NONE  #: systems on the same originals
    preferred: SideBySide = NO_CHOICES  #: systems by preference
    doubts: Sequence[str] = ()  #: what is doubtful about the verdicts
    withdrawals: Sequence[Decision] = ()  #: decisions about pairs
    trained: Sequence[TrainingResult] = ()  #: results of raters on known pairs, which never count
    judges: JudgesOutcome | None = None  #: the judges beside the verdicts; None without judges
    judges_left_out: str = ""  #: why judges are left out though they were asked
    unlooked: Sequence[str] = ()  #: the rules by which some raters could not be checked
    late_withdrawals: int = 0  #: pairs that were withdrawn after they had been rated
    right: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  #: right answers by item and question
    imported: bool = False  #: whether the items came with their ratings, so that nothing was drawn

    @property
    def simulated(self) -> bool:
        """Whether any rating is simulated, counting or not."""
        return bool(self.ratings["simulated"].any() or self.control_ratings["simulated"].any())

    @property
    def questions(self) -> list[str]:
        """The names of the questions that are rated on a scale, in the rubric's order."""
        return self.rubric.rating_names()

    @functools.cached_property
    def submitted(self) -> pd.DataFrame:
        """The sample's submitted ratings, whether they count or not."""
        return self.ratings[self.ratings["status"] == "submitted"]

    @property
    def excluded(self) -> pd.DataFrame:
        """The ratings by excluded raters, without those of withdrawn pairs."""
        return self.submitted[(self.submitted["excluded"] != "") & (self.submitted["withdrawn"] == "")]

    @property
    def withdrawn(self) -> pd.DataFrame:
        """The ratings of withdrawn pairs."""
        return self.submitted[self.submitted["withdrawn"] != ""]

    @property
    def staying(self) -> Sequence[Pair]:
        """The pairs of the sample that nobody withdrew."""
        last = {decision.pair_id: decision.exclude for decision in self.withdrawals}
        return [pair for pair in self.pairs if not last.get(pair.pair_id)]

    @property
    def surplus(self) -> pd.DataFrame:
        """The surplus ratings, which came after their pair had enough.

        They follow from the ratings that count, since the mark dates from collecting.
        """
        elsewhere = [*self.counting.index, *self.excluded.index, *self.withdrawn.index]
        return self.submitted[~self.submitted.index.isin(elsewhere)]

    @functools.cached_property
    def every(self) -> pd.DataFrame:
        """All ratings, of controls too."""
        return pd.concat([self.ratings, self.control_ratings])

    @functools.cached_property
    def first(self) -> datetime | None:
        """The time of the first rating."""
        return first_rating(self.every)

    @property
    def texts(self) -> set[tuple[str, str]]:
        """The languages of originals and of their outputs (codes)."""
        return {(pair.language, pair.output_language) for pair in self.pairs}

    @functools.cached_property
    def tasks(self) -> Sequence[HumanTask]:
        """People's tasks as they were drawn; none in other studies."""
        return read_tasks(self.study) if self.study.judging.does_tasks else ()

    @functools.cached_property
    def asked(self) -> Rubric:
        """The rubric as raters read it; what joined after the first rating has the words of now."""
        rule_set = rules_at_start(self.rules, self.first)
        if rule_set is None:
            return self.rubric
        rubric = rubric_of(rule_set)
        return rubric.model_copy(update={"pools": self.rubric.pools | rubric.pools})

    @property
    def holds(self) -> RuleSet | None:
        """The rules that hold."""
        return binding(self.rules, self.first)


def read_material(evidence: Evidence, read_at: datetime | None = None) -> CampaignMaterial:
    """Read the material. Raises as `looked_at`."""
    conclusion = looked_at(evidence, evidence.design.seed)
    verdicts = conclusion.verdicts
    material = campaign_material(evidence, read_at)
    judges, why_not = read_outcome(evidence, verdicts)
    return replace(
        material,
        verdicts=verdicts,
        groups=conclusion.groups,
        side_by_side=conclusion.side_by_side,
        preferred=conclusion.preferred,
        doubts=doubts_of(evidence, verdicts, material.signs),
        judges=judges,
        judges_left_out=why_not,
    )


def campaign_material(evidence: Evidence, read_at: datetime | None = None) -> CampaignMaterial:
    """Return the material before verdicts: pairs, ratings and raters."""
    study, collected = evidence.study, evidence.read_whole().collected
    right, truth = dict[str, Mapping[str, object]](), study.folder / TRUTH
    if truth.exists():  # right answers of imported items
        labels = pd.read_csv(io.BytesIO(truth.read_bytes()), dtype=str, keep_default_na=False)
        right = {pair_id: {name: label} for pair_id, name, label in labels.itertuples(index=False) if name}
    right |= {pair.pair_id: evidence.rubric.right_answers(pair) for pair in collected.control_pairs}
    return CampaignMaterial(
        study=study,
        rubric=evidence.rubric,
        pairs=collected.sample_pairs,
        controls=collected.control_pairs,
        supply=evidence.supply,
        ratings=collected.sample_ratings,
        counting=counting_ratings(collected.sample_ratings, study.raters.per_pair),
        control_ratings=collected.control_ratings,
        verdicts=(),
        groups=(),
        signs=evidence.signs,
        decisions=evidence.decisions,
        withdrawals=evidence.withdrawals,
        trained=read_trained(evidence),
        unlooked=evidence.unlooked,
        late_withdrawals=sum(decision.exclude for decision in after_ratings(evidence)),
        rules=evidence.rules,
        looks=evidence.looks,
        waves=evidence.waves,
        crowd=read_summaries(evidence),
        asked_for=whole_tally(evidence) if evidence.offered else None,
        manifest=evidence.manifest,
        read_at=read_at or datetime.now(UTC),
        right=right,
        imported=(study.folder / NOT_IMPORTED).exists(),
    )
