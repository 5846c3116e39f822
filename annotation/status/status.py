"""The status of a study from its records: asks no server and writes nothing.

Without `raters.blocks` no decision is computed here while answers are still to come: looking early and stopping when it
suits breaks the rule. With blocks the decisions of the looks so far are shown.
"""

from __future__ import annotations

import functools
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import pandas as pd

from annotation import server
from annotation.argilla.accounts import ServerAnswers, answered_now, is_served
from annotation.campaign.counting import asked_again
from annotation.campaign.names import known_names
from annotation.campaign.offering import CampaignName, places_asked
from annotation.campaign.records import CampaignData, pair_records
from annotation.crowd.summary import read_summaries, summary_text, to_close, to_launch, to_pay, whole_tally
from annotation.crowd.tally import Tally
from annotation.options import HomeOptions
from annotation.page.training import by_trained, read_trained
from annotation.questions.wordings import addressed_lines
from annotation.records import NO_REASON, Decision, Fixed, Sign, Verdict
from annotation.sampling.candidates import flagged_supply
from annotation.sampling.queues import SCOPES, frames_by_queue
from annotation.sampling.sample import MAKERS, mismatch
from annotation.status.monitoring import Going
from annotation.status.progress import Stage, Workload, by_rater, by_transformation, ended_at, pages_of, stages_of
from annotation.verdicts.conclusion import Conclusion, looked_at
from annotation.verdicts.counted import Ahead, Place, ahead, never_lines
from annotation.verdicts.doubts import doubts_of, withdrawn_lines
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.looks import BlockProgress
from annotation.verdicts.preregistration import amendment_lines, first_rating, fixed_text, lasting, other_rules
from annotation.verdicts.tables import looks_frame, of_group
from generation.output_statistics import FlagCount, flagged_lines, flagged_outputs
from plumbline.errors import DataError, StudyError
from plumbline.frames import rows_where
from plumbline.records import ARGILLA
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec, RatersSpec
from plumbline.words import count

#: Commands that take --data.
_ON_SERVER = ("sample", "plan", "serve", "users", "publish", "simulate", "collect", "review", "status", "crowd")
_CHANGES = 6  # of the rules, above which the rest is only counted


