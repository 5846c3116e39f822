"""The pages that participants see before and after Argilla's own: plain HTML, all that is not ours escaped."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from starlette.responses import HTMLResponse

from .crowd_words import place, said, shown

COMPLETE = "https://app.prolific.com/submissions/complete?cc="
STYLE = """
:root { color-scheme: light dark; }
* { box-sizing: border-box; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 42rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
fieldset { border: 1px solid; border-radius: .5rem; margin: 1rem 0; padding: .75rem; min-width: 0; }
legend { font-weight: 600; padding: 0 .25rem; }
label { display: block; padding: .5rem 0; }
input { width: 1.25rem; height: 1.25rem; margin-inline-end: .5rem; vertical-align: middle; }
button, .button { display: inline-block; font: inherit; font-weight: 600; padding: .75rem 1.25rem; border-radius: .5rem;
  border: 2px solid #1f4fd8; background: #1f4fd8; color: #fff; text-decoration: none; }
button[disabled] { opacity: .6; }
section { border-block: 1px solid; padding-block: .5rem; }
h2 { font-size: 1.25rem; }
:focus-visible { outline: 3px solid #f5a300; outline-offset: 2px; }
.code { font: 700 1.75rem/1 ui-monospace, monospace; letter-spacing: .1em; user-select: all; }
[role=alert] { border-inline-start: 4px solid #c62828; padding: .25rem .75rem; }
"""
#: The rubric's guidelines are Markdown; tags in them are shown as text.
MARKDOWN = MarkdownIt("commonmark", {"html": False})
ONCE = (
    "document.querySelector('form').addEventListener('submit', e => e.target.querySelector('button').disabled = true)"
)


def page(
    title: str,
    body: str,
    status: int = 200,
    *,
    room: Mapping[str, Any] | None = None,
    script: str = "",
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """A whole page, in the language of a room: never kept, never framed, with nothing from elsewhere."""
    language, direction = place(room or {})
    nonce = secrets.token_urlsafe(16)
    run = f'<script nonce="{nonce}">{script}</script>' if script else ""
    text = (
        f'<!doctype html><html lang="{escape(language)}" dir="{escape(direction)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">'
        f'<title>{escape(title)}</title><style nonce="{nonce}">{STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main>{run}</body></html>"
    )
    policy = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    )
    own = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    return HTMLResponse(text, status, headers={**own, **(headers or {})})


def entrance(
    room_id: str, room: Mapping[str, Any], questions: Sequence[int], ticket: str, *, again: bool
) -> HTMLResponse:
    """The instructions, consent, and the questions that are still open; `again` after a wrong answer."""
    wrong = f"<p role='alert'>{shown(room, 'wrong')}</p>"
    asked = "".join(_question(number, room["questions"][number]) for number in questions)
    body = (
        f"{wrong if again else ''}"
        f"<p>{shown(room, 'intro', n=int(room['records']))}</p>"
        f"{_contact(room)}"
        f'<section lang="{escape(room["language"])}" dir="auto">{MARKDOWN.render(room["guidelines"])}</section>'
        f'<form method="post" action="/crowd/enter/{escape(room_id)}" autocomplete="off">'
        f'<input type="hidden" name="ticket" value="{escape(ticket)}">'
        f'<fieldset><legend>{shown(room, "consent")}</legend><p dir="auto">{escape(room["consent"])}</p>'
        f'<label><input type="checkbox" name="consent" value="yes" required>{shown(room, "agree")}</label></fieldset>'
        f"{asked}<p><button>{shown(room, 'begin')}</button></p></form>"
        f"<p>{_link(room['return_code'], said(room, 'not_part'))} ({shown(room, 'returns')})</p>"
    )
    return page(said(room, "title"), body, 422 if again else 200, room=room, script=ONCE)


def _question(number: int, question: Mapping[str, Any]) -> str:
    options = "".join(
        f'<label dir="auto"><input type="radio" name="q{number}" value="{place}" required>{escape(option)}</label>'
        for place, option in enumerate(question["options"])
    )
    return f'<fieldset><legend dir="auto">{escape(question["text"])}</legend>{options}</fieldset>'


def resume(room_id: str, room: Mapping[str, Any], left: int, ticket: str) -> HTMLResponse:
    """For who has begun before: on to the rest."""
    body = (
        f"<p>{_left(room, left)}</p>{_contact(room)}"
        f'<form method="post" action="/crowd/enter/{escape(room_id)}">'
        f'<input type="hidden" name="ticket" value="{escape(ticket)}">'
        f"<p><button>{shown(room, 'go_on')}</button></p></form>"
    )
    return page(said(room, "welcome_back"), body, room=room, script=ONCE)


def sign_in(
    room: Mapping[str, Any], token: str, milliseconds: int, target: str, headers: Mapping[str, str]
) -> HTMLResponse:
    """Give the browser Argilla's own session, as its sign-in page would, and go on to the pairs."""
    # Argilla's pages (nuxt-auth 5, scheme `local`) keep the session under these names.
    session = {
        "auth.strategy": "local",
        "auth._token.local": f"Bearer {token}",
        "auth._token_expiration.local": str(milliseconds),
    }
    script = (
        f"for (const [name, value] of Object.entries({_literal(session)})) localStorage.setItem(name, value);"
        f" location.replace({_literal(target)})"
    )
    body = f"<p>{shown(room, 'opening')}</p><noscript><p>{shown(room, 'allow_script')}</p></noscript>"
    return page(said(room, "one_moment"), body, room=room, script=script, headers=headers)


def finished(room: Mapping[str, Any]) -> HTMLResponse:
    """All is answered: the completion code."""
    code = str(room["code"])
    body = (
        f"<p>{shown(room, 'answered')}</p><p class='code'>{escape(code)}</p>"
        f"<p>{_link(code, said(room, 'complete'), 'button')}</p>{_contact(room)}"
    )
    return page(said(room, "thank_you"), body, room=room)


def unfinished(room: Mapping[str, Any], left: int) -> HTMLResponse:
    """Some is not answered yet."""
    target = f"/dataset/{room['dataset_id']}/annotation-mode"
    go_on = shown(room, "go_on")
    body = f'<p>{_left(room, left)}</p><p><a class="button" href="{escape(target)}">{go_on}</a></p>{_contact(room)}'
    return page(said(room, "unfinished"), body, room=room)


def too_few_rated(room: Mapping[str, Any], rated: int, least: int) -> HTMLResponse:
    """Everything is answered, but most of it was discarded."""
    target = f"/dataset/{room['dataset_id']}/annotation-mode"
    body = (
        f"<p>{shown(room, 'too_few', rated=rated, all=int(room['records']), least=least)}</p>"
        f'<p><a class="button" href="{escape(target)}">{shown(room, "go_on")}</a></p>'
        f"<p>{_link(room['return_code'], said(room, 'not_go_on'))} ({shown(room, 'returns')})</p>"
        f"{_contact(room)}"
    )
    return page(said(room, "too_few_title"), body, room=room)


def sent_back(room: Mapping[str, Any]) -> HTMLResponse:
    """For who missed a question twice: a kind word, and the way to return the place."""
    body = (
        f"<p>{shown(room, 'sent_back')}</p>"
        f"<p>{_link(room['return_code'], said(room, 'back'), 'button')}</p>{_contact(room)}"
    )
    return page(said(room, "cannot_title"), body, room=room)


def refusal(status: int, words: str) -> HTMLResponse:
    """Why nothing can be shown."""
    return page("This page cannot be opened", f"<p>{escape(words)}</p>", status)


def _link(code: str, words: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<a{kind} rel="noreferrer" href="{escape(COMPLETE + code)}">{escape(words)}</a>'


def _left(room: Mapping[str, Any], left: int) -> str:
    return shown(room, "left_one" if left == 1 else "left_many", n=left)


def _contact(room: Mapping[str, Any]) -> str:
    contact = f"<p>{shown(room, 'questions')} <bdi>{escape(room['contact'])}</bdi></p>"
    return contact if room.get("contact") else ""


def _literal(value: object) -> str:
    """A JavaScript literal that cannot end its script."""
    return json.dumps(value).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
