"""Shared parts of all commands: exit statuses, options, and tables for a terminal.

Annotations are evaluated here: cyclopts looks for the names in them in the module of the class that inherits them.
"""

import codecs
import contextlib
import errno
import functools
import gc
import io
import itertools
import math
import os
import shutil
import sqlite3
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, get_args

from cyclopts import CoercionError, Parameter, Token

from plumbline import interrupt
from plumbline.errors import PlumblineError, is_full
from plumbline.words import printable, printable_line

if TYPE_CHECKING:
    from plumbline.study import Study

_LONGEST = 1400  # most characters of an error message: names in it may be long
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

MOST = 100_000  # largest count that an option accepts


def run(main: Callable[[], int | None]) -> None:
    """Run a command: an expected error is one line and status 2, an interrupt is 130, a bug is a traceback.

    The status is 141, as in shells, if the reader of the output closed it (`| head`).
    """
    for stream in (sys.stdout, sys.stderr):
        # a terminal with another encoding shows \\xe9 for a character that it lacks
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        _guard(stream, bars=stream is sys.stderr)
    gc.set_threshold(100_000, 20, 20)  # garbage collection takes a fifth of the time of importing torch and mteb
    status = 0
    try:
        interrupt.begin()
        status = main() or 0
        sys.stdout.flush()
    except PlumblineError as error:
        status = _complain(str(error), 2)
    except BrokenPipeError:  # the reader closed the pipe (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 141
    except UnicodeEncodeError as error:
        if codecs.lookup(error.encoding) == codecs.lookup("utf-8") or sys.getfilesystemencoding() == "utf-8":
            raise
        name = error.object[error.start : error.end]
        status = _complain(f"this locale does not allow {name!a} in file names; set LC_ALL=C.UTF-8, then run again", 2)
    except KeyboardInterrupt:
        status = _complain(interrupt.LINE, interrupt.STATUS)
    except sqlite3.Error as error:
        if not is_full(error):
            raise
        status = _complain(f"no disk space for a temporary database (in {tempfile.gettempdir()}); free some space", 2)
    except OSError as error:
        if error.errno not in _FOLDER_TROUBLE:
            raise
        folder = f" ({error.filename})" if error.filename else ""
        status = _complain(f"{error.strerror}{folder}; free some space or choose another folder, then run again", 2)
    finally:
        interrupt.end(status)
    sys.exit(status)


def _guard(stream: TextIO, *, bars: bool) -> None:
    """Keep everything printed on a stream from steering the terminal; the object stays, for code that holds it."""
    if not isinstance(write := stream.write, functools.partial):
        stream.write = functools.partial(_write_guarded, write, bars)  # type: ignore[method-assign]


def _write_guarded(write: Callable[[str], int], bars: bool, text: str) -> int:
    """Write a text without control characters; with `bars`, carriage returns around a line stay."""
    if bars and text.startswith("\r"):
        line = text.strip("\r")
        start, _, end = text.partition(line) if line else (text, "", "")
        write(f"{start}{printable(line)}{end}")
    else:
        write(printable(text))
    return len(text)


def reads(read: Callable[[str], object]) -> Parameter:
    """Return an option whose word `read` makes a value of; `read` raises ValueError with the reason for a wrong one."""

    def convert(_: object, tokens: Sequence[Token]) -> object:
        try:
            return read(tokens[0].value)
        except ValueError as error:
            raise CoercionError(str(error), token=tokens[0]) from None

    return Parameter(converter=convert)


def _choice(literal: Any, tokens: Sequence[Token]) -> str:
    value, choices = tokens[0].value, get_args(literal)
    if value in choices:
        return value
    raise CoercionError(f"{value!r} is none of {', '.join(choices)}", token=tokens[0])


def named(value: str) -> str:
    """Return the name of a file, folder, address or the like; an empty word would name the current folder."""
    if not value.strip():
        raise ValueError("is empty; name one, or leave the option out")
    if any("\ud800" <= sign <= "\udfff" for sign in value):  # bytes that the locale's encoding lacks
        raise ValueError(f"{value!r} is not UTF-8; rename it, or set LC_ALL=C.UTF-8")
    return value