@dataclass(frozen=True)
class Status:
    """The status of a study; what no next step depends on is computed when it is looked at."""

    evidence: Evidence
    study: Study
    read_at: datetime
    stages: dict[str, Stage]  #: in the flow's order
    rules: tuple[str, ...]  #: when they were fixed, and each amendment
    warnings: tuple[str, ...]
    notes: tuple[str, ...]  #: facts that need no action
    progress: pd.DataFrame  #: `by_transformation`, with `verdict` in words; empty without a sample
    raters: pd.DataFrame  #: `by_rater`; empty without a sample
    unreviewed: tuple[str, ...]  #: raters with signs about whom nobody decided
    mismatch: Sequence[str]  #: why the sample is no longer the study's, a line a fault; empty if it is
    rules_changed: bool  #: whether the study has other rules than those that were fixed
    lasting: str  #: why these cannot be amended; empty if they can
    to_look_at: tuple[str, ...]  #: raters whom verdicts wait for
    reached: Sequence[Verdict]  #: the verdicts that hold, or hold so far
    undecided: tuple[Ahead, ...]  #: the groups that are judged apart and not decided so far, with what can still come
    decided: bool  #: whether nothing is undecided any more, by verdicts or, with blocks, so far
    sources: tuple[str, ...]  #: where ratings came from
    simulated: bool
    rules_fixed: Fixed = ""  #: whether the rules of the verdicts that hold were fixed after the first rating
    languages: tuple[str, ...] = ()  #: of what raters read
    server: ServerAnswers | None = (
        None  #: what the running server has, where it was looked at (`annotation.status.status`)
    )
    on_record: int = 0  #: answers that were collected of what it has
    set_aside: int = 0  #: answers on record that it no longer has: of excluded raters, whose pairs it offers again
    blocks: tuple[str, ...] = ()  #: of a rule by blocks: what is open now, in lines
    beyond_members: int = 0  #: open answers, for what is undecided, that no rater of the last `collect` can give
    again: int = 0  #: answers of excluded raters whose pairs `publish` would offer again, for what is undecided
    unnamed: tuple[str, ...] = ()  #: raters with answers on record whose names the study has no longer, as far as known
    to_pay: tuple[str, str] = ("", "")  #: what crowd workers wait for (`annotation.crowd.summary.to_pay`)
    to_launch: tuple[CampaignName, int] | None = None  #: a crowd to ask now (`annotation.crowd.summary.to_launch`)
    crowd: tuple[str, ...] = ()  #: batches, submissions and money of each crowd campaign, in lines
    to_close: str = ""  #: the command that ends a crowd campaign
    unopened: int = 0  #: pairs, controls and repeats of blocks that are not open by the answers on record
    enough: bool = False  #: whether every pair has as many answers as a verdict needs
    manifest: Mapping[str, Any] = field(default_factory=dict)
    serves: bool = True  #: whether the study's server runs, as far as is known
    data: str = ""  #: the server's folder, where commands have to name it
    writes: str = ""  #: the report that is being written with this status, which is no step any more

    @property
    def judged(self) -> bool:
        """Whether there are verdicts that hold."""
        return bool(self.reached)

    @functools.cached_property
    def verdicts(self) -> Counter[str]:
        """How many verdicts hold, or hold so far, by decision."""
        return Counter(verdict.decision for verdict in self.reached)

    @functools.cached_property
    def looks(self) -> pd.DataFrame:
        """The looks after blocks, so far (`looks_frame`)."""
        return looks_frame(self.reached)

    @functools.cached_property
    def doubts(self) -> tuple[str, ...]:
        """What is doubtful about what was collected and decided (`annotation.verdicts.doubts`)."""
        return doubts_of(self.evidence, self.reached, self.evidence.signs) if self.sources else ()

    @functools.cached_property
    def unlooked(self) -> tuple[str, ...]:
        """Signs that could not be checked, a line each."""
        return tuple(self.evidence.unlooked)

    @functools.cached_property
    def trained(self) -> pd.DataFrame:
        """How raters did on known pairs, which never count (`by_trained`)."""
        return by_trained(read_trained(self.evidence))

    @functools.cached_property
    def going(self) -> Going:
        """Agreement and pace so far."""
        to = self.stages["collected"].at or self.read_at
        return Going.of(self.evidence, self.progress, self.raters, to, unanswerable=self.unanswerable)

    @functools.cached_property
    def asked_for(self) -> Tally | None:
        """What the study asks of people in all, as far as that is known."""
        drawn = self.stages["sample"].state != "not yet"
        return whole_tally(self.evidence) if drawn and self.evidence.offered else None

    @property
    def wanted(self) -> list[Stage]:
        """The stages that the study needs; an import has none of publishing, and texts and outputs for scores alone."""
        missing = () if self.evidence.offered else ("texts", "transformations", "published")
        stages = [stage for stage in self.stages.values() if stage.wanted]
        return [stage for stage in stages if stage.name not in missing or stage.state != "not yet"]

    @property
    def begun(self) -> bool:
        """Whether raters may have seen the sample."""
        return any(self.stages[name].state != "not yet" for name in ("published", "collected"))

    @functools.cached_property
    def pages(self) -> Mapping[str, Stage]:
        """What shows the study to people beside the stages of its flow, by command."""
        return pages_of(self.study, self.manifest)

    @functools.cached_property
    def ended(self) -> Mapping[str, datetime]:
        """When each command that the manifest notes last ended."""
        return ended_at(self.study, self.manifest)

    @property
    def opens(self) -> bool:
        """Whether the answers on record open a block that was not published."""
        settings = self.manifest.get("stages", {}).get("publish", {}).get("settings") or {}
        return self.unopened < int(settings.get("unopened", 0))

    def command(self, name: str) -> str:
        """Return a command to paste, with the options that name the study and the server."""
        named = self.data and name.split(maxsplit=1)[0] in _ON_SERVER
        return f"{self.study.command(name)} --data {shlex.quote(self.data)}" if named else self.study.command(name)

    @property
    def uncollected(self) -> int:
        """Answers on the server that nobody has collected yet."""
        return max(0, self.server.answers - self.on_record) if self.server is not None else 0

    @property
    def nobody_left(self) -> bool:
        """Whether no known rater can still answer; raters admitted since the last `collect` can."""
        raters = self.raters
        if raters.empty:
            return True
        has_members = raters["open"].notna().any()
        return bool(has_members and not self.has_new_raters and not self._present["open"].sum())

    @property
    def _present(self) -> pd.DataFrame:
        """The known raters who can answer."""
        return self.raters[self.raters["open"].notna() & ~self.raters["excluded"]]

    @property
    def unanswerable(self) -> int:
        """Open answers that no rater who is there can give, as far as is known."""
        return 0 if self.has_new_raters else self.beyond_members

    @property
    def has_new_raters(self) -> bool:
        """Whether more raters were admitted since the last `collect`, which alone knows who they are."""
        published, collected = self.stages["published"], self.stages["collected"]
        since = published.admitted_at and collected.at and collected.at <= published.admitted_at
        return bool(since and (published.annotators or 0) > len(self._present))


