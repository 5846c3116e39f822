"""The commands that keep a server running for months: backups, and what `serve` does on its own."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.accounts import admit_annotators
from annotation.argilla.client import attach
from annotation.server.backup import EVERY, KEEP, Keeper
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError
from plumbline.resources import ROOT, in_checkout_alone
from plumbline.study import Study

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[cli.Parser]

HOME_VARIABLE = "PLUMBLINE_ARGILLA_HOME"
UNITS = {"m": "minutes", "h": "hours", "d": "days"}
DURATION = re.compile(r"(\d{1,4})([mhd])")
PORT = 6900


def home_of(options: argparse.Namespace) -> server.Home:
    """The home that the options name."""
    if options.data:
        return server.Home(Path(options.data))
    if in_checkout_alone(".argilla"):
        cli.note(f"{ROOT / '.argilla'} holds a server's data; to go on with it: --data {ROOT / '.argilla'}")
    return server.Home()


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """`--data`, the same for every command that may use the local server."""
    default = os.environ.get(HOME_VARIABLE, "")
    parser.add_argument("--data", metavar="DIR", default=default, help="the local server's folder (default: .argilla/)")


def duration(text: str) -> timedelta | None:
    """`6h`, `30m`, `1d`; `off` is None. Raises ArgumentTypeError."""
    if text == "off":
        return None
    match = DURATION.fullmatch(text)
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write for example 6h, 30m, 1d, or off")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


def positive(text: str) -> int:
    """A whole number from 1 on. Raises ArgumentTypeError."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def public_address(text: str) -> str:
    """An address such as https://argilla.example.org. Raises ArgumentTypeError."""
    try:
        parts = urlsplit(text)
        sound = parts.scheme in ("http", "https") and parts.hostname and not (parts.username or parts.password)
        sound = sound and (parts.port is None or parts.port > 0) and parts.path in ("", "/") and not parts.query
    except ValueError:
        sound = False
    if not sound:
        raise argparse.ArgumentTypeError("is not an address; write for example https://argilla.example.org")
    return text


def add_serve_options(parser: argparse.ArgumentParser) -> None:
    """What `serve` takes, for months of running too."""
    parser.add_argument(
        "--study", metavar="FILE", help="make sure of as many annotators as this study wants for a pair"
    )
    parser.add_argument("--exports", help=argparse.SUPPRESS)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine alone)")
    parser.add_argument("--port", type=int, help=f"port to listen on (default: {PORT}; with --during any free one)")
    parser.add_argument("--during", metavar="COMMAND", help="run a command while the server runs, then stop it")
    parser.add_argument(
        "--address", metavar="URL", type=public_address, action="append", default=[],
        help="the address under which others reach the server, through a TLS proxy; other host names are refused",
    )  # fmt: skip
    parser.add_argument(
        "--database-url", metavar="URL", help="PostgreSQL instead of SQLite, also on later starts; `sqlite` goes back. "
        f"With a password: in {server.URL_VARIABLE}, for arguments are visible to all users of this machine",
    )  # fmt: skip
    parser.add_argument("--workers", metavar="N", type=positive, default=1,
                        help="processes that serve; more than one needs PostgreSQL (default: 1)")  # fmt: skip
    parser.add_argument("--backup-every", metavar="TIME", type=duration, default=EVERY,
                        help="for example 6h, 30m, 1d, or off (default: 6h)")  # fmt: skip
    parser.add_argument("--keep", metavar="N", type=positive, default=KEEP,
                        help=f"scheduled backups kept; of older ones, one a week (default: {KEEP})")  # fmt: skip


def keeper_of(options: argparse.Namespace) -> Keeper:
    """What looks after the home while `serve` runs."""
    return Keeper(home_of(options), options.backup_every, options.keep)


def _words_of(line: str) -> list[str]:
    """A command line's words. Raises StudyError for one that cannot be run; no shell reads it."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise StudyError(f"--during {line!r}: {error}; close the quotes") from None
    if not words or shutil.which(words[0]) is None:
        raise StudyError(f"--during: there is no command {(words or [''])[0]!r}; for a shell's own words: sh -c '...'")
    return words


def serve(options: argparse.Namespace) -> int:
    """Run the server until Ctrl-C, or while a command runs; its exit status."""
    words = _words_of(options.during) if options.during else []
    study = cli.study_of(options) if options.study else None
    of_crowd = [study.crowd.address] if study is not None and study.crowd is not None and study.crowd.address else []
    addresses = [*options.address, *of_crowd]
    if words:
        home, url, hosts = home_of(options), options.database_url, (options.host, *addresses)
        with server.running(home, options.port, database_url=url, workers=options.workers, hosts=hosts) as connection:
            if study is not None:
                _make_annotators(study, connection)
            return subprocess.run(words, check=False).returncode

    def welcome(connection: server.Connection) -> None:
        if study is not None:
            _make_annotators(study, connection)
        print("Ready", flush=True)

    server.serve(
        home_of(options), options.host, PORT if options.port is None else options.port, on_ready=welcome,
        database_url=options.database_url, keeper=keeper_of(options), addresses=addresses,
        workers=options.workers,
    )  # fmt: skip
    return 0


def _make_annotators(study: Study, connection: server.Connection) -> None:
    """See that the study's people, or as many annotators as it wants for a pair, have accounts and may see it."""
    numbered = {f"rater-{number}": f"Rater {number}" for number in range(1, study.raters.per_pair + 1)}
    for name in study.raters.people or ():
        accounts.check_name(name)
    for name, first_name in {name: name for name in study.raters.people or ()}.items() or numbered.items():
        has_account = connection.home is not None and server.credentials(connection.home).find(name)
        user = server.ensure_user(connection, name, first_name=first_name)
        if not has_account:
            print(f"Annotator {user.username}, password {user.password}   (shown this once)")
    if connection.home is not None:  # into the workspaces that there are; publishing lets them into the others
        with attach(connection) as argilla:
            admit_annotators(study, argilla, accounts.languages(connection, connection.home))


def add_commands(commands: Subparsers) -> None:
    """`backup` and `restore`."""
    text = "write a checked backup of the local server, running or not"
    example = as_called("example: python -m annotation backup --to /mnt/elsewhere")
    backing = commands.add_parser("backup", help=text, description=text, epilog=example)
    backing.set_defaults(run=_backup)
    backing.add_argument(
        "--to", metavar="DIR", type=cli.local, help="folder for the backup (default: backups/ beside the database)"
    )
    add_data_option(backing)
    text = "put a backup in the place of what the stopped local server has, which is kept beside"
    example = as_called("example: python -m annotation restore argilla-....tar.gz")
    restoring = commands.add_parser("restore", help=text, description=text, epilog=example)
    restoring.set_defaults(run=_restore)
    restoring.add_argument("file", metavar="FILE", type=cli.local, help="a file that `backup` wrote")
    add_data_option(restoring)


def _backup(options: argparse.Namespace) -> int:
    _own_only("backed up")
    file, manifest = server.backup(home_of(options), options.to)
    print(f"{file}: {manifest}")
    return 0


def _restore(options: argparse.Namespace) -> int:
    _own_only("restored")
    manifest, previous = server.restore(home_of(options), options.file)
    print(f"Restored {manifest}\nWhat was there is kept in {previous}")
    return 0


def _own_only(done: str) -> None:
    if os.environ.get("ARGILLA_API_URL"):
        raise StudyError(
            f"ARGILLA_API_URL names an Argilla elsewhere, which is {done} where it runs; unset it for the local server"
        )
