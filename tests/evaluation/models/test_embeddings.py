"""The store of embeddings: every row is found again, by the next process too, and a kill loses the last at most."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evaluation.models.embeddings import EmbeddingStore, digests, keys_of
from evaluation.models.encoder import Encoder
from plumbline.errors import DataError, StudyError
from tests.evaluation.conftest import FakeModel, vectors

THIRTY = [f"a cat and {number} dogs" for number in range(30)]
WIDTH = vectors(THIRTY[:1]).shape[1]


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def rows(numbers: range, width: int = 3) -> np.ndarray:
    """Row n holds n, n + 0.25, n + 0.5."""
    return np.array(numbers, np.float32)[:, None] + np.arange(width, dtype=np.float32) / 4


def test_rows_come_back_in_any_order_and_by_the_next_process(tmp_path: Path) -> None:
    store = EmbeddingStore(tmp_path / "m")
    assert store.missing([key(1), key(2)]) == {key(1), key(2)}
    store.add([key(n) for n in range(10)], rows(range(10)))
    store.add([key(n) for n in range(10, 9000)], rows(range(10, 9000)))
    store.close()
    again = EmbeddingStore(tmp_path / "m")
    wanted = [8999, 3, 3, 0, 4100, 9, 10, 11]  # far apart, twice, and neighbours
    np.testing.assert_array_equal(again.rows([key(n) for n in wanted]), rows(range(9000))[wanted])
    everything = np.random.default_rng(1).permutation(9000)
    np.testing.assert_array_equal(again.rows([key(int(n)) for n in everything]), rows(range(9000))[everything])
    assert again.missing([key(8999), key(9000)]) == {key(9000)}
    assert again.rows([]).shape == (0, 3)


def test_rows_of_another_width_are_refused(tmp_path: Path) -> None:
    store = EmbeddingStore(tmp_path / "m")
    store.add([key(1)], rows(range(1)))
    with pytest.raises(DataError, match="its embeddings have 3 dimensions, but new ones have 4"):
        store.add([key(2)], rows(range(1), 4))


def test_what_a_killed_process_wrote_without_its_keys_is_written_over(tmp_path: Path) -> None:
    store = EmbeddingStore(tmp_path / "m")
    store.add([key(0)], rows(range(1)))
    store.close()
    with (tmp_path / "m" / "vectors.f32").open("ab") as file:
        file.write(b"torn")
    store = EmbeddingStore(tmp_path / "m")
    store.add([key(1)], rows(range(1, 2)))
    np.testing.assert_array_equal(store.rows([key(1), key(0)]), rows(range(2))[::-1])


def test_killed_at_any_moment_it_holds_whole_rows_alone(tmp_path: Path) -> None:
    """A process adds row after row and is killed; what has a key has its row."""
    seen = 0
    for kills in (3, 40, 7):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                adding = EmbeddingStore(tmp_path / "m")
                for n in itertools.count(adding._end):
                    adding.add([key(n)], np.full((1, 300), n, np.float32))
                    os.write(writing, b"1")
            finally:
                os._exit(1)
        os.close(writing)
        for _ in range(kills):
            seen += len(os.read(reading, 1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        store = EmbeddingStore(tmp_path / "m")
        there = [n for n in range(seen + 100) if not store.missing([key(n)])]
        assert there == list(range(len(there))) and len(there) >= seen
        np.testing.assert_array_equal(store.rows([key(n) for n in there])[:, 299], np.array(there, np.float32))
        store.close()


def permuted(folder: Path) -> None:
    file = folder / "vectors.f32"
    stored = np.fromfile(file, np.float32).reshape(-1, WIDTH)
    stored[: len(stored) // 3] = np.roll(stored[: len(stored) // 3], 1, axis=0)
    stored.tofile(file)


def flipped(folder: Path) -> None:
    """A sign of each row."""
    file = folder / "vectors.f32"
    data = bytearray(file.read_bytes())
    for row in range(0, len(data), WIDTH * 4):
        data[row + 7] ^= 0x80
    file.write_bytes(data)


def cut_off(folder: Path) -> None:
    with (folder / "vectors.f32").open("r+b") as file:
        file.truncate(WIDTH * 4 * 5 + 7)


def keys_changed(folder: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "keys.sqlite")) as keys, keys:
        keys.execute(statement)


def places_permuted(folder: Path) -> None:
    keys_changed(folder, "UPDATE keys SET place = 29 - place")


def keys_permuted(folder: Path) -> None:
    """Place and checksum stay together, under another key."""
    with contextlib.closing(sqlite3.connect(folder / "keys.sqlite")) as keys, keys:
        stored = keys.execute("SELECT key, place, digest FROM keys ORDER BY place").fetchall()
        keys.execute("DELETE FROM keys")
        turned = [(key, *rest) for (key, *_), (_, *rest) in zip(stored, stored[1:] + stored[:1], strict=True)]
        keys.executemany("INSERT INTO keys VALUES (?, ?, ?)", turned)


def another_length(folder: Path) -> None:
    keys_changed(folder, "UPDATE facts SET value = 8 WHERE name = 'dimensions'")


def no_places(folder: Path) -> None:
    keys_changed(folder, "UPDATE keys SET place = 1 << 60 WHERE place = 3")


def no_database(folder: Path) -> None:
    (folder / "keys.sqlite").write_bytes(b"no database, and long enough to be looked at" * 40)


def pages_overwritten(folder: Path) -> None:
    with (folder / "keys.sqlite").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 2000)


def files_of_another_model(folder: Path) -> None:
    """The same texts, by a model whose vectors are the same but for their signs."""
    encoder = Encoder(FakeModel(), "fake", "1", store=EmbeddingStore(folder.parent / "second"))
    encoder._store.add(keys_of(THIRTY, "", ""), -vectors(THIRTY))
    encoder.close()
    shutil.rmtree(folder)
    (folder.parent / "second").rename(folder)


def vectors_of_another_model(folder: Path) -> None:
    (-np.fromfile(folder / "vectors.f32", np.float32)).tofile(folder / "vectors.f32")


def facts_are_words(folder: Path) -> None:
    keys_changed(folder, "UPDATE facts SET value = 'abc'")


def endless_rows(folder: Path) -> None:
    keys_changed(folder, "UPDATE facts SET value = 1 << 60 WHERE name = 'dimensions'")


DAMAGE = [
    (permuted, 10, "checksums do not match for 10 embeddings"),
    (flipped, 30, "checksums do not match for 30 embeddings"),
    (cut_off, 25, "vectors.f32 is cut off; 25 embeddings will be encoded again"),
    (places_permuted, 30, "checksums do not match for 30 embeddings"),
    (keys_permuted, 30, "checksums do not match for 30 embeddings"),
    (another_length, 30, "(30 embeddings) belongs to another model, or its index is damaged; the folder is deleted"),
    (no_places, 1, "1 embedding will be encoded again"),
    (no_database, 30, "its index is damaged (file is not a database); the folder is deleted"),
    (pages_overwritten, 30, "its index is damaged (database disk image is malformed); the folder is deleted"),
    (facts_are_words, 30, "(30 embeddings) belongs to another model, or its index is damaged; the folder is deleted"),
    (endless_rows, 30, "(30 embeddings) belongs to another model, or its index is damaged; the folder is deleted"),
    (files_of_another_model, 30, "(30 embeddings) belongs to another model"),
    (vectors_of_another_model, 30, "checksums do not match for 30 embeddings"),
]


@pytest.mark.parametrize(("damage", "again", "line"), DAMAGE, ids=[damage.__name__ for damage, *_ in DAMAGE])
def test_what_is_damaged_is_encoded_again_and_said_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None], again: int, line: str
) -> None:
    folder = tmp_path / "m"
    first = Encoder(FakeModel(), "fake", "1", store=EmbeddingStore(folder))
    first.embed(THIRTY)
    first.close()
    damage(folder)
    for encoded in (again, 0):  # once, and then it is whole
        encoder = Encoder(FakeModel(), "fake", "1", store=EmbeddingStore(folder))
        np.testing.assert_array_equal(encoder.embed(THIRTY[::-1]), vectors(THIRTY[::-1]))
        assert encoder.encoded == encoded
        encoder.close()
        printed = capsys.readouterr().err.splitlines()
        assert len(printed) == min(encoded, 1), printed
        assert not encoded or (printed[0].startswith(f"{folder}: ") and line in printed[0])


def test_a_store_that_is_damaged_while_it_is_open_is_encoded_again(tmp_path: Path) -> None:
    encoder = Encoder(FakeModel(), "fake", "1", store=EmbeddingStore(tmp_path / "m"))
    encoder.embed(THIRTY)
    for damage in (permuted, cut_off, flipped):
        damage(tmp_path / "m")
        np.testing.assert_array_equal(encoder.embed(THIRTY), vectors(THIRTY))
    assert encoder.encoded == 30 + 10 + 30 + 30  # the file ends before the rows that were added last


def test_an_index_that_takes_no_rows_begins_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = EmbeddingStore(tmp_path / "m")
    store.add([key(1)], rows(range(1, 2)))
    store.close()
    keys_changed(tmp_path / "m", "CREATE TRIGGER no BEFORE INSERT ON keys BEGIN SELECT RAISE(ABORT, 'damaged'); END")
    store = EmbeddingStore(tmp_path / "m")
    store.add([key(2)], rows(range(2, 3)))
    np.testing.assert_array_equal(store.rows([key(2)]), rows(range(2, 3)))
    assert store.missing([key(1)]) == {key(1)} and "its index is damaged (damaged)" in capsys.readouterr().err


def test_a_disk_that_always_changes_rows_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are not encoded for ever."""
    encoder = Encoder(FakeModel(), "fake", "1", store=EmbeddingStore(tmp_path / "m"))
    read = EmbeddingStore._read
    monkeypatch.setattr(EmbeddingStore, "_read", lambda store, places: read(store, places) + 1)
    with pytest.raises(DataError, match="embeddings changed on disk after they were written; check the disk"):
        encoder.embed(THIRTY)
    assert encoder.encoded == 90


