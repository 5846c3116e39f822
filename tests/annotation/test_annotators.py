"""Who gets a letter, and what is said where somebody gets none."""

from __future__ import annotations

from annotation.annotators import (
    AnnotatorProgress,
    remind,
    unwritten,
)


def standing(name: str, left: int | None, *, excluded: bool = False, **remarks: str) -> AnnotatorProgress:
    return AnnotatorProgress(name, f"rater-{name}", 3, left, None, excluded, False, remarks)


def test_who_is_behind_is_reminded_who_is_done_thanked_and_who_gets_no_letter_is_said() -> None:
    found = [
        standing("ada", 5, behind="few answers"),
        standing("bob", 4),
        standing("cyd", 0, fast="4 s a pair", done="all items are answered"),
        standing("dan", 6, excluded=True),
        standing("eve", None),
    ]
    letters = {one.name: one.text for one in remind("demo", found, {"cyd": ["de"]}, "")}
    assert list(letters) == ["ada", "cyd"]
    assert letters["ada"].startswith("A reminder: demo\n") and letters["cyd"].startswith("Vielen Dank: demo\n")
    said = unwritten(found)
    assert (
        said.startswith("No letter to bob: they have open items but are not behind (raters are behind if they have ")
        and "0.5 times" in said
        and "7 days" in said
    )
    assert unwritten(found[2:]) == ""
