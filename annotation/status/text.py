"""`plumbline status`: the status of a study for a terminal, and what to do next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

import pandas as pd

from annotation.campaign.names import known_names, named
from annotation.campaign.offering import LEDGER, ledgers
from annotation.options import CampaignOptions
from annotation.records import Outcome, Verdict
from annotation.statistics.systems import SideBySide
from annotation.status.monitoring import agreement_exhibit
from annotation.status.progress import PEOPLE_REPORT
from annotation.status.status import Status, server_line, status_now
from annotation.verdicts import preferences
from annotation.verdicts.counted import never_lines
from annotation.verdicts.doubts import doubts_text
from annotation.verdicts.held import raters_named
from annotation.verdicts.preferences import NO_CHOICES
from annotation.verdicts.rules import LATE, marks_of
from annotation.verdicts.systems import NONE, answers
from annotation.verdicts.tables import SIMULATED, display, looks_exhibit
from plumbline.cli import columns
from plumbline.models.batch import batch_path
from plumbline.records import ARGILLA
from plumbline.words import count

DASH = "–"
_REMARKS = {"simulated": "simulated", "excluded": "excluded", "taken out": "out"}  # on raters, by column


def status_text(status: Status, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the status for a terminal.

    `names` are raters' by pseudonym, as far as this machine's user may see them (`annotation.campaign.names`).
    """
    study = status.study
    warnings = [SIMULATED if status.simulated else "", LATE[status.rules_fixed] if status.rules_fixed else ""]
    parts = [
        "\n".join([f"Study {study.name} on {status.read_at:%Y-%m-%d at %H:%M} UTC", *filter(None, warnings)]),
        _flow_text(status),
        "\n".join([*status.rules, *status.notes, *(f"WARNING: {line}" for line in status.warnings)]),
    ]
    if len(status.progress):
        looks = [looks_exhibit(status.looks, study.called).text()] if len(status.looks) else []
        parts += [
            _progress_text(status),
            *filter(None, ["\n".join(status.blocks)]),
            *looks,
            *_going(status),
            _rater_text(status, names),
        ]
    if line := server_line(status):
        parts.append(line)
    if status.sources:
        parts.append(doubts_text(status.doubts, status.study.judging, judged=status.judged))
    return "\n\n".join([*parts, f"Next: {next_step(status)}"])


@dataclass(frozen=True)
class NextStep:
    """The next step of a study: a command to paste (empty where no command helps), and what to know about it."""

    command: str
    words: str = ""

    def __str__(self) -> str:
        """The command in a line, and below it the words."""
        return f"{self.command}\n  {self.words}" if self.command and self.words else self.command or self.words


def next_step(status: Status) -> NextStep:
    """Return the next step."""
    if status.rules_changed and status.sources:
        amend = f'{status.study.command("accept")} --amend "reason"'
        return NextStep(amend, "the rules changed after the first rating: say why, or undo the change")
    came_whole = bool(status.sources) and status.stages["transformations"].state == "not yet"
    if came_whole and (step := _rate(status) or _before_scores(status)):
        return step  # an import has pairs and ratings; outputs are needed for scores alone
    return _make(status) or _rate(status) or _judge(status)


def _before_scores(status: Status) -> NextStep | None:
    """Return the command for an import's missing verdicts or report; None if only scores are left."""
    stages = {name: stage for name, stage in status.stages.items() if name in ("verdicts", "report")}
    step = _after(replace(status, stages=stages))
    return step or (_judge(status) if status.stages["scores"].state == "done" else None)


def _make(status: Status) -> NextStep | None:
    """Return the next step up to a published sample; None after it."""
    state = {name: stage.state for name, stage in status.stages.items()}
    begun = state["published"] != "not yet" or state["collected"] != "not yet"
    in_batch, generate = batch_path(status.study).exists(), status.study.command("generate")
    lacking = state["transformations"] != "done" or (in_batch and not begun)
    if lacking or (state["texts"] == "stale" and status.study.judging.transforms):
        with_files = f"{generate} --batch-file NEW --batch-output FILE, with the batch's output and error files"
        return NextStep("", with_files) if in_batch else NextStep(generate)
    judging = status.study.judging
    if state["texts"] == "not yet" and not judging.transforms and judging.first_command != "sample":
        return NextStep(status.study.command(judging.first_command))
    if step := _draw(status, begun=begun):
        return step
    if step := None if begun else _never(status):
        return step
    refix = status.rules_changed and not status.sources  # they may change before the first rating
    if not begun or refix or state["published"] == "stale":
        may_crowd = status.study.crowd is not None and not status.sources  # workers may still be asked instead
        command = f"{status.study.command('crowd plan')} --platform prolific"
        crowd = f"or, to ask a crowd (a made-up one with --platform rehearsal): {command}"
        return NextStep(status.study.command("publish"), crowd if may_crowd else "")
    return None


