"""People's means with the judges' help, for each question and each group that gets a verdict of its own.

The outputs that judges score are drawn as the sample is, and the sample's pairs are the first of them: given their
stratum, the rated ones are a random part. Where that does not hold, judges are refused with the reason, and
people's own numbers stand alone. An output that a judge gave no score stays in. No verdict rests on these means: they
say how much a judge tells.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from annotation.campaign.records import CampaignRecords, without_categories
from annotation.judges.records import checked, on_scale, together
from annotation.questions.summary import MeanOfAnswers
from annotation.records import Verdict
from annotation.sampling.queues import SCOPES
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import Basis
from annotation.verdicts.evidence import Evidence
from plumbline.errors import DataError, PlumblineError
from plumbline.frames import filled as need_filled
from plumbline.frames import once
from plumbline.resources import installing
from plumbline.statistics.agreement import UNKNOWN_RATERS, Answers
from plumbline.statistics.estimates import Mean
from plumbline.statistics.group_sequential import ALPHA
from plumbline.statistics.prediction_powered import FEWEST_RATED, Pool, RatedPairs, filled, powered, unlike
from plumbline.study import Study
from plumbline.words import count

_ASKED = ["judge", "transformation", "language", "output_language"]  # these determine the prompt
COLUMNS = ["question", "judges", "n_rated", "n_judged", "n_failed", "people_mean", "people_low", "people_high"]
COLUMNS += ["mean", "low", "high", "slope", "rho", "worth", "reason"]
_UNLIKE = 2.58  # standard errors, exceeded by chance in 1%: the rated pairs are no random part of the judged ones


@dataclass(frozen=True)
class Judging:
    """The outputs given to judges, and their judgements."""

    judged: pd.DataFrame  #: a row per output: pair_id, transformation, pool, language, task_type, stratum
    judgements: pd.DataFrame  #: `annotation.judges.records`
    withdrawn: Collection[str] = ()  #: ids of pairs that people withdrew

    @property
    def judges(self) -> list[str]:
        """The judges, whose scores count together: their mean, of outputs that all of them scored."""
        return sorted(self.judgements["judge"].unique())


def powered_means(basis: Basis, judging: Judging, design: Design) -> pd.DataFrame:
    """Return a row for each group of the rule's scope and each rated question: people's mean, and that with judges.

    Columns: those of the scope (pool, language, task_type), question, judges (comma-separated), n_rated (pairs that
    count), n_judged (outputs beyond these that judges have seen), n_failed (of both: without a score of all judges),
    people_mean, people_low, people_high, mean, low, high (with the judges; NaN where they are refused), slope, rho,
    worth (rated pairs that would be as precise alone), reason (why the judges are refused; empty otherwise).

    The means are those of `plumbline.statistics.prediction_powered.powered`, the intervals the rule's: over pairs, or
    over pairs and raters. Raises ValueError for frames that lack columns, and scores off a question's scale.
    """
    outputs, scores = _prepared(judging, design)
    scope, ratings, rows = SCOPES[design.rule.scope], basis.ratings, []
    pools = ratings["transformation"].astype(str).map(design.pool_of)
    for key, members in outputs.groupby(scope, sort=False):
        # Those of its outputs, and of pairs that its outputs should contain.
        wanted = ratings["pair_id"].isin(members["pair_id"])
        if "task_type" not in scope:
            of_key = pools == key[0]
            wanted |= (of_key & (ratings["language"].astype(str) == key[1])) if "language" in scope else of_key
        of_group = ratings[wanted]
        for question in design.rated:
            answered = of_group[of_group["question"] == question]
            by_pair = scores[scores["question"] == question].set_index("pair_id")["score"]
            if len(answered) and len(by_pair):
                part = _Part(question, answered, members, by_pair, judging, design)
                rows.append((*key, question, *part.row()))
    return pd.DataFrame(rows, columns=[*scope, *COLUMNS])


@dataclass(frozen=True)
class _Part:
    """One question of one group."""

    question: str
    answered: pd.DataFrame  #: the ratings that count
    outputs: pd.DataFrame  #: all that judges were given
    scores: pd.Series  #: of the judges together, by pair_id
    judging: Judging
    design: Design

    def row(self) -> tuple[object, ...]:
        """Return the row of `powered_means` from the judges' names on."""
        rated_ids = pd.factorize(self.answered["pair_id"])[1]
        beyond = self.outputs[~self.outputs["pair_id"].isin(rated_ids)]["pair_id"]
        failed = int(self.scores.reindex(self.outputs["pair_id"]).isna().sum())
        strata = pd.Series(pd.factorize(self.outputs["stratum"])[0], index=self.outputs["pair_id"])
        answers = Answers.of(self.answered, self.design.asked(self.question).scale)
        # Where a pair has no stratum, the row is refused.
        stratum_of = strata.reindex(rated_ids).fillna(0).to_numpy(np.int64)
        rated = RatedPairs(
            *answers.totals(answers.pair), self.scores.reindex(rated_ids).to_numpy(np.float64), stratum_of
        )
        pool = Pool(self.scores.reindex(beyond).to_numpy(np.float64), strata.loc[beyond].to_numpy(np.int64))
        over_raters = self.design.rule.interval == "pairs_and_raters"
        unknown = UNKNOWN_RATERS if over_raters and answers.raters is None else ""
        over_raters = over_raters and not unknown
        estimate = powered(*filled(rated, pool), answers.totals(answers.rater) if over_raters else None)
        without_judges = MeanOfAnswers(answers, self.design.rule.interval).estimate()
        people = mean = (without_judges.value, without_judges.low, without_judges.high)
        if estimate.slope and not math.isnan(estimate.mean.low):
            mean = (float(estimate.mean.value), *_ends(estimate.mean, rated, self.design.asked(self.question).scale))
        reasons = [unknown, *self._refusals(rated_ids, len(beyond))]
        if abs(distance := unlike(*filled(rated, pool))) > _UNLIKE:
            reasons.append(
                f"judges' scores of the rated pairs are {distance:+.1f} standard errors from those of the other outputs"
                " in their strata: the rated pairs do not represent the others"
            )
        reason = "; ".join(filter(None, reasons))
        with_judges = (math.nan,) * 6 if reason else (*mean, estimate.slope, estimate.rho, estimate.worth)
        return (", ".join(self.judging.judges), len(rated_ids), len(beyond), failed, *people, *with_judges, reason)

    def _refusals(self, rated_ids: pd.Index, beyond: int) -> Iterator[str]:
        """Yield each reason why no number of this group and question may rest on the judges."""
        outputs, judging = self.outputs, self.judging
        if missing := int((~rated_ids.isin(outputs["pair_id"])).sum()):
            yield f"rated pairs must be a random sample of the judges' outputs, but {missing} are not among these"
        if len(rated_ids) < FEWEST_RATED:
            yield f"{count(len(rated_ids), 'rated pair')}; means with judges need at least {FEWEST_RATED}"
        if not beyond:
            yield "judges were given no output beyond the rated pairs"
        judgements = judging.judgements
        judgements = judgements[judgements["question"] == self.question]
        judgements = judgements[judgements["pair_id"].isin(outputs["pair_id"]) & (judgements["status"] != "unanswered")]
        for judge in judging.judges:
            n_missing = len(outputs) - judgements.loc[judgements["judge"] == judge, "pair_id"].nunique()
            if n_missing:
                number = f"{n_missing} of {len(outputs)} outputs"
                yield f"{judge} has not judged {number}; the others may not be a random sample"
        columns = [name for name in _ASKED if name in judgements]
        if "prompt_hash" in judgements and (judgements.groupby(columns)["prompt_hash"].nunique() > 1).any():
            yield "a judge got different prompts for the same question"
        if self.scores.reindex(outputs["pair_id"]).isna().all():
            yield "no output has a score from every judge"
        if self.design.blocks:
            yield "the rule looks more than once, and these intervals are for a single look"


