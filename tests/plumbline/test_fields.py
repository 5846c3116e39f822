"""What raters read of a pair, whatever it is of."""

from __future__ import annotations

import pytest

from plumbline.fields import fields_of, messages
from plumbline.records import Pair

PAIR = Pair(
    pair_id="p", key="k", transformation="paraphrasing", axis="lexical_stylistic", pool="paraphrasing", dataset="d",
    task_type="sts", language="en", output_language="ar", seed=1, original="A text.", transformed="Another.", model="m",
    generator_hash="g", prompt_hash="h",
)  # fmt: skip
CHAT = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]


def test_a_pair_of_a_transformation_has_two_texts_in_their_languages() -> None:
    found = [(one.name, one.kind, one.text, one.language) for one in fields_of(PAIR)]
    assert found == [("original", "text", "A text.", "en"), ("transformed", "text", "Another.", "ar")]


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (CHAT, ""),
        ("user: Why?", "is not a list of messages"),
        ([], "is not a list of messages"),
        ([{"role": "user"}], "message 1 is not an object with a role and a content"),
        ([CHAT[0], {"role": "user", "content": " "}], "message 2 has an empty role or content"),
        ([{"role": "user", "content": 3}], "message 1 has an empty role or content"),
    ],
)
def test_a_chat_is_a_list_of_roles_and_contents(value: object, wrong: str) -> None:
    assert messages(value) == wrong