def read_status(
    evidence: Evidence,
    read_at: datetime,
    reached: Sequence[Verdict] | None = None,
    manifest: Mapping[str, Any] | None = None,
    outdated: str = "",
) -> Status:
    """The status of a study at a time, from its records. Raises DataError for damaged ones.

    `reached` are the verdicts that the caller has reached; none if they are `outdated`, which says what changed.
    `manifest` is the manifest that records them.

    Long: a line for each field.
    """
    study, read = evidence.study, evidence.read_all().collected
    one_of_each = read.pairs.drop_duplicates(MAKERS) if study.judging.transforms else read.pairs
    mismatched = mismatch(evidence, pair_records(one_of_each))
    verdicts, outdated = reached_now(evidence) if reached is None else (reached, outdated)
    manifest = manifest or evidence.manifest
    stages = stages_of(evidence, manifest, mismatched, outdated.partition(";")[0])
    ratings, found_signs = read.known, evidence.signs if len(read.known) else []
    rules, broken, lasts = _rules(evidence)
    sampled = stages["sample"].state != "not yet"  # before, the outputs that it would be drawn from are checked
    flagged = flagged_supply(evidence.supply) if sampled or not study.judging.transforms else flagged_outputs(study)
    warnings = [*mismatched, broken, *(str(flags) for flags in flagged if flags.doubtful)]
    warnings += _unsampled(evidence)
    fresh = stages["verdicts"].state == "done"
    so_far = verdicts if fresh else _found_so_far(evidence, may_judge=not broken)
    pairs = evidence.answers_by_pair
    undecided = _undecided(study.acceptance, pairs, so_far, evidence.blocks)
    again, launch = _again(evidence, stages["published"], undecided), to_launch(evidence)
    ready = not (evidence.offered and (pairs["asked"].any() or again or launch))
    progress = by_transformation(pairs)
    if not evidence.offered:  # imported ratings: how many were asked for is unknown
        progress = progress.assign(wanted=progress["counting"], open=0)
    progress = _with_verdicts(study, progress, so_far, undecided, fresh=fresh, ready=ready)
    workload = Workload.of(evidence)
    status = Status(
        evidence=evidence,
        study=study,
        read_at=read_at,
        stages=stages,
        rules=rules,
        warnings=(),
        notes=_notes(evidence, read.pairs, flagged),
        progress=progress,
        raters=by_rater(ratings, workload, found_signs),
        beyond_members=_beyond_members(evidence, workload, undecided),
        unreviewed=unreviewed(found_signs, evidence.decisions),
        mismatch=mismatched,
        rules_fixed=evidence.rules_fixed[0],
        rules_changed=bool(broken),
        lasting=lasts,
        to_look_at=tuple(dict.fromkeys(rater for verdict in so_far for rater in verdict.review.to_look_at)),
        reached=so_far,
        undecided=tuple(undecided),
        decided=_all_decided(so_far, evidence.blocks),
        sources=tuple(sorted(ratings["source"].unique())),
        simulated=bool(ratings["simulated"].any()),
        languages=tuple(dict.fromkeys(chain.from_iterable(_languages(read.pairs)))),
        blocks=_block_lines(evidence),
        again=again,
        to_pay=to_pay(evidence),
        to_launch=launch,
        to_close=to_close(study),
        unopened=len(evidence.unopened()),
        enough=bool(pairs.loc[~pairs["withdrawn"], "enough"].all()),
        manifest=manifest,
    )
    warnings += never_lines(study, undecided, offered=status.begun, imported=not evidence.offered)
    return replace(status, warnings=tuple(filter(None, warnings)))


