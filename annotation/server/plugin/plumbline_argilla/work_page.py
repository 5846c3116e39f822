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

from argilla_server import database
from argilla_server.models import Dataset
from argilla_server.settings import settings
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from argilla_embedded.hosts import named
from argilla_embedded.setup import Setup

from . import rate
from .crowd_pages import guarded, literal, page

HERE = Path(__file__).parent
RIGHT_TO_LEFT = ("ar", "ur")
WORDS: dict[str, dict[str, str]] = json.loads((HERE / "work_words.json").read_text(encoding="utf-8"))
#: The path under which a proxy has the server, empty for none: browsers need it in addresses, routes do not.
BASE = str(settings.base_url).removesuffix("/")
RATE, SCRIPT, STYLE = "/rate", f"{rate.WORK}/beside.js", f"{rate.WORK}/beside.css"


def mount(setup: Setup) -> None:
    """Add the pages to the application, before its static ones, and the bar to the static pages of this start.

    Call it once.
    """
    own = {rate.WORK: work, SCRIPT: beside, STYLE: style, RATE: work, f"{RATE}/{{dataset:uuid}}": rating}
    setup.app.router.routes[:0] = [Route(path, answer, methods=["GET"]) for path, answer in own.items()]
    added = f'<link rel="stylesheet" href="{BASE}{STYLE}"><script src="{BASE}{SCRIPT}" defer></script></body>'
    for file in setup.pages.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("</body>", added, 1), encoding="utf-8")


async def work(request: Request) -> HTMLResponse:
    """Return the page in the browser's first language that has words, or in English."""
    return await _page(request, "title", "work")


async def link_page(request: Request) -> HTMLResponse:
    """Return the page of a link."""
    return await _page(request, "invited", "link")


async def _page(request: Request, title: str, name: str) -> HTMLResponse:
    """Return a page, which says before anybody is signed in whose it is and whom to ask."""
    room = _room(request)
    words, studies = room["words"], await _studies()
    rows = []
    for study, contact in studies:
        rows += [(words["study"], study), *([(words["ask"], contact)] if contact else [])]
    rows.append((words["server"], named(f"//{request.headers.get('host', '')}")))
    about = "".join(f"<dt>{escape(label)}</dt><dd><bdi>{escape(value)}</bdi></dd>" for label, value in rows)
    whom = ", ".join(dict.fromkeys(contact for _, contact in studies if contact)) or words["sender"]
    whom = f"\u2068{whom}\u2069"  # in its own direction
    texts = {key: escape(word.replace("{whom}", whom)) for key, word in words.items()} | {"about": f"<dl>{about}</dl>"}
    body = re.sub(r"%(\w+)%", lambda found: texts[found[1]], _text(f"{name}.html"))
    room["words"] = {**words, "new_link": words["new_link"].replace("{whom}", whom)}
    return page(words[title], body, room=room, script=_script(room, f"{name}.js"))


async def _studies() -> list[tuple[str, str]]:
    """Return the name and contact of each study whose annotators rate here, as its datasets' tasks have them."""
    study, contact = (Dataset.metadata_["rate"][name].as_string() for name in ("study", "contact"))
    rated = select(study, contact).where(study.is_not(None), Dataset.name.not_like("%-crowd-%")).distinct()
    async with database.AsyncSessionLocal() as session:
        return sorted((str(name), str(whom or "")) for name, whom in await session.execute(rated))


async def rating(request: Request) -> HTMLResponse:
    """Return the rating page, which reads a dataset's task and items from Argilla's API in its reader's session.

    Its words are in the language of the queue, as the task's are: the last page too.
    """
    language = select(Dataset.metadata_["rate"]["language"].as_string()).where(
        Dataset.id == request.path_params["dataset"]
    )
    async with database.AsyncSessionLocal() as session:
        room = _room(request, str(await session.scalar(language)))
    nonce = secrets.token_urlsafe(16)
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


def _room(request: Request, wanted: str = "") -> dict[str, Any]:
    language = wanted if wanted in WORDS else language_of(request.headers.get("accept-language", ""))
    direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"
    return {"language": language, "direction": direction, "words": WORDS[language]}


def _script(room: dict[str, Any], *names: str) -> str:
    """Return our scripts, closed to everything else on a page, with the words of a language."""
    named = {
        "BASE": BASE,
        "LINK": f"{BASE}{rate.LINK}",
        "WORDS": room["words"],
        "LANGUAGE": room["language"],
        "DIRECTION": room["direction"],
    }
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
