"""What every command line shares: how it ends, the study option, and how tables look."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import errno
import functools
import gc
import importlib
import io
import math
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from plumbline import interrupt
from plumbline.commands import as_called
from plumbline.errors import PlumblineError, StudyError, is_full
from plumbline.resources import ROOT, in_checkout_alone
from plumbline.words import printable, printable_line

if TYPE_CHECKING:
    from plumbline.study import Study

_LONGEST = 1400  # characters of a complaint; a name in it may be of any length
_FOLDER_TROUBLE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENXIO,
    errno.EIO,
}

MOST = 100_000  # of what an option counts
_PLACES = ("ADDRESS", "DIR", "FILE", "FOLDER", "NAME=FILE", "URL")  # metavars of options that name files and the like
_PLACE_OPTIONS = ("study", "exports", "data")  # these too, where no help shows them


def run(main: Callable[[], int | None]) -> None:
    """Run a command: expected errors are one line and exit status 2, an interrupt is 130, a bug is a traceback.

    A reader that has seen enough (`| head`) is 141, as shells have it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of another encoding shows \\xe9 for what it cannot
            stream.reconfigure(errors="backslashreplace")
        _guard(stream, bars=stream is sys.stderr)
    gc.set_threshold(100_000, 20, 20)  # by its own rule a fifth of an import of torch and mteb is looking for garbage
    status = 0
    try:
        interrupt.begin()
        status = main() or 0
        sys.stdout.flush()
    except PlumblineError as error:
        status = _complain(str(error), 2)
    except BrokenPipeError:  # who reads our output has seen enough (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 141
    except UnicodeEncodeError as error:
        if codecs.lookup(error.encoding) == codecs.lookup("utf-8") or sys.getfilesystemencoding() == "utf-8":
            raise
        name = error.object[error.start : error.end]
        status = _complain(f"this locale has no file names with {name!a}; set LC_ALL=C.UTF-8, then run again", 2)
    except KeyboardInterrupt:
        status = _complain(interrupt.LINE, interrupt.STATUS)
    except sqlite3.Error as error:
        if not is_full(error):
            raise
        status = _complain(f"no room for a database (temporary ones are in {tempfile.gettempdir()}); make room", 2)
    except OSError as error:
        if error.errno not in _FOLDER_TROUBLE:
            raise
        where = f" ({error.filename})" if error.filename else ""
        status = _complain(f"{error.strerror}{where}; make room or change the folder, then run again", 2)
    finally:
        interrupt.end(explained=status != 0)
    sys.exit(status)


def _guard(stream: TextIO, *, bars: bool) -> None:
    """See that nothing that is printed on a stream steers a terminal, whoever prints it.

    The stream stays what it is, for those who hold it already. Where `bars` move, the carriage returns around a line
    that begins with one stay.
    """
    write = stream.write
    if isinstance(write, functools.partial):
        return  # guarded before
    stream.write = functools.partial(_write_guarded, write, bars)  # type: ignore[method-assign]


def _write_guarded(write: Callable[[str], int], bars: bool, text: str) -> int:
    if bars and text.startswith("\r"):
        line = text.strip("\r")
        before, _, after = text.partition(line) if line else (text, "", "")
        write(f"{before}{printable(line)}{after}")
    else:
        write(printable(text))
    return len(text)


