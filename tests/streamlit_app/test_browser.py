"""One look at the page in a real browser, with texts that would do harm if they were more than text."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from annotation.sample import read_pairs
from annotation.tables import SIMULATED
from generation.records import Pair
from generation.store import write_table
from generation.study import ROOT, Study
from tests.streamlit_app.conftest import APP, DEMO

ARTEFACTS = ROOT / "tests" / "artefacts"
HOSTILE = "<img src=x onerror=\"document.title='taken'\"> $x^2$ :smile: **bold** " + "word " * 60


@pytest.fixture
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None and not os.environ.get("CI"):
        pytest.skip("no chromium on this machine")
    assert found, "CI needs chromium"
    return found


@pytest.fixture
def address(exports: Path, study: Study, tmp_path: Path) -> Iterator[str]:
    """The running dashboard of a study whose transformed texts are hostile, started from another folder."""
    pairs = [pair.model_copy(update={"transformed": HOSTILE}) for pair in read_pairs(study)]
    write_table(study.folder / "pairs.parquet", pairs, Pair)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-m", "streamlit", "run", str(APP), "--server.port", port]
    log = tmp_path / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*command, "--", "--study", str(DEMO), "--exports", str(exports)],
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server, log)
        assert f"127.0.0.1:{port}" in log.read_text()  # by default to this machine alone
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)
    assert "Traceback" not in log.read_text()


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url):  # noqa: S310 (our own address)
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the dashboard does not answer: {log.read_text()}")


@pytest.mark.browser
def test_the_page_in_a_browser(address: str, chromium: str) -> None:
    ARTEFACTS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=quiet)
        for width in (1280, 400):
            page, complaints = watched(browser, width)
            page.goto(address)
            look(page)
            page.screenshot(path=ARTEFACTS / f"dashboard-{width}.png")
            if width == 1280:
                use(page)
            assert page.title() == "Plumbline"
            assert complaints == []
            page.close()
        browser.close()


def watched(browser: Any, width: int) -> tuple[Page, list[str]]:
    """A page, and what goes wrong on it: console errors, exceptions, calls to other hosts."""
    page = browser.new_page(viewport={"width": width, "height": 5000})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def only_ours(route: Any) -> None:
        if route.request.url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            route.continue_()
        else:
            complaints.append(f"asked for {route.request.url}")
            route.abort()

    page.route("**/*", only_ours)
    return page, complaints


def look(page: Page) -> None:
    """Everything is there, and nothing complains."""
    expect(page.get_by_text("Left out, failed, or included against the verdict, and why")).to_be_visible(timeout=30_000)
    expect(page.get_by_text(SIMULATED)).to_be_visible()
    panel = page.get_by_test_id("stVegaLiteChart").first
    expect(panel.get_by_text("n = 24 pairs")).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_test_id("stAlertContentError")).to_have_count(0)
    across = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert across == 0, "the page is wider than the window"


def use(page: Page) -> None:
    """At a laptop's height: download a table; hover over a point, open its pair, close it, open it again."""
    page.set_viewport_size({"width": 1280, "height": 900})
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").first.click()
    assert download.value.suggested_filename == "demo-verdicts.csv"
    content = download.value.path().read_text(encoding="utf-8-sig")
    assert content.startswith("transformation,language,task_type,decision")
    points = page.locator("[data-testid=stVegaLiteChart] svg path[aria-roledescription=point]")
    last = points.nth(23)  # of the first panel: nothing is drawn over it
    last.hover()
    tooltip = page.locator("#vg-tooltip-element")
    expect(tooltip).to_contain_text(HOSTILE[:60])
    assert tooltip.locator("img").count() == 0
    page.screenshot(path=ARTEFACTS / "dashboard-hover.png")
    for _ in range(4):
        last.click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text(HOSTILE[:60])
        page.screenshot(path=ARTEFACTS / "dashboard-pair.png")
        assert dialog.locator("img").count() == 0
        dialog.get_by_role("button", name="Close").click()
        expect(dialog).to_have_count(0)
        # The selection is gone, so no point is faded any more.
        expect(points.first).to_have_attribute("opacity", "0.75")
