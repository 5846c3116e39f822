"""The store of embeddings: every row is found again, by the next process too, and a kill loses the last at most."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evaluation.models.embeddings import EmbeddingStore
from evaluation.models.encoder import Encoder
from plumbline.errors import DataError, StudyError
from tests.evaluation.conftest import FakeModel, vectors


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
    with pytest.raises(DataError, match="rows of 4 dimensions, it has 3"):
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
    program = (
        "import sys, numpy as np\nfrom pathlib import Path\nfrom evaluation.models.embeddings import EmbeddingStore\n"
        "store = EmbeddingStore(Path(sys.argv[1]))\nn = store._count\n"
        "while True:\n"
        "    store.add([n.to_bytes(16, 'big')], np.full((1, 300), n, np.float32)); n += 1; print(n, flush=True)\n"
    )
    seen = 0
    for kills in (3, 40, 7):
        process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "m")], stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(kills):
            seen = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        store = EmbeddingStore(tmp_path / "m")
        there = [n for n in range(seen + 100) if not store.missing([key(n)])]
        assert there == list(range(len(there))) and len(there) >= seen
        np.testing.assert_array_equal(store.rows([key(n) for n in there])[:, 299], np.array(there, np.float32))
        store.close()


@pytest.mark.parametrize("harm", ["keys", "vectors"])
def test_a_damaged_store_is_one_line(tmp_path: Path, harm: str) -> None:
    store = EmbeddingStore(tmp_path / "m")
    store.add([key(0)], rows(range(1)))
    store.close()
    if harm == "keys":
        (tmp_path / "m" / "keys.sqlite").write_bytes(b"no database, and long enough to be looked at" * 40)
    else:
        (tmp_path / "m" / "vectors.f32").write_bytes(b"")
    with pytest.raises(DataError, match=r"m is damaged \(.*\); delete it \(it is made again\) and run again"):
        EmbeddingStore(tmp_path / "m")


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
    with pytest.raises(StudyError, match=r"evaluation\.embeddings_gb is too small"):
        store.make_room(100_000, 3)


def test_a_second_encoder_asks_the_model_for_new_texts_alone(tmp_path: Path) -> None:
    first = Encoder(FakeModel(), "fake", "1", store=EmbeddingStore(tmp_path / "m"))
    first.embed(["a cat", "a dog"])
    first.close()
    model = FakeModel()
    second = Encoder(model, "fake", "1", store=EmbeddingStore(tmp_path / "m"))
    made = second.embed(["a dog", "a bird", "a cat", "a dog"])
    np.testing.assert_array_equal(made, vectors(["a dog", "a bird", "a cat", "a dog"]))
    assert model.seen == ["a bird"]
    assert (second.asked, second.encoded) == (4, 1)


def test_texts_are_encoded_again_where_room_had_to_be_made(tmp_path: Path) -> None:
    """800 rows and their keys fit, 1,600 do not."""
    cats, dogs = ([f"a {animal} {number}" for number in range(800)] for animal in ("cat", "dog"))
    store = EmbeddingStore(tmp_path / "m", limit=1.5 * 800 * vectors(cats[:1]).nbytes + 60_000)
    encoder = Encoder(FakeModel(), "fake", "1", store=store)
    for texts, encoded in ((cats, 800), (cats, 800), (dogs, 1600), ([*cats[:50], *dogs[:60]], 1650), (cats, 3200)):
        np.testing.assert_array_equal(encoder.embed(texts), vectors(texts))
        assert encoder.encoded <= encoded
    assert encoder.encoded > 1650
