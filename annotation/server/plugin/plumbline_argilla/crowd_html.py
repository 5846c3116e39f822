"""Participants' pages as text, which previews show without a server: plain HTML, with all foreign text escaped."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import quote

from markdown_it import MarkdownIt

from . import rate
from .crowd_words import place, said, shown

COMPLETE = "https://app.prolific.com/submissions/complete?cc="
#: They look as the rating page does, which comes between them.
STYLE = (
    rate.source("rate.css")
    + """
main { max-width: 42rem; padding-block: 1.25rem 2rem }
main > * + *, form > * + *, section > * + *, details > * + *, #work > * + * { margin-top: 1rem }
h1 { font-size: 1.5rem; line-height: 1.25 }
h2 { font-size: 1.25rem }
a { color: var(--mark) }
section { border-block: 1px solid var(--line); padding-block: .75rem }
input[type=text], input[type=password] { display: block; width: 100%; max-width: 24rem; min-height: 2.75rem;
  padding: .5rem .7rem; font: inherit; color: inherit; background: var(--back); border: 1px solid var(--edge);
  border-radius: .6rem }
label { display: block }
fieldset > * + .point { margin-top: .5rem }
table { width: 100%; border-collapse: collapse }
thead th { overflow-wrap: normal; color: var(--soft); font-size: .9rem }
th, td { padding: .6rem 0; border-bottom: 1px solid var(--line); text-align: start; font-weight: inherit }
th + th, td { padding-inline-start: 1.5rem; text-align: end; font-variant-numeric: tabular-nums }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; margin-bottom: 0 }
dt { color: var(--soft) }
dd { margin: 0 }
#said:empty { margin: 0 }
#said:not(:empty):has(~ form:not([hidden])) { padding: .5rem .8rem; background: var(--tint); border-radius: .5rem }
.code { font: 700 1.75rem/1.3 ui-monospace, monospace; letter-spacing: .1em; user-select: all }
@media (min-width: 48rem) {
  main { margin-top: 6vh; padding: 1.75rem 2rem 2rem; background: var(--card); border: 1px solid var(--line);
    border-radius: .9rem }
}
"""
)
#: The rubric's guidelines are Markdown; tags in them are shown as text.
MARKDOWN = MarkdownIt("commonmark", {"html": False})


def document(title: str, body: str, room: Mapping[str, Any], *, script: str = "", nonce: str = "") -> str:
    """Return a whole page in the language of a room; style and script have the `nonce` of its policy."""
    language, direction = place(room)
    run = f'<script nonce="{nonce}">{script}</script>' if script else ""
    return (
        f'<!doctype html><html lang="{escape(language)}" dir="{escape(direction)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">'
        f'<title>{escape(title)}</title><style nonce="{nonce}">{STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main>{run}</body></html>"
    )


def entrance_body(room_id: str, room: Mapping[str, Any], ticket: str) -> str:
    """Return the first page: instructions and consent."""
    return (
        f"<p>{shown(room, 'intro', n=int(room['records']))}</p>"
        f"{contact(room)}"
        f'<section lang="{escape(room["language"])}" dir="auto">{MARKDOWN.render(room["guidelines"])}'
        f"{room.get('examples', '')}</section>"  # HTML of `annotation.crowd.page`, which escapes every text in it
        f'<form method="post" action="{escape(room_id)}" autocomplete="off">'
        f'<input type="hidden" name="ticket" value="{escape(ticket)}">'
        f'<fieldset><legend>{shown(room, "consent")}</legend><p dir="auto">{escape(room["consent"])}</p>'
        f'<label class="point"><input type="checkbox" name="consent" value="yes" required>'
        f"{shown(room, 'agree')}</label></fieldset>"
        f'<p><button class="button">{shown(room, "begin")}</button></p></form>'
        f"<p>{back(room, said(room, 'not_part'))} ({shown(room, 'returns')})</p>"
    )


def back(room: Mapping[str, Any], words: str) -> str:
    """Return a link back without taking part; just the words if people come by a link, which has no address for it."""
    return escape(words) if "complete" in room else _link(COMPLETE + room["return_code"], words)


def complete(room: Mapping[str, Any], person: str, words: str) -> str:
    """Return a link on to the platform, with the code and id that it wants; empty if it has no address."""
    address = str(room.get("complete", COMPLETE + "{code}"))
    for name, value in (("code", room["code"]), ("participant", person)):
        address = address.replace(f"{{{name}}}", quote(value, safe=""))
    return f"<p>{_link(address, words, 'button')}</p>" if address else ""


def _link(address: str, words: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<a{kind} rel="noreferrer" href="{escape(address)}">{escape(words)}</a>'


def contact(room: Mapping[str, Any]) -> str:
    """Return a line with the study's contact; empty without one."""
    line = f"<p>{shown(room, 'questions')} <bdi>{escape(room['contact'])}</bdi></p>"
    return line if room.get("contact") else ""
