"""Words and text queries: what is read, and what it matches."""

from __future__ import annotations

import contextlib
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argilla_embedded.evaluation import matches
from argilla_embedded.index import Cache, Kept, Parts, distance, nothing
from argilla_embedded.query import QueryTooLargeError, parse
from argilla_embedded.text import ASCII_WORD, word_pattern, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't STOP: 3.14, 1,000 and e.g. example.com!", "don't stop 3.14 1,000 and e.g example.com"),
        ("pay-off a_b _ __ (x)", "pay off a_b x"),
        ("3.a a.3 a:b 1'2 don’t", "3 a a 3 a:b 1'2 don’t"),
        ("東京へ行く", "東 京 へ 行 く"),
        ("カタカナとコーヒーabc", "カタカナ と コーヒー abc"),
        ("한국어 단어abc", "한국어 단어abc"),
        ("ÉCOLE Straße ΣΑΣ İx", "école straße σασ ix"),
        ("cafe\u0301 soft\u00adhyphen", "cafe\u0301 soft\u00adhyphen"),
        ("हिन्दी में العربية עברית", "हिन्दी में العربية עברית"),
        ("ภาษาไทย text", "ภาษาไทย text"),
        ("m² ½ ①", "m"),
        ("hi 👍🏽👩‍👩‍👧 🇩🇪🇫🇷", "hi 👍🏽 👩‍👩‍👧 🇩🇪 🇫🇷"),
        ("!? … — \u200b", ""),
    ],
)
def test_words_are_cut_as_unicode_says(text: str, expected: str) -> None:
    assert words(text) == expected.split()


def test_a_word_has_255_characters_at_most() -> None:
    assert [len(word) for word in words("x" * 600)] == [255, 255, 90]


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_quick_way_through_ascii_is_the_same(text: str) -> None:
    assert ASCII_WORD.findall(text.lower()) == word_pattern().findall(text.lower())


@given(st.text())
def test_words_lose_no_letter_and_no_digit(text: str) -> None:
    kept = [one for one in text.lower() if unicodedata.category(one)[0] == "L" or unicodedata.category(one) == "Nd"]
    found = set("".join(words(text)))
    assert {one for one in kept if ord(one) not in (0x3A3, 0x3C2, 0x307)} <= found | {"σ"}


#: Queries by another one that means the same.
SAME = {
    "a": ["+a", "((a", "a))", "() a", "--a", "- a", "!? a ...", "a~0", "a~x", "a~-1", "a~99999999999", r"a\*", r"\-a",
          r"\(a\)", '"a"~3'],
    "a~2": ["a~", "a~99"],
    "a b": ["a + + b", '"a b', "a | () b", 'a | "" b', r"\"a b\""],
    '"a b"': ['"a b"~', '"a b"~x'],
    "a | b": ["a | + b"],
    "(a | b) + c": ["a | b c"],
    "((a b) | c) d": ["a b | c d"],
}  # fmt: skip


@pytest.mark.parametrize(("query", "same"), [(query, same) for same, queries in SAME.items() for query in queries])
def test_queries_that_mean_the_same(query: str, same: str) -> None:
    assert parse(query) == parse(same) != None  # noqa: E711  # neither is nothing


@pytest.mark.parametrize("query", ["", " ", "()", '""', "!?", "-", "|", "~", "(((", ")))", '"', "\\", "+-|~()", "-!"])
def test_a_query_without_a_word_is_nothing(query: str) -> None:
    assert parse(query) is None


TEXTS = {
    "order": "the quick brown fox",
    "exchanged": "the brown quick fox",
    "far": "quick one two brown",
    "twice": "tick tick tock",
    "cut": "a pay-off",
    "apart": "a pay day and an off day",
}


#: Queries by the texts that they match.
MATCHED = {
    "": ['"fox the"~3', '"tock tock"~9', "pay-o*", "quikc~1"],
    "order": ['"quick brown"', '"quick brown"~1'],
    "order exchanged": ['"quick fox"~1', '"fox the"~4'],
    "order exchanged far": ['"quick brown"~2', "qui*", "quikc~2", "quic~1"],
    "order exchanged twice": ["fox | tock"],
    "far": ["quick -fox"],
    "twice": ['"tick tick"', '"tick tock"~1', '"tock tick"~2', "-quick -pay", "(fox | tock) -quick"],
    "cut": ['"pay off"'],
    "cut apart": ["pay-off"],
    "order exchanged far twice cut apart": ["*"],
}


