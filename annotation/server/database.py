"""Copying and restoring a server's database while others write: SQLite's file, or PostgreSQL by its own programs.

The address may hold a password, so it is kept in the home with mode 0600 and passed to the programs in their
environment, which other users cannot read, and never in their arguments, which everyone can read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from plumbline.errors import DataError, ServiceError, StudyError, is_full

from .home import PRIVATE_FILE, Home, write_private

URL_VARIABLE = "PLUMBLINE_ARGILLA_DATABASE_URL"
SQLITE = "sqlite"  #: an address that means the home's own file again
SCHEMES = ("postgresql+asyncpg", "postgresql", "postgres")
EXAMPLE = "postgresql+asyncpg://user@host:5432/database"
PSQL = ("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--field-separator=\t", "--no-password",
        "--set=ON_ERROR_STOP=1")  # fmt: skip
#: libpq's variables, for which the user's own values are ignored.
OWN_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGSERVICE", "PGOPTIONS")


def choose(home: Home, argument: str | None = None) -> str | None:
    """Return the PostgreSQL address that a server on `home` uses, or None for SQLite in the home.

    `argument` comes from the command line and must not hold a password; without it, the variable's address counts, or
    the one that the home has kept. A new address is kept. Raises StudyError for an invalid one.
    """
    address = (argument or os.environ.get(URL_VARIABLE) or "").strip()
    if not address:
        return address_of(home)
    if address == SQLITE:
        home.database_url_file.unlink(missing_ok=True)
        return None
    address = checked(address, "--database-url" if argument else URL_VARIABLE)
    if argument and urlsplit(address).password:
        raise StudyError(
            "--database-url: has a password, which every user of this machine can read in the process list; "
            f"put the address into {URL_VARIABLE} instead (it is then kept in {home.database_url_file})"
        )
    if address != address_of(home):
        write_private(home.database_url_file, address + "\n")
    return address


def address_of(home: Home) -> str | None:
    """Return the address in the home's file, or None. Raises StudyError if invalid, ServiceError if unreadable."""
    try:
        address = home.database_url_file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ServiceError(f"{home.database_url_file}: cannot be read ({error.strerror})") from error
    return checked(address, str(home.database_url_file))


def has_database(home: Home) -> bool:
    """Return whether a server has run on this home. Raises what `address_of` raises."""
    return home.database.exists() or address_of(home) is not None


def checked(address: str, source: str) -> str:
    """Return `address` with the server's driver. Raises StudyError without repeating it: it may hold a password."""
    try:
        parts = urlsplit(address)
        right = parts.scheme in SCHEMES and parts.path.strip("/") and (parts.port is None or parts.port > 0)
    except ValueError:
        right = False
    if not right:
        raise StudyError(f"{source}: not an address of a PostgreSQL database; write one such as {EXAMPLE}")
    return f"{SCHEMES[0]}://{address.partition('://')[2]}"


def named(address: str) -> str:
    """Return a database's name for a console, without user and password."""
    values = variables(address)
    return f"PostgreSQL database {values['PGDATABASE']} on {values.get('PGHOST', 'this machine')}"


def variables(address: str) -> dict[str, str]:
    """Return libpq's environment variables for an address."""
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
    """Return the environment for PostgreSQL's programs, with messages in English."""
    passed_on: Mapping[str, str] = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
    return {**passed_on, **variables(address), "LC_ALL": "C.UTF-8", "PGCONNECT_TIMEOUT": "10"}


def program(address: str, command: Sequence[str], input_text: str | None = None) -> str:
    """Run one of PostgreSQL's programs; return its output. Raises ServiceError with the program's last line."""
    try:
        done = subprocess.run(
            command, env=environment(address), capture_output=True, text=True, input=input_text or "", check=False
        )
    except FileNotFoundError as error:
        raise missing_program(command[0]) from error
    if done.returncode != 0:
        raise failed(address, command[0], done.stderr)
    return done.stdout


def missing_program(name: str) -> ServiceError:
    """Return the error for a missing program of PostgreSQL's."""
    return ServiceError(
        f"{name} is not installed; on Debian and Ubuntu: sudo apt install postgresql-client; "
        "on a Mac: brew install libpq"
    )


