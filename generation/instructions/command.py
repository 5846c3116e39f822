"""What `python -m generation.instructions` does: word instructions, and say what came of it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from generation.instructions.calls import Call, asked_of, calls_of, maker_hash, tasks_of
from generation.instructions.run import Replies, WordingRun, word_instructions
from generation.instructions.wordings import REMOVED, REPLIES
from plumbline import cli
from plumbline.manifest import stage
from plumbline.study.subject import INSTRUCTIONS


def run(options: argparse.Namespace) -> int:
    """Word what is missing, as the options say."""
    study = cli.study_of(options)
    subject = asked_of(study)
    if options.dry_run:
        tasks = tasks_of(subject, study.datasets, study.file)
        calls = calls_of(subject, tasks, maker_hash(study.generator, study.resolve))
        print(f"{study.name}: {_left(calls, list(Replies(study, calls, again=options.again).jobs()))}", end="")
        print(f" characters are sent to {study.generator.model}")
        return 0
    outputs = [study.folder / name for name in (INSTRUCTIONS, REMOVED, REPLIES)]
    inputs = [study.resolve(path) for path in (subject.prompts, subject.known) if path]
    with stage(study, "instructions", inputs, outputs):
        run = word_instructions(study, again=options.again)
    print(f"{study.name}: {_counted(run.counts)}; {len(run.wordings)} wordings -> {study.folder / INSTRUCTIONS}")
    for line in _lines(run):
        print(line)
    return 0


def _left(calls: Sequence[Call], todo: Sequence[Call]) -> str:
    wanted, characters = sum(call.number for call in todo), sum(len(call.message) for call in todo)
    return f"{len(calls)} calls, {len(todo)} left, for {wanted} wordings; {characters:,}"


def _counted(counts: Counter[str]) -> str:
    calls = f"{counts['ok']} calls answered, {counts['failed']} failed, {counts['unanswered']} unanswered"
    return f"{calls}, {counts['reused']} were there"


def _lines(run: WordingRun) -> list[str]:
    lines = []
    for group, number in Counter(wording.group for wording in run.wordings).items():
        lines.append(f"  {group}: {number}")
    if run.removed:
        lines.append(f"  {len(run.removed)} more were equal or nearly equal to others ({REMOVED}):")
        lines += [
            f"    {wording.text[:60]!r} is {wording.kept_text[:60]!r} ({wording.distance:.2f})"
            for wording in run.removed[:5]
        ]
    for reply in run.trouble:
        lines.append(f"  no wordings from {reply.context} of {reply.task or reply.task_type}: {reply.reason}")
    if run.trouble:
        lines.append("  (the next run asks again for the unanswered, with --again for failed too)")
    return lines