def _prepared(judging: Judging, design: Design) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return outputs with strata, and joint scores of the judges. Raises ValueError for malformed frames."""
    need_filled(judging.judged, ("pair_id", "transformation", "pool", "language", "task_type", "stratum"), "judged")
    once(judging.judged, ("pair_id",), "judged")
    judgements = checked(judging.judgements)
    for question, of_question in judgements.groupby("question"):
        if question in design.rated:
            on_scale(of_question, design.asked(str(question)).scale)
    outputs = judging.judged[~judging.judged["pair_id"].isin(judging.withdrawn)]
    strata = outputs["transformation"].astype(str) + "\n" + outputs["stratum"].astype(str)
    return outputs.assign(stratum=strata), together(judgements)


def _ends(mean: Mean, rated: RatedPairs, scale: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a t interval that reaches further where most pairs have one mean, so that t is too sure.

    A share q of pairs is missed by n of them with probability (1 - q)^n: with 97.5% no more than 1 - 0.025^(1/n) differ
    from what most showed, and these may be at the end of the scale.
    """
    equal = np.unique(np.round(rated.sums / rated.counts, 9), return_counts=True)[1].max()
    missed = 1 - ALPHA ** (1 / len(rated.counts)) if 2 * equal > len(rated.counts) else 0.0
    value = float(mean.value)
    low, high = value - missed * (value - scale[0]), value + missed * (scale[-1] - value)
    return float(np.minimum(mean.low, low)), float(np.maximum(mean.high, high))


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
    judging, simulated = read_judging(evidence), bool(evidence.counting["simulated"].any())
    rests = replace(evidence.rests, ratings=without_categories(evidence.rests.ratings))
    return JudgesOutcome(judging, powered_means(rests, judging, evidence.design), simulated)


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