class Parser(argparse.ArgumentParser):
    """The command line of a command; what is wrong with its words is one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        """Raises StudyError."""
        raise StudyError(f"{message}; see `{self.prog} --help`")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """An empty word would name the folder where one stands, or be taken for an option that was left out."""
        named = action.metavar in _PLACES or action.dest in _PLACE_OPTIONS
        if named and not arg_string.strip() and arg_string not in (action.default, action.const):
            raise argparse.ArgumentError(action, "is empty; name one, or leave the option out")
        return super()._get_value(action, arg_string)  # argparse's, of every Python so far


def add_study_options(parser: argparse.ArgumentParser) -> None:
    """`--study` and `--exports`, the same for every command."""
    parser.add_argument("--study", required=True, metavar="FILE", help="the study, for example studies/demo.yaml")
    parser.add_argument(
        "--exports",
        metavar="DIR",
        help="where records are written: a folder or an address such as s3://bucket/x (default: exports/)",
    )


def study_of(options: argparse.Namespace) -> Study:
    """The study that the options name."""
    from plumbline.study import load_study  # noqa: PLC0415 (`--help` needs no study)

    study = load_study(options.study, options.exports)
    if study.advice:
        note(study.advice)
    if options.exports is None and in_checkout_alone(f"exports/{study.name}"):
        records = ROOT / "exports"
        note(f"{records / study.name} holds records of this name; to go on with them: --exports {records}")
    return study


def handler(reference: str) -> Callable[[argparse.Namespace], int]:
    """The function that `module:name` names, imported when it is first called, so that `--help` needs none of it."""
    return functools.partial(_call, reference)


def _call(reference: str, options: argparse.Namespace) -> int:
    module, _, name = reference.partition(":")
    function: Callable[[argparse.Namespace], int] = getattr(importlib.import_module(module), name)
    return function(options)


def note(line: str) -> None:
    """Advice that stands beside what a command prints."""
    print(f"note: {line}", file=sys.stderr)


def local(value: str) -> Path:
    """A file or folder of this machine, for an option: an address would become a folder of its name."""
    return Path(no_address(value))


def no_address(value: str) -> str:
    """What may name a file of this machine or something else, but no address, for an option."""
    if "://" in value:
        raise argparse.ArgumentTypeError(f"{value!r} is an address; name a file or folder of this machine")
    return value


def positive(value: str) -> float:
    """A number above 0, for an option."""
    with contextlib.suppress(ValueError):
        if 0 < (number := float(value)) < math.inf:
            return number
    raise argparse.ArgumentTypeError(f"{value!r} is not a number above 0")


def count(value: str) -> int:
    """A whole number from 1 on, for an option."""
    if value.isdecimal() and 1 <= int(value) <= MOST:
        return int(value)
    raise argparse.ArgumentTypeError(f"{value!r} is not a whole number from 1 to {MOST}")


def names(what: str) -> Callable[[str], tuple[str, ...]]:
    """Names with commas between them, at least one, for an option; `what` they are, for the complaint."""

    def read(value: str) -> tuple[str, ...]:
        if parts := tuple(part.strip() for part in value.split(",") if part.strip()):
            return parts
        raise argparse.ArgumentTypeError(f"{value!r} names no {what}")

    return read


def seed(value: str) -> int:
    """A whole number from 0 on, for an option."""
    if value.isascii() and value.isdecimal() and len(value) <= 18:
        return int(value)
    raise argparse.ArgumentTypeError(f"{value!r} is not a whole number from 0 on, of at most 18 digits")


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "nothing") -> str:
    """A table for a terminal: columns two spaces apart, words to the left, numbers to the right.

    A column is one of words if it is the first or any of its cells holds a letter. `empty` is said where there
    are no rows. A cell is one line, whatever stands in it.
    """
    if not rows:
        return empty
    header, rows = list(map(_cell, header)), [list(map(_cell, row)) for row in rows]
    widths = [max(len(line[column]) for line in (header, *rows)) for column in range(len(header))]
    wordy = [
        column == 0 or any(map(str.isalpha, "".join(row[column] for row in rows))) for column in range(len(header))
    ]

    def line(cells: Sequence[str]) -> str:
        shown = (
            cell.ljust(width) if aligned_left else cell.rjust(width)
            for cell, width, aligned_left in zip(cells, widths, wordy, strict=True)
        )
        return "  ".join(shown).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, rows)])


def _cell(text: str) -> str:
    """A cell as one line; spaces before it, which show what is below what, stay."""
    return text[: len(text) - len(text.lstrip(" "))] + printable_line(text)


def _complain(line: str, status: int) -> int:
    line = as_called(line)
    plain = printable_line(line)
    plain = plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]} ..."
    print(f"error: {plain}" if status == 2 else plain, file=sys.stderr)
    return status
