"""Where a study stands, from what lies on disk: no server is asked and nothing is written.

With `stop: fixed` no decision is computed here while answers are still to come: who looks early and stops when it suits
breaks the rule. With `stop: anytime` looking is allowed, so what is decided already is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import pandas as pd

from annotation.ratings.collected import Collected
from annotation.ratings.exclusions import read_decisions
from annotation.ratings.ratings import counting_ratings, dealt_with
from annotation.ratings.review import signs_of
from annotation.records import Decision, Member, Sign, Verdict
from annotation.rubric import load_rubric
from annotation.sampling.candidates import flagged_supply
from annotation.sampling.queues import Queue
from annotation.sampling.sample import known_supply, read_pairs
from annotation.statistics.summaries import Design
from annotation.status.progress import Asked, by_rater, by_transformation
from annotation.status.stages import Stage, mismatch, stages_of
from annotation.verdicts.doubts import doubts_of
from annotation.verdicts.preregistration import amendment_lines, first_rating, fixed_text, other_rules, read_rules
from annotation.verdicts.tables import count
from annotation.verdicts.verdicts import read_verdicts, verdicts
from generation.flagged import Flagged, flagged_lines, flagged_outputs
from plumbline.store import read_models
from plumbline.study import Study

_RESTS_ON = dict.fromkeys(("pairs_sha256", "ratings_sha256", "rule_id"), "")  # of verdicts that are shown, not kept


@dataclass(frozen=True)
class Status:
    """Where a study stands."""

    study: Study
    now: datetime
    stages: dict[str, Stage]  #: in the flow's order
    rules: tuple[str, ...]  #: when they were fixed, and each amendment
    warnings: tuple[str, ...]
    notes: tuple[str, ...]  #: what is worth knowing and needs no care
    progress: pd.DataFrame  #: `by_transformation`, with `verdict` in words; empty without a sample
    raters: pd.DataFrame  #: `by_rater`; empty without a sample
    unreviewed: tuple[str, ...]  #: raters with signs about whom nobody decided
    mismatch: str  #: why the sample is no longer the study's; empty if it is
    rules_changed: bool  #: whether the study has other rules than those that were fixed
    judged: bool  #: whether there are verdicts that hold
    decided: bool  #: whether nothing is undecided any more, by verdicts or, with `stop: anytime`, so far
    doubts: tuple[str, ...]  #: what is doubtful about what was collected and decided (`annotation.verdicts.doubts`)
    sources: tuple[str, ...]  #: where ratings came from
    simulated: bool


def read_status(
    study: Study, now: datetime, collected: Collected | None = None, signs: Callable[[], Sequence[Sign]] | None = None
) -> Status:
    """The status of a study at a time, from its records. Raises DataError for damaged ones.

    `collected` is what raters saw and answered, and `signs` gives the signs in it, for who has them at hand: both take
    most of the time.
    """
    read = collected or Collected.read(study)
    mismatched = mismatch(study, read.pairs)
    stages = stages_of(study, read.ratings, mismatched)
    ratings = read.known
    strange = read.ratings["pair_id"].nunique() - ratings["pair_id"].nunique()
    found_signs = (signs() if signs else signs_of(study, read)) if len(ratings) else []
    rules, broken = _rules(study, ratings)
    flagged = _flagged(study, sampled=stages["sample"].state != "not yet")
    warnings = [mismatched, broken, *(str(one) for one in flagged if one.doubtful)]
    if strange and len(read.pairs):
        warnings.append(
            f"{strange} rated pairs are not in the sample; run `{study.command('annotation collect')}` again"
        )
    found = _found(study, stages, read, may_judge=not broken)
    progress = _progress(study, read, found, fresh=stages["verdicts"].state == "done")
    return Status(
        study=study,
        now=now,
        stages=stages,
        rules=rules,
        warnings=tuple(filter(None, warnings)),
        notes=tuple(flagged_lines(one for one in flagged if not one.doubtful)),
        progress=progress,
        raters=by_rater(ratings, _asked(study, stages, read.pairs, now), found_signs),
        unreviewed=unreviewed(found_signs, read_decisions(study)),
        mismatch=mismatched,
        rules_changed=bool(broken),
        judged=bool(found),
        decided=bool(found) and all(verdict.decision != "undecided" for verdict in found),
        doubts=doubts_of(study, read, found, found_signs) if len(ratings) else (),
        sources=tuple(sorted(ratings["source"].unique())),
        simulated=bool(ratings["simulated"].any()),
    )


def _flagged(study: Study, *, sampled: bool) -> list[Flagged]:
    """The error types among what raters see, or before there is a sample among what it would be drawn from."""
    if not sampled:
        return flagged_outputs(study)
    return flagged_supply(known_supply(study))


def read_members(study: Study) -> list[Member]:
    """Who was asked to rate what when answers were last collected from Argilla; none before."""
    path = study.folder / "members.json"
    return read_models(path, Member, study.command("annotation collect")) if path.exists() else []


def unreviewed(signs: Sequence[Sign], decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Raters with a sign of a rule that the last decision about them did not know; nobody who is excluded."""
    last = {decision.rater_id: decision for decision in decisions}
    found = []
    for sign in signs:
        decision = last.get(sign.rater_id)
        seen = decision is not None and (
            decision.exclude or any(one.startswith(f"{sign.rule}: ") for one in decision.signs)
        )
        if not seen:
            found.append(sign.rater_id)
    return tuple(dict.fromkeys(found))


