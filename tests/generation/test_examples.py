"""The example functions: what they change, and that equal arguments give equal texts."""

from __future__ import annotations

import hashlib

import pytest

from generation.examples import casing, negation, typos, word_order
from plumbline.study import ROOT


@pytest.mark.parametrize(
    ("text", "opposite"),
    [
        ("The bakery is open.", "The bakery is not open."),
        ("The bakery is not open.", "The bakery is open."),
        ("She gave up smoking.", "It is not true that she gave up smoking."),
    ],
)
def test_the_example_says_the_opposite(text: str, opposite: str) -> None:
    assert negation(text, language="en", seed=1) == opposite
    with pytest.raises(ValueError, match="not English"):
        negation(text, language="de", seed=1)


def test_the_other_examples_change_what_they_say_and_nothing_else() -> None:
    text = "The bakery on the corner sells out of bread before nine every morning."
    wrong = typos(text, language="en", seed=1)
    assert wrong != text and sorted(wrong) == sorted(text) and wrong == typos(text, language="en", seed=1)
    moved = word_order(text, language="en", seed=1)
    assert moved != text and sorted(moved.split()) == sorted(text.split())
    assert {typos(text, language="en", seed=seed) for seed in range(20)} > {wrong}
    for function in (typos, word_order):
        with pytest.raises(ValueError, match="no "):
            function("A", language="en", seed=1)


def test_casing_goes_both_ways() -> None:
    assert casing("Where is it?", language="en", seed=1) == "WHERE IS IT?"
    assert casing("WHERE IS IT?", language="en", seed=1) == "where is it?"
    with pytest.raises(ValueError, match="no other case"):
        casing("123", language="en", seed=1)


def test_the_source_is_the_one_that_outputs_of_before_were_made_by() -> None:
    """It is part of the identity of what functions make: another name of a variable makes all of it anew."""
    source = (ROOT / "generation" / "examples.py").read_bytes()
    assert hashlib.sha256(source).hexdigest() == "00641d83b6ff998bd11d9adeb60c42e1a2d416bb43c5f54f945aa69f2956279f"