def _block_lines(evidence: Evidence) -> tuple[str, ...]:
    """Return a line for each group of a rule by blocks."""
    groups = evidence.blocks.items()
    return tuple(f"{of_group(key)}: {'; '.join([group.decision, *group.lines()])}" for key, group in groups)


def _unsampled(evidence: Evidence) -> Iterator[str]:
    """Yield a warning about rated pairs that are not in the sample."""
    read = evidence.collected
    number = read.ratings["pair_id"].nunique() - read.known["pair_id"].nunique()
    if number and len(read.pairs):
        again = evidence.study.command("collect")
        yield f"{count(number, 'rated pair is', 'rated pairs are')} not in the sample; run `{again}` again"


def _notes(evidence: Evidence, pairs: pd.DataFrame, flagged: Sequence[FlagCount]) -> tuple[str, ...]:
    """Return facts that need no action: on the sample, its outputs and wordings."""
    return (
        *(
            f"Sample extended on {wave.at:%Y-%m-%d}: wave {wave.number}, {count(wave.pairs, 'pair')} ({wave.reason})."
            for wave in evidence.waves
        ),
        *withdrawn_lines(evidence),
        *flagged_lines(flags for flags in flagged if not flags.doubtful),
        *addressed_lines(evidence.study, evidence.rubric, _languages(pairs)),
    )


def _again(evidence: Evidence, published: Stage, undecided: Sequence[Ahead]) -> int:
    """Answers that could be asked for again in Argilla; none where that was done since the last exclusion."""
    last = max((decision.decided_at for decision in evidence.decisions if decision.exclude), default=None)
    if last is None or published.at is None or published.annotators is None or published.at > last:
        return 0
    return sum(group.anew for group in undecided)


def _beyond_members(evidence: Evidence, workload: Workload, undecided: Sequence[Ahead]) -> int:
    """Return how many open answers no present annotator can give; 0 where others than annotators are asked too."""
    if places_asked(evidence) != {ARGILLA}:
        return 0
    units = {unit for group in undecided if not group.lacks(evidence.study) for unit in group.units}
    pairs = evidence.answers_by_pair.assign(pair_id=evidence.collected.sample["pair_id"].array)
    here = [unit in units for unit in zip(pairs["transformation"], pairs["language"], strict=True)]
    return workload.unanswerable(pairs.loc[here], evidence.collected.known)


