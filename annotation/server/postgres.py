"""PostgreSQL in place of SQLite's file: its address, and the calls of PostgreSQL's own programs.

The address may hold a password, so it is kept in the home with mode 0600 and reaches the programs through their
environment, which other users cannot read, and never through their arguments, which everyone can.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs, unquote, urlsplit

from plumbline.errors import ServiceError, StudyError

from .home import Home, write_private

URL_VARIABLE = "PLUMBLINE_ARGILLA_DATABASE_URL"
SQLITE = "sqlite"  #: as an address: back to the home's own file
SCHEMES = ("postgresql+asyncpg", "postgresql", "postgres")
EXAMPLE = "postgresql+asyncpg://user@host:5432/database"
PSQL = ("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--field-separator=\t", "--no-password",
        "--set=ON_ERROR_STOP=1")  # fmt: skip
#: libpq's variables, which none of the user's own may bend.
OWN_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGSERVICE", "PGOPTIONS")


def choose(home: Home, argument: str | None = None) -> str | None:
    """The PostgreSQL address that a server on `home` uses, or None for SQLite in the home.

    `given` comes from the command line and must not hold a password; else it is the variable's, else what the home
    has kept from before. A new one is kept. Raises StudyError for one that is none.
    """
    address = (argument or os.environ.get(URL_VARIABLE) or "").strip()
    if not address:
        return kept(home)
    if address == SQLITE:
        home.database_url_file.unlink(missing_ok=True)
        return None
    address = checked(address, "--database-url" if argument else URL_VARIABLE)
    if argument and urlsplit(address).password:
        raise StudyError(
            "--database-url: has a password, which every user of this machine can read in the process list; "
            f"put the address into {URL_VARIABLE} instead (it is then kept in {home.database_url_file})"
        )
    if address != kept(home):
        write_private(home.database_url_file, address + "\n")
    return address


def kept(home: Home) -> str | None:
    """The address in the home's file, or None. Raises StudyError when it is none, ServiceError when unreadable."""
    try:
        address = home.database_url_file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ServiceError(f"{home.database_url_file}: cannot be read ({error.strerror})") from error
    return checked(address, str(home.database_url_file))


def has_database(home: Home) -> bool:
    """Whether a server has run on this home. Raises what `kept` raises."""
    return home.database.exists() or kept(home) is not None


def checked(address: str, where: str) -> str:
    """`address` with the server's driver in it. Raises StudyError, which does not repeat it: it may hold a password."""
    try:
        parts = urlsplit(address)
        right = parts.scheme in SCHEMES and parts.path.strip("/") and (parts.port is None or parts.port > 0)
    except ValueError:
        right = False
    if not right:
        raise StudyError(f"{where}: not an address of a PostgreSQL database; it looks like {EXAMPLE}")
    return f"{SCHEMES[0]}://{address.partition('://')[2]}"


def named(address: str) -> str:
    """What to call a database on a console: no user, no password."""
    values = variables(address)
    return f"PostgreSQL database {values['PGDATABASE']} on {values.get('PGHOST', 'this machine')}"


def variables(address: str) -> dict[str, str]:
    """The environment variables of libpq for an address."""
    parts = urlsplit(address)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    settings = {
        "PGHOST": parts.hostname or query.get("host"),
        "PGPORT": str(parts.port) if parts.port else query.get("port"),
        "PGUSER": unquote(parts.username) if parts.username else None,
        "PGPASSWORD": unquote(parts.password) if parts.password else None,
        "PGDATABASE": unquote(parts.path.strip("/")),
        "PGSSLMODE": query.get("ssl") or query.get("sslmode"),
    }
    return {name: value for name, value in settings.items() if value}


def environment(address: str) -> dict[str, str]:
    """The environment for PostgreSQL's programs; messages in English, for they are shown with ours."""
    passed_on: Mapping[str, str] = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
    return {**passed_on, **variables(address), "LC_ALL": "C.UTF-8", "PGCONNECT_TIMEOUT": "10"}


def program(address: str, command: Sequence[str], input_text: str | None = None) -> str:
    """Run one of PostgreSQL's programs to its end; what it wrote. Raises ServiceError with its own last word."""
    try:
        done = subprocess.run(
            command, env=environment(address), capture_output=True, text=True, input=input_text or "", check=False
        )
    except FileNotFoundError as error:
        raise missing(command[0]) from error
    if done.returncode != 0:
        raise failed(address, command[0], done.stderr)
    return done.stdout


def missing(name: str) -> ServiceError:
    """What to say when PostgreSQL's programs are not installed."""
    return ServiceError(f"{name} is not installed; on Debian and Ubuntu: sudo apt install postgresql-client")


def failed(address: str, name: str, stderr: str) -> ServiceError:
    """What to say when one of them failed."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return ServiceError(f"{named(address)}: {name} failed ({lines[-1] if lines else 'it said nothing'})")


def query(address: str, sql: str) -> list[list[str]]:
    """The rows of a statement, as text. `sql` holds nothing that comes from outside. Raises ServiceError."""
    return [line.split("\t") for line in program(address, PSQL, sql).splitlines() if line]
