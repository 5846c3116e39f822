"""What judges add to verdicts that people have reached: it stands beside them and after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pandas as pd

from annotation.judged_mean import JudgedMean
from annotation.judges.decisions import judged_mean, of_verdict, saved, warnings, with_judges
from annotation.judges.powered import Judging, powered_means
from annotation.judges.records import BesideVerdict
from annotation.offering import read_reviews
from annotation.ratings.collected import Collected
from annotation.ratings.ratings import counting_ratings, dealt_with
from annotation.ratings.reviewed import saw_scores
from annotation.records import Verdict
from annotation.verdicts.counted import SCOPES, basis
from annotation.verdicts.evidence import Evidence
from plumbline.errors import DataError, PlumblineError
from plumbline.identity import identity
from plumbline.resources import installing
from plumbline.store import write_json
from plumbline.study import Study
from plumbline.study.judges import RecordedJudge

FILE = "verdicts_with_judges.json"


@dataclass(frozen=True)
class Beside:
    """What the study's rule would decide of people and judges, and what that rests on."""

    judging: Judging
    together: pd.DataFrame  #: `powered_means`
    decisions: pd.DataFrame  #: `with_judges`
    saved: pd.DataFrame  #: `decisions.saved`
    simulated: bool  #: whether ratings that count are a program's
    decides: bool = False  #: whether people and judges decide together, so that the verdicts are theirs
    first: datetime | None = None  #: when the first rating was given

    @property
    def recorded(self) -> tuple[str, ...]:
        """The judges whose judgements come from a file: nobody was asked."""
        said = self.judging.judgements
        return tuple(sorted(said.loc[said["kind"] == "recorded", "judge"].unique()))

    @property
    def judgements(self) -> str:
        """Hash of what the judges were given and said, as far as it counts."""
        outputs, said = self.judging.judged, self.judging.judgements
        keys = [sorted(outputs["pair_id"]), sorted(zip(said["key"], said["score"].map(repr), strict=True))]
        return identity("beside-v1", keys, sorted(self.judging.withdrawn), self.judging.refused)

    def of(self, verdict: Verdict) -> tuple[JudgedMean, ...]:
        """What people and judges say together of a verdict's questions, or why judges are refused."""
        rows, late = of_verdict(verdict, self.together).to_dict("records"), of_verdict(verdict, self._late)["question"]
        return tuple(
            judged_mean(row, self.recorded, self.judgements, int((late == row["question"]).sum())) for row in rows
        )

    @property
    def _late(self) -> pd.DataFrame:
        """Judgements that were given, perhaps once more, after the first rating; a file's stand in it since before."""
        said = self.judging.judgements
        own = said[(said["kind"] != "recorded") & (said["status"] != "unanswered")]
        return own[own["finished_at"] > self.first] if self.first else own.iloc[:0]

    @property
    def warnings(self) -> Sequence[str]:
        """A line for each verdict that would be another with the judges."""
        return warnings(self.decisions)


def judged(study: Study) -> bool:
    """Whether anything can stand beside verdicts: the rules let it, and one of the study's judges has spoken."""
    if not study.judges or study.acceptance.judges.use == "none":
        return False
    return any((study.judgements / f"{one.name}.parquet").exists() for one in study.judges)


