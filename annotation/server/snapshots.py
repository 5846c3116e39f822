"""One consistent state of a database, copied while others write, and put back: SQLite's file or PostgreSQL's dump."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from plumbline.errors import DataError, ServiceError, is_full

from . import postgres
from .home import PRIVATE_FILE

#: The tables whose rows are counted before and after.
TABLES = ("users", "workspaces", "datasets", "records", "responses")
BUSY_SECONDS = 30.0
COUNTS = "".join(f"SELECT '{table}', count(*) FROM {table};\n" for table in TABLES)  # noqa: S608  # our own names
COPY = re.compile(rb"COPY public\.(\w+) \(.*\) FROM stdin;$")
#: The running server's advisory lock, as in `plumbline_argilla.database`.
POSTGRES_LOCK = int.from_bytes(b"plumblin", "big")


def copy_sqlite(source: Path, target: Path) -> dict[str, int]:
    """Copy a database that may be in use, in one transaction, and check the copy; its rows by table."""
    target.touch(mode=PRIVATE_FILE)
    try:
        with (
            contextlib.closing(reading(source)) as old,
            contextlib.closing(sqlite3.connect(target)) as new,
        ):  # fmt: skip
            old.backup(new)  # all pages in one step: writers wait for nothing in WAL mode
            new.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
    except sqlite3.Error as error:
        if is_full(error):  # the source is only read
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target)) from error
        raise DataError(f"{source}: cannot be copied ({error}); restore a backup or move it away") from error
    return check_sqlite(target)


def reading(file: Path) -> sqlite3.Connection:
    """A connection that changes nothing and makes no database where there is none."""
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)


def check_sqlite(file: Path, expected: dict[str, int] | None = None) -> dict[str, int]:
    """The rows by table of a sound database. Raises DataError when it is damaged, or the rows are not as expected."""
    try:
        with contextlib.closing(reading(file)) as database:
            (verdict,) = database.execute("PRAGMA integrity_check(1)").fetchone()
            counts = {table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}  # noqa: S608  # our own names
    except sqlite3.Error as error:
        raise DataError(f"{file.name}: not a sound Argilla database ({error})") from error
    if verdict != "ok":
        raise DataError(f"{file.name}: not a sound database ({verdict})")
    compare(counts, expected)
    return counts


def compare(counts: dict[str, int], expected: dict[str, int] | None) -> None:
    """Raise DataError where the rows of a table are not as many as expected."""
    for table, number in (expected or counts).items():
        if counts.get(table) != number:
            raise DataError(f"{counts.get(table)} {table} where there should be {number}")


def dump(address: str, target: Path) -> dict[str, int]:
    """Dump a PostgreSQL database that may be in use, and count the rows in the dump; they by table.

    The rows are read back from the dump and compared with those that the same snapshot of the database has.
    """
    target.touch(mode=PRIVATE_FILE)
    with snapshot(address) as (name, counts):
        command = ["pg_dump", "--format=custom", "--schema=public", "--no-owner", "--no-privileges", "--no-password",
                   f"--snapshot={name}", f"--file={target}"]  # fmt: skip
        postgres.program(address, command)
    compare(rows_of(target), counts)
    return counts


@contextlib.contextmanager
def snapshot(address: str) -> Iterator[tuple[str, dict[str, int]]]:
    """A state of the database that stays readable while inside, by name, and the rows that it has by table."""
    statements = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;\n"
                  f"SELECT 'snapshot', pg_export_snapshot();\n{COUNTS}\nSELECT 'end', 0;\n")  # fmt: skip
    try:
        session = subprocess.Popen(postgres.PSQL, env=postgres.environment(address), text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    except FileNotFoundError as error:
        raise postgres.missing(postgres.PSQL[0]) from error
    with session:
        if session.stdin is None or session.stdout is None or session.stderr is None:
            raise ServiceError("psql has no pipes")
        with contextlib.suppress(BrokenPipeError):  # then it says below why it ended
            session.stdin.write(statements)
            session.stdin.flush()
        values: dict[str, str] = {}
        while "end" not in values:
            line = session.stdout.readline()
            if not line:
                raise postgres.failed(address, "psql", session.stderr.read())
            name, _, value = line.rstrip("\n").partition("\t")
            values[name] = value
        try:
            yield values["snapshot"], {table: int(values[table]) for table in TABLES}
        finally:
            session.stdin.close()  # ends psql, and with it the transaction


def rows_of(file: Path) -> dict[str, int]:
    """The rows of each table in a dump, counted by reading all of it. Raises DataError when it cannot be read."""
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
    """Put a dump in the place of what the database has; the schema in which that is kept. All or nothing.

    Raises ServiceError when a server uses the database or PostgreSQL refuses, DataError when rows are missing.
    """
    compare(rows_of(file), expected)
    if postgres.query(address, f"SELECT pg_try_advisory_lock({POSTGRES_LOCK});") != [["t"]]:
        raise ServiceError(f"{postgres.named(address)}: a server is running on it; stop it and restore then")
    aside = f"replaced_{datetime.now(UTC):%Y%m%d_%H%M%S_%f}"
    postgres.query(address, f"BEGIN; ALTER SCHEMA public RENAME TO {aside}; CREATE SCHEMA public; COMMIT;")
    try:
        target = f"--dbname={postgres.variables(address)['PGDATABASE']}"
        command = ["pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges",
                   "--no-password", "--schema=public", target, str(file)]  # fmt: skip
        postgres.program(address, command)
        rows = {table: int(number) for table, number in postgres.query(address, COUNTS)}
        compare(rows, expected)
    except BaseException:
        postgres.query(address, f"BEGIN; DROP SCHEMA public CASCADE; ALTER SCHEMA {aside} RENAME TO public; COMMIT;")
        raise
    return aside
