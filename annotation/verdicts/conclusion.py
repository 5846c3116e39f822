"""What follows from a study's records: verdicts, Table 2 and means of pairs, computed whenever somebody asks.

`accept` prints them and records the look at them; every later stage computes them again, and asks for that look.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pandas as pd

from annotation.campaign.records import CONTROL_RATINGS, LOOKS, PAIRS, RATINGS, RULES, CampaignRecords
from annotation.ratings.decisions import identity_of
from annotation.records import Group, Verdict
from annotation.statistics.summaries import table_two
from annotation.statistics.systems import SideBySide
from annotation.verdicts.counted import with_enough
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.held import with_checks
from annotation.verdicts.rules import with_rules_fixed
from annotation.verdicts.verdicts import judged_sample, pair_means, with_supply
from plumbline.errors import DataError, StudyError
from plumbline.manifest import RecordFile

COMMAND = "accept"
_NAMES = {
    "rule": "the study's rule (acceptance, raters.per_pair)",
    "rubric": "the rubric",
    "decisions": "people's decisions about raters and pairs",
}


class Conclusion:
    """What follows from the evidence; each part is computed on first use.

    `seed` is that of resampling pairs for intervals of agreement, on which no decision rests; None leaves these out.
    """

    def __init__(self, evidence: Evidence, seed: int | None = None) -> None:
        self._evidence, self._seed = evidence, seed
        self._pairs, self._ratings = evidence.collected.sample, evidence.collected.coded_ratings

    @functools.cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdicts, in the sample's order."""
        evidence, pairs, ratings = self._evidence, self._pairs, self._ratings
        withdrawn, rests = evidence.collected.withdrawn, evidence.rests
        verdicts = judged_sample(pairs, ratings, evidence.design, self._seed, withdrawn, rests)
        verdicts = with_supply(verdicts, evidence.supply, pairs, ratings)
        return with_checks(with_rules_fixed(verdicts, evidence.rules_fixed[0]), evidence)

    @functools.cached_property
    def groups(self) -> list[Group]:
        """HTEB's Table 2."""
        design, kinds = self._evidence.design, self._pairs.drop_duplicates("transformation", keep="last")
        places = {row["transformation"]: (row["axis"], row["pool"]) for row in kinds.to_dict("records")}
        return table_two(with_enough(self.counting, design), design, self._seed, places)

    @functools.cached_property
    def means(self) -> pd.DataFrame:
        """The pairs' own means: the columns of `PairMean`."""
        return pair_means(self.counting, self._evidence.design)

    @functools.cached_property
    def side_by_side(self) -> SideBySide:
        """The study's systems on the same originals; no rows without two that share some."""
        return self._evidence.side_by_side

    @functools.cached_property
    def preferred(self) -> SideBySide:
        """The systems between whose outputs people chose; no rows without such choices."""
        return self._evidence.preferred

    @functools.cached_property
    def counting(self) -> pd.DataFrame:
        """The sample's ratings that count."""
        return self._evidence.counting


def rests_on(records: CampaignRecords) -> dict[str, str]:
    """Return hashes of what a study's verdicts rest on now: files, rule, rubric and people's decisions."""
    return {
        **{file.name: records.sha256(file) for file in (PAIRS, RATINGS, CONTROL_RATINGS)},
        "rule": records.rule_id,
        "rubric": records.rubric.identity(),
        "decisions": identity_of(records.decided, records.answers_again),
    }


def looked_at(evidence: Evidence, seed: int | None = None) -> Conclusion:
    """Return what follows from the evidence, if a look at just that is on record.

    Raises DataError before the first look and if anything changed since the last one; StudyError for rules that changed
    without a reason.
    """
    refuse_unlooked(evidence.read_all())  # a damaged or edited file is named before one that changed
    evidence.refuse_other_rules()
    return Conclusion(evidence, seed)


def refuse_unlooked(records: CampaignRecords) -> None:
    """Raise DataError before the first look at verdicts, and if anything changed since the last one."""
    command = records.study.command(COMMAND)
    if not records.looks:
        raise DataError(f"{records.path(LOOKS)}: there are no verdicts yet; run `{command}` first")
    needed: list[RecordFile[Any]] = [PAIRS, RATINGS, RULES]
    for file in needed:
        if not records.path(file).exists():
            raise DataError(f"{records.path(file)} is gone, and the verdicts rest on it; restore it from a copy")
    recorded, current = records.looks[-1].rests_on, rests_on(records)
    if changed := [_NAMES.get(name, name) for name in current if recorded.get(name) != current[name]]:
        raise DataError(f"{' and '.join(changed)} changed after the verdicts were reached; run `{command}` again")


def known_verdicts(evidence: Evidence) -> Sequence[Verdict]:
    """Return the verdicts; none where `looked_at` refuses them."""
    try:
        return looked_at(evidence).verdicts
    except (DataError, StudyError):
        return ()
