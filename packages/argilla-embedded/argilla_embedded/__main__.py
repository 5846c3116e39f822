"""`argilla-embedded serve --home FOLDER`: run Argilla until Ctrl-C, on SQLite or the home's PostgreSQL database."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from .imports import bring_async_timeout

bring_async_timeout()

from . import home, launch  # noqa: E402
from .errors import StartError  # noqa: E402
from .setup import Switches  # noqa: E402

INTERRUPTED = 130
#: The help texts of Switches.
SWITCHES = {
    "hand_out": "show each record to at most as many annotators at a time as it still needs answers; each has it for"
    " 20 minutes",
    "private": "let annotators read only their own answers and progress",
    "hardened": "limit the size and duration of requests, slow down password guesses, set security headers, hide API"
    " descriptions",
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(
        prog="argilla-embedded",
        description="The real Argilla on SQLite or PostgreSQL, without Docker, Elasticsearch or Redis.",
        epilog="example: argilla-embedded serve --home ./argilla",
    )
    serve = command.add_subparsers(dest="command", required=True).add_parser(
        "serve", help="run the server until Ctrl-C", epilog="example: argilla-embedded serve --home ./argilla"
    )
    serve.add_argument("--home", type=Path, required=True, help="the server's folder; created if it is missing")
    serve.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    serve.add_argument("--port", type=int, default=6900, help="the port; 0: a free one")
    serve.add_argument(
        "--address", action="append", default=[], metavar="URL",
        help="an address under which other machines reach the server, with its path if a proxy has it under one; the"
        " server then refuses requests to other host names",
    )  # fmt: skip
    serve.add_argument(
        "--database-url", metavar="URL",
        help="a PostgreSQL database to use instead of SQLite, without a password; with one, put the address into"
        f" {home.VARIABLE}; the home remembers it",
    )  # fmt: skip
    serve.add_argument(
        "--workers", type=int, default=1, help="number of server processes; more than one needs PostgreSQL"
    )
    serve.add_argument("--migrate", action="store_true", help="migrate the database from an older Argilla")
    for name, help_ in SWITCHES.items():
        serve.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=help_)
    serve.add_argument(
        "--plugin", action="append", default=[], metavar="MODULE:FUNCTION",
        help="a function that adds pages and routes, called with a Setup",
    )  # fmt: skip
    serve.add_argument("--supervised", action="store_true", help="print nothing, and end when standard input closes")
    return command


def main() -> int:
    """Serve; return the exit status."""
    asked = parser().parse_args()
    folder = asked.home.absolute()
    switches = Switches(**{name: getattr(asked, name) for name in SWITCHES})
    order = launch.Order(
        asked.host, asked.port, asked.address, asked.workers, asked.migrate, switches, asked.plugin
    )  # fmt: skip
    try:
        first = home.prepare(folder, asked.database_url)
        if asked.workers > 1 and not (folder / home.DATABASE).exists():
            raise StartError(
                f"--workers {asked.workers}: SQLite has one writer; leave --workers out, or use PostgreSQL"
            )
        if asked.supervised:
            return launch.main(folder, order)
        never_ending_input()
        signal.signal(signal.SIGTERM, interrupt)
        return launch.main(folder, order, lambda url: announce(url, folder, first))
    except StartError as error:
        return launch.failed(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED


def interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """Let SIGTERM end the server as Ctrl-C does.

    uvicorn repeats a signal when it has ended; Python would die of it before the database is closed.
    """
    raise KeyboardInterrupt


def announce(url: str, folder: Path, first: bool) -> None:
    """Print the server's address and how to sign in; the password only at a home's first start."""
    print(f"Argilla runs at {url}   (Ctrl-C stops it)")
    if first:
        owner = home.owner(folder)
        print(f"Sign in as {owner['username']} with the password {owner['password']}   (shown this once)")
    print(f"The owner's password and API key are in {folder / home.CREDENTIALS}", flush=True)


def never_ending_input() -> None:
    """Replace standard input, whose end would end the server, by a pipe that nobody closes."""
    reading, _ = os.pipe()
    os.dup2(reading, 0)
    os.close(reading)


if __name__ == "__main__":
    sys.exit(main())