def no_address(value: str) -> str:
    """Return a name of a local file or of something else; an address would become a folder of that name."""
    if "://" in value:
        raise ValueError(f"{value!r} is an address; name a file or folder of this machine")
    return named(value)


def local(value: str) -> Path:
    """Return the path of a local file or folder."""
    return Path(no_address(value))


def finite(value: str) -> float:
    """Return a finite number."""
    with contextlib.suppress(ValueError):
        if math.isfinite(number := float(value)):
            return number
    raise ValueError(f"{value!r} is not a number")


def positive(value: str) -> float:
    """Return a number above 0."""
    with contextlib.suppress(ValueError):
        if 0 < (number := float(value)) < math.inf:
            return number
    raise ValueError(f"{value!r} is not a number above 0")


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a reader of whole numbers within limits."""

    def read(value: str) -> int:
        if value.isascii() and value.isdecimal() and len(value) < 20 and least <= int(value) <= most:
            return int(value)
        raise ValueError(f"{value!r} is not a whole number from {least} to {most}")

    return read


def names(value: str) -> tuple[str, ...]:
    """Return comma-separated names, at least one."""
    if parts := tuple(part.strip() for part in value.split(",") if part.strip()):
        return parts
    raise ValueError(f"{value!r} contains no name")


# Types of options. `Annotated[Count, Parameter(metavar="K")]` shows another letter in the help.
Named = Annotated[str, reads(named)]
Local = Annotated[Path, reads(local), Parameter(metavar="FILE")]
Finite = Annotated[float, reads(finite), Parameter(metavar="N")]
Positive = Annotated[float, reads(positive), Parameter(metavar="N")]
Count = Annotated[int, reads(whole(1, MOST)), Parameter(metavar="N")]
Seed = Annotated[int, reads(whole(0, 10**18 - 1)), Parameter(metavar="N")]
Port = Annotated[int, reads(whole(1, 65535)), Parameter(metavar="N")]
Names = Annotated[tuple[str, ...], reads(names), Parameter(metavar="NAMES")]
Choice = Parameter(converter=_choice)  # for `Literal[...] | None`, where cyclopts reads `none` and `null` as None
Several = Parameter(consume_multiple=1, allow_repeating=True)  # one or more values after an option


@Parameter(name="*")
@dataclass(frozen=True)
class StudyOptions:
    """The study that a command works on, as its options name it.

    Args:
        study: The study file, for example studies/demo.yaml.
        exports: The place for records: a folder or an address such as s3://bucket/x (default: exports/).
    """

    study: Annotated[Named, Parameter(metavar="FILE")]
    exports: Annotated[Named | None, Parameter(metavar="DIR")] = None

    def load(self) -> "Study":
        """Return the study. Raises StudyError as `load_study`."""
        from plumbline.study import load_study  # noqa: PLC0415 (the list of commands needs no study)

        return load_study(self.study, self.exports)


def explained(rows: Sequence[tuple[str, str]]) -> str:
    """Return names and their explanations as indented lines, the explanations in a second column."""
    width = min(24, max(len(name) for name, _ in rows) + 4)
    lines = []
    for name, text in rows:
        head, explanation = f"  {name}".ljust(width), textwrap.wrap(text, 100 - width) or [""]
        if len(name) + 4 > width:
            lines.append(head)
            head = " " * width
        lines += [f"{head}{explanation[0]}".rstrip(), *(" " * width + line for line in explanation[1:])]
    return "\n".join(lines)


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "nothing", mark: str = "") -> str:
    """Return a table for a terminal: columns two spaces apart, words on the left, numbers on the right.

    A column holds words if it is the first or any of its cells holds a letter. Without rows, `empty` is returned. A
    table that is wider than the terminal, with a `mark` that is put before its lines later, breaks the lines of its
    long columns; if it is still too wide, its columns are shown as rows; if these are too wide too, its first column
    is broken between all words, and its last short columns are left out, and a line below names them.
    """
    if not rows:
        return empty
    lines = [tuple(map(_cell, line)) for line in (header, *rows)]
    across, most = list(zip(*lines, strict=True)), max(_WORDS, screen_width() - len(mark))
    if _least(across, most) > most >= _least(lines, most):
        across, lines = lines, across
    shown, widths = _fitting(across, most)
    numeric = [column > 0 and not any(map(str.isalpha, "".join(across[column][1:]))) for column in shown]
    head, *body = [[line[column] for column in shown] for line in lines]
    table = [
        text for cells in (head, ["-" * width for width in widths], *body) for text in _line(cells, widths, numeric)
    ]
    if left_out := [cells[0] for column, cells in enumerate(across) if column not in shown]:
        needed = sum(max(map(len, cells)) + 2 for cells in across) - 2 + len(mark)
        note = f"left out: {', '.join(left_out)} (COLUMNS={needed} before the command shows all)"
        table += textwrap.wrap(note, most, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(table)


def _fitting(across: Sequence[Sequence[str]], most: int) -> tuple[list[int], list[int]]:
    """Return which columns fit, and their widths."""
    widths, least = [max(map(len, cells)) for cells in across], [_least([cells], most) for cells in across]
    shown = list(range(len(across)))
    if sum(least) + 2 * len(least) - 2 > most:  # the first column stays: it is broken before others are left out
        least[0] = min(least[0], max([_NAMES, *(len(word) for cell in across[0] for word in cell.split())]))
    while (room := most - sum(least[column] + 2 for column in shown) + 2) < 0 and shown[1:]:
        shown.remove(([column for column in shown[1:] if least[column] == widths[column]] or shown)[-1])
    for column in sorted(shown, key=widths.__getitem__):
        more = max(0, min(room, widths[column] - least[column]))
        least[column], room = least[column] + more, room - more
    return shown, [least[column] for column in shown]


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> Iterator[str]:
    """Yield a row's lines; long cells are broken."""
    broken = [
        textwrap.wrap(cell, width, break_on_hyphens=" " not in cell) if len(cell) > width else [cell]
        for cell, width in zip(cells, widths, strict=True)
    ]
    for parts in itertools.zip_longest(*broken, fillvalue=""):
        columns_of_line = zip(parts, widths, numeric, strict=True)
        yield "  ".join(
            part.rjust(width) if right else part.ljust(width) for part, width, right in columns_of_line
        ).rstrip()


