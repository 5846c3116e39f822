"""All that verdicts rest on, read once by a command: what is computed from it goes back to no file."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from annotation.offering import offered_to_raters, read_waves
from annotation.ratings.collected import CampaignData
from annotation.ratings.exclusions import read_decisions
from annotation.ratings.ratings import SAMPLE, read_ratings
from annotation.ratings.review import signs_of, unlooked_signs
from annotation.records import Decision, Fixed, Look, RuleSet, Sign, Wave
from annotation.rubric import Rubric, load_rubric
from annotation.sampling.candidates import Supply
from annotation.sampling.sample import SUPPLY, known_supply, read_pairs, read_supply
from annotation.statistics.summaries import Design
from annotation.verdicts.preregistration import (
    binding,
    checks_known,
    first_rating,
    imported,
    read_rules,
    refuse_other_rules,
    rules_fixed,
)
from annotation.verdicts.verdicts import read_looks
from plumbline.study import Study


@dataclass(frozen=True)
class Evidence:
    """A study's records from the sample to the rules, as they were when a command began."""

    study: Study
    rubric: Rubric
    collected: CampaignData  #: the pairs before raters, and all ratings
    decisions: Sequence[Decision]  #: about raters, the oldest first
    withdrawals: Sequence[Decision]  #: about pairs, the oldest first
    rules: Sequence[RuleSet]  #: as they were fixed, the oldest first
    supply: Sequence[Supply]  #: what the sample was drawn from; nothing of samples by earlier versions
    waves: Sequence[Wave]  #: by which the sample was extended, the first one first
    looks: Sequence[Look]  #: when verdicts were reached, the first time first
    offered: bool  #: whether this campaign offered the sample to raters; taken for granted where nothing is imported

    @classmethod
    def read(cls, study: Study, collected: CampaignData | None = None) -> Evidence:
        """What lies in the study's folder, or is not there yet. Raises DataError for damaged and replaced files.

        `collected` is for who has it at hand.
        """
        decisions, ratings = read_decisions(study), collected or CampaignData.read(study)
        return cls(
            study=study,
            rubric=load_rubric(study),
            collected=ratings,
            decisions=[decision for decision in decisions if decision.rater_id],
            withdrawals=[decision for decision in decisions if decision.pair_id],
            rules=read_rules(study),
            supply=known_supply(study),
            waves=read_waves(study),
            looks=read_looks(study),
            offered=not imported(ratings.ratings).any() or offered_to_raters(study),
        )

    @classmethod
    def whole(cls, study: Study, collected: CampaignData | None = None) -> Evidence:
        """The same, all of it there: where a file is missing, the error names the command that makes it."""
        evidence = cls.read(study, collected)
        for name, read in (("pairs.parquet", read_pairs), (SAMPLE, read_ratings), (SUPPLY, read_supply)):
            if not (study.folder / name).exists():
                read(study)
        return evidence

    def with_rules(self, rules: Sequence[RuleSet], looks: Sequence[Look]) -> Evidence:
        """The same with rules and looks that a command wrote; signs are not looked for again."""
        evidence = replace(self, rules=rules, looks=looks)
        evidence.__dict__["signs"] = self.signs
        return evidence

    @property
    def design(self) -> Design:
        """What the study asks, and by what rule it judges, as the version had it that fixed the rules."""
        return design_of(self.study, self.rubric, self.rules, self.first)

    @property
    def first(self) -> datetime | None:
        """When the first rating was given."""
        return first_rating(self.collected.ratings)

    @property
    def rules_fixed(self) -> tuple[Fixed, str]:
        """Whether the rules were fixed after the first rating, and what is doubtful about that in words."""
        return rules_fixed(self.rules, self.collected.ratings, offered=self.offered)

    @functools.cached_property
    def signs(self) -> Sequence[Sign]:
        """The signs of careless answers."""
        return signs_of(self.study, self.collected, self.rubric)

    @functools.cached_property
    def unlooked(self) -> Sequence[str]:
        """By which rules raters could not be looked at."""
        return unlooked_signs(self.study, self.collected, self.rubric)

    def refuse_other_rules(self) -> None:
        """Raise StudyError where the study's rules are not those that hold since the first rating."""
        refuse_other_rules(self.study, self.rubric, self.rules, self.collected.ratings)


def design_of(study: Study, rubric: Rubric, rules: Sequence[RuleSet], first: datetime | None) -> Design:
    """A study's design; under rules that an earlier version fixed, intervals are those of that version.

    `rules` are the sets that were fixed, `first` is when the first rating was given.
    """
    holds = binding(rules, first)
    return replace(Design.of(study, rubric), bounded=holds is None or checks_known(holds))
