"""The documentation site: it builds without a broken link, and its reference is made of the code as it is."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from plumbline.resources import ROOT
from plumbline.study import Study

sys.path.insert(0, str(ROOT / "docs" / "_site"))
import reference


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as files; a page that no menu has, or a link to what is not there, ends the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout + done.stderr
    return folder


def test_documents_link_to_what_is_there(site: Path) -> None:
    assert (site / "index.html").is_file()
    assert "datasets:" in (site / "files/studies/demo.yaml.txt").read_text(encoding="utf-8")
    decisions = {file.stem for file in (ROOT / "docs/decisions").glob("*.md")}
    assert {file.stem for file in (site / "decisions").glob("*.html")} == decisions


def test_pages_ask_no_other_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert '<script src="http' not in text and '<link rel="stylesheet" href="http' not in text, page
        assert "fonts.googleapis" not in text, page


def test_every_key_of_a_study_says_what_it_means() -> None:
    waiting: list[type[BaseModel]] = [Study]
    seen: set[type[BaseModel]] = set()
    while waiting:
        model = waiting.pop()
        if model not in seen and not reference._is_absence(model):
            seen.add(model)
            silent = [name for name, field in model.model_fields.items() if not field.description and name != "kind"]
            assert not silent, f"{model.__module__}.{model.__name__}: {silent[0]} has no description"
            waiting += [part for field in model.model_fields.values() for part in reference._models(field.annotation)]
    page = reference.study()
    assert all(f"`{name}`" in page for model in seen for name in model.model_fields)
    assert "| `human` | [Tasks that people do (`human`)](#humansubject) |" in page


def test_the_reference_has_every_command_and_name() -> None:
    commands, names = reference.command_pages(), reference.api()
    assert "### plumbline demo" in commands and "#### plumbline crowd launch" in commands
    assert "#### plumbline judge select" in commands and "#### plumbline users invite" in commands
    assert "### axis_table" in names and "from annotation import ac2" in names


def test_the_citation_has_the_package_s_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert cited["version"] == tomllib.load(file)["project"]["version"]