def _languages(pairs: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the languages of originals with those of their outputs."""
    return list(pairs[["language", "output_language"]].drop_duplicates().itertuples(index=False, name=None))


def unreviewed(signs: Sequence[Sign], decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return raters with a sign by a rule that the last decision about them did not cover, without excluded ones."""
    last = {decision.rater_id: decision for decision in decisions}
    raters = []
    for sign in signs:
        decision = last.get(sign.rater_id)
        decided = decision is not None and (
            decision.exclude or any(sign_then.startswith(f"{sign.rule}: ") for sign_then in decision.signs)
        )
        if not decided:
            raters.append(sign.rater_id)
    return tuple(dict.fromkeys(raters))


def _rules(evidence: Evidence) -> tuple[tuple[str, ...], str, str]:
    """Return when the rules were fixed and amended, a warning if the study has others now, and why they cannot hold."""
    study, ratings = evidence.study, evidence.collected.known
    fixed, first = evidence.rules, first_rating(ratings)
    lines = [fixed_text(fixed, ratings), *amendment_lines(fixed, first)]
    if not (changed := other_rules(evidence.rules_now, fixed, ratings)):
        return tuple(lines), "", ""
    lasts = lasting(changed, evidence.rules_now) if first is not None else ""
    how = "publish again" if first is None else f"accept with --amend {NO_REASON}"
    how = f"give the new study another name: {lasts}" if lasts else how
    some = [*changed[:_CHANGES], *([f"{len(changed) - _CHANGES} more"] if len(changed) > _CHANGES else [])]
    differs = f"{study.file}: the rules differ from those that were fixed: {'; '.join(some)}"
    return tuple(lines), f"{differs}; undo the change, or {how}", lasts


def reached_now(evidence: Evidence) -> tuple[Sequence[Verdict], str]:
    """Return the verdicts, and what changed since the last look at them, and what to do; nothing before a look."""
    if not evidence.looks:
        return (), ""
    try:
        return looked_at(evidence).verdicts, ""
    except (DataError, StudyError) as error:
        return (), str(error)


def _found_so_far(evidence: Evidence, *, may_judge: bool) -> Sequence[Verdict]:
    """Return the verdicts as they would be now with blocks; else none."""
    if not evidence.study.raters.blocks or not may_judge or evidence.collected.pairs.empty:
        return ()
    return Conclusion(evidence).verdicts


def _all_decided(verdicts: Sequence[Verdict], blocks: Mapping[Place, BlockProgress]) -> bool:
    decided = all(verdict.decision != "undecided" for verdict in verdicts)
    return bool(verdicts) and decided and not any(group.going_on for group in blocks.values())


def _undecided(
    rule: AcceptanceSpec, pairs: pd.DataFrame, verdicts: Sequence[Verdict], blocks: Mapping[Place, BlockProgress]
) -> list[Ahead]:
    """Return the groups without a deciding verdict, or whose blocks go on; `pairs` are those of `by_pair`."""
    key = SCOPES[rule.scope]
    done = {tuple(getattr(verdict, name) for name in key) for verdict in verdicts if verdict.decision != "undecided"}
    done -= {name for name, group in blocks.items() if group.going_on}
    return [group for group in ahead(pairs, rule) if group.key not in done]


def _with_verdicts(
    study: Study,
    progress: pd.DataFrame,
    verdicts: Sequence[Verdict],
    undecided: Sequence[Ahead],
    *,
    fresh: bool,
    ready: bool,
) -> pd.DataFrame:
    """Return the progress with `verdict`; `ready` is whether no more answers are asked for, or can be now."""
    item = study.called.item
    needed = {unit: lacks for group in undecided if (lacks := group.lacks(study)) for unit in group.units}
    never = {unit: f"{lacks} needed {item}s can count" for unit, lacks in needed.items()}
    cells = []
    for row in progress.to_dict("records"):
        key = row["transformation"], row["language"]
        decisions = [verdict.decision for verdict in verdicts if (verdict.transformation, verdict.language) == key]
        cells.append(_verdict(decisions, int(row["open"]), never.get(key, ""), fresh=fresh, ready=ready))
    return progress.assign(verdict=cells)


def _verdict(decisions: Sequence[str], missing: int, never: str, *, fresh: bool, ready: bool) -> str:
    """Return the decision on one transformation and language, and the number of answers that are missing.

    `never` says how many of the needed pairs can count, if it can never be decided.
    """
    if never:
        return f"{'undecided' if decisions else 'no verdict'}, and will stay so: at most {never}"
    if not decisions:
        if missing and not ready:
            return f"waiting for {count(missing, 'answer')}"
        word = "ready: run accept" if ready else "complete"
        return f"{word}; {count(missing, 'answer')} open" if missing else word
    counts = Counter(decisions)
    word = decisions[0] if len(counts) == 1 else ", ".join(f"{number} {name}" for name, number in counts.items())
    if not fresh:
        word += " so far"
    return f"{word}; {count(missing, 'answer')} open" if missing else word


def once_ended(status: Status, manifest: Mapping[str, Any]) -> Status:
    """Return the status after the command that read it, which changed no record, by the manifest that notes its end."""
    return replace(status, manifest=manifest, stages=stages_of(status.evidence, manifest, status.mismatch), writes="")


def status_of(evidence: Evidence, home: server.Home) -> Status:
    """Return the status of a study by its records and by the running server. Raises DataError for damaged records."""
    status = with_server(read_status(evidence, datetime.now(UTC)), evidence.collected, home)
    return replace(status, crowd=tuple(map(summary_text, read_summaries(evidence))))


def with_server(status: Status, collected: CampaignData, home: server.Home) -> Status:
    """Return the status with the server's answers; unchanged if nothing was published in Argilla."""
    status = replace(status, serves=is_served(home), data="" if home == HomeOptions().home else str(home.path))
    if status.stages["published"].annotators is None and ARGILLA not in status.sources:
        return status
    kinds = collected.pairs[["queue", "pool", "language", "output_language"]].drop_duplicates()
    names = {queue.dataset(status.study.name) for queue, _ in frames_by_queue(kinds)}
    ratings = collected.known[["pair_id", "rater_id", "status", "excluded", "again", "source"]]
    ratings = rows_where(ratings, (ratings["source"] == ARGILLA).to_numpy())
    submitted = rows_where(ratings, (ratings["status"] == "submitted").to_numpy())
    if unnamed := _unnamed(status.study.raters, known_names(home, status.study.name), ratings):
        fault = f"raters.people no longer names {', '.join(unnamed)}, so `collect` stops"
        ways = f"raters.former keeps their answers, `{status.command('collect')} --replace` drops them"
        status = replace(status, warnings=(*status.warnings, f"{status.study.file}: {fault}; {ways}"), unnamed=unnamed)
    answers = submitted.assign(again=asked_again(submitted)).drop_duplicates(["pair_id", "rater_id"])
    n_again = int(answers["again"].sum())
    on_server = answered_now(status.study.name, home, names)
    return replace(status, server=on_server, on_record=len(answers) - n_again, set_aside=n_again)


def _unnamed(raters: RatersSpec, names: Mapping[str, str], ratings: pd.DataFrame) -> tuple[str, ...]:
    """Return the raters of these ratings whose names, known here, are in neither of the study's lists: `collect` stops.

    `names` are by pseudonym, and are not returned: reports show the next step.
    """
    if raters.people is None:
        return ()
    named = {*raters.people, *raters.former}
    return tuple(sorted(rater for rater in set(ratings["rater_id"]) & names.keys() if names[rater] not in named))


def server_line(status: Status) -> str:
    """Return a sentence on the server's answers; empty if the server was not asked."""
    on_server = status.server
    if on_server is None:
        return ""
    if on_server.trouble:
        return f"The server could not be asked ({on_server.trouble}): later answers are missing."
    answers, accounts = (count(on_server.answers, "submitted answer"), count(len(on_server.by_account), "account"))
    verb = "is" if status.on_record == 1 else "are"
    again = f", and {status.set_aside} more by excluded raters, whose pairs it offers again" if status.set_aside else ""
    collected = f"{status.on_record} {verb} collected{again}"
    server = f"The server at {on_server.url}"
    return f"{server} has {answers} from {accounts}; {collected}. All numbers here count collected answers."
