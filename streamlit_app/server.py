"""The dashboard's server, which does slow imports and reads in advance.

The first page's records are read while the browser loads Streamlit's part. The libraries of the other pages, which take
half of the time that such a page needs when it is first opened, are imported while the first page is shown.

One thread imports at a time: if two import modules of one package at once, Python's import locks can fail
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

#: The pages after the first, and a library that tables need and that is slow to import.
MODULES = (
    "streamlit_app.views.scores",
    "streamlit_app.views.verdicts",
    "streamlit_app.views.campaign",
    "streamlit_app.views.reports",
    "scipy.special",
)
LATER = "scipy.stats"  # only tables of scores need it, so other pages do not wait for it
SECONDS = 0.5  # until the first page is in the browser

_LOCK = Lock()
_POLL = 0.005  # seconds between checks whether the server runs


def serve(options: argparse.Namespace) -> int:
    """Run Streamlit on the pages, with the options of `streamlit_app`."""
    gc.disable()  # until all pages are imported: imports leave no garbage, and collecting takes a tenth of the start
    names = [*(["--names"] if options.names else []), *(["--data", options.data] if options.data else [])]
    study = ["--study", options.study, *(["--exports", options.exports] if options.exports else [])]
    port = ["--server.port", str(options.port)] if options.port else []
    port += ["--runner.magicEnabled", "false"]  # no page uses it, and with it each page is parsed twice
    load_study(options.study, options.exports)  # an error is reported here, not on each page
    if options.port:
        _refuse_taken(options.port)
    import_module("streamlit_app.views.overview")  # the first page, before a browser requests it
    read_ahead(options.study, options.exports)
    app = Path(__file__).with_name("app.py")
    try:
        streamlit_cli.main(["run", str(app), *port, "--", *study, *names], prog_name="streamlit", standalone_mode=False)
    except click.Abort:  # an interrupt before the server runs
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
    """Read the first page's records in a thread as soon as the server runs; the page's module is imported already."""
    thread = Thread(target=_read, args=(file, exports), daemon=True)
    thread.start()
    return thread


def _read(file: str, exports: str | None) -> None:
    from streamlit_app.readers import OverviewReader  # noqa: PLC0415 (while the server starts)

    while not runtime.exists():
        time.sleep(_POLL)
    with contextlib.suppress(PlumblineError, OSError):  # the page reports it
        OverviewReader(load_study(file, exports)).read_ahead()
    inspect.stack()  # Streamlit inspects its caller once, which reads the files of all modules; Python caches them


def import_all() -> None:
    """Import the modules unless they are imported; wait if another thread is importing them."""
    # A page that needs a missing extra reports it.
    with _LOCK, contextlib.suppress(ImportError):
        for module in MODULES:
            import_module(module)
        # Altair would check every part of a chart against its schema, and then the whole once more: a fifth of a page.
        from altair.utils.schemapi import disable_debug_mode  # noqa: PLC0415 (the first page goes without)

        disable_debug_mode()
    if not gc.isenabled():
        gc.freeze()  # imported objects stay, so the collector need not scan them again while pages are drawn
        gc.enable()


@functools.cache
def import_soon() -> Timer:
    """Import the modules once, soon, while the first page is shown."""
    timer = Timer(SECONDS, _import_more)
    timer.daemon = True
    timer.start()
    return timer


def _import_more() -> None:
    import_all()
    with contextlib.suppress(ImportError):
        import_module(LATER)