def _never(status: Status) -> NextStep | None:
    """Return advice if no answers can decide any undecided group; None if some can."""
    groups, study = status.undecided, status.study
    if not groups or not all(group.lacks(study) for group in groups):
        return None
    begun = any(status.stages[name].state != "not yet" for name in ("published", "collected"))
    return NextStep("", never_lines(study, groups, offered=begun)[0])


def _draw(status: Status, *, begun: bool) -> NextStep | None:
    """Return the next step towards the study's sample; None if it is drawn. `begun`: raters may have seen it."""
    stage, sample = status.stages["sample"], status.study.command("sample")
    extend = f'{sample} --extend "reason"'
    if stage.state in ("not yet", "under way"):
        return NextStep(sample if stage.state == "not yet" else extend)
    if status.mismatch:
        if begun:
            return NextStep("", status.mismatch[0].rpartition(";")[2].strip())
        transforms = status.study.judging.transforms
        return NextStep(status.study.command("generate"), f"then {sample}") if transforms else NextStep(sample)
    if stage.state == "stale" and not begun:
        return NextStep(sample)
    if "other settings" in stage.note:
        return NextStep(extend, "adds the pairs that the study asks for now; or undo the change of the sample")
    return None


def _rate(status: Status) -> NextStep | None:
    """Return the next step while ratings come in; None when verdicts can be or have been reached."""
    study, collect = status.study, _collect(status)
    if status.uncollected:
        return _collected(status, f"{count(status.uncollected, 'answer')} on the server that are not collected yet")
    if not status.sources and study.raters.simulated:
        return NextStep(study.command("simulate"), f"then {collect}")
    if status.stages["collected"].state != "done":
        return _first(status)
    if status.decided and status.stages["verdicts"].state == "done":
        return None
    if status.to_look_at or (status.unreviewed and status.stages["verdicts"].state != "done"):
        return _review(status)
    return None if status.decided else _wait(status)


def _first(status: Status) -> NextStep:
    """Return the next step while nothing is collected, or the collected answers are about other pairs."""
    collect, annotators = _collect(status), status.stages["published"].annotators
    if status.sources or annotators is None:
        return _collected(status)
    if step := _never(status):
        return step
    if not annotators:
        return _find(status, f"nobody can rate yet; if some have had access since the publication: {collect}")
    return NextStep(collect, f"when raters have answered: {count(annotators, 'annotator')} can, counted at publication")


def _find(status: Status, words: str) -> NextStep:
    """Return the step that lets raters in: those whom the study names, or somebody. Reports show it: it has no name."""
    if status.study.raters.people:
        return NextStep(status.study.command("users invite"), words)
    languages = f" --languages {','.join(status.languages)}" if status.languages else ""
    add = f"plumbline users add NAME{languages}"
    return NextStep(status.study.command("publish"), f"after `{add}` for each new rater: {words}")


def _wait(status: Status) -> NextStep | None:
    """Return the next step towards answers that can decide something; None if no answers are to come."""
    if step := _never(status):
        return step
    if status.again:
        more = f"offers the pairs of {count(status.again, 'answer')} by excluded raters to others"
        return NextStep(status.study.command("publish"), more)
    missing = sum(group.open for group in status.undecided if not group.lacks(status.study))
    if not missing:
        return None
    once = not status.study.raters.blocks and status.stages["verdicts"].state == "not yet"
    after = _after(status)
    rest = after.command if after else "nothing is left to do"
    end = f"when no more will come{', and only once' if once else ''}: {rest}"
    if status.nobody_left:
        return _find(
            status, f"{count(missing, 'answer')} to come, and the present raters have none left to give; {end}"
        )
    return _collected(status, f"when more of the {count(missing, 'answer')} that are open have come; {end}")


def _collect(status: Status) -> str:
    from_files = status.sources and ARGILLA not in status.sources and not ledgers(status.study.scratch / LEDGER)
    more = " --csv FILE --columns MAPPING" if from_files else ""
    return f"{status.study.command('collect')}{more}"


def _collected(status: Status, words: str = "") -> NextStep:
    """Return the step that collects; where answers come in a file that only people can name, it is in the words."""
    collect = _collect(status)
    return NextStep("", f"{collect} {words}".strip()) if " --csv " in collect else NextStep(collect, words)


