from __future__ import annotations

import unicodedata

import hypothesis.strategies as st
import pytest
from hypothesis import given

from plumbline.words import count_words, printable, printable_line

TURNS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # bidi embeddings, overrides, isolates


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


@given(st.text(st.characters(max_codepoint=0xDFF)))  # no script that is written without spaces
def test_words_are_what_white_space_separates(text: str) -> None:
    assert count_words(text) == len(text.split())


@given(st.text(st.characters(), max_size=40))  # lone surrogates too
def test_nothing_that_is_printed_steers_a_terminal(text: str) -> None:
    for shown in (printable(text), printable_line(text)):
        left = {unicodedata.category(sign) for sign in shown} - {"Cf"}
        assert not left & {"Cs", "Zl", "Zp"} and not (
            set(map(ord, shown)) & (set(range(32)) | set(range(127, 160)) | TURNS)
        ) - {9, 10}
        assert printable(shown) == shown
    assert not set(printable_line(text)) & set("\n\t") and "  " not in printable_line(text)


def test_scripts_from_right_to_left_stay_as_they_are() -> None:
    texts = ["می\u200cخواهم", "שלום\u200f, עולם!", "أهلاً\u061c 5", "👩\u200d🔬", "क्\u200dष", "café\u0301 — “ok”"]
    assert [printable_line(text) for text in texts] == texts
    assert printable_line("a\x1b[2J\u202eb\u2028c\x9b") == r"a\x1b[2J\u202eb c\x9b"
