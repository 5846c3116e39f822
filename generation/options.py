"""The options of the commands that make outputs and show them; nothing that the commands do is imported for them."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline import cli
from plumbline.errors import StudyError
from plumbline.languages import pair_code

if TYPE_CHECKING:
    from generation.unit import Shard

FOLDER = Path("studies")
#: Usual column names for each field of a task (`output`: the text as somebody has transformed it).
NAMES = {
    "sentence1": ("sentence1", "sentence_1", "sentence_a", "sent1", "text1", "text_1", "text_a", "premise"),
    "sentence2": ("sentence2", "sentence_2", "sentence_b", "sent2", "text2", "text_2", "text_b", "hypothesis"),
    "score": ("score", "similarity", "gold", "similarity_score"),
    "label": ("label", "class", "category", "intent", "topic", "cluster"),
    "text": ("text", "sentence", "original", "source", "content", "utterance", "question", "message", "document"),
    "output": ("output", "transformed", "rewritten", "paraphrase", "changed"),
    "split": ("split",),
}


def init(parser: argparse.ArgumentParser) -> None:
    """Add the options of `init`."""
    parser.description = (
        "Make a study from your own file of texts: CSV, TSV, JSONL or Parquet.\n"
        "The command guesses the meaning of columns and the language of the texts, and\n"
        "prints both. It overwrites no file."
    )
    parser.epilog = (
        "example: a file sentences.csv with the columns text and label\n\n"
        "  plumbline init sentences.csv --language en\n"
        "  plumbline generate --study studies/sentences.yaml --dry-run\n\n"
        "If a column `output` beside `text` has the transformed texts, no language model is\n"
        "needed. Name columns that have other names:\n\n"
        "  plumbline init saetze.csv --language de --column text=Satz --column label=Klasse"
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("file", metavar="FILE", help="the file of texts, one text per row")
    add("--language", type=_language, metavar="CODE", help="language of the texts, such as en, or en-de for pairs")
    add(
        "--column", type=_column, action="append", default=[], metavar="WHAT=NAME",
        help=f"the column that holds WHAT: {', '.join(NAMES)} (may be repeated)",
    )  # fmt: skip
    add("--name", type=_name, metavar="NAME", help="name of the study (default: the file's)")
    add("--study", metavar="FILE", help=f"the study file to write (default: {FOLDER}/NAME.yaml)")


def _language(value: str) -> str:
    try:
        return pair_code(value)
    except StudyError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _column(value: str) -> tuple[str, str]:
    field, _, name = value.partition("=")
    if field not in NAMES or not name:
        raise argparse.ArgumentTypeError(f"{value!r} is not WHAT=NAME, where WHAT is one of {', '.join(NAMES)}")
    return field, name


def _name(value: str) -> str:
    if not re.fullmatch("[a-z0-9][a-z0-9_-]{0,63}", value):
        raise argparse.ArgumentTypeError(f"{value!r} cannot name a study; use lower-case letters, digits, - and _")
    return value


def generate(parser: argparse.ArgumentParser) -> None:
    """Add the options of `generate`."""
    parser.description = "Transform every text of a study. You can stop it at any time; run it again to continue."
    cli.add_study_options(parser)
    add = parser.add_argument
    add("--generator", metavar="MODEL", help="use one of the study's `candidates` instead of its generator")
    add("--again", action="store_true", help="ask again for failed outputs too, not only for unanswered ones")
    add("--allow-code", action="store_true", help="allow transformations that are functions, which run code")
    add("--dry-run", action="store_true", help="show how much work is left, and generate nothing")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--ray", metavar="ADDRESS", default="", help="run on a Ray cluster: `auto` or its address")
    how.add_argument(
        "--shard",
        metavar="K/N",
        type=as_shard,
        help="transform only the K-th of N parts of the texts, as in an array job of Slurm (docs/howto/slurm.md)",
    )


def as_shard(value: str) -> Shard:
    """Return the shard of an option such as `3/16`."""
    from generation.unit import MOST, Shard  # noqa: PLC0415 (`--help` does not need it)

    number, _, of = value.partition("/")
    if number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= MOST:
        return Shard(int(number), int(of))
    raise argparse.ArgumentTypeError(f"{value!r} is not a shard K/N, such as 3/16, with N up to {MOST}")


def errors(parser: argparse.ArgumentParser) -> None:
    """Add the options of `errors`."""
    parser.description = (
        "Show how often a study's generator, and each candidate, makes each type of error (HTEB, Table 5)."
    )
    _add_studies(parser)
    by = ("transformation", "dataset", "language")
    parser.add_argument("--by", choices=by, default="", help="split the rates by this, one row for each value")
    parser.add_argument(
        "--after-retries",
        action="store_true",
        help="count the errors of the last attempts instead of the first attempts",
    )


def compare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `compare`."""
    parser.description = (
        "Show how long the outputs of a study's generator and candidates are, and how far they are"
        " from their originals (HTEB, Table 23; PTEB's edit distance). `plumbline evaluate` scores embedding models on"
        " them (Table 22)."
    )
    _add_studies(parser)


def _add_studies(parser: argparse.ArgumentParser) -> None:
    """Add `--study` (several are allowed), `--exports` and `--csv`."""
    add = parser.add_argument
    add("--study", required=True, action="append", metavar="FILE", help="a study; repeat to report on several")
    add("--exports", metavar="DIR", help="the folder of the records (default: exports/)")
    add("--csv", metavar="FILE", type=cli.local, help="also write the table to this file, unrounded")


def instructions(parser: argparse.ArgumentParser) -> None:
    """Add the options of `instructions`."""
    parser.description = (
        "Make wordings of the instructions that embedding models read before a text: a language model"
        " proposes them, or people list them in a file. You can stop it at any time; run it again to continue."
    )
    parser.epilog = "example: plumbline instructions --study studies/instructions.yaml"
    cli.add_study_options(parser)
    parser.add_argument("--again", action="store_true", help="also repeat calls that got no valid reply")
    parser.add_argument("--dry-run", action="store_true", help="show how many calls are left, and make no call")
