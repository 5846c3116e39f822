"""The pages that participants see before and after Argilla's own: plain HTML, with all foreign text escaped."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from .crowd_html import back, complete, contact, document, entrance_body
from .crowd_words import said, shown

COOKIE_SECONDS = 90 * 86400
ONCE = (
    "document.querySelector('form').addEventListener('submit', e => e.target.querySelector('button').disabled = true)"
)


def page(
    title: str, body: str, status: int = 200, *, room: Mapping[str, Any] | None = None, script: str = ""
) -> HTMLResponse:
    """Return a whole page in the language of a room: never cached, never framed, and without foreign content.

    Its script, if any, may call this server's API.
    """
    nonce = secrets.token_urlsafe(16)
    text = document(title, body, room or {}, script=script, nonce=nonce)
    return guarded(text, nonce, status, asks=bool(script))


def guarded(text: str, nonce: str, status: int = 200, *, asks: bool) -> HTMLResponse:
    """Return a page that runs only scripts and styles with this nonce; `asks` lets them call this server's API."""
    own_api = " connect-src 'self';" if asks else ""
    policy = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; form-action 'self';"
        f"{own_api} base-uri 'none'; frame-ancestors 'none'"
    )
    headers = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    return HTMLResponse(text, status, headers=headers)


def hand_cookie(reply: Response, request: Request, name: str, value: str, path: str) -> None:
    """Give a browser a cookie that its scripts cannot read, for one path of this server."""
    scheme = request.headers.get("x-forwarded-proto", request.scope["scheme"])
    secure = scheme.partition(",")[0].strip() == "https"  # of several proxies, the first one's
    reply.set_cookie(name, value, COOKIE_SECONDS, path=path, httponly=True, samesite="lax", secure=secure)


def entrance(room_id: str, room: Mapping[str, Any], ticket: str) -> HTMLResponse:
    """Return the page with instructions and consent."""
    return page(said(room, "title"), entrance_body(room_id, room, ticket), room=room, script=ONCE)


def resume(room_id: str, room: Mapping[str, Any], left: int, ticket: str) -> HTMLResponse:
    """Return the page for participants who have begun before, with the way to the rest."""
    body = (
        f"<p>{shown(room, 'left_one' if left == 1 else 'left_many', n=left)}</p>{contact(room)}"
        f'<form method="post" action="{escape(room_id)}">'
        f'<input type="hidden" name="ticket" value="{escape(ticket)}">'
        f'<p><button class="button">{shown(room, "go_on")}</button></p></form>'
    )
    return page(said(room, "welcome_back"), body, room=room, script=ONCE)


def sign_in(room: Mapping[str, Any], token: str, milliseconds: int, target: str) -> HTMLResponse:
    """Give the browser Argilla's own session, as its sign-in page would, and go on to the pairs."""
    # Argilla's pages (nuxt-auth 5, scheme `local`) keep the session under these names.
    session = {
        "auth.strategy": "local",
        "auth._token.local": f"Bearer {token}",
        "auth._token_expiration.local": str(milliseconds),
    }
    script = (
        f"for (const [name, value] of Object.entries({literal(session)})) localStorage.setItem(name, value);"
        f" location.replace({literal(target)})"
    )
    body = f"<p>{shown(room, 'opening')}</p><noscript><p>{shown(room, 'allow_script')}</p></noscript>"
    return page(said(room, "one_moment"), body, room=room, script=script)


def finished(room: Mapping[str, Any], person: str) -> HTMLResponse:
    """Return the page with the completion code, when everything is answered."""
    code = str(room["code"])
    body = (
        f"<p>{shown(room, 'answered')}</p><p class='code'>{escape(code)}</p>"
        f"{complete(room, person, said(room, 'complete'))}{contact(room)}"
    )
    return page(said(room, "thank_you"), body, room=room)


def too_few_rated(room: Mapping[str, Any], rated: int, least: int) -> HTMLResponse:
    """Return the page for participants who answered everything but discarded too much."""
    target = f"{pairs_page(room)}#discarded"
    body = (
        f"<p>{shown(room, 'too_few', rated=rated, all=int(room['records']), least=least)}</p>"
        f'<p><a class="button" href="{escape(target)}">{shown(room, "go_on")}</a></p>'
        f"<p>{back(room, said(room, 'not_go_on'))} ({shown(room, 'returns')})</p>"
        f"{contact(room)}"
    )
    return page(said(room, "too_few_title"), body, room=room)


def refusal(status: int, words: str) -> HTMLResponse:
    """Return a page with the reason for a refusal."""
    return page("This page cannot be opened", f"<p>{escape(words)}</p>", status)


def pairs_page(room: Mapping[str, Any]) -> str:
    """Return the address of a room's rating page, from the room's own page."""
    dataset = quote(str(room["dataset_id"]), safe="")
    return f"../../rate/{dataset}"


def literal(value: object) -> str:
    """Return a JavaScript literal that cannot end its script."""
    return json.dumps(value).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
