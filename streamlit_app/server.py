"""The dashboard's server, with slow imports and reads done before somebody waits for them.

The first page's records are read while the browser loads its own part, and the libraries that the other pages need are
imported while somebody looks at the first: half of such a page's first opening.

One thread imports at a time: where two import modules of one package at once, Python's own locks can give up
(`_DeadlockError`).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import inspect
import socket
import time
from importlib import import_module
from pathlib import Path
from threading import Lock, Thread, Timer

import click
from streamlit import runtime
from streamlit.web import cli as streamlit_cli

from plumbline.errors import PlumblineError, StudyError
from plumbline.study import load_study

#: The pages after the first, and what takes long to import when a table first asks for it.
MODULES = (
    "streamlit_app.views.scores",
    "streamlit_app.views.verdicts",
    "streamlit_app.views.campaign",
    "streamlit_app.views.reports",
    "scipy.special",
)
LATER = "scipy.stats"  # what a table of scores asks for; no page waits for it that goes without
SECONDS = 0.5  # until the first page is at the browser

_LOCK = Lock()
_POLL = 0.005  # seconds between looks at whether the server stands


def serve(options: argparse.Namespace) -> int:
    """`streamlit_app`, whose options these are: run Streamlit on the pages."""
    gc.disable()  # until all pages are imported: imports leave no garbage, and looking takes a tenth of the start
    names = [*(["--names"] if options.names else []), *(["--data", options.data] if options.data else [])]
    study = ["--study", options.study, *(["--exports", options.exports] if options.exports else [])]
    port = ["--server.port", str(options.port)] if options.port else []
    port += ["--runner.magicEnabled", "false"]  # or each page is parsed twice; none of them uses it
    load_study(options.study, options.exports)  # what is wrong with it is said here, not on each page
    if options.port:
        _refuse_taken(options.port)
    import_module("streamlit_app.views.overview")  # the first page, before anybody waits for it
    read_ahead(options.study, options.exports)
    app = Path(__file__).with_name("app.py")
    try:
        streamlit_cli.main(["run", str(app), *port, "--", *study, *names], prog_name="streamlit", standalone_mode=False)
    except click.Abort:  # an interrupt before the server is there
        raise KeyboardInterrupt from None
    return 0


def _refuse_taken(port: int) -> None:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError as error:
            raise StudyError(f"--port {port}: {error.strerror}; name another port") from None


def read_ahead(file: str, exports: str | None) -> Thread:
    """Read what the first page shows in a thread of its own, from when the server stands; its module is imported."""
    thread = Thread(target=_read, args=(file, exports), daemon=True)
    thread.start()
    return thread


def _read(file: str, exports: str | None) -> None:
    from streamlit_app.readers import OverviewReader  # noqa: PLC0415 (while the server starts)

    while not runtime.exists():
        time.sleep(_POLL)
    with contextlib.suppress(PlumblineError, OSError):  # the page says it
        OverviewReader(load_study(file, exports)).read_ahead()
    inspect.stack()  # Streamlit asks who called it once: the files of all modules, which Python remembers


def import_all() -> None:
    """Import them unless they are imported; wait for a thread that does so already."""
    # The page that needs a missing extra says so.
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
    """Import them once, shortly, while somebody looks at the first page."""
    timer = Timer(SECONDS, _import_more)
    timer.daemon = True
    timer.start()
    return timer


def _import_more() -> None:
    import_all()
    with contextlib.suppress(ImportError):
        import_module(LATER)
