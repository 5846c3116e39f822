"""`plumbline init`: what is asked of who makes a study of a file (`generation.study_of_file`)."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from plumbline import cli
from plumbline.errors import StudyError
from plumbline.languages import language_pair

FOLDER = Path("studies")
#: What columns are called that hold what a task needs (or `output`: the text as somebody has transformed it).
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
    """The command line."""
    parser = cli.Parser(
        prog="plumbline init",
        description="Make a study of your own of a file of texts: CSV, TSV, JSONL or Parquet.\n"
        "What its columns are for and which language the texts are in is guessed and said;\n"
        "nothing that is there is overwritten.",
        epilog=(
            "example: a file sentences.csv with the columns text and label\n\n"
            "  plumbline init sentences.csv --language en\n"
            "  plumbline generate --study studies/sentences.yaml --dry-run\n\n"
            "With a column `output` beside `text` the file says itself what became of each text,\n"
            "and no language model is asked. Columns of other names:\n\n"
            "  plumbline init saetze.csv --language de --column text=Satz --column label=Klasse"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the texts, a row each")
    parser.add_argument(
        "--language", type=_language, metavar="CODE", help="of the texts, such as en, or en-de for pairs"
    )
    parser.add_argument(
        "--column", type=_column, action="append", default=[], metavar="WHAT=NAME",
        help=f"which column holds what: {', '.join(NAMES)} (may be repeated)",
    )  # fmt: skip
    parser.add_argument("--name", type=_name, metavar="NAME", help="of the study (default: the file's)")
    parser.add_argument("--study", metavar="FILE", help=f"where it is written (default: {FOLDER}/NAME.yaml)")
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
        raise argparse.ArgumentTypeError(f"{value!r} is no name of a study: small letters, digits, - and _")
    return value


if __name__ == "__main__":
    cli.run(main)
