from __future__ import annotations

import time

import hypothesis.strategies as st
import pytest
from hypothesis import given

from generation.flags import clean

PIECES = ["<think>", "</think>", "<THINKING>", "</reasoning>", "[THINK]", "[/THINK]", "<th", "ink>", "```", "````", "`"]
PIECES += ["<|im_end|>", "<eos>"]
PIECES += ["json", "\n", " ", "\u200b", '"', "'", "“", "”", "„", "‘", "’", "«", "»", "「", "」", "a", "Ein Mann", "、"]
ANSWERS = st.lists(st.sampled_from(PIECES) | st.text(st.characters(exclude_categories=()), max_size=5)).map("".join)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        # White space, and what shows as nothing.
        ("\n  A man plays.\t\u00a0\n", "A man plays."),
        ("\ufeffA man\u200b", "A man"),
        (" \n\u200b ", ""),
        # Thinking blocks.
        ("<think>The user wants me to ...</think>\n\nUn homme joue.", "Un homme joue."),
        ("<THINKING>one</THINKING> A <reasoning>two</reasoning> B", "A   B"),
        ("[THINK]Magistral's[/THINK]Un homme", "Un homme"),
        ("<think>cut off before it was closed", ""),
        ("A man plays. <think>and then", "A man plays."),
        ("opened by the chat template</think>\nEin Mann", "Ein Mann"),
        ("<think>a <think>b</think> c</think> Ein Mann", "Ein Mann"),
        ("Hm <think>a</think> b</think> Ein Mann", "Ein Mann"),  # the last closing tag ends all that is before it
        ("<think></think>", ""),
        ("<th<think>x</think>ink> y", "<th ink> y"),  # no new tag comes of it
        ("I think so", "I think so"),
        # Fences.
        ("```\nEin Mann\n```", "Ein Mann"),
        ("```text\nEin Mann\nund eine Frau\n```", "Ein Mann\nund eine Frau"),
        ("```Ein Mann```", "Ein Mann"),
        ("````\nEin Mann\n````", "Ein Mann"),
        ("```\na\n``` and ```\nb\n```", "```\na\n``` and ```\nb\n```"),
        ("Here: ```\na\n```", "Here: ```\na\n```"),
        ("```\nnever closed", "```\nnever closed"),
        # One pair of quotes.
        ('"A man plays."', "A man plays."),
        ("“A man plays.”", "A man plays."),
        ("„Ein Mann spielt.“", "Ein Mann spielt."),
        ("« Un homme joue. »", "Un homme joue."),
        ("»Ein Mann spielt.«", "Ein Mann spielt."),
        ("「男が演奏する。」", "男が演奏する。"),
        ("'It's a man's world.'", "It's a man's world."),
        ("‘It’s a man’s world.’", "It’s a man’s world."),
        ("“He said “hello” to her”", "He said “hello” to her"),
        ('"a" and "b"', '"a" and "b"'),
        ("“a” and “b”", "“a” and “b”"),
        ("„a“ und „b“", "„a“ und „b“"),
        ("'dogs' and 'cats'", "'dogs' and 'cats'"),
        ('"A man', '"A man'),
        ('He said "yes"', 'He said "yes"'),
        ('""', ""),
        ('"', '"'),
        ('"“twice”"', '"“twice”"'),  # two pairs: one of them may be the text's own
        # One in the other, whatever is outside.
        ('<think>x</think>\n"```\nEin Mann\n```"', "Ein Mann"),
        ('```\n"Ein Mann"\n```', "Ein Mann"),
        # A turn's end.
        ("Ein Mann<|im_end|>", "Ein Mann"),
        ('"Ein Mann"<end_of_turn>\n', "Ein Mann"),
        ('"Ein Mann<|eot_id|>" <|end_of_text|>', "Ein Mann"),
        ("<|im_end|>", ""),
        # What is no wrapping stays.
        ("Ein Mann<|im_end|>\nDanke", "Ein Mann<|im_end|>\nDanke"),
        ("Translation: Ein Mann", "Translation: Ein Mann"),
        ('{"text": "Ein Mann"}', '{"text": "Ein Mann"}'),
        ("why\n[BEGIN FINAL RESPONSE]\nEin Mann", "why\n[BEGIN FINAL RESPONSE]\nEin Mann"),
    ],
)
def test_wrappings_go_and_texts_stay(answer: str, text: str) -> None:
    assert clean(answer) == text


@given(ANSWERS)
def test_cleaning_twice_is_cleaning_once(answer: str) -> None:
    once = clean(answer)
    assert clean(once) == once


@given(ANSWERS)
def test_nothing_is_added_but_a_space_in_a_blocks_place(answer: str) -> None:
    left = iter(answer)
    assert all(character in left for character in clean(answer).replace(" ", ""))  # a subsequence


@pytest.mark.parametrize(
    "piece",
    ["<think>", "</think>", "<think>a</think>", '"', "'", "“", "«»", "`", "```\n", "\n", "\u200b", "[THINK", "<eos>"],
)
def test_time_grows_with_length_and_no_faster(piece: str) -> None:
    # 500 kB, linearly, take some 0.05 s; in the square of the length they would take many minutes.
    answer = piece * (500_000 // len(piece))
    start = time.process_time()
    clean(answer)
    assert time.process_time() - start < 10
