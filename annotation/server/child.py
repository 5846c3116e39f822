"""The server as a child process of ours, from its start to its end.

It holds the home's lock for as long as it lives and stops when its standard input closes, so it outlives neither a
Ctrl-C nor a killed parent. No secret is ever in its arguments or its environment: it reads them from the home's files.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from plumbline.environments import clean
from plumbline.errors import DataError, ServiceError
from plumbline.reading import read_json

from .connection import POLL_SECONDS, START_SECONDS, Connection, probe
from .home import Home, private

PLUGIN = Path(__file__).parent / "plugin"
STOP_SECONDS = 15.0
LOG_BYTES = 5_000_000
#: What the child's own last word starts with; `plumbline_argilla.launch` writes it.
ERROR_MARK = "plumbline-argilla: error: "
#: The child's exit status when another server holds the home, and when its database has to be migrated first.
IN_USE_EXIT, MIGRATION_EXIT = 3, 4
#: The only variables of ours that the server gets: settings of Argilla or the hub in a user's shell shall not bend it.
PASSED_ON = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "NO_PROXY")


class InUseError(Exception):
    """Another server took the home's lock first."""


class MigrationNeededError(Exception):
    """The database holds an older Argilla's tables, and the child was not told to migrate them."""


class Child:
    """A server of our own. The constructor returns once it is ready, and leaves no process behind when it raises."""

    def __init__(  # what a server is told
        self, home: Home, python: Path, hosts: Sequence[str], port: int, *, workers: int = 1, may_migrate: bool = False
    ) -> None:
        """Listen on the first of `hosts`; the others are the addresses under which the server is reached."""
        self.home = home
        if home.log.exists() and home.log.stat().st_size > LOG_BYTES:
            home.log.replace(home.log.with_name(home.log.name + ".1"))
        with open(home.log, "ab", opener=private) as log:
            self.log_start = log.tell()
            # -P: the working folder is the home, and no module shall ever be read from there.
            command = [str(python), "-P", "-m", "plumbline_argilla", "--home", str(home.path.absolute()),
                       "--host", hosts[0], "--port", str(port), "--workers", str(workers),
                       *(["--migrate"] if may_migrate else []),
                       *(f"--address={address}" for address in hosts[1:])]  # fmt: skip
            passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
            environment = clean(passed) | {"PYTHONPATH": str(PLUGIN), "PYTHONUNBUFFERED": "1"}
            try:
                # A session of its own: a Ctrl-C in the terminal reaches us, and we end the server in order.
                self.process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, start_new_session=True
                )
            except OSError as error:
                raise ServiceError(
                    f"{python}: cannot be run ({error.strerror}); remove {python.parents[1]} and try again"
                ) from error
        try:
            self.connection = self.until_ready()
        except BaseException:
            self.stop()
            raise

    def until_ready(self) -> Connection:
        """Wait for the child to answer; InUseError, MigrationNeededError or ServiceError when it does not."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            status = self.process.poll()
            if status == IN_USE_EXIT:
                raise InUseError
            if status == MIGRATION_EXIT:
                raise MigrationNeededError
            if status is not None:
                raise ServiceError(f"the Argilla server did not start: {self.last_words()} (log: {self.home.log})")
            if self.has_state() and (found := probe(self.home)) is not None:
                return found
            time.sleep(POLL_SECONDS)
        raise ServiceError(f"the Argilla server did not answer within {START_SECONDS:.0f} s; see {self.home.log}")

    def has_state(self) -> bool:
        """Whether the state file is this child's, and not one that a killed server left behind."""
        try:
            state: Any = read_json(self.home.state)
        except (OSError, DataError):
            return False
        return isinstance(state, dict) and state.get("pid") == self.process.pid

    def last_words(self) -> str:
        """The reason that the child gave in its log, else its log's last line."""
        with self.home.log.open(encoding="utf-8", errors="replace") as log:
            log.seek(self.log_start)
            lines = [line.strip() for line in log if line.strip()]
        reasons = [line.removeprefix(ERROR_MARK) for line in lines if line.startswith(ERROR_MARK)]
        return (reasons or lines or ["it said nothing"])[-1]

    def stop(self) -> None:
        """End the child: in order first, by force when it does not heed."""
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it has ended already
                self.process.stdin.close()
        harder: list[Callable[[], None]] = [self.process.terminate, self.process.kill]
        while True:
            try:
                self.process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                if not harder:
                    raise
                harder.pop(0)()
            else:
                return
