from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from plumbline.words import count_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        (" \n\t", 0),
        ("A man is playing a guitar.", 6),
        ("well-known e.g. don't", 3),
        ("one - two", 3),  # punctuation that stands alone counts, as in the papers
        ("!!!", 1),
        ("👍 👍🏽", 2),
        ("https://example.com/a", 1),
        ("남자가 기타를 연주한다.", 3),  # Korean has spaces
        ("رجل يعزف على الغيتار", 4),
        ("一个男人在弹吉他。", 4),  # 8 characters: 8 / 2
        ("男性がギターを弾いています。", 7),  # 13 characters: 13 / 2, rounded up
        ("「猫」", 1),
        ("。。。", 1),
        ("iPhoneを買う", 3),  # iPhone, 3 characters: 1 + 2
        ("5月", 2),
        ("你好 world", 2),
        ("สวัสดีครับ", 3),  # 10 characters with their vowel signs: 10 / 4, rounded up
        ("ສະບາຍດີ", 2),
        ("សួស្តី", 2),
        ("မင်္ဂလာပါ", 3),
    ],
)
def test_words_in_many_scripts(text: str, words: int) -> None:
    assert count_words(text) == words


@given(st.text(), st.text())
def test_texts_side_by_side_have_the_words_of_both(one: str, other: str) -> None:
    assert count_words(f"{one} {other}") == count_words(one) + count_words(other)


@given(st.text(st.characters(max_codepoint=0xDFF)))  # no script that is written without spaces
def test_words_are_what_white_space_separates(text: str) -> None:
    assert count_words(text) == len(text.split())
