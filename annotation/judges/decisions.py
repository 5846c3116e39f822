"""The decision of the study's rule on people and judges together, beside that on people alone."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.campaign_records import CampaignData, CampaignRecords
from annotation.judges.powered import Judging, powered_means
from annotation.judges.records import BesideVerdict
from annotation.ratings.ratings import counting_ratings, dealt_with, saw_scores
from annotation.records import JudgedMean, Verdict
from annotation.sampling.queues import SCOPES
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import basis
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.judged import Unit, together, unit_of, worth_in_words
from annotation.verdicts.verdicts import refuse_stale
from annotation.verdicts.verification import refuse_edited, same
from plumbline.errors import DataError, PlumblineError
from plumbline.identity import identity
from plumbline.resources import installing
from plumbline.store import write_json
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec

COLUMNS = ["transformation", "language", "task_type"]
COLUMNS += ["decision", "with_judges", "reasons", "rests_on", "differ", "why_not"]  # columns of `with_judges`


def with_judges(verdicts: Iterable[Verdict], means: pd.DataFrame, rule: AcceptanceSpec) -> pd.DataFrame:
    """Return a row for each verdict: people's decision, and that of the same rule on people and judges.

    `means` are those of `powered_means`. The rule is the study's own, on the same pairs, as
    `annotation.verdicts.judged.together` says. Judges never decide alone: a verdict without its least number of
    rated pairs or raters stays undecided, and so does one whose agreement is too low. Columns: transformation,
    language, task_type, decision (people), with_judges (empty where no question has judges), reasons (of it), rests_on
    (`people + judges: 100 rated, 900 judged, worth 179`, by question), differ, why_not (why judges are refused).
    """
    rows: list[tuple[object, ...]] = []
    for verdict in verdicts:
        of_group = of_verdict(verdict, means)
        usable = [judged_mean(row) for row in of_group.to_dict("records") if not row["reason"]]
        why = "; ".join(_refused(of_group))
        named = (verdict.transformation, verdict.language, verdict.task_type, verdict.alone)
        if not usable:
            rows.append((*named, "", (), "", False, why or "there are no scores from judges"))
            continue
        decision, reasons = together(verdict, usable, rule)
        worth = ((mean.question, worth_in_words(mean.n_rated, mean.n_judged, mean.worth)) for mean in usable)
        rests = "; ".join(f"{question}: {words}" for question, words in worth)
        rows.append((*named, decision, reasons[: -len(usable)], rests, decision != verdict.alone, why))
    return pd.DataFrame(rows, columns=COLUMNS)


def saved(means: pd.DataFrame, scope: Sequence[str], design: Design) -> pd.DataFrame:
    """Return a row for each group with a verdict of its own: how many further rated pairs the judges replaced.

    `means` are those of `powered_means`, `scope` its columns. Every question must reach its decision, so the
    smallest saving of a group counts. Columns: those of the scope, n_rated, n_judged, worth, pairs_saved (worth -
    n_rated; below 0 for judges that make a mean less precise), ratings_saved (times raters of a pair and questions that
    must be answered), reason (why there is no number). The numbers promise nothing: they say what the same interval
    would have cost with people alone.
    """
    rows = []
    for key, of_group in means.groupby(list(scope), sort=False):
        alone = [name for name in design.needed(str(key[0])) if name not in set(of_group["question"])]
        unrated = [f"{name}: no judge rates it, so people alone decide" for name in alone]
        refused = "; ".join([*_refused(of_group), *unrated])
        worth = math.nan if refused else float(of_group["worth"].min(skipna=False))
        reason = refused or ("the judges' worth is undefined" if not math.isfinite(worth) else "")
        rated, judged = int(of_group["n_rated"].min()), int(of_group["n_judged"].min())
        pairs = math.nan if reason else worth - rated
        answers = design.per_pair * len(design.needed(str(key[0])))
        rows.append((*key, rated, judged, worth, pairs, pairs * answers, reason))
    columns = [*scope, "n_rated", "n_judged", "worth", "pairs_saved", "ratings_saved", "reason"]
    return pd.DataFrame(rows, columns=columns)


def warnings(decided: pd.DataFrame) -> Sequence[str]:
    """Return a line for each verdict that would differ with the judges."""
    return [
        f"{row['transformation']} ({row['language']}): {row['decision']} by people alone, {row['with_judges']} by"
        f" people and judges; {row['rests_on']}"
        for _, row in decided[decided["differ"]].iterrows()
    ]


def _refused(means: pd.DataFrame) -> list[str]:
    """Return why judges are refused: a line for each reason, with its questions."""
    why: dict[str, list[str]] = {}
    for _, row in means[means["reason"] != ""].iterrows():
        why.setdefault(str(row["reason"]), []).append(str(row["question"]))
    return [f"{', '.join(questions)}: {reason}" for reason, questions in why.items()]


def judged_mean(
    row: Mapping[Hashable, Any], recorded: Sequence[str] = (), judgements: str = "", late: int = 0
) -> JudgedMean:
    """Return a row of `powered_means` as a record."""
    names = ("question", "n_rated", "n_judged", "n_failed", "mean", "low", "high", "lean_low", "lean_high", "worth")
    judges = tuple(str(row["judges"]).split(", "))
    made_up = tuple(judge for judge in recorded if judge in judges)
    return JudgedMean.model_validate(
        {name: row[name] for name in (*names, "reason")}
        | {"judges": judges, "recorded": made_up, "judgements": judgements, "late": late}
    )


def of_verdict(verdict: Verdict, means: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the group that a verdict rests on."""
    rows = means["pool"] == verdict.pool
    for name in SCOPES[verdict.scope][1:]:
        rows &= means[name] == getattr(verdict, name)
    return means[rows]


