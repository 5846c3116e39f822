"""Judges' records beside a campaign's verdicts: read once, and people's means with the judges' help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.campaign.counting import counting_ratings, coverage_of
from annotation.campaign.records import CampaignRecords
from annotation.judges.powered import Judging, powered_means
from annotation.records import Verdict
from annotation.verdicts.counted import basis
from annotation.verdicts.evidence import Evidence
from plumbline.errors import DataError, PlumblineError
from plumbline.resources import installing
from plumbline.study import Study


@dataclass(frozen=True)
class JudgesOutcome:
    """The judges of a study whose verdicts people have reached; judges decide nothing."""

    judging: Judging
    means: pd.DataFrame  #: `powered_means`
    simulated: bool  #: whether ratings that count are simulated

    @property
    def recorded(self) -> tuple[str, ...]:
        """The judges whose judgements come from a file: nobody was asked."""
        judgements = self.judging.judgements
        return tuple(sorted(judgements.loc[judgements["kind"] == "recorded", "judge"].unique()))


def judged(study: Study) -> bool:
    """Return whether some judge of the study has answered."""
    return any((study.judgements / f"{spec.name}.parquet").exists() for spec in study.judges)


def read_judging(records: CampaignRecords) -> Judging:
    """Read the outputs given to judges, and their judgements.

    Raises DataError if judgements are missing or a table is damaged.
    """
    try:
        from annotation.judges.pool import read_judged  # noqa: PLC0415 (these take the extra `generation`)
        from annotation.judges.run import read_judgements  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise DataError(f"reading judgements needs {error.name}: {installing('generation')}") from None

    study = records.study
    outputs = pd.DataFrame([pair.model_dump() for pair in read_judged(study)])
    judgements = read_judgements(study)
    if judgements.empty:
        raise DataError(f"{study.file}: no judge has answered yet; run `{study.command('judge run')}`")
    return Judging(outputs, judgements, tuple(records.collected.withdrawn))


def outcome_of(evidence: Evidence) -> JudgesOutcome:
    """Return people's means with the judges' help, from the ratings that the verdicts rest on.

    Raises DataError if judgements are missing or damaged.
    """
    design, collected, judging = evidence.design, evidence.collected, read_judging(evidence)
    counting = counting_ratings(collected.sample_ratings, design.per_pair)
    names = {"pair_id", "pool", "language", "task_type", "wave"}
    facts = pd.DataFrame([pair.model_dump(include=names) for pair in collected.sample_pairs])
    rests = basis(facts, counting, design, coverage_of(collected.sample_ratings, collected.withdrawn))
    return JudgesOutcome(judging, powered_means(rests, judging, design), bool(counting["simulated"].any()))


def read_outcome(evidence: Evidence, verdicts: Sequence[Verdict]) -> tuple[JudgesOutcome | None, str]:
    """Return the judges' outcome, and why there is none; both are empty before verdicts, and if no judge was asked.

    Judges never block people's verdicts: a fault in their records is reported, and they are left out.
    """
    if not (verdicts and judged(evidence.study)):
        return None, ""
    try:
        return outcome_of(evidence), ""
    except (PlumblineError, OSError, ValueError) as error:
        return None, " ".join(str(error).split())
