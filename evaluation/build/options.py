"""What the commands' options share: a command with its example, which scores are read, the seed, and where files go."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError
from plumbline.study.places import place

Commands: TypeAlias = "argparse._SubParsersAction[cli.Parser]"


def add_command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], words: str, description: str, example: str
) -> argparse.ArgumentParser:
    """A command that `run` carries out; `words` stand in the list of all commands."""
    parser = commands.add_parser(
        name,
        help=words,
        description=description,
        epilog=as_called(example),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_source_options(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Where scores come from, and which of them are taken; `more` is what else may be named."""
    add = parser.add_argument
    what = "scores: a benchmark (from mteb's result cache), a folder of mteb's result files, or a table"
    add("--from", dest="source", type=cli.no_address, required=True, metavar="WHAT", help=what + more)
    add("--benchmark", default="", metavar="NAME", help="with a folder or a table: take the tasks of this benchmark")
    add(
        "--languages", type=_list, default=(), metavar="CODES", help="tasks and subsets in these alone, such as dan,swe"
    )
    add(
        "--tasks",
        type=cli.no_address,
        metavar="FILE",
        help="a table: task, and type, languages, texts, characters or seconds",
    )


def add_run_options(parser: argparse.ArgumentParser, drawn: str, out: str) -> None:
    """The seed of what is `drawn`, and the folder for the files (`out`: what it is without the option)."""
    parser.add_argument("--seed", type=int, default=1337, metavar="N", help=f"of {drawn} (default: 1337)")
    parser.add_argument("--out", metavar="FOLDER", help=f"where the files go (default: {out})")


def out_of(options: argparse.Namespace, default: Path | str) -> Path:
    """The folder for the files. Raises StudyError where it is a file, and for a seed below 0."""
    if options.seed < 0:
        raise StudyError(f"--seed {options.seed}: give a whole number from 0 on")
    out = place(options.out, "--out") if options.out else Path(default) if isinstance(default, str) else default
    if out.exists() and not out.is_dir():
        raise StudyError(f"--out {out}: a file is there; name a folder")
    return out


def _list(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())
