"""The documentation site as files: it builds without a broken link, and is read and searched from a folder."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from plumbline.resources import ROOT
from tests.conftest import browsing
from tests.test_site import METHOD


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing() as shared:
        yield shared


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as files; a page that no menu has, or a link to what is not there, ends the build unless it is quiet."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout + done.stderr
    return folder


def test_documents_link_to_what_is_there(site: Path) -> None:
    assert (site / "index.html").is_file()
    assert "datasets:" in (site / "files/studies/demo.yaml.txt").read_text(encoding="utf-8")
    for name in ("promises", "decisions/0005-verdicts"):
        assert not (site / f"{name}.html").exists(), f"{name} is for readers of the repository"
        assert (site / f"files/docs/{name}.md.txt").is_file(), f"no page links to {name}"


def test_pages_ask_no_other_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert '<script src="http' not in text and '<link rel="stylesheet" href="http' not in text, page
        assert "fonts.googleapis" not in text, page


def test_the_search_finds_where_the_site_is_read_from_a_folder(site: Path, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for word, heading, found in (("backups", "Backups", "server"), ("likert", "Scales", "import")):  # "(Likert)" there
        page.goto((site / "howto" / "s3.html").as_uri())
        page.get_by_role("textbox", name="Search").press_sequentially(word)
        page.locator(".md-search-result__link", has_text=heading).first.click()
        page.wait_for_url(f"**/{found}.html*")
    assert asked and all(url.startswith(("file:", "data:", "blob:")) for url in asked), asked


def test_nothing_is_cut_off_on_paper(site: Path, page: Page) -> None:
    """The widest kinds of tables, programs' output and formulas, on a page of A4 less its margins."""
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 900})
    for name in ("method/verdicts", "tutorials/benchmark", "method/judges", "gallery"):
        page.goto((site / f"{name}.html").as_uri())
        parts = page.locator(".md-typeset :is(td, pre, .formula math, img)")
        right = parts.evaluate_all("found => found.map(one => one.getBoundingClientRect().right)")
        assert right and max(right) <= 680, name


def test_formulas_are_mathml_on_every_method_page(site: Path) -> None:
    for page in METHOD:
        made = (site / "method" / f"{page.stem}.html").read_text(encoding="utf-8")
        assert made.count("<math") == made.count("</math>") >= page.read_text(encoding="utf-8").count("```math"), page
        shown = re.sub(r"<math.*?</math>", "", made, flags=re.DOTALL)
        assert "\\frac" not in shown and "$<code" not in shown, f"{page.name}: a formula is shown as it is written"