FILE = "verdicts_with_judges.json"


@dataclass(frozen=True)
class JudgedOutcome:
    """The decision of the study's rule on people and judges together, and its basis."""

    judging: Judging
    together: pd.DataFrame  #: `powered_means`
    decisions: pd.DataFrame  #: `with_judges`
    saved: pd.DataFrame  #: `decisions.saved`
    simulated: bool  #: whether ratings that count are simulated
    decides: bool = False  #: whether people and judges decide the verdicts together
    first: datetime | None = None  #: when the first rating was given

    @property
    def recorded(self) -> tuple[str, ...]:
        """The judges whose judgements come from a file: nobody was asked."""
        judgements = self.judging.judgements
        return tuple(sorted(judgements.loc[judgements["kind"] == "recorded", "judge"].unique()))

    @property
    def judgements(self) -> str:
        """The hash of the judges' inputs and counting scores."""
        outputs, judgements = self.judging.judged, self.judging.judgements
        keys = [sorted(outputs["pair_id"]), sorted(zip(judgements["key"], judgements["score"].map(repr), strict=True))]
        return identity("beside-v1", keys, sorted(self.judging.withdrawn), self.judging.refused)

    def of(self, verdict: Verdict) -> tuple[JudgedMean, ...]:
        """Return the means of people and judges on a verdict's questions, or why judges are refused."""
        rows, late = of_verdict(verdict, self.together).to_dict("records"), of_verdict(verdict, self._late)["question"]
        return tuple(
            judged_mean(row, self.recorded, self.judgements, int((late == row["question"]).sum())) for row in rows
        )

    @property
    def _late(self) -> pd.DataFrame:
        """Judgements asked for after the first rating; recorded ones count as earlier."""
        judgements = self.judging.judgements
        asked_models = judgements[(judgements["kind"] != "recorded") & (judgements["status"] != "unanswered")]
        return asked_models[asked_models["finished_at"] > self.first] if self.first else asked_models.iloc[:0]

    @property
    def warnings(self) -> Sequence[str]:
        """A line for each verdict that would differ with the judges."""
        return warnings(self.decisions)


def judged(study: Study) -> bool:
    """Return whether judges can stand beside verdicts: the rules allow it, and some judge has answered."""
    if not study.judges or study.acceptance.judges == "none":
        return False
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

    study, collected = records.study, records.collected
    outputs = pd.DataFrame([pair.model_dump() for pair in read_judged(study)])
    judgements = read_judgements(study)
    if judgements.empty:
        raise DataError(f"{study.file}: no judge has answered yet; run `{study.command('judge run')}`")
    shown = [spec.name for spec in study.judges if spec.engine.saw_ratings]
    late = saw_scores(records.reviews, collected.sample_ratings)
    half = study.raters.suggestions == "half"
    why = [f"{', '.join(shown)} saw people's ratings"] if shown else []
    why += [f"{', '.join(late)} rated after having seen judges' scores as adjudicators"] if late else []
    why += ["raters see judges' scores on half of the pairs (raters.suggestions)"] if half else []
    return judging_of(outputs, judgements, collected, "; ".join(why))


def judging_of(outputs: pd.DataFrame, judgements: pd.DataFrame, collected: CampaignData, refused: str) -> Judging:
    """Build `Judging` from frames: all judges with judgements count together; `refused` says why they must not."""
    return Judging(
        outputs,
        judgements,
        tuple(sorted(judgements["judge"].unique())),
        frozenset(pair.pair_id for pair in collected.sample_pairs),
        withdrawn=tuple(collected.withdrawn),
        refused=refused,
    )