def _review(status: Status) -> NextStep:
    """Return the step that records a look at raters whom verdicts wait for, or else at those with signs."""
    raters, relation = status.to_look_at, "whom verdicts wait for"
    names = " ".join(raters_named(raters)) if raters else "RATER"
    if not raters:
        raters, relation = status.unreviewed, "with signs and no decision yet"
    about = f"{count(len(raters), 'rater')} {relation}"
    words = f"then decide about {about}: add --exclude {names} or --keep {names}, and --reason"
    return NextStep(status.study.command("review"), words)


def _judge(status: Status) -> NextStep:
    """Return the next step from complete ratings on."""
    if step := _after(status):
        return step
    if status.unreviewed:
        return _review(status)
    missing = int(status.progress["open"].sum()) if len(status.progress) else 0
    if status.judged and not status.decided:
        names = [name for group in status.undecided for name in group.names]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return NextStep("", f"nothing to wait for: no further answer can decide {', '.join(names[:_NAMED])}{more}")
    if missing:
        missing_answers = count(missing, "answer that the study asks for is", "answers that the study asks for are")
        return NextStep("", f"nothing is left to do: all is decided ({missing_answers} missing)")
    return NextStep("", "nothing is left to do")


def _after(status: Status) -> NextStep | None:
    """Return the first command after collecting that has not run on the present ratings; None if all have."""
    commands = {
        "verdicts": "accept",
        "report": "ratings-report",
        "scores": status.study.judging.scored_by,
        PEOPLE_REPORT: "human-report",
    }
    for stage, command in commands.items():
        if stage in status.stages and status.stages[stage].state != "done":
            return NextStep(status.study.command(command))
    return None


def _flow_text(status: Status) -> str:
    rows = []
    for stage in (stage for stage in status.stages.values() if stage.wanted):
        when = f"{stage.at:%Y-%m-%d %H:%M} UTC, {ago(stage.at, status.read_at)}" if stage.at else ""
        rows.append([stage.name, stage.state, when, stage.note])
    table = columns(["Stage", "State", "When", "Note"], rows)
    if status.stages["collected"].state == "not yet":
        return table
    return f"{table}\nAnswers given later are not included; collect them with {_collect(status)}"


def _progress_text(status: Status) -> str:
    rule, (judged, item) = status.study.acceptance, status.study.called
    withdrawn = ["withdrawn"] if status.progress["withdrawn"].any() else []
    every = "all" if judged == "task" else status.study.raters.per_pair  # each task has a number of its own
    wanted = {status.study.raters_of(name) for name in status.progress["transformation"]}
    same_number = wanted == {rule.min_raters}  # then who has all has enough, and one column says both
    rows = [
        [
            display(row["transformation"], pooled=False),
            row["language"],
            *(str(row[name]) for name in ("pairs", "complete", *([] if same_number else ["enough"]))),
            f"{row['counting']}/{row['wanted']}",
            *(str(row[name]) for name in ("drafts", "discarded", "surplus", "excluded", *withdrawn)),
            row["verdict"],
        ]
        for row in status.progress.to_dict("records")
    ]
    answered = [f"By {every}", *([] if same_number else [f"By {rule.min_raters}+"])]
    more = ["Drafts", "Discarded", "Surplus", "Excluded", *(name.capitalize() for name in withdrawn), "Verdict"]
    header = [judged.capitalize(), "Language", f"{item}s".capitalize(), *answered, "Answers", *more]
    note = f"{', '.join(answered)}: {item}s with at least that many answers that count."
    missing, wanted_answers = (int(status.progress[name].sum()) for name in ("open", "wanted"))
    if missing:
        note += f" {missing:,} of the {count(wanted_answers, 'answer')} to {item}s are open."
    note += f" Withdrawn {item}s, and answers to them, are in no other column." if withdrawn else ""
    in_all = [f"Asked for in all: {line}" if not number else line for number, line in enumerate(status.asked_for)]
    return "\n".join([columns(header, rows), note, *in_all])


def _going(status: Status) -> list[str]:
    """Return the agreement so far and the pace, as far as there are ratings."""
    going = status.going
    agreement = [agreement_exhibit(going.agreement, status.study.called).text()] if len(going.agreement) else []
    return [*agreement, *([str(going.pace)] if going.pace else [])]


