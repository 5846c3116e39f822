"""An annotator's own pages: `/work`, for signing in and seeing one's progress, and `/rate/<dataset>`, for rating.

Argilla's home page shows the progress of a dataset, not of its reader, and a study has a dataset for each queue. A bar
on Argilla's own pages says the same there (`beside.js`). All numbers come from Argilla's API with the reader's own
session: the pages know nothing that their reader may not see.
"""

from __future__ import annotations

import json
import re
import secrets
from html import escape
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from argilla_embedded.setup import Setup

from . import rate
from .crowd_pages import guarded, literal, page

HERE = Path(__file__).parent
RIGHT_TO_LEFT = ("ar", "ur")
WORDS: dict[str, dict[str, str]] = json.loads((HERE / "work_words.json").read_text(encoding="utf-8"))
PAGE, RATE = "/work", "/rate"
SCRIPT, STYLE = f"{PAGE}/beside.js", f"{PAGE}/beside.css"


def mount(setup: Setup) -> None:
    """Add the pages to the application, before its static ones, and the bar to the static pages of this start.

    Call it once.
    """
    own = {PAGE: work, SCRIPT: beside, STYLE: style, RATE: work, f"{RATE}/{{dataset:uuid}}": rating}
    setup.app.router.routes[:0] = [Route(path, answer, methods=["GET"]) for path, answer in own.items()]
    added = f'<link rel="stylesheet" href="{STYLE}"><script src="{SCRIPT}" defer></script></body>'
    for file in setup.pages.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("</body>", added, 1), encoding="utf-8")


async def work(request: Request) -> HTMLResponse:
    """Return the page in the browser's first language that has words, or in English."""
    room = _room(request)
    words = room["words"]
    body = re.sub(r"%(\w+)%", lambda found: escape(words[found[1]]), _text("work.html"))
    return page(words["title"], body, room=room, script=_script(room, "work.js"))


async def rating(request: Request) -> HTMLResponse:
    """Return the rating page, which reads a dataset's task and items from Argilla's API in its reader's session."""
    room, nonce = _room(request), secrets.token_urlsafe(16)
    script = _script(room, "rate.js", "rate_argilla.js")
    text = rate.document(
        room["words"]["title"],
        room["language"],
        room["direction"],
        rate.WORDS["no_script"],
        head=f'<style nonce="{nonce}">{rate.source("rate.css")}</style>',
        foot=f'<script nonce="{nonce}">{script}</script>',
    )
    return guarded(text, nonce, asks=True)


async def beside(request: Request) -> Response:
    """Return the bar's script, in the same language."""
    headers = {"Cache-Control": "no-store"}
    return Response(_script(_room(request), "beside.js"), media_type="text/javascript", headers=headers)


async def style(_: Request) -> Response:
    """Return the bar's style."""
    return FileResponse(HERE / "beside.css", media_type="text/css")


def _room(request: Request) -> dict[str, Any]:
    language = language_of(request.headers.get("accept-language", ""))
    direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"
    return {"language": language, "direction": direction, "words": WORDS[language]}


def _script(room: dict[str, Any], *names: str) -> str:
    """Return our scripts, closed to everything else on a page, with the words of a language."""
    named = {"WORDS": room["words"], "LANGUAGE": room["language"], "DIRECTION": room["direction"]}
    words = "".join(f"const {name} = {literal(value)};\n" for name, value in named.items())
    texts = "".join(_text(name) for name in ("work_shared.js", *names))
    return f"(() => {{\n'use strict';\n{words}{texts}}})();\n"


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def language_of(accepted: str) -> str:
    """Return the preferred language of an `Accept-Language` header that has words."""
    found = []
    for place, part in enumerate(accepted.split(",")[:50]):
        match = re.fullmatch(r"\s*([a-zA-Z]{2,3})(?:-[\w-]{1,40})?\s*(?:;\s*q=([01](?:\.\d{0,3})?))?\s*", part)
        if match is not None and match[1].lower() in WORDS and (weight := float(match[2] or 1)):
            found.append((-weight, place, match[1].lower()))
    return min(found)[2] if found else "en"
