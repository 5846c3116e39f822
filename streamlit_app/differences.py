"""Two texts side by side with the words that differ marked: their words are escaped, only the marks are HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from html import escape

import streamlit as st

from plumbline.words import HAN_AND_KANA, THAI_LAO_KHMER_MYANMAR

LONGEST = 3000  # words of both texts, up to which their differences are looked for: the time grows with the square
# Where a script is written without spaces its characters stand for words, as in `generation.compare`.
_TOKEN = re.compile(rf"\s+|[{HAN_AND_KANA}{THAI_LAO_KHMER_MYANMAR}]|[^\s{HAN_AND_KANA}{THAI_LAO_KHMER_MYANMAR}]+")
_BOX = "white-space: pre-wrap; overflow-wrap: anywhere; margin: 0"
# Tints that letters can be read on, on light and dark pages; a line tells them apart without colours.
_GONE = "background-color: #D55E0040; text-decoration: line-through; color: inherit"
_NEW = "background-color: #0072B240; text-decoration: underline; color: inherit"


def marked(original: str, transformed: str) -> tuple[str, str]:
    """Both texts as HTML: words that are gone struck out in the first, new ones underlined in the second."""
    first, second = _TOKEN.findall(original), _TOKEN.findall(transformed)
    if len(first) + len(second) > 2 * LONGEST:
        return _box(escape(original)), _box(escape(transformed))
    gone, new = [], []
    for what, start, end, begin, finish in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        before, after = escape("".join(first[start:end])), escape("".join(second[begin:finish]))
        gone.append(before if what == "equal" or not before else f'<del style="{_GONE}">{before}</del>')
        new.append(after if what == "equal" or not after else f'<ins style="{_NEW}">{after}</ins>')
    return _box("".join(gone)), _box("".join(new))


def side_by_side(original: str, transformed: str, names: tuple[str, str]) -> None:
    """Both texts in boxes with their names above them."""
    for column, name, content in zip(st.columns(2), names, marked(original, transformed), strict=True):
        with column.container(border=True):
            st.text(name)
            st.html(content)


def stacked(texts: Iterable[tuple[str, str]]) -> None:
    """Texts in boxes, one below another, with their names above them."""
    for name, text in texts:
        with st.container(border=True):
            st.text(name)
            st.html(_box(escape(text)))


def _box(content: str) -> str:
    return f'<p dir="auto" style="{_BOX}">{content}</p>'