@pytest.mark.parametrize(("query", "expected"), [(query, told) for told, asked in MATCHED.items() for query in asked])
def test_what_queries_match(query: str, expected: str) -> None:
    found = nothing().joined(list(TEXTS), [[(0, [text])] for text in TEXTS.values()])
    assert set(matches(found, parse(query))) == set(expected.split())


def test_better_matches_come_first() -> None:
    texts = ["cat", "cat cat dog dog", "cat " + "dog " * 20, "dog", "cats", "cat mouse"]
    found = nothing().joined([str(i) for i in range(6)], [[(0, [text])] for text in texts])
    score = matches(found, parse("cat | mouse"))
    assert score["5"] > score["0"] > score["1"] > score["2"] > 0  # the rarer word; then the shorter text
    fuzzy = matches(found, parse("cat~1"))
    assert fuzzy["0"] > fuzzy["4"] > 0
    near = nothing().joined(["near", "far"], [[(0, ["a b x x"])], [(0, ["a x x b"])]])
    scores = matches(near, parse('"a b"~5'))
    assert scores["near"] > scores["far"] > 0


def test_messages_of_a_chat_are_one_field_and_no_phrase_crosses_them() -> None:
    found = nothing().joined(["r"], [[(0, ["one two", "three four"])]])
    assert matches(found, parse("two-three")) and not matches(found, parse('"two three"~50'))
    assert matches(found, parse("one"), {0}) and not matches(found, parse("one"), {1})


@pytest.mark.parametrize(
    "query",
    ["(" * 100_000, "(" * 50_000 + "a" + ")" * 50_000, '"' * 99_999, "-" * 100_000 + "a", "\\" * 99_999, "~" * 100_000,
     "a~\\(" * 25_000, '("' * 50_000 + ")" * 50_000, "x" * 100_000, "x" * 255 + "~ " * 3, "|" * 100_000],
)  # fmt: skip
def test_hostile_queries_are_answered(query: str) -> None:
    found = nothing().joined(["r"], [[(0, ["a b c"])]])
    with contextlib.suppress(QueryTooLargeError):
        assert set(matches(found, parse(query))) <= {"r"}


def test_words_are_read_anew_when_and_only_when_a_record_has_changed() -> None:
    texts = {"1": "old", "2": "same"}
    asked: list[list[str]] = []

    def read(ids: Any) -> dict[str, tuple[int, Parts]]:
        asked.append(list(ids))
        return {id_: (stamps[id_], [(0, [texts[id_]])]) for id_ in ids if id_ in texts}

    kept, stamps = Kept({}), {"1": 1, "2": 1}
    assert set(matches(kept.current(stamps, read), parse("old"))) == {"1"}
    kept.current(stamps, read)
    texts["1"], stamps = "new", {"1": 2, "2": 1}
    assert set(matches(kept.current(stamps, read), parse("old | new"))) == {"1"}
    assert not matches(kept.current(stamps, read), parse("old"))
    stamps = {"1": 2}
    assert set(matches(kept.current(stamps, read), parse("*"))) == {"1"}
    assert asked[:2] == [["1", "2"], ["1"]] and len(kept.current(stamps, read).ids) == 1  # what is gone is cleared away
    texts.pop("1")
    stamps = {"1": 3}  # deleted after its time was read
    assert not matches(kept.current(stamps, read), parse("*"))


def test_the_words_of_few_datasets_are_kept() -> None:
    cache = Cache(most_bytes=1000)
    for name in "abc":
        kept = cache.of(name, {})
        kept.current({"1": 1, "2": 1}, lambda ids: {id_: (1, [(0, ["word"])]) for id_ in ids})
        cache.shrink()
    assert list(cache.kept) == ["c"] and cache.of("c", {"another": "text"}).stamps == {}


WORD = st.text(alphabet="abc", min_size=1, max_size=4)


@given(st.lists(WORD, max_size=8), WORD, st.integers(1, 2))
def test_edits_are_counted_as_by_the_definition(candidates: list[str], word: str, most: int) -> None:
    for found, candidate in zip(distance(candidates, word, most), candidates, strict=True):
        exact = plain_distance(candidate, word)
        assert found == exact if exact <= most else found > most


@given(st.text(max_size=60))
def test_any_text_at_all_is_a_query(query: str) -> None:
    found = nothing().joined(["r"], [[(0, [query])]])
    assert set(matches(found, parse(query))) <= {"r"}


def plain_distance(one: str, other: str) -> int:
    """Levenshtein's distance by its definition."""
    if not one or not other:
        return len(one) + len(other)
    if one[0] == other[0]:
        return plain_distance(one[1:], other[1:])
    return 1 + min(
        plain_distance(one[1:], other), plain_distance(one, other[1:]), plain_distance(one[1:], other[1:])
    )  # fmt: skip
