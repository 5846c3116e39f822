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
#: The colours are those of the rating page, which follows these pages.
STYLE = (
    rate.source("rate.css").partition("*, ")[0]
    + """
* { box-sizing: border-box; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 42rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere;
  background: var(--back); color: var(--ink); }
h1 { font-size: 1.5rem; }
a { color: var(--mark); }
fieldset { border: 1px solid var(--edge); border-radius: .5rem; margin: 1rem 0; padding: .75rem; min-width: 0; }
legend { font-weight: 600; padding: 0 .25rem; }
label { display: block; padding: .5rem 0; }
input { width: 1.25rem; height: 1.25rem; margin-inline-end: .5rem; vertical-align: middle; }
input[type=text], input[type=password] { display: block; width: 100%; max-width: 24rem; height: auto; font: inherit;
  padding: .5rem; color: inherit; background: var(--card); border: 1px solid var(--edge); border-radius: .5rem; }
button, .button { display: inline-block; font: inherit; font-weight: 600; padding: .75rem 1.25rem; border-radius: .5rem;
  border: 2px solid var(--mark); background: var(--mark); color: var(--on); text-decoration: none; cursor: pointer; }
.quiet { background: none; border-color: transparent; padding-inline: 0; color: var(--mark); font-weight: 400; }
button[disabled] { opacity: .6; }
section { border-block: 1px solid var(--line); padding-block: .5rem; }
h2 { font-size: 1.25rem; }
thead th { overflow-wrap: normal; color: var(--soft); font-size: .9rem; }
th, td { text-align: start; padding: .25rem 1.5rem .25rem 0; font-weight: inherit; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; margin: 0 0 1rem; }
dt { color: var(--soft); }
dd { margin: 0; }
td { font-variant-numeric: tabular-nums; }
[hidden] { display: none !important; }
:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; }
.code { font: 700 1.75rem/1 ui-monospace, monospace; letter-spacing: .1em; user-select: all; }
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
        f'<label><input type="checkbox" name="consent" value="yes" required>{shown(room, "agree")}</label></fieldset>'
        f"<p><button>{shown(room, 'begin')}</button></p></form>"
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
