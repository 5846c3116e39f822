"""Texts that may not be handed on, where an output is one of them word for word: left out, and put back at use.

An output may copy its original, or stand as another text of the same data set. What stays is the hash of its words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.records import Text, text_id
from plumbline.words import trim

COPY = "copy_of"


def hashes_of(texts: Iterable[Text], handed_on: Collection[str]) -> dict[str, str]:
    """The hash of each text's words, as they are and without white space around them, but of those handed on."""
    return {
        words: text_id(words, text.language)
        for text in texts
        if text.text not in handed_on
        for words in (text.text, trim(text.text))
    }


def without(outputs: pa.Array, hashes: Mapping[str, str]) -> tuple[pa.Array, pa.Array]:
    """(outputs, empty where they are one of these texts; the hashes of those, empty elsewhere)."""
    if not hashes:
        return outputs, pa.array([""] * len(outputs), pa.string())
    places = pc.index_in(outputs, value_set=pa.array(hashes, pa.string()))
    copies = pc.fill_null(pa.array(hashes.values(), pa.string()).take(places), "")
    return pc.if_else(places.is_null(), outputs, ""), copies


def words_of(texts: Iterable[Text]) -> dict[str, str]:
    """The words of texts by the hashes that stand for them."""
    return {text_id(words, text.language): words for text in texts for words in (text.text, trim(text.text))}
