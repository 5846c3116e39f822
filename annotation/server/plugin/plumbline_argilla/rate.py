"""The rating page as text, the same for every pool of raters: `rate.html` with its script, style and English words.

Each server adds the script and style with its own policy; `rate.js` describes a task, an item and a store.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
#: Where annotators begin on this server, and what links with a token open.
WORK = "/work"
LINK = f"{WORK}/link"
#: The page's English words; other languages are in `annotation/crowd/words`.
WORDS = {
    "no_script": "This task needs JavaScript. Please switch it on, or return the task.",
    "preview": "This is a preview. Accept the task to begin.",
    "trial": "This is a trial: nothing that you answer here is stored.",
    "instructions": "Instructions",
    "close": "Close",
    "begin": "Begin",
    "keyboard": "By keyboard: a number answers the marked question, Enter goes on, Backspace takes the last answer"
    " back, Escape leaves the comment.",
    "slider": "On a slider a number goes that many tenths of the way, or to the point itself on a short scale; arrow"
    " keys move it a step, Page keys further, Home and End to its ends; Enter leaves it.",
    "unanswered": "not answered yet",
    "ranking": "Give each a rank: 1 is the first. Equal ones may have the same rank.",
    "contact": "Questions about this task:",
    "consent": "Consent",
    "consent_missing": "Please read the consent and tick it.",
    "pair": "Pair {n} of {all}",
    "progress": "{n} of {all} pairs done",
    "session": "{n} in this session",
    "missing": '{pair}: please answer "{question}"',
    "next": "Next",
    "back": "Back",
    "cannot": "I cannot judge this pair (discard it)",
    "discarded": "You discarded this; Next leaves it so, and an answer takes its place. Your reason:",
    "no_language": "I do not know the language well enough",
    "damaged": "A text is empty, cut off or damaged",
    "another": "Another reason, which the comment says",
    "say_why": "Please write the reason in the comment.",
    "too_long": "The comment has {n} characters; {most} can be sent. Please shorten it.",
    "offline": "There is no connection. Go on: your answers are kept in this browser and sent as soon as it is back.",
    "expired": "You are signed out. Your answers are kept in this browser: sign in again, and they are sent.",
    "refused": "An answer was not taken: its item was withdrawn, or is no longer yours. All other answers are saved.",
    "elsewhere": "You answered this in another tab; here is the next one.",
    "submit": "Submit",
    "sending": "Sending",
    "thank_you": "Thank you",
    "finished": "Everything is answered and stored. You can close this page.",
    "all_answered": "Everything is answered. Submit your answers to finish.",
}


def document(title: str, language: str, direction: str, no_script: str, *, head: str, foot: str) -> str:
    """Return the page with its host's HTML: `head` (policy, style) before its title, `foot` (scripts) at its end."""
    texts = {"title": title, "language": language, "direction": direction, "no_script": no_script}
    parts = {name: escape(text) for name, text in texts.items()} | {"head": head, "foot": foot}
    return re.sub(r"%(\w+)%", lambda match: parts[match[1]], source("rate.html"))


def source(name: str) -> str:
    """Read one of the page's files."""
    return (HERE / name).read_text(encoding="utf-8")