def _rater_text(status: Status, names: Mapping[str, str]) -> str:
    if status.raters.empty:
        if not (annotators := status.stages["published"].annotators) or status.sources:
            return "No rater is known yet."
        pairs = f"{status.study.called.item}s"
        return f"The {pairs} were published to {count(annotators, 'annotator')}; no ratings are collected yet."
    trained = {
        row["rater_id"]: [f"{row['answered']}/{row['items']}, {row['right']} of {row['judged']} right"]
        for row in status.trained.to_dict("records")
    }
    rows = [
        [
            named(row["rater_id"], names),
            str(row["answers"]),
            DASH if pd.isna(row["open"]) else str(int(row["open"])),
            DASH if pd.isna(row["last"]) else ago(row["last"], status.read_at),
            *(str(row[name]) for name in ("drafts", "discarded", "signs")),
            *trained.get(row["rater_id"], [DASH] if trained else []),
            "; ".join(word for word, name in _REMARKS.items() if row[name]),
        ]
        for row in status.raters.to_dict("records")
    ]
    training = ["Training"] if trained else []
    item, controls = status.study.called.item, status.study.called.known.capitalize()
    header = ["Rater", "Answers", "Open", "Last answer", "Drafts", "Discarded", "Signs", *training, "Remarks"]
    note = f"{controls} and repeats are included. Open: {item}s that the rater can still answer."
    if training:
        note += f"\nTraining: known {item}s answered, and how many answers to them are right; they never count."
    return f"{columns(header, rows)}\n{note}"


def ago(then: datetime, at: datetime) -> str:
    """Return the time since then, in the largest unit of which there are two: `3 days ago`, `47 h ago`."""
    minutes = int((at.astimezone(UTC) - then).total_seconds() // 60)
    if minutes < 2:
        return "just now"
    if minutes < 120:
        return f"{minutes} min ago"
    return f"{minutes // 60} h ago" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days ago"


_NAMED = 6  # languages, tasks or verdicts, above which their number is given
_WORDS: Mapping[Outcome, str] = {"accepted": "Accepted", "rejected": "rejected", "undecided": "undecided"}
_LATE = {
    "": "",
    "late": "By rules that were fixed after the ratings: ",
    "unknown": "By rules that were perhaps fixed after the ratings: ",
}


def headline(
    status: Status,
    verdicts: Sequence[Verdict],
    compared: SideBySide = NONE,
    preferred: SideBySide = NO_CHOICES,
    *,
    reported: bool = False,
) -> tuple[str, ...]:
    """Three sentences about verdicts that hold, and one on systems that were compared, if there are any.

    `reported` is for the report itself, which need not be written next.
    """
    if reported:
        stages = {
            name: replace(stage, state="done") if name == "report" else stage for name, stage in status.stages.items()
        }
        status = replace(status, stages=stages)
    answer, *rest = in_short(decided(verdicts), status.doubts, next_step(status))
    better = "; ".join([*answers(compared), *preferences.answers(preferred)])
    return (answer, *([f"{better}."] if better else []), *rest)


def in_short(answer: str, doubts: Sequence[str], step: NextStep) -> tuple[str, ...]:
    """Return three sentences: the answer, the first doubt with the number of others, the next step."""
    more = f" {count(len(doubts) - 1, 'further doubt')}." if doubts[1:] else ""
    return (
        answer,
        f"Doubtful: {doubts[0]}.{more}" if doubts else "Doubtful: nothing that was checked.",
        f"Next: {step}",  # no full stop: its first line is a command, to be pasted
    )


def decided(verdicts: Sequence[Verdict]) -> str:
    """Return the accepted, rejected and undecided transformations.

    Languages and tasks are named where these differ.
    """
    if not verdicts:
        return "Nothing is decided: there are no valid verdicts."
    of: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for verdict in verdicts:
        of[verdict.transformation][verdict.decision].append(f"{verdict.language} {verdict.task_type}".strip())
    parts = []
    lateness = _LATE[str(marks_of(verdicts)["rules_fixed"])]
    for outcome, word in _WORDS.items():
        names = []
        for name, by_outcome in of.items():
            if places := by_outcome.get(outcome):
                number = f"{len(places)} of {sum(map(len, by_outcome.values()))}"
                groups = f" ({', '.join(places) if len(places) <= _NAMED else number})" if len(by_outcome) > 1 else ""
                names.append(f"{display(name, pooled=False)}{groups}")
        if names or outcome == "accepted":
            parts.append(f"{word}: {', '.join(names) or 'nothing'}")
    return f"{lateness}{'; '.join(parts)}."


def show_status(*, options: CampaignOptions) -> None:
    """Show a study's progress and the next step (at any time).

    Example: plumbline status --study studies/demo.yaml
    """
    study = options.load()
    names = known_names(options.home, study.name)
    print(status_text(status_now(study, options.home), names))
