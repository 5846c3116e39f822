"""`plumbline status`: the status of a study for a terminal, and what to do next."""

import sys
import textwrap
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated

import pandas as pd
from cyclopts import Parameter

from annotation.campaign.names import UNNAMED, known_names, named
from annotation.options import CampaignOptions, HomeOptions
from annotation.records import Outcome, Verdict
from annotation.server.home import Home
from annotation.statistics.systems import SideBySide
from annotation.status.monitoring import DAY, agreement_exhibit
from annotation.status.next_step import NextStep, absent_words, collecting, next_step
from annotation.status.status import Status, read_status, server_line, status_of, with_server
from annotation.verdicts import preferences
from annotation.verdicts.conclusion import Conclusion
from annotation.verdicts.doubts import doubts_text
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preferences import NO_CHOICES
from annotation.verdicts.rules import LATE, marks_of
from annotation.verdicts.systems import NONE, answers
from annotation.verdicts.tables import SIMULATED, display, interval_of, looks_exhibit
from plumbline.cli import StudyOptions, columns, reads, screen_width, whole
from plumbline.errors import PlumblineError, StudyError
from plumbline.exhibits.table import CODE, Cell, cell, printed
from plumbline.study import Study
from plumbline.study_files import checked
from plumbline.words import count

DASH = "–"
_REMARKS = {"simulated": "simulated", "excluded": "excluded", "taken out": "out"}  # on raters, by column


def status_text(status: Status, names: Mapping[str, str] = MappingProxyType({}), *, more: bool = False) -> str:
    """Return the status for a terminal, on about one screen.

    Args:
        status: The status.
        names: Raters' names by pseudonym, as far as this machine's user may see them (`annotation.campaign.names`).
        more: Whether to show all stages, notes, columns and doubts, agreement so far and a table of raters as well.
    """
    study, apart = status.study, "\n\n" if more else "\n"
    warnings = [SIMULATED if status.simulated else "", LATE[status.rules_fixed] if status.rules_fixed else ""]
    title = f"Study {study.name} on {status.read_at:%Y-%m-%d at %H:%M} UTC"
    head = [
        "\n".join([title, *filter(None, warnings)]),
        _flow_text(status, more=more),
        _notes(status, names, more=more),
    ]
    table, facts = list[str](), list[str]()
    if len(status.progress):
        blocks = status.blocks if more else _some(status.blocks, _FIRST)
        table = [_progress_text(status, more=more), "\n".join(blocks)]
        facts = [
            looks_exhibit(status.looks, study.called).text() if more and len(status.looks) else "",
            *status.crowd,
            _going(status, more=more),
            _rater_table(status, names) if more and len(status.raters) else _raters_text(status, names),
        ]
    if status.sources:
        doubts = doubts_text(status.doubts, study.judging, judged=status.judged)
        facts.append(first_doubt(status.doubts) if not more and (status.doubts or status.judged) else doubts)
    facts.append("" if more else f"More: `{status.command('status --more')}`")
    parts = [apart.join(filter(None, part)) for part in (head, table, facts)]
    return "\n\n".join([*filter(None, parts), f"Next: {_with_names(str(next_step(status)), status, names)}"])


def _notes(status: Status, names: Mapping[str, str], *, more: bool) -> str:
    """Return what is said of the rules, of the generation and of signs, and warnings."""
    # a start of the rules before the ratings needs no line; before raters are asked, what the notes say can be changed
    rules = status.rules[bool(status.evidence.rules and not more) :]
    unlooked = [f"Signs that could not be checked: {'; '.join(status.unlooked)}."] if status.unlooked else []
    warned = [f"WARNING: {_with_names(line, status, names)}" for line in status.warnings]
    return "\n".join([*rules, *(status.notes if more or not status.begun else []), *unlooked, *warned])


def _with_names(text: str, status: Status, names: Mapping[str, str]) -> str:
    """Return a text with the names of those whom the study names no longer, to be put into its file."""
    for rater in status.unnamed:
        text = text.replace(rater, named(rater, names))
    return text


