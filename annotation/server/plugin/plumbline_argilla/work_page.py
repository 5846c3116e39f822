"""An annotator's own page, `/work`: signing in, what is done and left over all datasets, and the way to the next item.

Argilla's home page shows how far a dataset is, not how far its reader is, and a study has a dataset for each queue.
All numbers come from Argilla's API, asked with the reader's own session: the page knows nothing that its reader may not
see.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from .crowd_pages import literal, page

HERE = Path(__file__).parent
RIGHT_TO_LEFT = ("ar", "ur")
WORDS: dict[str, dict[str, str]] = json.loads((HERE / "work_words.json").read_text(encoding="utf-8"))


def mount(app: FastAPI) -> None:
    """Add the page to the application, before its own static ones. Call it once."""
    app.router.routes.insert(0, Route("/work", work, methods=["GET"]))


async def work(request: Request) -> HTMLResponse:
    """The page, in the first language of the browser's that there are words in; else in English."""
    language = language_of(request.headers.get("accept-language", ""))
    words = WORDS[language]
    body = re.sub(r"%(\w+)%", lambda found: escape(words[found[1]]), (HERE / "work.html").read_text(encoding="utf-8"))
    script = f"const WORDS = {literal(words)};\n{(HERE / 'work.js').read_text(encoding='utf-8')}"
    direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"
    room = {"language": language, "direction": direction, "words": words}
    return page(words["title"], body, room=room, script=script)


def language_of(accepted: str) -> str:
    """The first language of an `Accept-Language` header that there are words in, by its weights."""
    found = []
    for place, part in enumerate(accepted.split(",")[:50]):
        match = re.fullmatch(r"\s*([a-zA-Z]{2,3})(?:-[\w-]{1,40})?\s*(?:;\s*q=([01](?:\.\d{0,3})?))?\s*", part)
        if match is not None and match[1].lower() in WORDS and (weight := float(match[2] or 1)):
            found.append((-weight, place, match[1].lower()))
    return min(found)[2] if found else "en"
