"""What a preview shows, for tests: the rating pages' tasks and items, and all of its words."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from html import unescape
from typing import Any

_FRAME = re.compile(r'srcdoc="(.*?)"></iframe>', re.DOTALL)


def data_of(html: str) -> Any:
    """The data of a page of `hosted_html`: task, items, drawn, submit_to."""
    return json.loads(zlib.decompress(base64.b64decode(html.split('id="data">', 1)[1].split("<", 1)[0])))


def pages(html: str) -> list[dict[str, Any]]:
    """What the rating pages of a preview show, in order."""
    return [data_of(unescape(frame)) for frame in _FRAME.findall(html) if "id=&#34;data&#34;" in frame]


def words(html: str) -> str:
    """All that can be read in a preview, but for what stands before a room of Prolific's."""
    return _FRAME.sub("", html) + "\n".join(_texts(pages(html)))


def _texts(node: Any) -> Iterator[str]:
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for part in parts:
        yield from _texts(part)
    if isinstance(node, str):
        yield node
