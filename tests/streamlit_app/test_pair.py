"""Words that differ are marked, and texts stay texts."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from streamlit_app.pair import marked

_MARKS = re.compile(r"</?(?:p|del|ins)(?: [^<>]*)?>")


def plain(content: str) -> str:
    return html.unescape(_MARKS.sub("", content))


def test_what_is_gone_and_what_is_new() -> None:
    first, second = marked("a cat sat", "a dog sat")
    assert re.findall(r"<del[^>]*>(.*?)</del>", first) == ["cat"]
    assert re.findall(r"<ins[^>]*>(.*?)</ins>", second) == ["dog"]
    assert "<ins" not in first
    assert "<del" not in second


def test_equal_texts_have_no_marks_and_characters_count_where_words_have_no_spaces() -> None:
    assert not any("<del" in part or "<ins" in part for part in marked("same words", "same words"))
    assert re.findall(r"<ins[^>]*>(.*?)</ins>", marked("我爱猫", "我爱狗")[1]) == ["狗"]


@given(st.text(), st.text())
def test_every_letter_is_there_and_none_is_markup(original: str, transformed: str) -> None:
    for text, content in zip((original, transformed), marked(original, transformed), strict=True):
        assert plain(content) == text
        assert set(re.findall(r"<(/?\w+)", content)) <= {"p", "/p", "del", "/del", "ins", "/ins"}
