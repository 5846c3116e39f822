"""The options of `plumbline import`; nothing that it does is imported for them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from plumbline import cli
from plumbline.errors import StudyError

ROLES = {
    "original": "the text that somebody transformed",
    "output": "what became of it",
    "text": "the text that is judged, where there is no pair",
    "beside": "what raters saw beside the text",
    "item": "the item's id, or a part of it",
    "system": "the system, model or transformation",
    "rater": "who answered",
    "question": "which question is answered in the row",
    "answer": "answers to a question",
    "by_rater": "a rater's answers",
    "by_item": "answers about an item",
    "time": "when it was answered",
    "started": "when it was begun",
    "seconds": "how long it took",
    "status": "whether the answer was submitted",
    "comment": "the rater's words",
    "truth": "the right answer",
    "language": "the text's language",
    "unused": "nothing of the study",
}


def add_import_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of files, of their columns' roles, and of the study's place."""
    add = parser.add_argument
    add("files", metavar="FILE", type=cli.local, nargs="+", help="what was exported: ratings, and texts or right"
        " answers by the same ids")  # fmt: skip
    add("--out", metavar="FILE", type=cli.local, required=True, help="the study that is written, such as"
        " studies/mine.yaml; its texts stand in a folder beside it")  # fmt: skip
    add("--exports", metavar="DIR", help="where records are written: a folder or an address (default: exports/)")
    add("--column", metavar="WHAT=NAME", type=column_option, action="append", default=[],
        help=f"what a column holds: {', '.join(ROLES)} (may be repeated)")  # fmt: skip
    add("--columns", metavar="FILE", type=cli.local, help="the roles of columns, from the file that an import wrote")
    add("--scale", metavar="QUESTION=1..5", type=scale_option, action="append", default=[],
        help="a question's points: 1..5, 5..1 where less is better, bad<fair<good of words, or `labels`; answers off it"
        " are listed (may be repeated)")  # fmt: skip
    add("--language", metavar="CODE", help="of the texts (default: the language that they are recognised to be in)")
    add("--sheet", metavar="NAME", default="", help="the sheet of an Excel file, where several have rows")
    add("--raters-per-file", action="store_true", help="an id that stands in two files is two people's")
    add("--dry-run", action="store_true", help="show how the files are read, and write no study")
    add("--replace", action="store_true", help="replace the study and its records")


@dataclass(frozen=True)
class AskedScale:
    """A question's scale as the user gives it; `text` is the option."""

    text: str
    low: float = 0
    high: float = 0
    words: tuple[str, ...] = ()  #: of the points from 1 on, where answers are words
    labels: bool = False  #: no scale: the answers are labels
    falls: bool = False  #: less is better


def read_scale(text: str) -> AskedScale:
    """`1..5`, `5..1` (less is better), `bad<fair<good` or `labels`. Raises StudyError."""
    from plumbline.scales import as_number  # noqa: PLC0415 (`--help` needs no numpy)

    if text.strip() == "labels":
        return AskedScale("labels", labels=True)
    if "<" in text:
        words = tuple(word.strip() for word in text.split("<"))
        if not all(words) or len(set(words)) < len(words):
            raise StudyError(f"--scale: {text!r} is not like bad<fair<good")
        return AskedScale(text, 1, len(words), words)
    ends = text.split("..")
    try:
        first, last = map(as_number, ends)
    except ValueError:
        raise StudyError(f"--scale: {text!r} is not like 1..5, 5..1, bad<fair<good or labels") from None
    if first == last:
        raise StudyError(f"--scale: {text!r}: its ends are the same point")
    return AskedScale(text, min(first, last), max(first, last), falls=first > last)


def scale_option(text: str) -> tuple[str, AskedScale]:
    """`fluency=1..5`, for an option."""
    name, _, scale = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not like QUESTION=1..5")
    return name, read_scale(scale)


def column_option(text: str) -> tuple[str, str]:
    """`rater=Worker` as (column, role), for an option."""
    role, _, column = text.partition("=")
    if not column:
        raise argparse.ArgumentTypeError(f"{text!r} is not like rater=NAME")
    return column, role
