"""What `annotation accept` asks of judges where the rules let people and judges decide together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from annotation.judged_mean import JudgedMean
from annotation.judges.beside import Beside, beside, read_judging
from annotation.records import Verdict
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.judged import Unit, unit_of
from plumbline.errors import DataError


def judged_means(evidence: Evidence, found: Sequence[Verdict]) -> Mapping[Unit, Sequence[JudgedMean]]:
    """What people and judges say together of each verdict's questions. Raises DataError where judges' records lack."""
    made = beside(evidence, found, read_judging(evidence.study, evidence.collected))
    return of_verdicts(made, found)


def of_verdicts(made: Beside, found: Sequence[Verdict]) -> dict[Unit, tuple[JudgedMean, ...]]:
    """The same from what stands beside the verdicts."""
    return {unit_of(verdict): made.of(verdict) for verdict in found}


def refuse_other_judgements(evidence: Evidence, found: Sequence[Verdict]) -> None:
    """Raise DataError where verdicts that judges had a part in do not say what the judges' records say.

    Nothing is looked at where people decided alone.
    """
    if not any(one.judged for one in found):
        return
    due = judged_means(evidence, found)
    for verdict in found:
        if [one.model_dump_json() for one in verdict.judged] != [
            one.model_dump_json() for one in due[unit_of(verdict)]
        ]:
            study = evidence.study
            raise DataError(
                f"{study.folder / 'verdicts.json'}: what judges say of {verdict.transformation} ({verdict.language}) is"
                f" not what their records say; run `{study.command('annotation accept')}` again"
            )
