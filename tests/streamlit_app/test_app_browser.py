"""The pages in a real browser, with texts that would do harm if they were more than text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, expect

from annotation.campaign.records import CampaignRecords
from annotation.verdicts.acceptance import accept
from annotation.verdicts.tables import SIMULATED
from benchmarks import browser
from plumbline.manifest import Manifest
from plumbline.records import Pair
from plumbline.study import load_study
from streamlit_app.app import PAGES
from tests.axe import grave
from tests.conftest import browsing
from tests.streamlit_app.conftest import DEMO, MODELS, VIEWS
from tests.streamlit_app.test_app import SECTIONS

HOSTILE = "<img src=x onerror=\"document.title='taken'\"> $x^2$ :smile: **bold** " + "word " * 60
WIDTHS = (1280, 390)  # a laptop, a phone
# Streamlit's page looks for its server below its own address first, and then finds it.
ASKED = ("/_stcore/health", "/_stcore/host-config")
# Letters of figures that lie outside of their figure; the boxes of upright titles are wider than their letters.
CUT = """() => [...document.querySelectorAll('[data-testid=stVegaLiteChart] svg')].flatMap(svg => {
    const {left, right} = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text:not([transform*="rotate(-90)"])')].filter(text => {
        const box = text.getBoundingClientRect();
        return box.width && (box.left < left - 1 || box.right > right + 1);
    }).map(text => text.textContent);
})"""

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[BrowserContext]:
    """One for all pages, which keeps the scripts that it has fetched and compiled."""
    with browsing() as started:
        yield started.new_context()


@pytest.fixture(scope="module")
def address(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The running dashboard of a study whose transformed texts are hostile."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(finished, folder / "exports")
    study = load_study(DEMO, folder / "exports")
    pairs = [pair.model_copy(update={"transformed": HOSTILE}) for pair in CampaignRecords(study).pairs]
    Manifest.of(study).write_table("pairs.parquet", pairs, Pair)
    accept(study)
    log = folder / "log"
    with browser.dashboard(study, log) as (url, _):
        assert "http://127.0.0.1:" in log.read_text()  # by default to this machine alone
        yield url
    assert "Traceback" not in log.read_text(), log.read_text()[-3000:]


def watched(chromium: BrowserContext, width: int, scheme: str = "light") -> tuple[Page, list[str]]:
    """A page, and what goes wrong on it: console errors, exceptions, calls to other hosts."""
    page = chromium.new_page()
    page.set_viewport_size({"width": width, "height": 1600})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    complaints: list[str] = []

    def said(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.location["url"].endswith(ASKED):
            complaints.append(f"{message.text} {message.location['url']}")

    def asked(request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            complaints.append(f"asked for {request.url}")

    page.on("console", said)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", asked)  # a route would keep the browser from keeping what it has fetched
    return page, complaints


def test_each_page_at_its_own_address(address: str, chromium: BrowserContext) -> None:
    page, complaints = watched(chromium, WIDTHS[0])
    for view in VIEWS:
        page.goto(f"{address}/{'' if view == 'answer' else view}")
        looked_at(page, view)
    assert complaints == []
    page.close()


def test_each_page_by_a_phones_menu_in_the_dark(address: str, chromium: BrowserContext) -> None:
    page, complaints = watched(chromium, WIDTHS[1], "dark")
    page.goto(address)
    looked_at(page, VIEWS[0])
    for view in VIEWS[1:]:
        page.get_by_test_id("stExpandSidebarButton").click()
        page.locator(f"[data-testid=stSidebarNav] a[href$='/{view}']").click()
        page.wait_for_url(f"**/{view}*")
        page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
        looked_at(page, view)
    assert complaints == []
    page.evaluate("localStorage.clear()")  # it remembers the menu that was closed
    page.close()


def looked_at(page: Page, view: str) -> None:
    """It is whole, has no error, is no wider than the window, and no letter of a figure is cut."""
    last = SECTIONS[view][-1] if SECTIONS[view] else PAGES[view]
    expect(page.get_by_role("heading", name=last, exact=True)).to_be_visible(timeout=60_000)
    browser.settle(page)
    expect(page.get_by_text(SIMULATED).first).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_test_id("stAlertContentError")).to_have_count(0)
    if view in {"drift", "verdicts", "campaign", "scores"}:
        browser.appear(page, "[data-testid=stVegaLiteChart] svg")
    width = page.viewport_size["width"] if page.viewport_size else 0
    for part in ("document.documentElement", "document.querySelector('[data-testid=stMain]')"):
        across = page.evaluate(f"{part}.scrollWidth - {part}.clientWidth")
        assert across == 0, f"{view} is wider than the window"
    assert page.evaluate(CUT) == [], f"{view} at {width} cuts letters"
    # In the dark colours alone are others.
    assert grave(page, ["color-contrast"] if width == WIDTHS[1] else []) == [], f"{view} at {width}"


def test_from_an_outlying_point_to_its_pairs_ratings(address: str, chromium: BrowserContext) -> None:
    """Choose a model, hover over a point, open its pair, close it, open it again; take tables and figures along."""
    page, complaints = watched(chromium, WIDTHS[0])
    page.goto(address)
    page.get_by_role("link", name="Drift and ratings").click()
    expect(page.get_by_text("n = 24 pairs").first).to_be_visible(timeout=60_000)
    drawn(page)
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name=MODELS[1]).click()
    page.wait_for_url("**/drift?model=tests%2Fsecond")
    drawn(page)
    points = page.locator("[data-testid=stVegaLiteChart] svg path[aria-roledescription=point]")
    outlying = points.nth(highest(page))
    outlying.hover()
    tooltip = page.locator("#vg-tooltip-element")
    expect(tooltip).to_contain_text(HOSTILE[:60])
    assert tooltip.locator("img").count() == 0
    for _ in range(2):
        outlying.click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text(HOSTILE[:60])
        expect(dialog.get_by_role("table")).to_be_visible()
        assert dialog.locator("img").count() == 0
        page.wait_for_url("**/drift?model=tests%2Fsecond&pair=*")
        dialog.get_by_role("button", name="Close").click()
        expect(dialog).to_have_count(0)
        # The selection is gone, so no point is faded any more.
        expect(points.first).to_have_attribute("opacity", "1")
        page.wait_for_url("**/drift?model=tests%2Fsecond")
    assert page.title() == f"{PAGES['drift']} - Plumbline"
    taken_along(page)
    assert complaints == []
    page.close()


def test_by_keyboard_alone(address: str, chromium: BrowserContext) -> None:
    """From the first page to a pair and its ratings."""
    page, complaints = watched(chromium, WIDTHS[0])
    page.goto(address)
    expect(page.get_by_role("heading", name=SECTIONS["answer"][-1])).to_be_visible(timeout=60_000)
    tab_to(page, "a[href$='/texts']")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Texts")).to_be_visible(timeout=60_000)
    drawn(page)
    tab_to(page, "[data-testid=stDataFrame]:has([aria-label*='The pairs']) canvas")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(HOSTILE[:60])
    drawn(page)
    assert grave(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert complaints == []
    page.close()


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until what `selector` names has the keyboard."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab never comes to {selector}")


def drawn(page: Page) -> None:
    """Wait until all charts are: Streamlit complains on the console where a chart's data change while it is made."""
    browser.settle(page)
    expect(page.locator("[data-testid=stVegaLiteChart]:not(:has(svg))")).to_have_count(0, timeout=60_000)


def highest(page: Page) -> int:
    """Which of the first panel's 24 points has the most drift: nothing else is near it."""
    tops = page.evaluate(
        "[...document.querySelectorAll('[data-testid=stVegaLiteChart] svg path[aria-roledescription=point]')]"
        ".slice(0, 24).map(point => point.getBoundingClientRect().top)"
    )
    return int(min(range(len(tops)), key=tops.__getitem__))


def taken_along(page: Page) -> None:
    """A figure as SVG and a table as CSV."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as SVG").first.click()
    drawn = download.value.path().read_text(encoding="utf-8")
    assert download.value.suggested_filename == "demo-drift-quality.svg"
    assert drawn.startswith("<svg")
    assert "<img" not in drawn
    page.get_by_role("link", name="Verdicts", exact=True).click()
    expect(page.get_by_role("heading", name="Ratings given")).to_be_visible(timeout=60_000)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").first.click()
    assert download.value.suggested_filename == "demo-verdicts.csv"
    content = download.value.path().read_text(encoding="utf-8-sig")
    assert content.startswith("transformation,language,task_type,decision")
