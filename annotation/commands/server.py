"""The commands that keep a server running for months: backups, and what `serve` does on its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from cyclopts import Parameter

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.accounts import admit_annotators
from annotation.argilla.client import attach
from annotation.options import Address, Hidden, HomeOptions
from annotation.rounds import BlockOpener
from annotation.server.backup import EVERY, KEEP, Keeper
from annotation.server.home import POLL_SECONDS
from annotation.status.text import say_next
from plumbline.cli import Count, Local, Named, Port, reads
from plumbline.errors import StudyError
from plumbline.study import Study, load_study

PORT = 6900
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(\d{1,4})([mhd])")


def duration(text: str) -> timedelta | None:
    """Parse `6h`, `30m`, `1d`; `off` is None. Raises ValueError."""
    if text == "off":
        return None
    match = _DURATION.fullmatch(text)
    if match is None or not int(match[1]):
        raise ValueError(f"{text!r} is not a duration; write for example 6h, 30m, 1d, or off")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


@Parameter(name="*")
@dataclass(frozen=True)
class ServeOptions(HomeOptions):
    """The server to run, as its options name it.

    Args:
        study: Create missing accounts for this study's raters.
        exports: The place for the study's records.
        host: Address to listen on (default: 127.0.0.1, this machine only).
        port: Port to listen on (default: 6900; with --during, any free port).
        address: The address at which others reach the server, through a TLS proxy, with its path if any; other host
            names are refused. Repeatable.
        database_url: Use PostgreSQL instead of SQLite, also on later starts; `sqlite` goes back. Give a URL with a
            password in PLUMBLINE_ARGILLA_DATABASE_URL: all users of this machine can see arguments.
        workers: Server processes; more than one needs PostgreSQL (default: 1).
        backup_every: Interval of backups, for example 6h, 30m, 1d, or off (default: 6h).
        keep: Scheduled backups to keep; of older ones, one a week is kept (default: 28).
    """

    study: Annotated[Named | None, Parameter(metavar="FILE")] = None
    exports: Hidden = None
    host: Annotated[str, Parameter(metavar="HOST")] = "127.0.0.1"
    port: Port | None = None
    address: Annotated[tuple[Address, ...], Parameter(metavar="URL")] = ()
    database_url: Annotated[Named | None, Parameter(metavar="URL")] = None
    workers: Count = 1
    backup_every: Annotated[timedelta | None, reads(duration), Parameter(metavar="TIME")] = EVERY
    keep: Count = KEEP


def _words_of(line: str) -> list[str]:
    """A command line's words. Raises StudyError for one that cannot be run; no shell reads it."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise StudyError(f"--during {line!r}: {error}; close the quotes") from None
    if not words or shutil.which(words[0]) is None:
        raise StudyError(
            f"--during: no command {(words or [''])[0]!r} was found; to use shell syntax, write sh -c '...'"
        )
    return words


def serve(
    *,
    options: ServeOptions = ServeOptions(),
    prepare: bool = False,
    during: Annotated[str, Parameter(metavar="COMMAND")] = "",
) -> int:
    """Run Argilla on this machine, until Ctrl-C.

    Example: plumbline serve --study studies/demo.yaml

    Args:
        options: The server.
        prepare: Only make the server's Python environment, if it is missing.
        during: Run a command while the server runs, then stop it; its exit status is that of `serve`.
    """
    if prepare:
        server.ensure_environment()
        return 0
    words = _words_of(during) if during else []
    study = load_study(options.study, options.exports) if options.study else None
    crowd = study.crowd if study is not None else None
    addresses = [*options.address, *([crowd.address] if crowd is not None and crowd.address else [])]
    home, url, workers = options.home, options.database_url, options.workers
    if words:
        hosts = (options.host, *addresses)
        with server.running(home, options.port, database_url=url, workers=workers, hosts=hosts) as connection:
            if study is not None:
                _make_annotators(study, connection)
            return _while_it_runs(words, BlockOpener(home, connection))

    openers: list[BlockOpener] = []

    def welcome(connection: server.Connection) -> None:
        if study is not None:
            _make_annotators(study, connection)
        openers.append(BlockOpener(home, connection))
        print("Ready", flush=True)
        if study is not None:
            say_next(study, home)

    def open_blocks() -> None:
        for opener in openers:
            opener.look()

    server.serve(
        home, options.host, options.port or PORT, on_ready=welcome, database_url=url,
        keeper=Keeper(home, options.backup_every, options.keep), addresses=addresses, workers=workers,
        meanwhile=open_blocks,
    )  # fmt: skip
    return 0


def _while_it_runs(words: Sequence[str], opener: BlockOpener) -> int:
    """Run a command, and open the blocks that are due meanwhile; its exit status."""
    with subprocess.Popen(words) as process:
        try:
            while process.poll() is None:
                opener.look()
                time.sleep(POLL_SECONDS)
        except BaseException:
            process.kill()
            raise
        return process.returncode


def _make_annotators(study: Study, connection: server.Connection) -> None:
    """Give accounts and access to the study's people, or to as many annotators as each pair needs."""
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


def backup(
    *, options: HomeOptions = HomeOptions(), to: Annotated[Local | None, Parameter(metavar="DIR")] = None
) -> None:
    """Write and check a backup of the local Argilla.

    Example: plumbline backup --to /mnt/elsewhere

    Args:
        options: The server.
        to: Folder for the backup (default: backups/ beside the database).
    """
    _own_only("backed up")
    file, manifest = server.backup(options.home, to)
    print(f"{file}: {manifest}")


def restore(file: Local, /, *, options: HomeOptions = HomeOptions()) -> None:
    """Replace the stopped Argilla's data with a backup.

    Example: plumbline restore argilla-....tar.gz

    Args:
        file: A file that `backup` wrote.
        options: The server.
    """
    _own_only("restored")
    manifest, previous = server.restore(options.home, file)
    print(f"Restored {manifest}\nThe data that it replaced is in {previous}")


def _own_only(done: str) -> None:
    if os.environ.get("ARGILLA_API_URL"):
        raise StudyError(
            f"ARGILLA_API_URL names another Argilla, which must be {done} where it runs; unset it for the local server"
        )