def test_every_single_bit_counts() -> None:
    row, name = vectors(["a cat"]), b"k" * 16
    written = digests("m", [name], row)
    for bit in range(row.nbytes * 8):
        data = bytearray(row.tobytes())
        data[bit // 8] ^= 1 << bit % 8
        assert digests("m", [name], np.frombuffer(data, np.float32).reshape(row.shape)) != written
    assert digests("m", [b"l" * 16], row) != written and digests("n", [name], row) != written


def test_the_limit_drops_the_model_that_was_used_least_recently(tmp_path: Path) -> None:
    for age, name in enumerate(("new", "old", "oldest")):
        store = EmbeddingStore(tmp_path / name)
        store.add([key(n) for n in range(10_000)], rows(range(10_000)))  # 120,000 bytes and the keys
        store.close()
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    store = EmbeddingStore(tmp_path / "mine", limit=size + 50_000)
    assert store.make_room(10_000, 3) is False
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "new", "old"]


def test_a_store_that_is_alone_begins_anew_and_too_small_a_limit_is_said(tmp_path: Path) -> None:
    store = EmbeddingStore(tmp_path / "mine", limit=200_000)
    assert store.make_room(10_000, 3) is False
    store.add([key(n) for n in range(10_000)], rows(range(10_000)))
    assert store.make_room(10_000, 3) is True
    assert store.missing([key(5)]) == {key(5)}
    with pytest.raises(StudyError, match="the disk is too small: one data set needs 0.0 GB"):
        store.make_room(100_000, 3)


def test_texts_are_encoded_again_where_room_had_to_be_made(tmp_path: Path) -> None:
    """800 rows and their keys fit, 1,600 do not."""
    cats, dogs = ([f"a {animal} {number}" for number in range(800)] for animal in ("cat", "dog"))
    store = EmbeddingStore(tmp_path / "m", limit=1.5 * 800 * vectors(cats[:1]).nbytes + 60_000)
    encoder = Encoder(FakeModel(), "fake", "1", store=store)
    for texts, encoded in ((cats, 800), (cats, 800), (dogs, 1600), ([*cats[:50], *dogs[:60]], 1650), (cats, 3200)):
        np.testing.assert_array_equal(encoder.embed(texts), vectors(texts))
        assert encoder.encoded <= encoded
    assert encoder.encoded > 1650
