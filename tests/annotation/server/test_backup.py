"""Backups of the really started server while people rate, what comes back of them, and the disk's room."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
import tarfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from annotation.server import Home, backup, credentials, restore, running
from annotation.server.backup import Keeper, disk_trouble, thin
from plumbline.errors import DataError, ServiceError
from tests.annotation.argilla_site import Site, enter


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(Home(tmp_path_factory.mktemp("backup") / "home")) as connection:
        yield enter(connection)


def submitted(file: Path) -> int:
    with contextlib.closing(sqlite3.connect(file)) as database:
        return int(database.execute("SELECT count(*) FROM responses WHERE status = 'submitted'").fetchone()[0])


def test_a_backup_while_people_rate_holds_every_answer_given_before_it(site: Site, tmp_path: Path) -> None:
    campaign = site.publish("rating", records=40, enough=1)
    given: list[str] = []

    def rate() -> None:
        for name in campaign.ids:
            site.raters[0].rate(campaign, name, 3)
            given.append(name)

    thread = threading.Thread(target=rate)
    thread.start()
    taken = []
    while thread.is_alive():
        before = len(given)
        file, manifest = backup(site.home, tmp_path / str(len(taken)))
        taken.append((before, manifest.counts["responses"], len(given) + 1, file))
    thread.join()
    assert len(taken) > 2
    for before, counted, after, file in taken:
        assert before <= counted <= after
        assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert [entry.name for entry in file.parent.iterdir()] == [file.name]
    with pytest.raises(ServiceError, match=r"its server is running; stop it"):
        restore(site.home, taken[0][3])


def test_a_restored_home_has_accounts_secret_and_answers_and_keeps_what_was_there(site: Site, tmp_path: Path) -> None:
    campaign = site.publish("back", records=3, enough=1)
    site.raters[0].rate(campaign, "p0", 5)
    file, manifest = backup(site.home, tmp_path)
    other = Home(tmp_path / "elsewhere")
    restored, _ = restore(other, file)
    assert restored == manifest
    assert credentials(other) == credentials(site.home)
    assert other.secret_file.read_bytes() == site.home.secret_file.read_bytes()
    assert {stat.S_IMODE(one.stat().st_mode) for one in other.path.iterdir() if one.is_file()} == {0o600}
    with running(other) as connection:
        second = enter(connection)
        assert second.statuses(campaign) == {"p0": "completed", "p1": "pending", "p2": "pending"}
        second.raters[0].rate(campaign, "p1", 4)
    had = submitted(other.database)
    _, kept = restore(other, file)
    assert submitted(other.database) == had - 1
    assert submitted(Path(kept) / "argilla.db") == had  # nothing is ever deleted


@pytest.fixture(scope="module")
def packed(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return backup(site.home, tmp_path_factory.mktemp("packed"))[0]


def repacked(source: Path, target: Path, name: str, content: bytes) -> Path:
    """A copy of a backup with other content in one of its files."""
    with tarfile.open(source) as old, tarfile.open(target, "w:gz") as new:
        for member in old.getmembers():
            data = content if member.name == name else old.extractfile(member).read()  # type: ignore[union-attr]
            (target.parent / "part").write_bytes(data)
            new.add(target.parent / "part", arcname=member.name)
    return target


def test_damaged_backups_are_one_line_and_change_nothing(packed: Path, tmp_path: Path) -> None:
    whole = packed.read_bytes()
    files = {"cut": whole[: len(whole) // 2], "flipped": whole[:2000] + bytes([whole[2000] ^ 255]) + whole[2001:],
             "empty": b"", "text": b"no backup"}  # fmt: skip
    damaged = []
    for name, content in files.items():
        damaged.append(tmp_path / f"{name}.tar.gz")
        damaged[-1].write_bytes(content)
    damaged.append(repacked(packed, tmp_path / "changed.tar.gz", "secret", b"another"))
    damaged.append(repacked(packed, tmp_path / "manifest.tar.gz", "manifest.json", b'{"format": 1}'))
    damaged.append(repacked(packed, tmp_path / "future.tar.gz", "manifest.json", b'{"format": 9}'))
    home = Home(tmp_path / "home")
    for file in damaged:
        with pytest.raises(DataError, match=r"this backup cannot be restored \(.*\); use another") as error:
            restore(home, file)
        assert "\n" not in str(error.value)
        assert {one.name for one in home.path.iterdir()} == {"server.lock"}
    with pytest.raises(DataError, match="there is no such backup"):
        restore(home, tmp_path / "missing.tar.gz")


def test_the_schedule_takes_thins_and_reports(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    restore(home, packed)
    said: list[str] = []
    watching = Keeper(home, timedelta(hours=6), keep=3, say=said.append)
    watching.look()
    watching.look()
    (first,) = home.backups.glob("*-scheduled.tar.gz")
    assert not said
    again = Keeper(home, timedelta(hours=6), say=said.append)  # a restart: the last one is young enough
    again.look()
    assert list(home.backups.iterdir()) == [first]
    home.database.write_bytes(b"damaged")
    late = Keeper(home, timedelta(seconds=0), say=said.append)
    late.look()
    assert len(said) == 1 and said[0].startswith("Warning: the scheduled backup failed: ")
    assert said[0] in home.log.read_text(encoding="utf-8")
    assert list(home.backups.iterdir()) == [first]
    usage = SimpleNamespace(free=400_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    assert "only 400 MB are free" in (disk_trouble(home) or "")
    warned = Keeper(home, None, say=said.append)
    warned.look()
    warned.next_look = 0.0
    warned.look()
    assert len(said) == 2 and "make room for at least 500 MB" in said[1]  # once an hour, not at every look
    usage.free = 600_000_000
    assert disk_trouble(home) is None
    with home.database.open("ab") as stream:
        stream.truncate(400_000_000)
    assert "at least 800 MB" in (disk_trouble(home) or "")


def test_thinning_keeps_the_newest_and_one_a_week_and_what_is_not_scheduled(tmp_path: Path) -> None:
    start = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
    for number in range(4 * 28):
        (tmp_path / f"argilla-{start + timedelta(hours=6 * number):%Y%m%dT%H%M%SZ}-scheduled.tar.gz").touch()
    others = {"argilla-20260302T000000Z-manual.tar.gz", "argilla-20260302T000000Z-upgrade.tar.gz", "notes.txt"}
    for name in others:
        (tmp_path / name).touch()
    thin(tmp_path, 28, start + timedelta(days=28))
    left = {file.name for file in tmp_path.iterdir()}
    assert others <= left
    days = sorted(name[8:16] for name in left - others)
    assert len(days) == 28 + 3 and days[:3] == ["20260308", "20260315", "20260322"]
    assert set(days[3:]) == {f"202603{day}" for day in range(23, 30)}


def test_backups_of_a_clock_that_ran_ahead_stop_no_later_ones(tmp_path: Path) -> None:
    now, every = datetime(2026, 3, 2, 12, tzinfo=UTC), timedelta(hours=6)
    keeping = Keeper(Home(tmp_path), every)
    folder = keeping.home.backups
    folder.mkdir()

    def made(at: datetime) -> Path:
        file = folder / f"argilla-{at:%Y%m%dT%H%M%SZ}-scheduled.tar.gz"
        file.touch()
        return file

    ahead = [made(now + timedelta(days=365, hours=hour)) for hour in range(3)]
    keeping.tried = now + timedelta(days=365)
    assert keeping.due(now, every)
    right = [made(now - timedelta(hours=hour)) for hour in range(3)]
    assert not keeping.due(now, every)
    thin(folder, 3, now)
    assert set(folder.iterdir()) == {*ahead, *right}