def _flow_text(status: Status, *, more: bool) -> str:
    """Return how far the study is: a line, or a row for each stage."""
    wanted, at = status.wanted, status.read_at
    if more:
        times = [f"{stage.at:%Y-%m-%d %H:%M} UTC, {ago(stage.at, at)}" if stage.at else "" for stage in wanted]
        rows = [[stage.name, stage.state, when, stage.note] for stage, when in zip(wanted, times, strict=True)]
        lines = [columns(["Stage", "State", "When", "Note"], rows)]
    else:
        done = [stage for stage in wanted if stage.state == "done"]
        last = max(((stage.at, stage.name) for stage in done if stage.at), default=None)
        parts = [f"{len(done)} of {len(wanted)} done", f"last {last[1]}, {ago(last[0], at)}" if last else ""]
        ahead = [stage for stage in wanted if stage.state == "not yet"][:1]
        for stage in [stage for stage in wanted if stage.state not in ("done", "not yet")] + ahead:
            parts.append(f"{stage.name} {stage.state}{f' ({stage.note})' if stage.note else ''}")
        lines = [f"Stages: {'; '.join(filter(None, parts))}"]
    on_server = server_line(status)
    if status.evidence.offered and status.stages["collected"].state != "not yet" and (more or not on_server):
        lines.append(f"Answers given later are not included; collect them with `{collecting(status)}`")
    return "\n".join(filter(None, [*lines, on_server]))


_AGREEMENTS = 3  # in a line
_ROWS, _FIRST = 10, 4  # rows of a table, and of a longer one, whose rest is only counted


def _progress_text(status: Status, *, more: bool) -> str:
    rule, (judged, item) = status.study.acceptance, status.study.called
    every = "all" if judged == "task" else status.study.raters.per_pair  # each task has a number of its own
    wanted = {status.study.raters_of(name) for name in status.progress["transformation"]}
    same_number = wanted == {rule.min_raters}  # then who has all has enough, and one column says both
    by_every = cell("complete", str)
    table: dict[str, Cell] = {
        judged.capitalize(): lambda row: display(row["transformation"], pooled=False),
        "Language": "language",
        f"{item}s".capitalize(): cell("pairs", str),
        "Answers": lambda row: f"{row['counting']}/{row['wanted']}",
        **({f"By {every}": by_every} if same_number else {f"By {rule.min_raters}+": cell("enough", str)}),
        "Verdict": "verdict",
        **({f"By {every}": by_every} if more and not same_number else {}),
    }
    seldom = ("drafts", "discarded", "surplus", "excluded", "withdrawn")
    table |= {name.capitalize(): cell(name, str) for name in seldom if status.progress[name].any()}
    lines = [_open_text(status, table), absent_words(status)]
    if status.verdicts:
        decided = ", ".join(f"{number} {name}" for name in _WORDS if (number := status.verdicts[name]))
        lines.append(f"Verdicts{'' if status.stages['verdicts'].state == 'done' else ' so far'}: {decided}.")
    if more and status.asked_for is not None:
        lines.append("Asked for in all: " + "\n".join(status.asked_for.lines()))
    rows, rest = (status.progress, "") if more else _most_open(status.progress)
    shown = printed(rows, table)
    return "\n".join([columns(list(shown.columns), shown.to_numpy().tolist()), *filter(None, [rest, *lines])])


def _open_text(status: Status, table: Collection[str]) -> str:
    """Return what columns of the table count, and how many answers are open."""
    item, answered = status.study.called.item, ", ".join(name for name in table if name.startswith("By "))
    missing, wanted = (int(status.progress[name].sum()) for name in ("open", "wanted"))
    note = f"{answered}: {item}s with so many answers that count"
    note += f"; {missing:,} of {count(wanted, 'answer')} are open." if missing else "."
    return note + (f" Withdrawn {item}s, and answers to them, are in no other column." if "Withdrawn" in table else "")


