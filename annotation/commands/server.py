"""The commands that keep a server running for months: backups, and what `serve` does on its own."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.accounts import admit_annotators
from annotation.argilla.client import attach
from annotation.options import PORT, home_of
from annotation.rounds import BlockOpener
from annotation.server.backup import Keeper
from annotation.server.home import POLL_SECONDS
from plumbline import cli
from plumbline.errors import StudyError
from plumbline.study import Study


def keeper_of(options: argparse.Namespace) -> Keeper:
    """Return the keeper of the home while `serve` runs."""
    return Keeper(home_of(options), options.backup_every, options.keep)


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


def serve(options: argparse.Namespace) -> int:
    """Run the server until Ctrl-C, or while a command runs; its exit status."""
    if options.prepare:
        server.ensure_environment()
        return 0
    words = _words_of(options.during) if options.during else []
    study = cli.study_of(options) if options.study else None
    crowd = study.crowd if study is not None else None
    of_crowd = [crowd.address] if crowd is not None and crowd.address else []
    addresses = [*options.address, *of_crowd]
    if words:
        home, url, hosts = home_of(options), options.database_url, (options.host, *addresses)
        with server.running(home, options.port, database_url=url, workers=options.workers, hosts=hosts) as connection:
            if study is not None:
                _make_annotators(study, connection)
            return _while_it_runs(words, BlockOpener(home, connection))

    openers: list[BlockOpener] = []

    def welcome(connection: server.Connection) -> None:
        if study is not None:
            _make_annotators(study, connection)
        openers.append(BlockOpener(home_of(options), connection))
        print("Ready", flush=True)

    def open_blocks() -> None:
        for opener in openers:
            opener.look()

    server.serve(
        home_of(options), options.host, PORT if options.port is None else options.port, on_ready=welcome,
        database_url=options.database_url, keeper=keeper_of(options), addresses=addresses,
        workers=options.workers, meanwhile=open_blocks,
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


def backup(options: argparse.Namespace) -> int:
    """Write a checked backup of the local server."""
    _own_only("backed up")
    file, manifest = server.backup(home_of(options), options.to)
    print(f"{file}: {manifest}")
    return 0


def restore(options: argparse.Namespace) -> int:
    """Replace the stopped local server's data by a backup."""
    _own_only("restored")
    manifest, previous = server.restore(home_of(options), options.file)
    print(f"Restored {manifest}\nThe data that it replaced is in {previous}")
    return 0


def _own_only(done: str) -> None:
    if os.environ.get("ARGILLA_API_URL"):
        raise StudyError(
            f"ARGILLA_API_URL names another Argilla, which must be {done} where it runs; unset it for the local server"
        )
