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
        run = word_instructions(study, again=options.again)
    for line in _said(study, run):
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


def _said(study: Study, run: WordingRun) -> list[str]:
    counts = run.counts
    lines = [
        f"{study.name}: {counts['ok']} calls answered, {counts['failed']} failed, {counts['unanswered']} unanswered,"
        f" {counts['reused']} were there; {len(run.wordings)} wordings -> {study.folder / INSTRUCTIONS}"
    ]
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


if __name__ == "__main__":
    cli.run(main)