def _rules(study: Study, ratings: pd.DataFrame) -> tuple[tuple[str, ...], str]:
    """(when the rules were fixed and amended, a warning if the study has others now)."""
    fixed, first = read_rules(study), first_rating(ratings)
    lines = [fixed_text(fixed, first), *amendment_lines(fixed, first)]
    what = "; ".join(other_rules(study, ratings))
    if not what:
        return tuple(lines), ""
    how = "publish again" if first is None else 'accept with --amend "reason"'
    return tuple(lines), f"{study.file}: other rules than those that hold: {what}; undo it, or {how}"


def _found(study: Study, stages: dict[str, Stage], read: Collected, *, may_judge: bool) -> list[Verdict]:
    """The verdicts that hold; with `stop: anytime` what would be theirs now; else none."""
    if stages["verdicts"].state == "done":
        return read_verdicts(study)
    if study.acceptance.stop == "fixed" or not may_judge or read.pairs.empty:
        return []
    design = Design.of(study, load_rubric(study))
    sampled = read.of_sample
    counting = counting_ratings(sampled, design.per_pair)
    return verdicts(read_pairs(study), counting, design, _RESTS_ON, None, dealt_with(sampled))


def _progress(study: Study, read: Collected, found: Sequence[Verdict], *, fresh: bool) -> pd.DataFrame:
    progress = by_transformation(read.sample, read.of_sample, study.raters.per_pair, study.acceptance.min_raters)
    ready = not progress["open"].any()
    cells = []
    for row in progress.to_dict("records"):
        place = row["transformation"], row["language"]
        own = [one.decision for one in found if (one.transformation, one.language) == place]
        cells.append(_verdict(own, int(row["open"]), fresh=fresh, ready=ready))
    return progress.assign(verdict=cells)


def _verdict(decisions: Sequence[str], missing: int, *, fresh: bool, ready: bool) -> str:
    """What is decided about one transformation and language, and how many answers are to come."""
    if not decisions:
        return f"waiting for {count(missing, 'answer')}" if missing else ("ready: run accept" if ready else "complete")
    counts = Counter(decisions)
    word = decisions[0] if len(counts) == 1 else ", ".join(f"{number} {name}" for name, number in counts.items())
    if not fresh:
        word += " so far"
    return f"{word}; {count(missing, 'answer')} open" if missing else word


def _asked(study: Study, stages: dict[str, Stage], pairs: pd.DataFrame, now: datetime) -> Asked:
    datasets = dict[str, str]()
    for queue, own in pairs.groupby(["pool", "language", "output_language"], observed=True)["pair_id"]:
        datasets |= dict.fromkeys(own.to_list(), Queue(*map(str, queue)).dataset(study))
    names = set(datasets.values())
    members = [member for member in read_members(study) if member.dataset in names]
    collected = stages["collected"].at
    return Asked(datasets, members, study.raters.per_pair, stages["published"].at, collected or now)