def _most_open(progress: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the rows with most open answers, and a line on the others if there are too many."""
    if len(progress) <= _ROWS:
        return progress, ""
    rows = progress.sort_values("open", ascending=False, kind="stable")
    counting, wanted, missing = (int(rows[name][_FIRST:].sum()) for name in ("counting", "wanted", "open"))
    rest = f"and {len(rows) - _FIRST} more rows, with {counting:,} of {wanted:,} answers, {missing:,} open."
    return rows[:_FIRST], rest


def _going(status: Status, *, more: bool) -> str:
    """Return the pace, and the agreement so far, as far as there are ratings."""
    going, called = status.going, status.study.called
    agreement = agreement_exhibit(going.agreement, called).text() if more and len(going.agreement) else ""
    if len(going.agreement) and not more:  # the lowest coefficient of each question, undefined ones last
        lowest = going.agreement.sort_values("value").drop_duplicates("question").to_dict("records")
        parts = [f"{row['question']} {row['coefficient']} {interval_of(row)}" for row in lowest]
        agreement = f"Agreement so far, lowest first (95% intervals): {', '.join(_some(parts, _AGREEMENTS))}"
    return ("\n\n" if more else "\n").join(filter(None, [agreement, str(going.pace or "")]))


def _raters_text(status: Status, names: Mapping[str, str]) -> str:
    """Return who rates, who does not, and about whom somebody has to decide."""
    raters = status.raters
    if raters.empty:
        if not (annotators := status.stages["published"].annotators) or status.sources:
            return "No rater is known yet."
        pairs = f"{status.study.called.item}s"
        return f"The {pairs} were published to {count(annotators, 'annotator')}; no ratings are collected yet."
    if raters["rater_id"].eq(UNNAMED).all():
        return "Raters: unknown, because the file does not name them"
    open_pairs, lasts = raters["open"].fillna(0), pd.to_datetime(raters["last"], utc=True)
    last = lasts.max()
    staying = ~raters["excluded"] & ~raters["out"]
    silent = staying & (open_pairs > 0) & (raters["answers"] > 0) & ~(lasts > status.read_at - DAY)
    number = f"{(raters['answers'] > 0).sum()} of {count(len(raters), 'rater')} answered"
    when = "" if pd.isna(last) else f", the last of them {ago(last, status.read_at)}"
    signs = {name: f" ({count(n, 'sign')})" for name, n in zip(raters["rater_id"], raters["signs"], strict=True) if n}
    groups = {
        "no answer yet": raters.loc[staying & (raters["answers"] == 0), "rater_id"],
        "no answer for a day, with open ones": raters.loc[silent, "rater_id"],
        "signs of careless answers that nobody has decided about": status.unreviewed,
        "excluded": raters.loc[raters["excluded"], "rater_id"],
        "no longer let in": raters.loc[raters["out"], "rater_id"],
    }
    shown = {
        what: [f"{named(rater, names)}{signs.get(rater, '')}" for rater in group] for what, group in groups.items()
    }
    lines = [f"- {what}: {', '.join(_some(group, _NAMED))}" for what, group in shown.items() if group]
    return "\n".join([f"Raters: {number}{when}", *lines])


def _some(names: Sequence[str], most: int) -> list[str]:
    """Return the first names, and how many more there are."""
    return [*names[:most], *([f"and {len(names) - most} more"] if len(names) > most else [])]


def _rater_table(status: Status, names: Mapping[str, str]) -> str:
    trained = {
        row["rater_id"]: f"{row['answered']}/{row['items']}, {row['right']} of {row['judged']} right"
        for row in status.trained.to_dict("records")
    }
    table: dict[str, Cell] = {
        "Rater": lambda row: named(row["rater_id"], names),
        "Answers": cell("answers", str),
        "Open": lambda row: DASH if pd.isna(row["open"]) else str(int(row["open"])),
        "Last answer": lambda row: DASH if pd.isna(row["last"]) else ago(row["last"], status.read_at),
        "Signs": cell("signs", str),
        "Remarks": lambda row: "; ".join(word for word, name in _REMARKS.items() if row[name]),
        **({"Training": lambda row: trained.get(row["rater_id"], DASH)} if trained else {}),
        "Drafts": cell("drafts", str),
        "Discarded": cell("discarded", str),
    }
    shown = printed(status.raters, table)
    item, controls = status.study.called.item, status.study.called.known.capitalize()
    note = f"{controls} and repeats are included. Open: {item}s that the rater can still answer."
    if trained:
        note += f"\nTraining: known {item}s answered, and how many answers to them are right; they never count."
    return f"{columns(list(shown.columns), shown.to_numpy().tolist())}\n{note}"


def ago(then: datetime, at: datetime) -> str:
    """Return the time since then, in the largest unit of which there are two: `3 days ago`, `47 h ago`."""
    minutes = int((at.astimezone(UTC) - then).total_seconds() // 60)
    if minutes < 2:
        return "just now"
    if minutes < 120:
        return f"{minutes} min ago"
    return f"{minutes // 60} h ago" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days ago"


_NAMED = 6  # languages, tasks or verdicts, above which their number is given
_LISTED = 12  # transformations or systems that a sentence names; of more it has their number
_WORDS: Mapping[Outcome, str] = {"accepted": "Accepted", "rejected": "rejected", "undecided": "undecided"}
_LATE = {
    "": "",
    "late": " All by rules that were fixed after the ratings.",
    "unknown": " All by rules that were perhaps fixed after the ratings.",
}


def headline(
    status: Status,
    verdicts: Sequence[Verdict],
    compared: SideBySide = NONE,
    preferred: SideBySide = NO_CHOICES,
    *,
    reported: bool = False,
) -> tuple[str, ...]:
    """Three sentences about verdicts that hold, after those on systems that were compared, if there are any.

    `reported` is for the report itself, which need not be written next.
    """
    status = replace(status, writes="ratings-report" if reported else "")
    answer, *rest = in_short(decided(verdicts), status.doubts, next_step(status))
    tested = any(done.differences["p_holm"].notna().any() for done in (compared, preferred))
    # who compares systems asks first which is better, unless too few originals tell
    return (*better(compared, preferred), answer, *rest) if tested else (answer, *better(compared, preferred), *rest)


def better(compared: SideBySide, preferred: SideBySide) -> list[str]:
    """Return a sentence for each question on which system is better, and how surely; none where none was compared."""
    return [f"{clause}." for clause in (*answers(compared), *preferences.answers(preferred))]


def in_short(answer: str, doubts: Sequence[str], step: NextStep) -> tuple[str, ...]:
    """Return three sentences: the answer, the first doubt with the number of others, the next step."""
    command = f"`{step.command}`" if step.command else ""  # to be pasted
    return answer, first_doubt(doubts), f"Next: {': '.join(filter(None, [command, step.words]))}"


def first_doubt(doubts: Sequence[str]) -> str:
    """Return the first doubt, and how many there are beside it."""
    more = f" {count(len(doubts) - 1, 'further doubt')}." if doubts[1:] else ""
    return f"Doubtful: {doubts[0]}.{more}" if doubts else "Doubtful: nothing that was checked."


def decided(verdicts: Sequence[Verdict]) -> str:
    """Return the accepted, rejected and undecided transformations.

    Languages and tasks are named where these differ; of many transformations their number is.
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
            many = f"{len(names)} of {len(of)}" if len(names) > _LISTED else ""
            parts.append(f"{word}: {many or ', '.join(names) or 'nothing'}")
    return f"{'; '.join(parts)}.{lateness}"


def say_next_of(options: StudyOptions) -> None:
    """Print the next step of the study of a command that ended a step."""
    say_next(options.load(), (options if isinstance(options, HomeOptions) else HomeOptions()).home)


def say_next(study: Study, home: Home, status: Status | None = None) -> None:
    """Print the next step of a study: the one that `status` shows now, or that of a status by the study's records."""
    try:
        status = status or read_status(Evidence(study), datetime.now(UTC))
        status = with_server(status, status.evidence.collected, home)
        step = _with_names(str(next_step(status)), status, known_names(home, study.name))
    except PlumblineError as error:
        step = str(NextStep(study.command("status"), str(error)))
    print(f"Next: {step}", flush=True)


def fitted(text: str) -> str:
    """Return a text with its lines broken at spaces to fit the terminal; commands in backticks stay whole."""
    most, lines = screen_width(), list[str]()
    for line in text.split("\n"):
        if len(line) <= most:
            lines.append(line)
            continue
        joined, indent = CODE.sub(lambda code: code[0].replace(" ", "\0"), line), "  " * line.startswith(("- ", "  "))
        lines += textwrap.wrap(joined, most, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines).replace("\0", " ")


def show_status(
    *,
    options: CampaignOptions,
    more: bool = False,
    watch: Annotated[
        tuple[Annotated[int, reads(whole(1, 86_400))], ...] | None,
        Parameter(metavar="[SECONDS]", consume_multiple=(0, 1)),
    ] = None,
) -> None:
    """Show a study's progress and the next step (at any time).

    Example: plumbline status --study studies/demo.yaml

    Args:
        options: The study and the local server.
        more: Show all stages, notes, columns, doubts and agreement so far, what is asked for, and a table of raters.
        watch: Show it again every so many seconds (default: 30), until Ctrl-C.
    """
    if watch is not None and not sys.stdout.isatty():
        raise StudyError("--watch draws on a terminal, and the output goes elsewhere; leave it out")
    while True:
        evidence = Evidence(checked(options))
        names = known_names(options.home, evidence.study.name)
        status, done = status_of(evidence, options.home), Conclusion(evidence)
        answer = better(done.side_by_side, done.preferred) if status.stages["verdicts"].state == "done" else []
        facts, _, following = status_text(status, names, more=more).rpartition("\n\nNext: ")
        if watch is not None:
            sys.stdout.flush()
            sys.stdout.buffer.write(b"\x1b[H\x1b[2J")  # clears the terminal; printed text steers none
        command, *words = following.split("\n")  # a command stays in one line, to be pasted
        parts = [*filter(None, [" ".join(answer), facts])]
        print(
            "\n".join([*(f"{fitted(part)}\n" for part in parts), f"Next: {command}", *map(fitted, words)]), flush=True
        )
        if watch is None:
            return
        time.sleep(watch[0] if watch else 30)
