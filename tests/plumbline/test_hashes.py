"""Hashes and texts in little memory are what they would be in a list and a dictionary."""

from __future__ import annotations

import random

import numpy as np
import pytest

from plumbline import hashes as module
from plumbline.hashes import Hashes, TextsByHash, numbered, packed

DRAW = random.Random(1337)
DIGITS = [f"{DRAW.getrandbits(128):032x}" for _ in range(500)]
ODD = ["0" * 32, "f" * 32, f"{1:032x}", f"{1:x}{'0' * 31}", f"{'a' * 16}{'0' * 16}", f"{'a' * 16}{'0' * 15}1"]
ALL = [*DIGITS, *ODD]  # that end in bytes of 0, which numpy takes off; that share their first half


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE", 7)


def test_hashes_are_read_as_they_were() -> None:
    made = Hashes.of(iter(ALL), "here")
    assert list(made) == ALL and len(made) == len(ALL) and made.packed.nbytes == 16 * len(ALL)
    assert [made[place] for place in range(len(ALL))] == ALL and list(made[3:9]) == ALL[3:9] and made[-1] == ALL[-1]
    assert packed(made, "here") is made.packed and list(Hashes.of([], "here")) == []


def test_distinct_hashes_have_numbers_in_the_order_in_which_they_come() -> None:
    drawn = [DRAW.choice(ALL) for _ in range(2_000)]
    firsts, places = numbered(Hashes.of(drawn, "here").packed)
    distinct = list(dict.fromkeys(drawn))
    assert firsts.tolist() == [drawn.index(one) for one in distinct]
    assert [distinct[place] for place in places.tolist()] == drawn
    assert [found.tolist() for found in numbered(np.empty(0, "S16"))] == [[], []]


def test_texts_by_hash_are_those_of_a_dictionary() -> None:
    known = {one: f"text \U0001f600 {place}" if place % 9 else "" for place, one in enumerate(ALL)}
    made = TextsByHash(Hashes.of(known, "here").packed, TextsByHash.array(known.values()))
    assert made == known and list(made) == sorted(known) and len(made) == len(known)
    near = [f"{(int(one, 16) ^ 1):032x}" for one in ALL if f"{(int(one, 16) ^ 1):032x}" not in known]
    assert len(near) > 400 and not any(one in made or made.get(one) for one in near)
    nothing = TextsByHash(np.empty(0, "S16"), TextsByHash.array([]))
    assert not nothing and "a" * 32 not in nothing