def screen_width() -> int:
    """Return how many letters a line of the terminal shows; 80 where none is known."""
    return shutil.get_terminal_size((80, 24)).columns


_WORDS, _NAMES = 28, 16  # letters that a column of words, or of long names, keeps when its lines are broken


def _least(across: Sequence[Sequence[str]], most: int) -> int:
    """Return the width of columns, two spaces apart, with the lines of the long ones broken."""
    return sum(min(max(map(len, cells)), _narrowest(cells, most)) + 2 for cells in across) - 2


def _narrowest(cells: Sequence[str], most: int) -> int:
    """Return the width that a long column needs: words of prose stay whole, and long names may be broken."""
    word = max(len(word) for cell in cells for word in cell.split() or [""])
    if word == max(map(len, cells)):
        return max([_NAMES, *(len(cell) for cell in cells if len(cell) <= _WORDS)])
    return max(_WORDS, min(word, most // 2))


def _cell(text: str) -> str:
    """Return a cell as one line; leading spaces, which show nesting, stay."""
    return text[: len(text) - len(text.lstrip(" "))] + printable_line(text)


def _complain(message: str, status: int) -> int:
    for fault in message.split("\n"):
        plain = printable_line(fault)
        plain = plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]} ..."
        print(f"error: {plain}" if status == 2 else plain, file=sys.stderr)
    return status
