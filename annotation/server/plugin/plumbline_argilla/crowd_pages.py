"""The pages that participants see before and after Argilla's own: plain HTML, all that is not ours escaped."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from starlette.responses import HTMLResponse

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
    title: str, body: str, status: int = 200, *, script: str = "", headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """A whole page: never kept, never framed, with nothing from elsewhere."""
    nonce = secrets.token_urlsafe(16)
    run = f'<script nonce="{nonce}">{script}</script>' if script else ""
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
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
    wrong = (
        "<p role='alert'>At least one answer was not right. Please read the instructions once more: you have one more"
        " try at each question below.</p>"
    )
    asked = "".join(_question(number, room["questions"][number]) for number in questions)
    body = (
        f"{wrong if again else ''}"
        f"<p>You will rate {int(room['records'])} pairs of texts. These instructions stand beside them, too; at their"
        " top and bottom is the link to your completion code.</p>"
        f"{_contact(room)}"
        f'<section lang="{escape(room["language"])}" dir="auto">{MARKDOWN.render(room["guidelines"])}</section>'
        f'<form method="post" action="/crowd/enter/{escape(room_id)}" autocomplete="off">'
        f'<input type="hidden" name="ticket" value="{escape(ticket)}">'
        f'<fieldset><legend>Your consent</legend><p dir="auto">{escape(room["consent"])}</p>'
        '<label><input type="checkbox" name="consent" value="yes" required>I agree</label></fieldset>'
        f"{asked}<p><button>Begin</button></p></form>"
        f"<p>{_link(room['return_code'], 'I do not want to take part')} (this returns your place on Prolific)</p>"
    )
    return page("Compare pairs of texts", body, 422 if again else 200, script=ONCE)


def _question(number: int, question: Mapping[str, Any]) -> str:
    options = "".join(
        f'<label dir="auto"><input type="radio" name="q{number}" value="{place}" required>{escape(option)}</label>'
        for place, option in enumerate(question["options"])
    )
    return f'<fieldset><legend dir="auto">{escape(question["text"])}</legend>{options}</fieldset>'


def resume(room_id: str, room: Mapping[str, Any], left: int, ticket: str) -> HTMLResponse:
    """For who has begun before: on to the rest."""
    body = (
        f"<p>{_left(left)}</p>{_contact(room)}"
        f'<form method="post" action="/crowd/enter/{escape(room_id)}">'
        f'<input type="hidden" name="ticket" value="{escape(ticket)}"><p><button>Go on</button></p></form>'
    )
    return page("Welcome back", body, script=ONCE)


def sign_in(token: str, milliseconds: int, target: str, headers: Mapping[str, str]) -> HTMLResponse:
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
    body = "<p>Your pairs are being opened.</p><noscript><p>Please allow JavaScript for this page.</p></noscript>"
    return page("One moment", body, script=script, headers=headers)


def finished(room: Mapping[str, Any]) -> HTMLResponse:
    """All is answered: the completion code."""
    code = str(room["code"])
    body = (
        f"<p>You have answered every pair. Your completion code is</p><p class='code'>{escape(code)}</p>"
        f"<p>{_link(code, 'Complete on Prolific', 'button')}</p>{_contact(room)}"
    )
    return page("Thank you", body)


def unfinished(room: Mapping[str, Any], left: int) -> HTMLResponse:
    """Some is not answered yet."""
    target = f"/dataset/{room['dataset_id']}/annotation-mode"
    body = f'<p>{_left(left)}</p><p><a class="button" href="{escape(target)}">Go on</a></p>{_contact(room)}'
    return page("Not everything is answered yet", body)


def too_few_rated(room: Mapping[str, Any], rated: int, least: int) -> HTMLResponse:
    """Everything is answered, but most of it was discarded."""
    target = f"/dataset/{room['dataset_id']}/annotation-mode"
    body = (
        f"<p>You rated {rated} of {int(room['records'])} pairs and discarded the others. For the completion code at"
        f" least {least} pairs have to be rated. Discarded pairs can still be rated: choose &quot;discarded&quot; in"
        f' the list of states above the pairs.</p><p><a class="button" href="{escape(target)}">Go on</a></p>'
        f"<p>{_link(room['return_code'], 'I do not want to go on')} (this returns your place on Prolific)</p>"
        f"{_contact(room)}"
    )
    return page("Too few pairs are rated", body)


def sent_back(room: Mapping[str, Any]) -> HTMLResponse:
    """For who missed a question twice: a kind word, and the way to return the place."""
    body = (
        "<p>Thank you for your interest. One of the questions about the instructions was not answered as they say, so"
        " we cannot let you go on. This is no judgement of you. Please return your place on Prolific: it does not"
        f" count against you.</p><p>{_link(room['return_code'], 'Return to Prolific', 'button')}</p>{_contact(room)}"
    )
    return page("You cannot go on", body)


def refusal(status: int, words: str) -> HTMLResponse:
    """Why nothing can be shown."""
    return page("This page cannot be opened", f"<p>{escape(words)}</p>", status)


def _link(code: str, words: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<a{kind} rel="noreferrer" href="{escape(COMPLETE + code)}">{escape(words)}</a>'


def _left(left: int) -> str:
    return f"{left} {'pair is' if left == 1 else 'pairs are'} still to be rated."


def _contact(room: Mapping[str, Any]) -> str:
    return f"<p>Questions: <bdi>{escape(room['contact'])}</bdi></p>" if room.get("contact") else ""


def _literal(value: object) -> str:
    """A JavaScript literal that cannot end its script."""
    return json.dumps(value).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
