"""Near-duplicates: found exactly as by comparing every two texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.sampling.candidates import NEAR, DuplicateIndex, overlap, words_of


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("The cat sat.", "the CAT sat", 1.0),
        ("“Where?”, she said", "she said: where", 1.0),
        ("turn on the light", "turn off the light", 3 / 5),  # 3 shared of 5: on and off differ
        ("a b c d e f g h i", "a b c d e f g h j", 8 / 10),  # one word in nine: just a near-duplicate
        ("Straße", "STRASSE", 1.0),
        ("猫が好きです", "犬が好きです", 4 / 6),  # pairs of characters: 5 each, 4 shared
        ("?!", "...", 0.0),
    ],
)
def test_overlap_is_of_words_and_not_of_their_dress(one: str, other: str, shared: float) -> None:
    assert overlap(words_of(one), words_of(other)) == pytest.approx(shared)


WORDS = st.frozensets(st.sampled_from([letter * length for letter in "abcdef" for length in (1, 2, 5)]), min_size=1)


@given(st.lists(WORDS, max_size=12), WORDS)
def test_a_near_duplicate_is_found_where_comparing_all_finds_one(
    texts: list[frozenset[str]], asked: frozenset[str]
) -> None:
    seen = DuplicateIndex()
    for text in texts:
        seen.add(["here"], text)
    assert seen.near(["here"], asked) == any(overlap(asked, text) >= NEAR for text in texts)
    assert not seen.near(["elsewhere"], asked)
