"""What `annotation accept` asks of judges where the rules let people and judges decide together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from annotation.judged_mean import JudgedMean
from annotation.judges.beside import Beside, beside, read_judging
from annotation.records import Verdict
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.judged import Unit, unit_of
from annotation.verdicts.verification import same
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
    for verdict in other_judged(found, judged_means(evidence, found)):
        study = evidence.study
        raise DataError(
            f"{study.folder / 'verdicts.json'}: what judges say of {verdict.transformation} ({verdict.language}) is"
            f" not what their records say; run `{study.command('annotation accept')}` again"
        )


def other_judged(found: Sequence[Verdict], due: Mapping[Unit, Sequence[JudgedMean]]) -> Iterator[Verdict]:
    """The verdicts that do not say of judges what is due; numbers may differ by what versions of libraries do."""
    for verdict in found:
        own = [one.model_dump() for one in verdict.judged]
        right = [one.model_dump() for one in due.get(unit_of(verdict), ())]
        pairs = zip(own, right, strict=False)
        if len(own) != len(right) or not all(same(one[name], other[name]) for one, other in pairs for name in one):
            yield verdict
