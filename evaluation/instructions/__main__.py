"""`python -m evaluation.instructions`: models under wordings of an instruction; `report` shows what came out."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from annotation.verdicts.tables import count
from evaluation.instructions.report_command import report
from evaluation.instructions.run import PromptRunOutcome, evaluate_instructions, forecast
from evaluation.instructions.scores import ITEMS, SCORES
from evaluation.instructions.units import unlabelled
from evaluation.units import chosen_models
from evaluation.work import quiet
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import ServiceError
from plumbline.manifest import stage
from plumbline.study import Study
from plumbline.study.subject import INSTRUCTIONS

PROGRAM = "python -m evaluation.instructions"


def main() -> int:
    """The command line: `report`, or the evaluation."""
    return report(sys.argv[2:]) if sys.argv[1:2] == ["report"] else _evaluate()


def _evaluate() -> int:
    parser = cli.Parser(
        prog=as_called(PROGRAM),
        description="Score a study's models under the wordings that people accepted, under the model's own prompt and"
        " under none. Can be stopped and run again at any time: it goes on.",
        epilog=as_called(
            f"example: {PROGRAM} --study studies/instructions.yaml --dry-run\n{PROGRAM} report --help: what came out"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cli.add_study_options(parser)
    parser.add_argument("--models", nargs="+", metavar="NAME", default=[], help="only these of the study's models")
    parser.add_argument(
        "--include-unaccepted", action="store_true", help="score what people did not accept, too; rows carry the label"
    )
    parser.add_argument("--ray", metavar="ADDRESS", default="", help="run on a Ray cluster: `auto` or its address")
    parser.add_argument("--dry-run", action="store_true", help="show what is left to score, and what it takes")
    options = parser.parse_args()
    study = cli.study_of(options)
    chosen = {"models": options.models, "include_unaccepted": options.include_unaccepted}
    names = ("verdicts.json", "pairs.parquet", "ratings.parquet", INSTRUCTIONS)
    outputs = [study.folder / SCORES, study.folder / ITEMS]
    with quiet(study, chosen_models(study, options.models)):
        if options.dry_run:
            print(forecast(study, **chosen))
            return 0
        with stage(study, "instruction_scores", [study.folder / name for name in names], outputs):
            outcome = evaluate_instructions(study, **chosen, cluster=options.ray)
    for line in _said(study, outcome, include_unaccepted=options.include_unaccepted):
        print(line)
    if outcome.failures:
        raise ServiceError(
            f"{len(outcome.failures)} of {len(chosen_models(study, options.models))} models failed:"
            f" {', '.join(outcome.failures)} (the reason stands above); run the same command again to go on"
        )
    return 0


def _said(study: Study, outcome: PromptRunOutcome, *, include_unaccepted: bool) -> list[str]:
    lines = [
        f"{study.name}: {count(outcome.n_scored, 'score')} made, {outcome.n_stored} were there;"
        f" {count(outcome.encoded, 'text')} encoded for"
        f" {outcome.n_prompted} asked -> {study.folder / SCORES}"
    ]
    wordings = {unit.wanted.prompt_id: unit for unit in outcome.units if unit.wanted.text}
    reasons = Counter(unit.reason for unit in wordings.values() if unit.reason)
    lines.append(f"  wordings: {len(wordings) - reasons.total()} scored, {reasons.total()} not")
    lines += [f"    {number} {reason}" for reason, number in reasons.most_common()]
    if include_unaccepted:
        unaccepted = sum(unit.wanted.label != "acceptable" for unit in wordings.values())
        lines.append(f"  {unaccepted} that people did not accept are among them, with their labels")
    if any(unit.wanted.simulated for unit in wordings.values()):
        lines.append("  labels are simulated: they say nothing of the wordings")
    if study.acceptance.min_raters < 2 and not unlabelled(study):
        lines.append("  a single pass: one rater's label decides, and there is no agreement to be told")
    return lines


if __name__ == "__main__":
    cli.run(main)
