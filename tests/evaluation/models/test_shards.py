"""Texts between who asks for embeddings and who encodes them: each once, whoever asks, whoever dies."""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import pytest

from evaluation.models.embeddings import EmbeddingStore, RowsLost
from evaluation.models.shards import LARGEST, Shards, TextQueue, TextShard
from plumbline.errors import StudyError
from tests.evaluation.conftest import vectors

WIDTH = 16  # of `vectors`
TEXTS = [f"cat {number} runs" for number in range(300)]


def shards(folder: Path | None = None, batch: int = 4, limit: float = float("inf")) -> Shards:
    return Shards(EmbeddingStore(folder, limit), batch)


def sizes(made: Shards, workers: int) -> list[int]:
    found = []
    while (shard := made.next(workers)) is not None:
        found.append(len(shard.texts))
    return found


def test_shards_hold_whole_batches_become_smaller_and_are_longest_first() -> None:
    made = shards(batch=8)
    made.ask(TextQueue(TEXTS, "", ""))
    first = made.next(4)
    assert first is not None and len(first.texts) == 40  # 300 texts are 38 batches, an eighth of which is 5
    assert max(map(len, TEXTS)) == len(first.texts[0])
    rest = sizes(made, 4)
    assert sum(rest) == 260 and rest == sorted(rest, reverse=True) and all(size % 8 == 0 for size in rest[:-1])
    assert sizes(shards(batch=8), 4) == []
    large = shards(batch=32)
    large.ask(TextQueue([str(number) for number in range(10_000)], "", ""))
    assert sizes(large, 1)[0] == LARGEST


def test_many_texts_are_asked_for_at_once() -> None:
    """What is asked is looked through once: 40,000 texts take a fraction of a second (30,000 took 40 s otherwise)."""
    made, start = shards(), time.process_time()
    made.ask(TextQueue([str(number) for number in range(40_000)], "", ""))
    assert time.process_time() - start < 3


def test_each_text_is_encoded_once_in_whatever_order_shards_are_asked_for_lost_and_answered(tmp_path: Path) -> None:
    """Twenty ask for random texts of 300; a fifth of the shards is lost and encoded by others; rows are right."""
    rng = random.Random(7)
    made, out = shards(tmp_path / "model"), list[TextShard]()
    to_ask = [TextQueue(rng.sample(TEXTS, rng.randint(1, 200)), "p: ", "") for _ in range(20)]
    wanted, answered, encoded = {text for asked in to_ask for text in asked.texts}, 0, list[str]()
    while answered < 20:
        if to_ask and rng.random() < 0.3:
            made.ask(to_ask.pop())
        if (shard := made.next(rng.randint(1, 5))) is not None:
            out.append(shard)
        if out:
            shard = out.pop(rng.randrange(len(out)))
            if rng.random() < 0.2:
                made.put_back(shard)
            else:
                encoded += shard.texts
                made.add(shard, vectors(shard.texts, "p: "))
        for asked, rows in made.done():
            answered += 1
            np.testing.assert_array_equal(rows, vectors(asked.texts, "p: "))
    assert sorted(encoded) == sorted(wanted) and made.encoded == len(wanted)
    made.close()

    again = shards(tmp_path / "model")  # a run that comes later, or after a kill: what came back is there
    again.ask(TextQueue([*TEXTS[:5], *wanted], "p: ", ""))
    assert sum(sizes(again, 1)) == len(set(TEXTS[:5]) - wanted)


def test_rows_that_are_damaged_while_somebody_waits_are_encoded_again(tmp_path: Path) -> None:
    made = shards(tmp_path / "model")
    first, second = TextQueue(TEXTS[:40], "", ""), TextQueue(TEXTS[20:60], "", "")
    made.ask(first)
    made.ask(second)
    answered, encoded = list[TextQueue](), 0
    while len(answered) < 2:
        shard = made.next(1)
        assert shard is not None
        made.add(shard, vectors(shard.texts))
        encoded += len(shard.texts)
        if encoded == 40:
            file = tmp_path / "model" / "vectors.f32"
            np.flip(np.fromfile(file, np.float32).reshape(-1, WIDTH), axis=0).tofile(file)
        for asked, rows in made.done():
            np.testing.assert_array_equal(rows, vectors(asked.texts))
            answered.append(asked)
    assert {id(first), id(second)} == {id(asked) for asked in answered} and encoded == 60 + 40


def test_a_disk_that_always_changes_rows_ends_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, read = shards(tmp_path / "model"), EmbeddingStore._read
    monkeypatch.setattr(EmbeddingStore, "_read", lambda store, places: read(store, places) + 1)
    made.ask(TextQueue(TEXTS, "", ""))
    for _ in range(2):
        while (shard := made.next(1)) is not None:
            made.add(shard, vectors(shard.texts))
        assert list(made.done()) == []
    while (shard := made.next(1)) is not None:
        made.add(shard, vectors(shard.texts))
    with pytest.raises(RowsLost, match="check the disk"):
        list(made.done())
    assert made.encoded == 3 * len(TEXTS)


def test_what_does_not_fit_beside_what_is_asked_waits_and_a_full_store_begins_anew(tmp_path: Path) -> None:
    room = 150 * WIDTH * 4 + 60_000  # rows of half the texts, and the keys' file
    made = shards(tmp_path / "model", limit=room)
    for start in (0, 150):
        made.ask(TextQueue(TEXTS[start : start + 150], "", ""))
    made.ask(TextQueue(TEXTS[:20], "", ""))
    encoded = list[str]()
    answered = 0
    while answered < 3:
        shard = made.next(1)
        assert shard is not None
        encoded += shard.texts
        made.add(shard, vectors(shard.texts))
        for asked, rows in made.done():
            np.testing.assert_array_equal(rows, vectors(asked.texts))
            answered += 1
    assert 300 <= len(encoded) <= 320  # the first twenty may have made room for the others
    with pytest.raises(StudyError, match="embeddings_gb is too small"):
        made.ask(TextQueue([*map(str, range(5000))], "", ""))
