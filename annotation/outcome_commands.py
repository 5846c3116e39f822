"""`python -m annotation withdraw`, `compare` and `export`: commands on campaigns that are under way, or done."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from annotation.argilla_files import FOLDER as IN_ARGILLAS
from annotation.argilla_files import export_argilla
from annotation.comparison import comparison_text
from annotation.export import FOLDER, export
from annotation.offering import alone
from annotation.ratings.exclusions import withdraw
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.tables import count
from plumbline import cli
from plumbline.errors import StudyError
from plumbline.reading import read_text
from plumbline.study import load_study

Add = Callable[..., argparse.ArgumentParser]


def add_outcome_commands(add: Add) -> None:
    """Add them to the command line; `add` takes a name, what runs it, and its help."""
    _add_withdrawing(add("withdraw", _withdraw, "withdraw pairs from the sample, or take them back", argilla=False))
    comparing = add("compare", _compare, "hold waves side by side, or two campaigns on the same pairs", argilla=False)
    comparing.add_argument("--other", metavar="FILE", help="another study that rated the same pairs")
    comparing.add_argument("--other-exports", metavar="DIR", help="where that study's records are, if elsewhere")
    exporting = add(
        "export",
        _export,
        f"write the ratings as CSV (or in Argilla's own files) with a codebook, to {FOLDER}/",
        argilla=False,
    )
    exporting.add_argument("--licence", metavar="TEXT", default="", help="the codebook's line on the licence")
    exporting.add_argument(
        "--words", action="store_true", help="also write what raters wrote in their own words, which may hold names"
    )
    exporting.add_argument(
        "--argilla",
        action="store_true",
        help=f"write Argilla's own files instead, to {IN_ARGILLAS}/: a folder a queue, for rg.Dataset.from_disk",
    )


def _add_withdrawing(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--pair", metavar="ID", nargs="+", help="ids of pairs, or at least their first 8 characters, as `review` prints"
    )
    which.add_argument("--pairs-from", metavar="FILE", type=cli.local, help="a file with an id on each line")
    parser.add_argument("--take-back", action="store_true", help="let pairs that were withdrawn count again")
    parser.add_argument("--reason", metavar="TEXT", default="", help="your reason; it is kept, and every report has it")


def _withdraw(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    named = options.pair
    if options.pairs_from is not None:
        try:
            named = read_text(options.pairs_from).split()
        except FileNotFoundError:
            raise StudyError(f"{options.pairs_from} is not there; write a file with an id on each line") from None
        if not named:
            raise StudyError(f"{options.pairs_from} names no pair; write an id on each line")
    evidence = Evidence.read(study)
    evidence.refuse_other_rules()
    with alone(study):
        made = withdraw(study, named, take_back=options.take_back, reason=options.reason)
    given = evidence.collected.ratings
    ids = {one.pair_id for one in made}
    answers = given[given["pair_id"].isin(ids) & (given["status"] == "submitted")].drop_duplicates(
        ["pair_id", "rater_id"]
    )
    pairs, of_them = count(len(made), "pair"), count(len(answers), "answer")
    done = "taken back" if options.take_back else "withdrawn"
    again = "counting again" if options.take_back else "kept, and not counted"
    print(f"{study.name}: {pairs} {done} ({made[0].reason}); {of_them} {again}")
    if (study.folder / "offered.json").exists():
        print(
            f"  in Argilla: run `{study.command('annotation publish')}`, which leaves what has answers or drafts there"
        )
    if (study.folder / "verdicts.json").exists():
        print(f"  run `{study.command('annotation accept')}` again")
    return 0


def _compare(options: argparse.Namespace) -> int:
    other = load_study(options.other, options.other_exports or options.exports) if options.other else None
    print(comparison_text(cli.study_of(options), other))
    return 0


def _export(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    write = export_argilla if options.argilla else export
    folder = write(study, licence=options.licence, words=options.words)
    print(f"{study.name}: ratings -> {folder}; codebook.md says what is in it")
    return 0
