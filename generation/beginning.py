"""`plumbline init`: the options of the command that makes a study from a file (`generation.study_of_file`)."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from plumbline import cli
from plumbline.errors import StudyError
from plumbline.languages import language_pair

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


def main() -> int:
    """Parse the command line and run the command."""
    parser = cli.Parser(
        prog="plumbline init",
        description="Make a study from your own file of texts: CSV, TSV, JSONL or Parquet.\n"
        "The command guesses the meaning of columns and the language of the texts, and\n"
        "prints both. It overwrites no file.",
        epilog=(
            "example: a file sentences.csv with the columns text and label\n\n"
            "  plumbline init sentences.csv --language en\n"
            "  plumbline generate --study studies/sentences.yaml --dry-run\n\n"
            "If a column `output` beside `text` has the transformed texts, no language model is\n"
            "needed. Name columns that have other names:\n\n"
            "  plumbline init saetze.csv --language de --column text=Satz --column label=Klasse"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the file of texts, one text per row")
    parser.add_argument(
        "--language", type=_language, metavar="CODE", help="language of the texts, such as en, or en-de for pairs"
    )
    parser.add_argument(
        "--column", type=_column, action="append", default=[], metavar="WHAT=NAME",
        help=f"the column that holds WHAT: {', '.join(NAMES)} (may be repeated)",
    )  # fmt: skip
    parser.add_argument("--name", type=_name, metavar="NAME", help="name of the study (default: the file's)")
    parser.add_argument("--study", metavar="FILE", help=f"the study file to write (default: {FOLDER}/NAME.yaml)")
    return cli.handler("generation.study_of_file:run")(parser.parse_args())


def _language(value: str) -> str:
    try:
        first, second = language_pair(value)
    except StudyError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return first if first == second else f"{first}-{second}"


def _column(value: str) -> tuple[str, str]:
    what, _, name = value.partition("=")
    if what not in NAMES or not name:
        raise argparse.ArgumentTypeError(f"{value!r} is not WHAT=NAME, where WHAT is one of {', '.join(NAMES)}")
    return what, name


def _name(value: str) -> str:
    if not re.fullmatch("[a-z0-9][a-z0-9_-]{0,63}", value):
        raise argparse.ArgumentTypeError(f"{value!r} cannot name a study; use lower-case letters, digits, - and _")
    return value


if __name__ == "__main__":
    cli.run(main)