def read_judging(study: Study, collected: Collected) -> Judging:
    """What judges were given and said. Raises DataError where some have said nothing yet, or a table is damaged."""
    try:
        from annotation.judges.pool import read_judged, undrawn  # noqa: PLC0415 (these take the extra `generation`)
        from annotation.judges.run import read_judgements  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise DataError(f"reading judgements needs {error.name}: {installing('generation')}") from None

    pool = read_judged(study)
    outputs = pd.DataFrame([one.model_dump() for one in pool])
    judgements = read_judgements(study)
    if judgements.empty:
        raise DataError(f"no judge of {study.file} has said anything; run `{study.command('annotation judge run')}`")
    shown = [one.name for one in study.judges if isinstance(one, RecordedJudge) and one.saw_ratings]
    late = saw_scores(read_reviews(study), collected.sample_ratings)
    half = study.raters.suggestions == "half"
    why = [f"{', '.join(shown)} saw people's ratings"] if shown else []
    why += [f"{', '.join(late)} rated after having seen judges' scores as adjudicators"] if late else []
    if strange := undrawn(study, pool):
        why.append(
            f"{strange} of {len(pool)} outputs that judges were given are near-duplicates, which no sample has; run"
            f" `{study.command('annotation judge run')}`, which draws them anew and asks nothing twice"
        )
    why += ["raters see judges' scores on half of the pairs (raters.suggestions)"] if half else []
    return judging_of(outputs, judgements, collected, "; ".join(why))


def judging_of(outputs: pd.DataFrame, judgements: pd.DataFrame, collected: Collected, refused: str) -> Judging:
    """The same from frames: all judges that said anything count together; `refused` says why they may not."""
    return Judging(
        outputs,
        judgements,
        tuple(sorted(judgements["judge"].unique())),
        frozenset(one.pair_id for one in collected.sample_pairs),
        withdrawn=tuple(collected.withdrawn),
        refused=refused,
    )


def beside(evidence: Evidence, found: Sequence[Verdict], judging: Judging) -> Beside:
    """What the rule that reached these verdicts would decide with the judges' help, from the same ratings."""
    design, collected = evidence.design, evidence.collected
    counting = counting_ratings(collected.sample_ratings, design.per_pair)
    names = {"pair_id", "pool", "language", "task_type", "wave"}
    facts = pd.DataFrame([one.model_dump(include=names) for one in collected.sample_pairs])
    rests = basis(facts, counting, design, dealt_with(collected.sample_ratings, collected.withdrawn))
    means = powered_means(rests, judging, design)
    decided = with_judges(found, means, design.rule)
    of_groups = saved(means, SCOPES[design.rule.scope], design)
    simulated, decides = bool(counting["simulated"].any()), design.rule.judges.use == "decide"
    return Beside(judging, means, decided, of_groups, simulated, decides, evidence.first)


def read_beside(evidence: Evidence, found: Sequence[Verdict]) -> tuple[Beside | None, str]:
    """(what stands beside these verdicts, why nothing does). Both are empty where no judge was asked, or may speak.

    Judges never stand in the way of people's verdicts: what is wrong with their records is said, and they are left out.
    """
    if not (found and judged(evidence.study)):
        return None, ""
    try:
        return beside(evidence, found, read_judging(evidence.study, evidence.collected)), ""
    except (PlumblineError, OSError, ValueError) as error:
        return None, " ".join(str(error).split())


def different(made: Beside | None) -> list[str]:
    """A line for each verdict that would be another with the judges, to stand among what is doubtful.

    None where judges decide with people: then the verdicts themselves tell it (`annotation.verdicts.doubts`).
    """
    if made is None or made.decides:
        return []
    return [f"with judges it would be another verdict: {line}" for line in made.warnings]


def write_beside(study: Study, found: Sequence[Verdict], made: Beside | None) -> None:
    """Write `verdicts_with_judges.json`; without judges there is none, and an old one goes."""
    path = study.folder / FILE
    if made is None:
        path.unlink(missing_ok=True)
    else:
        write_json(path, _records(found, made))


def _records(found: Sequence[Verdict], made: Beside) -> list[BesideVerdict]:
    shared = {"judges": made.judging.judges, "recorded": made.recorded, "simulated": made.simulated}
    shared["judgements"] = made.judgements
    names = ("pairs_sha256", "ratings_sha256", "rule_id")
    return [
        BesideVerdict.model_validate({**row, **shared, **{name: getattr(verdict, name) for name in names}})
        for row, verdict in zip(made.decisions.to_dict("records"), found, strict=True)
    ]
