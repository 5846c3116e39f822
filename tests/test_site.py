"""The documentation site: it builds without a broken link, and its reference is made of the code as it is."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import io
import re
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


def test_every_key_of_a_study_says_what_it_means() -> None:
    waiting: list[type[BaseModel]] = [Study]
    seen: set[type[BaseModel]] = set()
    while waiting:
        model = waiting.pop()
        if model not in seen and not reference._is_absence(model):
            seen.add(model)
            silent = [
                name
                for name, field in reference.study_fields(model).items()
                if not field.description and name != "kind"
            ]
            assert not silent, f"{model.__module__}.{model.__name__}: {silent[0]} has no description"
            waiting += [
                part for field in reference.study_fields(model).values() for part in reference._models(field.annotation)
            ]
    page = reference.study()
    assert all(f"`{name}`" in page for model in seen for name in reference.study_fields(model))
    assert "| `engines` | a mapping, each value: [Engine](#enginespec) |" in page


def test_the_reference_has_every_command_and_name() -> None:
    commands, names = reference.command_pages(), reference.api()
    for name in ("demo", "crowd launch", "judge select", "users invite", "bundle inspect"):
        assert f"| `plumbline {name}` | " in commands, name
    assert "`python -m evaluation.run`" in commands
    assert "`ac2(ratings, scale=..." in names
    for package in ("plumbline", "annotation", "evaluation"):
        assert all(f"### {name}\n" in names for name in importlib.import_module(package).__all__), package


def test_the_citation_has_the_package_s_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert cited["version"] == tomllib.load(file)["project"]["version"]


HOWTO = sorted((ROOT / "docs" / "howto").glob("*.md"))


def sources() -> str:
    """What our commands can say, and what reaches a user of the libraries below them; each text on one line."""
    files = [file for folder in (*PACKAGES, "packages") for file in (ROOT / folder).rglob("*.py")]
    for library in ("cyclopts.validators._group", "botocore.exceptions", "fsspec.registry"):
        spec = importlib.util.find_spec(library)
        assert spec and spec.origin
        files.append(Path(spec.origin))
    files += (ROOT / "docs" / "examples").glob("*.sbatch")
    return re.sub(r'"\s+f?"', "", "\n".join(file.read_text(encoding="utf-8") for file in files))


def test_each_message_that_a_how_to_page_quotes_is_one_that_there_is() -> None:
    """A quoted line of `What goes wrong` stands in the code, with anything where the page has `...`."""
    said = sources()
    pages = {page.name: page.read_text(encoding="utf-8").partition("## What goes wrong\n")[2] for page in HOWTO}
    cells = [(name, cell) for name, text in pages.items() for cell in re.findall(r"^\| (.+?) \| ", text, re.MULTILINE)]
    quoted = [(name, line) for name, cell in cells for line in re.findall(r"`([^`]+ [^`]+ [^`]+)`", cell)]
    assert {name for name, _ in quoted} == set(pages) - {"index.md"}
    for name, line in quoted:
        there = ".*".join(re.escape(piece) for piece in line.strip(". ").split("..."))
        assert re.search(there, said), f"docs/howto/{name}: no command says {line!r}"


PACKAGES = ("plumbline", "generation", "annotation", "evaluation", "streamlit_app")
FOLDERS = (*PACKAGES, "tests", "docs", "prompts", "studies", "benchmarks", "constraints", "packages")
#: Examples of files that a user would make, and what `make bench` writes.
NOT_HERE = {
    "prompts/rubrics/NAME.yaml",
    "prompts/rubrics/outputs.yaml",
    "prompts/rubrics/support.yaml",
    "studies/outputs.yaml",
    "prompts/rubrics/meaning.yaml",
    "studies/people.yaml",
    "benchmarks/results/latest.json",
}


def test_files_that_documents_name_are_there() -> None:
    """The changelog aside, which tells what was."""
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "exports" / "README.md"]
    for document in documents:
        text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
        for name in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`", text):
            there = (
                (ROOT / name).exists()
                or (ROOT / f"{name}.py").exists()
                or name in NOT_HERE
                or name.startswith("studies/mine")
            )
            assert there or document.name == "CHANGELOG.md", f"{document.name} names {name}, which is not there"


@pytest.mark.parametrize("package", PACKAGES)
def test_the_design_names_the_modules_that_there_are(package: str) -> None:
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^### `{package}/`(.+?)^(?:##|The Python API)", design, re.MULTILINE | re.DOTALL)
    named = {name.rstrip("/").rpartition("/")[2] for name in re.findall(r"`([a-z_/]+)`", section)}
    files = list((ROOT / package).rglob("*.py"))
    there = {file.stem for file in files} | {folder.name for file in files for folder in file.parents}
    assert not named - there, f"docs/design.md names in {package} what is not there: {named - there}"
    top = {file.stem for file in files if file.parent == ROOT / package and not file.stem.startswith("_")}
    assert top and not top - named, f"docs/design.md does not name in {package}: {top - named}"


METHOD = sorted((ROOT / "docs" / "method").glob("*.md"))


@pytest.mark.parametrize("page", METHOD, ids=lambda page: page.stem)
def test_a_method_page_s_example_prints_what_it_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    example = doctest.DocTestParser().get_doctest(code, {}, page.name, str(page), 0)
    said = io.StringIO()
    result = doctest.DocTestRunner(verbose=False).run(example, out=said.write)
    assert result.attempted and not result.failed, said.getvalue()
    assert "```math\n" in text and ("ndefined" in text or "NaN" in text)
