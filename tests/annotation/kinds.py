"""HTEB's rubric with questions of other kinds beside its two, and studies that ask them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.prompts import PROMPTS

NATURAL: dict[str, Any] = {
    "name": "naturalness",
    "kind": "label",
    "title": {"en": "How does the new text sound?", "ar": "كيف يبدو النص الجديد؟"},
    "labels": {
        "natural": {"en": "Natural", "ar": "طبيعي"},
        "odd": {"en": "Odd in places", "ar": "غريب أحيانًا"},
        "wrong": {"en": "As nobody says it", "ar": "لا يقوله أحد"},
    },
}
FAULTS: dict[str, Any] = {
    "name": "faults",
    "kind": "multi_label",
    "required": False,
    "pools": ["paraphrasing"],
    "title": {"en": "What is wrong?"},
    "labels": {"grammar": {"en": "Grammar"}, "words": {"en": "Words"}, "meaning": {"en": "Meaning"}},
}
EFFORT: dict[str, Any] = {
    "name": "effort",
    "scale": [0, 1, 2],
    "pools": ["translation"],
    "title": {"en": "How hard was it to judge?"},
    "points": {0: {"en": "easy"}, 1: {"en": "some effort"}, 2: {"en": "hard"}},
    "required": False,
}
BETTER: dict[str, Any] = {"name": "better", "kind": "text", "title": {"en": "How would you say it?"}}
ORDER: dict[str, Any] = {
    "name": "order",
    "kind": "ranking",
    "title": {"en": "What suffered most?"},
    "labels": {"sense": {"en": "Its sense"}, "tone": {"en": "Its tone"}, "form": {"en": "Its form"}},
}
RULES: list[dict[str, Any]] = [
    {"question": "quality", "at_least": 3},
    {"question": "fluency", "at_least": 3},
    {"question": "naturalness", "label": "wrong", "at_most": 0.4},
]


def rubric(*questions: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """HTEB's rubric with more questions; negative controls sound wrong in no case, so that labels have no control."""
    content: dict[str, Any] = yaml.safe_load((PROMPTS / "rubrics" / "hteb.yaml").read_text(encoding="utf-8"))
    content |= {"name": "kinds", "questions": [*content["questions"], *questions]} | changes
    return content


def ask(patch: pytest.MonkeyPatch, folder: Path, content: dict[str, Any]) -> None:
    """Let studies ask a rubric of their own, `rubric: kinds`, as from `prompts/rubrics/kinds.yaml`."""
    (folder / "rubrics").mkdir(exist_ok=True)
    (folder / "rubrics" / "kinds.yaml").write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    patch.setattr("plumbline.prompts.prompt_folders", lambda: (folder, PROMPTS))
