from __future__ import annotations

import errno
import os
import resource
import sys
import threading
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from plumbline.journal import Journal
from tests.plumbline.test_store import ROWS, Row, plain, row


def read(journal: Journal) -> list[Row]:
    return list(journal.records((place for place, _ in journal.lines()), Row))


@given(rows=ROWS)
def test_a_journal_gives_back_what_was_appended(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    journal = Journal(tmp_path_factory.mktemp("j") / "j.journal")
    places = [journal.append(one) for one in rows]
    assert [place for place, _ in journal.lines()] == places
    assert [found["key"] for _, found in journal.lines()] == [one.key for one in rows]
    if rows:
        assert plain(list(journal.records(reversed(places), Row))) == plain(rows[::-1])
    journal.remove()
    assert list(journal.lines()) == []


@given(cut=st.integers(1, 60))
def test_a_torn_line_costs_itself_alone(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("j") / "j.journal"
    first = Journal(path)
    first.append(row("a", "é" * 20))
    first.append(row("b", "é" * 20))
    first.close()
    path.write_bytes(path.read_bytes()[: -1 - cut])  # killed within the second line, perhaps within a character
    assert [r.key for r in read(Journal(path))] == ["a"]
    after = Journal(path)
    place = after.append(row("c"))  # the torn line is now in the middle
    assert [r.key for r in read(after)] == ["a", "c"]
    assert [r.key for r in after.records([place], Row)] == ["c"]
    after.close()


def test_a_full_disk_tears_one_line_and_the_next_record_stands_on_its_own(tmp_path: Path) -> None:
    """A limit on file sizes makes the kernel take a part of a line and then refuse, as a full disk does."""
    journal = Journal(tmp_path / "j.journal")
    journal.append(row("a"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.path.stat().st_size + 10, hard))
    try:
        with pytest.raises(OSError, match="too large") as error:
            journal.append(row("b"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert error.value.errno == errno.EFBIG
    assert error.value.filename == str(journal.path)
    journal.append(row("c"))
    assert [r.key for r in read(journal)] == ["a", "c"]
    journal.close()


def test_a_journal_that_is_removed_while_it_is_handed_to_the_disk_is_handed_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of a closed file may by then be another file's."""
    journal, handed = Journal(tmp_path / "j.journal"), []

    def slow_disk(handle: int) -> None:
        journal.remove()
        handed.append(os.fstat(handle).st_size)

    monkeypatch.setattr(os, "fdatasync", slow_disk)
    size = journal.append(row("a")) or journal.path.stat().st_size
    journal.sync()
    assert handed == [size]


def test_a_thread_that_syncs_meets_one_that_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, failed, done = Journal(tmp_path / "j.journal"), [], threading.Event()
    monkeypatch.setattr(os, "fdatasync", lambda handle: None)

    def syncing() -> None:
        while not done.is_set():
            try:
                journal.sync()
            except Exception as error:
                failed.append(error)
                return

    thread, interval = threading.Thread(target=syncing), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        for number in range(2_000):
            journal.append(row(str(number)))
            journal.remove()
            if failed:
                break
    finally:
        sys.setswitchinterval(interval)
        done.set()
        thread.join()
    assert not failed


def test_what_could_not_be_handed_to_the_disk_is_handed_there_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, tries = Journal(tmp_path / "j.journal"), []

    def failing_once(handle: int) -> None:
        tries.append(handle)
        if len(tries) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fdatasync", failing_once)
    journal.append(row("a"))
    with pytest.raises(OSError, match="No space") as error:
        journal.sync()
    assert error.value.filename == str(journal.path)
    journal.sync()
    journal.sync()
    assert len(tries) == 2
    journal.close()
