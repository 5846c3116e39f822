"""The dashboard of a study in a browser, for what is measured, pictured and tested there."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from plumbline.errors import ServiceError
from plumbline.study import ROOT, Study

EMPTY = "Nothing else"  #: what the empty app says
DONE = "[data-testid=stApp][data-test-script-state=notRunning]"
_SAYS = "text => document.body.innerText.includes(text)"
_SHOWN = "selector => (document.querySelector(selector)?.getBoundingClientRect().width ?? 0) > 0"
# No calls to the outside; no sandbox because containers and root have none.
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
_ARGUMENTS += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Debian's chromium. Raises ServiceError where there is none."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise ServiceError("no chromium on this machine; on Debian and Ubuntu: sudo apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        yield started
        started.close()


@contextlib.contextmanager
def dashboard(study: Study, log: Path) -> Iterator[tuple[str, int]]:
    """The address and the process of a study's dashboard, started from another folder; what it says goes to `log`."""
    command = ["plumbline", "dashboard", "--study", str(study.file), "--exports", str(study.folder.parent), "--port"]
    with _serving(command, log) as served:
        yield served


@contextlib.contextmanager
def empty_app(log: Path) -> Iterator[tuple[str, int]]:
    """The same of a Streamlit app that has a title and nothing else, beside the log: what none of ours can undercut."""
    app = log.with_name("empty_app.py")
    app.write_text(f"import streamlit as st\n\nst.title({EMPTY!r})\n", encoding="utf-8")
    command = ["streamlit", "run", str(app), "--server.headless", "true", "--browser.gatherUsageStats", "false"]
    with _serving([*command, "--server.address", "127.0.0.1", "--server.port"], log) as served:
        yield served


@contextlib.contextmanager
def _serving(command: list[str], log: Path) -> Iterator[tuple[str, int]]:
    """A module's server; its command ends before the number of the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", *command, str(port)]
    # From another folder, where Streamlit has no settings of ours and Python finds no package of ours by itself.
    # Its modules are compiled, as an installation has them, also where a container's settings say otherwise.
    place = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=log.parent, env=place, stdout=output, stderr=output) as server,
    ):
        try:
            _wait(f"http://127.0.0.1:{port}/_stcore/health", server, log)
            yield f"http://127.0.0.1:{port}", server.pid
        finally:
            server.terminate()


def settle(page: Page) -> None:
    """Wait until the page's run has ended."""
    appear(page, DONE)


def appear(page: Page, selector: str) -> None:
    """Wait until something is on the page, and tell at its next frame: a locator looks only twice a second."""
    page.wait_for_function(_SHOWN, arg=selector, timeout=120_000)


def read(page: Page, text: str) -> None:
    """Wait until the page says something, as `appear` does."""
    page.wait_for_function(_SAYS, arg=text, timeout=120_000)


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        if server.poll() is not None:
            break
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):  # noqa: S310 (our own address)
            return
        time.sleep(0.05)
    raise RuntimeError(f"the dashboard does not answer: {log.read_text(encoding='utf-8')}")
