"""`python -m generation.instructions`: the wordings of instructions that a study wants and does not have yet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from generation.instructions.calls import calls_of
from generation.instructions.records import REMOVED, REPLIES
from generation.instructions.run import Replies, WordingRun, word_instructions
from generation.instructions.tasks import asked_of
from plumbline import cli
from plumbline.commands import as_called
from plumbline.manifest import stage
from plumbline.study import Study
from plumbline.study.subject import INSTRUCTIONS


def main() -> int:
    """The command line."""
    parser = cli.Parser(
        prog=as_called("python -m generation.instructions"),
        description="Word the instructions that embedding models read before a text: a language model proposes them, or"
        " people do, in a file. Can be stopped at any time; run again, it continues.",
        epilog=as_called("example: python -m generation.instructions --study studies/instructions.yaml"),
    )
    cli.add_study_options(parser)
    parser.add_argument("--again", action="store_true", help="ask again where no reply was valid, too")
    parser.add_argument("--dry-run", action="store_true", help="show what is left to ask, and ask nothing")
    options = parser.parse_args()
    study = cli.study_of(options)
    if options.dry_run:
        print(_left(study, again=options.again))
        return 0
    outputs = [study.folder / name for name in (INSTRUCTIONS, REMOVED, REPLIES)]
    asked_of(study)
    with stage(study, "instructions", _inputs(study), outputs):
        found = word_instructions(study, again=options.again)
    for line in _said(study, found):
        print(line)
    return 0


def _inputs(study: Study) -> list[Path]:
    subject = asked_of(study)
    return [study.resolve(path) for path in (subject.prompts, subject.known) if path]


def _left(study: Study, *, again: bool) -> str:
    calls = calls_of(study)
    todo = Replies(study, calls, again=again).todo()
    wanted = sum(call.number for call in todo)
    return (
        f"{study.name}: {len(calls)} calls, {len(todo)} left, for {wanted} wordings;"
        f" {sum(len(call.message) for call in todo):,} characters are sent to {study.generator.model}"
    )


def _said(study: Study, found: WordingRun) -> list[str]:
    counts = found.counts
    lines = [
        f"{study.name}: {counts['ok']} calls answered, {counts['failed']} failed, {counts['unanswered']} unanswered,"
        f" {counts['reused']} were there; {len(found.kept)} wordings -> {study.folder / INSTRUCTIONS}"
    ]
    for group, number in Counter(one.group for one in found.kept).items():
        lines.append(f"  {group}: {number}")
    if found.removed:
        lines.append(f"  {len(found.removed)} more were equal or nearly equal to others ({REMOVED}):")
        lines += [f"    {one.text[:60]!r} is {one.kept_text[:60]!r} ({one.distance:.2f})" for one in found.removed[:5]]
    for one in found.trouble:
        lines.append(f"  no wordings from {one.context} of {one.task or one.task_type}: {one.reason}")
    if found.trouble:
        lines.append("  (the next run asks again for the unanswered, with --again for failed too)")
    return lines


if __name__ == "__main__":
    cli.run(main)
