"""The English words of the crowd workers' pages; other languages come with the room (`annotation/crowd/words`)."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

WORDS = {
    "title": "Compare pairs of texts",
    "intro": "You will rate {n} pairs of texts.",
    "consent": "Your consent",
    "agree": "I agree",
    "begin": "Begin",
    "not_part": "I do not want to take part",
    "returns": "this returns your place on Prolific",
    "go_on": "Go on",
    "welcome_back": "Welcome back",
    "one_moment": "One moment",
    "opening": "Your pairs are being opened.",
    "allow_script": "Please allow JavaScript for this page.",
    "answered": "You have answered every pair. Your completion code is",
    "complete": "Complete on Prolific",
    "thank_you": "Thank you",
    "left_one": "{n} pair is still to be rated.",
    "left_many": "{n} pairs are still to be rated.",
    "too_few_title": "Too few pairs are rated",
    "too_few": "You rated {rated} of {all} pairs and discarded the others. For the completion code at least {least}"
    " pairs have to be rated. Discarded pairs can still be rated.",
    "not_go_on": "I do not want to go on",
    "questions": "Questions:",
}


def on_platform(room: Mapping[str, Any], text: str) -> str:
    """Put the name of the participants' platform into a wording."""
    return text.replace("Prolific", str(room.get("title", "Prolific")))


def said(room: Mapping[str, Any], name: str, **numbers: int) -> str:
    """Return a wording in the room's language if it has one, with its numbers; not escaped."""
    text = on_platform(room, str((room.get("words") or {}).get(name) or WORDS[name]))
    for key, number in numbers.items():
        text = text.replace(f"{{{key}}}", str(number))
    return text


def shown(room: Mapping[str, Any], name: str, **numbers: int) -> str:
    """Return a wording as `said` does, escaped for HTML."""
    return escape(said(room, name, **numbers))


def place(room: Mapping[str, Any]) -> tuple[str, str]:
    """Return the language and direction of a room's pages, by default English from left to right."""
    worded = bool(room.get("words"))
    return (str(room["language"]), str(room.get("direction", "ltr"))) if worded else ("en", "ltr")
