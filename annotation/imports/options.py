"""The options of `plumbline import`, without importing the packages that the command needs."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from annotation.options import add_data_option
from plumbline import cli
from plumbline.errors import StudyError

#: docs/import.md says what each is.
ROLES = (
    *("original", "output", "text", "beside", "item", "system", "rater", "question", "answer", "by_rater", "slot"),
    *("by_item", "time", "started", "seconds", "status", "comment", "truth", "language", "unused"),
)


def add_import_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of files, of their columns' roles, and of the study's place."""
    parser.epilog = "example: plumbline import ratings.csv --out studies/mine.yaml"
    add_data_option(parser)
    add = parser.add_argument
    add("files", metavar="FILE", type=cli.local, nargs="+", help="exported files: ratings, and texts or right"
        " answers with the same ids")  # fmt: skip
    add("--out", metavar="FILE", type=cli.local, required=True, help="the study file to write, such as"
        " studies/mine.yaml; its texts go into a folder beside it")  # fmt: skip
    add("--exports", metavar="DIR", help="where records are written: a folder or an address (default: exports/)")
    add("--column", metavar="ROLE=NAME", type=column_option, action="append", default=[],
        help=f"the role of a column: {', '.join(ROLES)} (may be repeated)")  # fmt: skip
    add(
        "--columns",
        metavar="FILE",
        type=cli.local,
        help="a file with the roles of columns, as an earlier import wrote it",
    )
    add("--scale", metavar="QUESTION=1..5", type=scale_option, action="append", default=[],
        help="a question's points: 1..5, 5..1 if less is better, words as in bad<fair<good, or `labels`; answers"
        " outside the scale are listed (may be repeated)")  # fmt: skip
    add("--language", metavar="CODE", help="the language of the texts (default: recognised from them)")
    add("--sheet", metavar="NAME", default="", help="the sheet of an Excel file, if several have rows")
    add("--raters-per-file", action="store_true", help="treat an id that occurs in two files as two people")
    add("--dry-run", action="store_true", help="show how the files are read, without writing the study")
    add("--replace", action="store_true", help="replace the study and its records")


@dataclass(frozen=True)
class AskedScale:
    """A question's scale as the user gives it; `text` is the option."""

    text: str
    low: float = 0
    high: float = 0
    words: tuple[str, ...] = ()  #: words of the points from 1 on, if answers are words
    labels: bool = False  #: no scale: the answers are labels
    falls: bool = False  #: less is better


def read_scale(text: str) -> AskedScale:
    """Read `1..5`, `5..1` (less is better), `bad<fair<good` or `labels`. Raises StudyError."""
    from plumbline.scales import as_number  # noqa: PLC0415 (`--help` needs no numpy)

    if text.strip() == "labels":
        return AskedScale("labels", labels=True)
    if "<" in text:
        words = tuple(word.strip() for word in text.split("<"))
        if not all(words) or len(set(words)) < len(words):
            raise StudyError(f"--scale: {text!r} needs a different word for each point, as in bad<fair<good")
        return AskedScale(text, 1, len(words), words)
    ends = text.split("..")
    try:
        first, last = map(as_number, ends)
    except ValueError:
        raise StudyError(f"--scale: {text!r} is not a scale; write 1..5, 5..1, bad<fair<good or labels") from None
    if first == last:
        raise StudyError(f"--scale: {text!r}: its ends are the same point")
    return AskedScale(text, min(first, last), max(first, last), falls=first > last)


def scale_option(text: str) -> tuple[str, AskedScale]:
    """Read `fluency=1..5`, for an option."""
    name, _, scale = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form QUESTION=1..5")
    return name, read_scale(scale)


def column_option(text: str) -> tuple[str, str]:
    """Read `rater=Worker` as (column, role), for an option."""
    role, _, column = text.partition("=")
    if not column:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form ROLE=NAME")
    return column, role
