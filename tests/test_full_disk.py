"""Disks that are full: what is said names the place, and nothing sound is called damaged."""

from __future__ import annotations

import contextlib
import gc
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from annotation.server import Home, backup
from annotation.server.backup import Keeper
from annotation.server.database import TABLES
from evaluation.models.embeddings import EmbeddingStore
from evaluation.scoring import evaluate
from plumbline.errors import ServiceError

from .disks import small_disk
from .evaluation.conftest import Loader, copied, make_study


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes a disk of a size."""
    with contextlib.ExitStack() as stack:
        yield lambda size: stack.enter_context(small_disk(tmp_path / f"disk-{size}", size))
        gc.collect()  # what an error's traceback still holds open there


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a sound database of a megabyte, which packs small."""
    made = Home(tmp_path / "home")
    made.path.mkdir()
    with contextlib.closing(sqlite3.connect(made.database)) as database:
        for table in TABLES:
            database.execute(f"CREATE TABLE {table} (content BLOB)")
        database.execute("INSERT INTO records VALUES (zeroblob(1000000))")
        database.commit()
    for name in ("credentials.json", "secret"):
        (made.path / name).write_text("{}", encoding="utf-8")
    return made


def test_a_backup_to_a_full_disk_blames_the_disk_and_not_the_database(home: Home, disk: Callable[[str], Path]) -> None:
    folder = disk("256k")
    with pytest.raises(ServiceError) as error:
        backup(home, folder)
    assert str(error.value).startswith(f"{folder}: no backup can be written there (No space left on device); free")
    assert list(folder.iterdir()) == []


def test_embeddings_on_a_full_disk_name_their_folder(disk: Callable[[str], Path]) -> None:
    folder = disk("256k") / "model"
    store = EmbeddingStore(folder)
    with pytest.raises(OSError, match="No space left") as error:
        store.add([b"key"], np.zeros((1, 100_000), np.float32))
    assert str(error.value.filename) == str(folder)
    store.close()


@pytest.mark.parametrize("left", [0, 8, 16])
def test_an_evaluation_on_a_full_disk_names_its_file_and_leaves_nothing_half_written(
    disk: Callable[[str], Path], left: int
) -> None:
    folder = disk("2m")
    study = copied("accepted", make_study, folder)
    room = os.statvfs(folder)
    (folder / "rest").write_bytes(bytes(room.f_bavail * room.f_frsize - left * 1024))
    with pytest.raises(OSError, match="No space left") as error:
        evaluate(study, models=["one"], load=Loader())
    named = Path(error.value.filename)
    assert named.is_relative_to(study.folder) and named.suffix in (".parquet", ".json")
    assert not list(study.folder.rglob(".*.tmp"))
    (folder / "rest").unlink()
    outcome = evaluate(study, models=["one"], load=Loader())
    assert outcome.made + outcome.kept == 6 and outcome.made


def test_a_server_whose_disk_fills_up_goes_on_and_warns(disk: Callable[[str], Path]) -> None:
    folder = disk("256k")
    with pytest.raises(OSError, match="No space left"):
        (folder / "rest").write_bytes(bytes(256 * 1024 + 1))
    said: list[str] = []
    Keeper(Home(folder), say=said.append).look()
    assert "are free on this disk" in said[0]
