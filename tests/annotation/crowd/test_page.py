"""The pages before and after Argilla's own, as a room words them."""

from __future__ import annotations

from typing import Any

import pytest

from annotation.crowd.page import prolific_words
from annotation.page.task import direction
from annotation.server.plugin.plumbline_argilla import crowd_pages as pages

ROOM: dict[str, Any] = {
    "records": 3, "guidelines": "# Guidelines", "consent": "Yes?", "return_code": "BACK", "code": "DONE",
    "contact": "lab@example.org", "dataset_id": "7b1d6e0e-1f6b-4b3e-9d2a-0c5a8f1e2d3c",
    "language": "de",
}  # fmt: skip


def every(room: dict[str, Any]) -> list[str]:
    made = [
        pages.entrance("room", room, "ticket"),
        pages.resume("room", room, 1, "ticket"),
        pages.resume("room", room, 2, "ticket"),
        pages.sign_in(room, "token", 1, "/target"),
        pages.finished(room, "someone"),
        pages.too_few_rated(room, 1, 2),
    ]
    return [bytes(page.body).decode() for page in made]


@pytest.mark.parametrize("code", ["ar", "ur", "tr", "de"])
def test_pages_are_in_the_rooms_language_and_direction(code: str) -> None:
    words = prolific_words(code)
    made = every(ROOM | {"language": code, "direction": direction(code), "words": words})
    start = f'<html lang="{code}" dir="{"rtl" if code in ("ar", "ur") else "ltr"}">'
    assert all(start in page for page in made)
    whole = "\n".join(made)
    for name, word in words.items():
        said = word.replace("{n}", "3" if name == "intro" else "2")
        for place, number in {"rated": 1, "all": 3, "least": 2}.items():
            said = said.replace(f"{{{place}}}", str(number))
        assert name == "done_link" or said.replace("'", "&#x27;") in whole, name


def test_words_are_text() -> None:
    made = every(ROOM | {"words": {"title": "<b>", "go_on": "<i>"}, "direction": '"><script>'})
    assert not any("<b>" in page or "<i>" in page or '"><script>' in page for page in made)
