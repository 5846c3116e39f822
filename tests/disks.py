"""Small disks, to be filled up."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

# Unmounted where this process lets go of the pipe, however it ends; what a killed one's children hold open goes later.
HOLD = """mount -t tmpfs -o size="$1" tmpfs "$2" || exit
echo mounted
cat
umount "$2" || { umount --lazy "$2"; exit 1; }"""


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of a size at a new folder; skips the test where this user may mount none."""
    folder.mkdir()
    command = ["sh", "-c", HOLD, "sh", size, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as held:
        assert held.stdout
        if held.stdout.readline() != b"mounted\n":
            pytest.skip("mounting a small disk needs root")
        yield folder
        _, said = held.communicate()
        assert held.returncode == 0, said
