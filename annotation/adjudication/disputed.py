"""Where a study's people and judges disagree, read from its records after its verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from annotation.adjudication.disagreements import disagreements
from annotation.adjudication.suggesting import Scales
from annotation.judges.beside import read_judging
from annotation.ratings.ratings import counting_ratings
from annotation.rubric import Rubric
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.verdicts import read_verdicts, refuse_stale
from plumbline.records import Pair
from plumbline.study import Study


@dataclass(frozen=True)
class Disputed:
    """Pairs that people and judges rated, and what both said."""

    rows: pd.DataFrame  #: `disagreements`, pairs on which they differ most first
    ratings: pd.DataFrame  #: those that count, on questions with a scale
    judgements: pd.DataFrame
    judges: tuple[str, ...]
    rubric: Rubric
    pairs: Mapping[str, Pair]
    scales: Scales  #: of the questions that are rated

    @classmethod
    def read(cls, study: Study) -> Disputed:
        """Read it. Raises DataError where verdicts or judgements are not there yet, or the verdicts are stale.

        Only then: who saw it before could decide about raters by it, and would have had a look that nobody noted.
        """
        evidence = Evidence.whole(study)
        refuse_stale(study, read_verdicts(study), evidence.rubric)
        judging, design = read_judging(study, evidence.collected), evidence.design
        counting = counting_ratings(evidence.collected.sample_ratings, design.per_pair)
        names = evidence.rubric.rating_names()
        ratings = counting[counting["question"].isin(names)]
        return cls(
            disagreements(ratings, judging.judgements, design.rule.min_raters),
            ratings,
            judging.judgements,
            judging.judges,
            evidence.rubric,
            {pair.pair_id: pair for pair in evidence.collected.sample_pairs},
            {name: design.asked(name).scale for name in names},
        )

    def worst(self, number: int) -> list[str]:
        """The ids of so many pairs, those on which they differ most first."""
        return list(dict.fromkeys(self.rows["pair_id"]))[:number]

    @property
    def simulated(self) -> bool:
        """Whether a program gave ratings that count."""
        return bool(self.ratings["simulated"].any())

    @property
    def recorded(self) -> list[str]:
        """Judges whose answers come from a file."""
        said = self.judgements
        return sorted(said.loc[said["kind"] == "recorded", "judge"].unique())