def beside(evidence: Evidence, verdicts: Sequence[Verdict], judging: Judging) -> JudgedOutcome:
    """Decide by the verdicts' rule with the judges' help, from the same ratings."""
    design, collected = evidence.design, evidence.collected
    counting = counting_ratings(collected.sample_ratings, design.per_pair)
    names = {"pair_id", "pool", "language", "task_type", "wave"}
    facts = pd.DataFrame([pair.model_dump(include=names) for pair in collected.sample_pairs])
    rests = basis(facts, counting, design, dealt_with(collected.sample_ratings, collected.withdrawn))
    means = powered_means(rests, judging, design)
    decided = with_judges(verdicts, means, design.rule)
    of_groups = saved(means, SCOPES[design.rule.scope], design)
    simulated, decides = bool(counting["simulated"].any()), design.rule.judges == "decide"
    return JudgedOutcome(judging, means, decided, of_groups, simulated, decides, evidence.first)


def read_beside(evidence: Evidence, verdicts: Sequence[Verdict]) -> tuple[JudgedOutcome | None, str]:
    """Return the judges' outcome beside these verdicts, and why there is none.

    Both are empty if no judge was asked, or the rules exclude judges.

    Judges never block people's verdicts: a fault in their records is reported, and they are left out.
    """
    if not (verdicts and judged(evidence.study)):
        return None, ""
    try:
        return beside(evidence, verdicts, read_judging(evidence)), ""
    except (PlumblineError, OSError, ValueError) as error:
        return None, " ".join(str(error).split())


def different(outcome: JudgedOutcome | None) -> list[str]:
    """Return a line for each verdict that would differ with the judges, to be listed as a doubt.

    Empty where judges decide with people: then the verdicts themselves show it (`annotation.verdicts.doubts`).
    """
    if outcome is None or outcome.decides:
        return []
    return [f"with judges the verdict would differ: {line}" for line in outcome.warnings]


def write_beside(folder: Path, verdicts: Sequence[Verdict], outcome: JudgedOutcome | None) -> None:
    """Write `verdicts_with_judges.json`; without judges remove an old one."""
    path = folder / FILE
    if outcome is None:
        path.unlink(missing_ok=True)
    else:
        write_json(path, _records(verdicts, outcome))


def _records(verdicts: Sequence[Verdict], outcome: JudgedOutcome) -> list[BesideVerdict]:
    shared = {"judges": outcome.judging.judges, "recorded": outcome.recorded, "simulated": outcome.simulated}
    shared["judgements"] = outcome.judgements
    names = {"pairs_sha256": "pairs.parquet", "ratings_sha256": "ratings.parquet", "rule_id": "rule"}
    return [
        BesideVerdict.model_validate({**row, **shared, **{name: verdict.rests_on[key] for name, key in names.items()}})
        for row, verdict in zip(outcome.decisions.to_dict("records"), verdicts, strict=True)
    ]


def judged_means(evidence: Evidence, verdicts: Sequence[Verdict]) -> Mapping[Unit, Sequence[JudgedMean]]:
    """Return the joint estimates of people and judges for each verdict's questions.

    Raises DataError if judges' records are missing.
    """
    outcome = beside(evidence, verdicts, read_judging(evidence))
    return of_verdicts(outcome, verdicts)


def of_verdicts(outcome: JudgedOutcome, verdicts: Sequence[Verdict]) -> dict[Unit, tuple[JudgedMean, ...]]:
    """Return the means of people and judges by verdict, from an outcome beside the verdicts."""
    return {unit_of(verdict): outcome.of(verdict) for verdict in verdicts}


def refuse_other_judgements(evidence: Evidence, verdicts: Sequence[Verdict]) -> None:
    """Raise DataError if verdicts that judges took part in disagree with the judges' records.

    Does nothing where people decided alone.
    """
    if not any(verdict.judged for verdict in verdicts):
        return
    for verdict in other_judged(verdicts, judged_means(evidence, verdicts)):
        study = evidence.study
        raise DataError(
            f"{study.folder / 'verdicts.json'}: the judges' means for {verdict.transformation} ({verdict.language})"
            f" differ from their records; run `{study.command('accept')}` again"
        )


def other_judged(verdicts: Sequence[Verdict], due: Mapping[Unit, Sequence[JudgedMean]]) -> Iterator[Verdict]:
    """Yield the verdicts whose judged means differ from those due by more than library versions can explain."""
    for verdict in verdicts:
        recorded = [mean.model_dump() for mean in verdict.judged]
        right = [due_means.model_dump() for due_means in due.get(unit_of(verdict), ())]
        pairs = zip(recorded, right, strict=False)
        if len(recorded) != len(right) or not all(
            same(mean[name], due_mean[name]) for mean, due_mean in pairs for name in mean
        ):
            yield verdict


def verified_verdicts(evidence: Evidence) -> list[Verdict]:
    """Return the verdicts reached last, after checking that they follow from the records on disk.

    Raises DataError before verdicts exist, or if ratings, rules or judges' records contradict them; StudyError for
    rules that changed without a note.
    """
    verdicts = evidence.verdicts
    if verdicts:
        evidence.read_all()
        refuse_stale(evidence, verdicts)
        refuse_edited(evidence, verdicts)
        refuse_other_judgements(evidence, verdicts)
    return verdicts
