"""`plumbline status`: the status of a study for a terminal, and what to do next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

import pandas as pd

from annotation.campaign.names import known_names, named
from annotation.options import CampaignOptions, HomeOptions
from annotation.records import Outcome, Verdict
from annotation.server.home import Home
from annotation.statistics.systems import SideBySide
from annotation.status.monitoring import agreement_exhibit
from annotation.status.next_step import NextStep, collecting, next_step
from annotation.status.status import Status, server_line, status_now, status_of
from annotation.verdicts import preferences
from annotation.verdicts.conclusion import Conclusion
from annotation.verdicts.doubts import doubts_text
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preferences import NO_CHOICES
from annotation.verdicts.rules import LATE, marks_of
from annotation.verdicts.systems import NONE, answers
from annotation.verdicts.tables import SIMULATED, display, looks_exhibit
from plumbline.cli import StudyOptions, columns
from plumbline.errors import PlumblineError
from plumbline.study import Study
from plumbline.study_files import checked
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


def _flow_text(status: Status) -> str:
    rows = []
    for stage in (stage for stage in status.stages.values() if stage.wanted):
        when = f"{stage.at:%Y-%m-%d %H:%M} UTC, {ago(stage.at, status.read_at)}" if stage.at else ""
        rows.append([stage.name, stage.state, when, stage.note])
    table = columns(["Stage", "State", "When", "Note"], rows)
    if status.stages["collected"].state == "not yet":
        return table
    return f"{table}\nAnswers given later are not included; collect them with {collecting(status)}"


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
    if status.asked_for is not None:
        note += "\nAsked for in all: " + "\n".join(status.asked_for.lines())
    return f"{columns(header, rows)}\n{note}"


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
    """Three sentences about verdicts that hold, after one on systems that were compared, if there are any.

    `reported` is for the report itself, which need not be written next.
    """
    status = replace(status, writes="ratings-report" if reported else "")
    answer, *rest = in_short(decided(verdicts), status.doubts, next_step(status))
    return (*better(compared, preferred), answer, *rest)  # who compares systems asks first which is better


def better(compared: SideBySide, preferred: SideBySide) -> list[str]:
    """Return a sentence on which system is better, and how surely; none where no systems were compared."""
    clauses = "; ".join([*answers(compared), *preferences.answers(preferred)])
    return [f"{clauses}."] if clauses else []


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


def say_next_of(options: StudyOptions) -> None:
    """Print the next step of the study of a command that ended a step."""
    say_next(options.load(), (options if isinstance(options, HomeOptions) else HomeOptions()).home)


def say_next(study: Study, home: Home) -> None:
    """Print the next step of a study: the one that `status` shows now."""
    try:
        step = next_step(status_now(study, home))
    except PlumblineError as error:
        step = NextStep(study.command("status"), str(error))
    print(f"Next: {step}", flush=True)


def show_status(*, options: CampaignOptions) -> None:
    """Show a study's progress and the next step (at any time).

    Example: plumbline status --study studies/demo.yaml
    """
    evidence = Evidence(checked(options))
    names = known_names(options.home, evidence.study.name)
    status, done = status_of(evidence, options.home), Conclusion(evidence)
    answer = better(done.side_by_side, done.preferred) if status.stages["verdicts"].state == "done" else []
    print("\n\n".join([*answer, status_text(status, names)]))