def failed(address: str, name: str, stderr: str) -> ServiceError:
    """Return the error for a program of PostgreSQL's that failed."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return ServiceError(f"{named(address)}: {name} failed ({lines[-1] if lines else 'no message'})")


def query(address: str, sql: str) -> list[list[str]]:
    """Return the rows of a statement as text. `sql` holds no text from outside. Raises ServiceError."""
    return [line.split("\t") for line in program(address, PSQL, sql).splitlines() if line]


#: The tables whose rows are counted before and after copying.
TABLES = ("users", "workspaces", "datasets", "records", "responses")
BUSY_SECONDS = 30.0
COUNTS = "".join(f"SELECT '{table}', count(*) FROM {table};\n" for table in TABLES)  # noqa: S608  # our own names
COPY = re.compile(rb"COPY public\.(\w+) \(.*\) FROM stdin;$")
#: The running server's advisory lock, as in `argilla_embedded.holding`.
POSTGRES_LOCK = 8100978942395836782


def copy_sqlite(source: Path, target: Path, tables: Sequence[str] = TABLES) -> dict[str, int]:
    """Copy a database that may be in use, in one transaction, and check the copy; return its rows in these tables."""
    target.touch(mode=PRIVATE_FILE)
    try:
        with (
            contextlib.closing(reading(source)) as old,
            contextlib.closing(sqlite3.connect(target)) as new,
        ):  # fmt: skip
            old.backup(new)  # all pages in one step: in WAL mode writers do not wait
            new.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
    except sqlite3.Error as error:
        if is_full(error):  # the source is only read
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target)) from error
        raise DataError(f"{source}: cannot be copied ({error}); restore a backup or move it away") from error
    return check_sqlite(target, tables=tables)


def reading(file: Path) -> sqlite3.Connection:
    """Open a database read-only; a missing file is not created."""
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)


def check_sqlite(file: Path, expected: dict[str, int] | None = None, tables: Sequence[str] = TABLES) -> dict[str, int]:
    """Return a database's rows by table. Raises DataError if it is damaged, or if the rows are not as expected."""
    try:
        with contextlib.closing(reading(file)) as database:
            (verdict,) = database.execute("PRAGMA integrity_check(1)").fetchone()
            counts = {table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}  # noqa: S608  # our own names
    except sqlite3.Error as error:
        raise DataError(f"{file.name}: not an intact Argilla database ({error})") from error
    if verdict != "ok":
        raise DataError(f"{file.name}: not an intact database ({verdict})")
    compare(counts, expected)
    return counts


def compare(counts: dict[str, int], expected: dict[str, int] | None) -> None:
    """Raise DataError if a table does not have the expected number of rows."""
    for table, number in (expected or counts).items():
        if counts.get(table) != number:
            raise DataError(f"rows in the table {table}: {counts.get(table)} instead of {number}")


def dump(address: str, target: Path) -> dict[str, int]:
    """Dump a PostgreSQL database that may be in use; return its rows by table.

    The rows are counted in the dump and compared with those of the same snapshot of the database.
    """
    target.touch(mode=PRIVATE_FILE)
    with snapshot(address) as (name, counts):
        command = ["pg_dump", "--format=custom", "--schema=public", "--no-owner", "--no-privileges", "--no-password",
                   f"--snapshot={name}", f"--file={target}"]  # fmt: skip
        program(address, command)
    compare(rows_of(target), counts)
    return counts


@contextlib.contextmanager
def snapshot(address: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Hold a snapshot of the database inside the block; provide its name and its rows by table."""
    statements = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;\n"
                  f"SELECT 'snapshot', pg_export_snapshot();\n{COUNTS}\nSELECT 'end', 0;\n")  # fmt: skip
    try:
        session = subprocess.Popen(PSQL, env=environment(address), text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    except FileNotFoundError as error:
        raise missing_program(PSQL[0]) from error
    with session:
        if session.stdin is None or session.stdout is None or session.stderr is None:
            raise ServiceError("psql was started without input or output; run the command again")
        with contextlib.suppress(BrokenPipeError):  # then its error output has the reason
            session.stdin.write(statements)
            session.stdin.flush()
        values: dict[str, str] = {}
        while "end" not in values:
            line = session.stdout.readline()
            if not line:
                raise failed(address, "psql", session.stderr.read())
            name, _, value = line.rstrip("\n").partition("\t")
            values[name] = value
        try:
            yield values["snapshot"], {table: int(values[table]) for table in TABLES}
        finally:
            session.stdin.close()  # ends psql, and with it the transaction


def rows_of(file: Path) -> dict[str, int]:
    """Count the rows of each table in a dump by reading all of it. Raises DataError if it cannot be read."""
    counts: Counter[str] = Counter(dict.fromkeys(TABLES, 0))
    table: str | None = None
    with subprocess.Popen(["pg_restore", "--data-only", "--file=-", str(file)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:  # fmt: skip
        for line in reading.stdout or ():
            if table is None:
                start = COPY.match(line)
                table = start[1].decode() if start else None
            elif line == b"\\.\n":
                table = None
            else:
                counts[table] += 1
        message = (reading.stderr.read() if reading.stderr else b"").decode(errors="replace")
    if reading.returncode != 0:
        raise DataError(f"{file.name}: PostgreSQL cannot read it ({message.strip()[-200:]})")
    return {table: counts[table] for table in TABLES}


def load(address: str, file: Path, expected: dict[str, int]) -> str:
    """Replace a database's content by a dump, all or nothing; return the schema that keeps the old content.

    Raises ServiceError if a server uses the database or PostgreSQL refuses, DataError if rows are missing.
    """
    compare(rows_of(file), expected)
    if query(address, f"SELECT pg_try_advisory_lock({POSTGRES_LOCK});") != [["t"]]:
        raise ServiceError(f"{named(address)}: a server is running on it; stop it, then restore")
    replaced = f"replaced_{datetime.now(UTC):%Y%m%d_%H%M%S_%f}"
    query(address, f"BEGIN; ALTER SCHEMA public RENAME TO {replaced}; CREATE SCHEMA public; COMMIT;")
    try:
        target = f"--dbname={variables(address)['PGDATABASE']}"
        command = ["pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges",
                   "--no-password", "--schema=public", target, str(file)]  # fmt: skip
        program(address, command)
        rows = {table: int(number) for table, number in query(address, COUNTS)}
        compare(rows, expected)
    except BaseException:
        query(address, f"BEGIN; DROP SCHEMA public CASCADE; ALTER SCHEMA {replaced} RENAME TO public; COMMIT;")
        raise
    return replaced
