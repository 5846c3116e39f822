"""The command `review`: signs of careless answers, decisions about raters, and pairs to adjudicate."""

from __future__ import annotations

import argparse

from annotation.adjudication.collect import read_adjudications
from annotation.adjudication.disputed import Disputed
from annotation.adjudication.publish import publish_review
from annotation.adjudication.text import judged_text
from annotation.argilla import accounts
from annotation.argilla.client import connect
from annotation.names import known_names, named, pseudonym_of
from annotation.offering import alone
from annotation.ratings.exclusions import decide
from annotation.ratings.review import review_text, waiting_text
from annotation.records import Verdict
from annotation.server_commands import home_of
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.verdicts import read_verdicts
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError
from plumbline.study import Study


def review(options: argparse.Namespace) -> int:
    """Show what a person looks at before deciding about a rater, or note the decision."""
    if options.reason is not None and not (options.exclude or options.keep):
        raise StudyError("--reason goes with --exclude or --keep: name the rater that it is about")
    if bool(options.adjudicate) != bool(options.by):
        raise StudyError("--adjudicate and --by go together: how many pairs, and the names of those who read them")
    study = cli.study_of(options)
    if options.judged or options.adjudicate:
        return _judged(study, options)
    evidence = Evidence.read(study)
    evidence.refuse_other_rules()
    names = known_names(home_of(options), study)
    raters = [pseudonym_of(name, names) for name in options.exclude or options.keep or ()]
    if not raters:
        decided = [*evidence.decisions, *evidence.withdrawals]
        text = review_text(study, evidence.collected, decided, evidence.signs, evidence.unlooked, names)
        print(f"{waiting_text(_waiting(study), names)}{text}")
        return 0
    with alone(study):
        decision = decide(
            study,
            *raters,
            exclude=bool(options.exclude),
            reason=options.reason or "",
            signs=evidence.signs,
            names=names,
        )
    done = "excluded" if decision.exclude else "kept"
    print(
        f"{study.name}: {', '.join(named(rater, names) for rater in raters)} {'is' if len(raters) == 1 else 'are'}"
        f" {done}: {decision.reason}; run `{study.command('annotation accept')}` again"
    )
    if study.raters.replace_excluded and decision.exclude:
        print(f"  {study.called.item}s of excluded raters are offered to others again by"
              f" `{study.command('annotation publish')}`, and a crowd's by `{study.command('annotation crowd launch')}`"
              " from what is left of the money (raters.replace_excluded: false leaves them)")  # fmt: skip
    return 0


def _waiting(study: Study) -> list[Verdict]:
    """The verdicts reached last that wait for a look at their raters."""
    reached = read_verdicts(study) if (study.folder / "verdicts.json").exists() else []
    return [one for one in reached if one.to_look_at]


def _judged(study: Study, options: argparse.Namespace) -> int:
    """Show where people and judges differ most, or put these pairs before adjudicators."""
    if not options.adjudicate:
        names = known_names(home_of(options), study)
        print(as_called(judged_text(study, Disputed.read(study), read_adjudications(study), names)))
        return 0
    people = [name for name in map(str.strip, options.by.split(",")) if name]
    with connect(home_of(options), existing=True) as argilla:
        done = publish_review(study, argilla, options.adjudicate, people)
        reads = accounts.languages_at(argilla, home_of(options))
    new, whom = sum(done.new.values()), ", ".join(people)
    print(f"{study.name}: {new} new of {len(done.pairs)} pairs for {whom} to adjudicate in {', '.join(done.new)}")
    print("  they see judges' scores as suggestions, and what people said without names; what they answer is no rating")
    for name, number in done.own.items():
        print(f"  {name} has rated {number} of these pairs too; their adjudications are marked so")
    for name in people:
        if strange := sorted(done.languages - set(reads.get(name, done.languages))):
            print(f"  {name} does not read {', '.join(strange)}, in which some of these texts are")
    shown = f"{study.command('annotation review')} --judged"
    print(f"  when they are done: `{study.command('annotation collect')}`, then `{shown}`")
    return 0


def add_review_options(parser: argparse.ArgumentParser) -> None:
    """What `review` takes."""
    deciding = parser.add_mutually_exclusive_group()
    deciding.add_argument(
        "--exclude",
        metavar="RATER",
        nargs="+",
        help="exclude raters (pseudonyms or names): the answers stay in the data and no longer count",
    )
    deciding.add_argument(
        "--keep",
        metavar="RATER",
        nargs="+",
        help="keep raters: the answers count, whatever was decided before, and no verdict waits for a look at these"
        " raters until their answers are others, or more",
    )
    parser.add_argument("--reason", metavar="TEXT", help="your reason; it is kept with the decision")
    deciding.add_argument(
        "--judged", action="store_true", help="show the pairs on which people and judges differ most, after `accept`"
    )
    deciding.add_argument(
        "--adjudicate",
        type=cli.count,
        metavar="N",
        help="put so many of these before adjudicators in Argilla, with judges' scores as suggestions; no rating",
    )
    parser.add_argument("--by", metavar="NAMES", default="", help="user names of the adjudicators, such as eva,tom")
