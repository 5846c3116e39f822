"""What takes long, done before somebody waits for it.

The first page's records are read while the browser loads its own part, and the libraries that the other pages need are
imported while somebody looks at the first: half of such a page's first opening.

One thread imports at a time: where two import modules of one package at once, Python's own locks can give up
(`_DeadlockError`).
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import time
from importlib import import_module
from threading import Lock, Thread, Timer

from streamlit import runtime

from plumbline.errors import PlumblineError
from plumbline.study import load_study

#: The pages after the first, and what takes long to import when a table first asks for it.
MODULES = (
    "streamlit_app.views.drift",
    "streamlit_app.views.verdicts",
    "streamlit_app.views.campaign",
    "streamlit_app.views.scores",
    "streamlit_app.views.reports",
    "streamlit_app.views.texts",
    "scipy.special",
)
LATER = "scipy.stats"  # what a table of scores asks for; no page waits for it that goes without
SECONDS = 0.5  # until the first page is at the browser

_LOCK = Lock()
_POLL = 0.005  # seconds between looks at whether the server stands


def collect_later() -> None:
    """Collect no garbage until all pages are imported: imports leave none, and looking takes a tenth of the start."""
    gc.disable()


def read_ahead(study: str, exports: str | None) -> Thread:
    """Read what the first page shows in a thread of its own, from when the server stands; its module is imported."""
    thread = Thread(target=_read, args=(study, exports), daemon=True)
    thread.start()
    return thread


def _read(study: str, exports: str | None) -> None:
    from streamlit_app.readers.overview import OverviewReader  # noqa: PLC0415 (who only asks for help goes without)

    while not runtime.exists():
        time.sleep(_POLL)
    with contextlib.suppress(PlumblineError, OSError):  # the page says it
        OverviewReader(load_study(study, exports)).read_ahead()
    inspect.stack()  # Streamlit asks who called it once: the files of all modules, which Python remembers


def import_all() -> None:
    """Import them, unless they are there; a thread that already does is waited for."""
    # An extra that is missing is said by the page that needs it.
    with _LOCK, contextlib.suppress(ImportError):
        for module in MODULES:
            import_module(module)
        # Altair would check every part of a chart against its schema, and then the whole once more: a fifth of a page.
        from altair.utils.schemapi import disable_debug_mode  # noqa: PLC0415 (the first page goes without)

        disable_debug_mode()
    if not gc.isenabled():
        gc.freeze()  # what was imported stays: it is not looked through again and again while pages are drawn
        gc.enable()


@functools.cache
def import_soon() -> Timer:
    """The same once, in a moment, while somebody looks at the first page."""
    timer = Timer(SECONDS, _import_more)
    timer.daemon = True
    timer.start()
    return timer


def _import_more() -> None:
    import_all()
    with contextlib.suppress(ImportError):
        import_module(LATER)
