"""The libraries that the pages after the first need: half of such a page's first opening, so they are imported early.

One thread imports at a time: where two import modules of one package at once, Python's own locks can give up
(`_DeadlockError`).
"""

from __future__ import annotations

import contextlib
import functools
from importlib import import_module
from threading import Lock, Timer

#: The pages after the first, and what takes long to import when a table first asks for it.
MODULES = (
    "streamlit_app.views.drift",
    "streamlit_app.views.verdicts",
    "streamlit_app.views.preview",
    "streamlit_app.views.campaign",
    "streamlit_app.views.robustness",
    "streamlit_app.views.model",
    "streamlit_app.views.rankings",
    "streamlit_app.views.texts",
)
SECONDS = 0.5  # until the first page is at the browser

_LOCK = Lock()


def import_all() -> None:
    """Import them, unless they are there; a thread that already does is waited for."""
    # An extra that is missing is said by the page that needs it.
    with _LOCK, contextlib.suppress(ImportError):
        for module in MODULES:
            import_module(module)
        # Altair would check every part of a chart against its schema, and then the whole once more: a fifth of a page.
        from altair.utils.schemapi import disable_debug_mode  # noqa: PLC0415 (the first page goes without)

        disable_debug_mode()


@functools.cache
def import_soon() -> Timer:
    """The same once, in a moment, while somebody looks at the first page."""
    timer = Timer(SECONDS, import_all)
    timer.daemon = True
    timer.start()
    return timer
