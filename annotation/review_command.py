"""The command `review`: signs of careless answers, and what a person decides about a rater."""

from __future__ import annotations

import argparse

from annotation.names import known_names, named, pseudonym_of
from annotation.offering import alone
from annotation.ratings.exclusions import decide
from annotation.ratings.review import review_text
from annotation.server_commands import home_of
from annotation.verdicts.evidence import Evidence
from plumbline import cli
from plumbline.errors import StudyError


def review(options: argparse.Namespace) -> int:
    """Show what a person looks at before deciding about a rater, or note the decision."""
    if options.reason is not None and not (options.exclude or options.keep):
        raise StudyError("--reason goes with --exclude or --keep: name the rater that it is about")
    study = cli.study_of(options)
    evidence = Evidence.read(study)
    evidence.refuse_other_rules()
    names = known_names(home_of(options), study)
    rater = pseudonym_of(options.exclude or options.keep or "", names)
    if not rater:
        print(
            review_text(study, evidence.collected, [*evidence.decisions, *evidence.withdrawals], evidence.signs, names)
        )
        return 0
    with alone(study):
        decision = decide(
            study, rater, exclude=bool(options.exclude), reason=options.reason or "", signs=evidence.signs
        )
    done = "excluded" if decision.exclude else "kept"
    print(
        f"{study.name}: {named(rater, names)} is {done}: {decision.reason};"
        f" run `{study.command('annotation accept')}` again"
    )
    return 0


def add_review_options(parser: argparse.ArgumentParser) -> None:
    """What `review` takes."""
    deciding = parser.add_mutually_exclusive_group()
    deciding.add_argument(
        "--exclude",
        metavar="RATER",
        help="exclude a rater (pseudonym or name): the answers stay in the data and no longer count",
    )
    deciding.add_argument(
        "--keep", metavar="RATER", help="keep a rater: the answers count, whatever was decided before"
    )
    parser.add_argument("--reason", metavar="TEXT", help="your reason; it is kept with the decision")
