"""The dashboard's server, which reads and imports in advance.

While the browser loads Streamlit's part, a thread reads the first page's records; then it imports the other pages'
libraries, which take half of the time that such a page needs when it is first opened.
"""

from __future__ import annotations

import contextlib
import socket
import time
from importlib import import_module
from pathlib import Path
from threading import Lock, Thread

import click
from streamlit import runtime
from streamlit.web import cli as streamlit_cli

from plumbline.cli import StudyOptions
from plumbline.errors import PlumblineError, StudyError
from plumbline.importing import altair
from plumbline.manifest import stage
from plumbline.study import load_study

#: The pages after the first, and a library that tables need and that is slow to import.
MODULES = (*map("streamlit_app.views.{}".format, ("drift", "verdicts", "campaign", "scores", "texts")), "scipy.stats")
_LOCK = Lock()
_POLL = 0.005  # seconds between checks whether the server runs
_SHOWN = 1.0  # seconds until the first page is in the browser


def serve(options: StudyOptions, port: int | None) -> None:
    """Run Streamlit on the pages of a study, on a port of this machine; None is Streamlit's own."""
    words = ["--server.port", str(port)] if port else []
    words += ["--runner.magicEnabled", "false"]  # no page uses it, and with it each page is parsed twice
    study = ["--study", options.study, *(["--exports", options.exports] if options.exports else [])]
    loaded = options.load()  # an error is reported here, not on each page
    if port:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("127.0.0.1", port))
            except OSError as error:
                raise StudyError(f"--port {port}: {error.strerror}; name another port") from None
    if loaded.folder.exists():  # the next step is another one once somebody has looked
        shown = [loaded.folder / name for name in ("looks.json", "scores.parquet")]
        with contextlib.suppress(PlumblineError, OSError), stage(loaded, "dashboard", shown):
            pass  # records that cannot be written to are shown all the same
    import_module("streamlit_app.views.answer")  # the first page, before a browser requests it
    Thread(target=prepare, args=(options.study, options.exports), daemon=True).start()
    app = Path(__file__).with_name("app.py")
    try:
        streamlit_cli.main(["run", str(app), *words, "--", *study], prog_name="streamlit", standalone_mode=False)
    except click.Abort:  # an interrupt before the server runs
        raise KeyboardInterrupt from None


def prepare(file: str, exports: str | None) -> None:
    """Read the first page's records as soon as the server runs, then import the other pages' modules."""
    from streamlit_app.readers import StudyReader  # noqa: PLC0415 (while the server starts)

    while not runtime.exists():
        time.sleep(_POLL)
    with contextlib.suppress(PlumblineError, OSError):  # the page reports it
        StudyReader(load_study(file, exports)).read_ahead()
    time.sleep(_SHOWN)
    import_all()


def import_all() -> None:
    """Import the modules unless they are imported; wait if another thread is importing them.

    One thread imports at a time: if two import modules of one package at once, Python's import locks can fail
    (`_DeadlockError`).
    """
    # A page that needs a missing extra reports it.
    with _LOCK, contextlib.suppress(ImportError):
        for module in MODULES:
            import_module(module)
        # Altair would check every part of a chart against its schema, and then the whole once more: a fifth of a page.
        altair.utils.schemapi.disable_debug_mode()
