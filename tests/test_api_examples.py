"""The examples of the Python API run and print what they say: those of docstrings, and those of docs/api.md."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.study import ROOT
from tests.evaluation.human.rehearsed import human_study, make_human
from tests.finished import finished_study
from tests.shared import made_once

NAMES = [
    (package, name)
    for package in ("plumbline", "annotation", "evaluation")
    for name in importlib.import_module(package).__all__
]
RECORDS = ("Design", "AcceptanceSpec")  # their example is `judge`'s
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def study_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Studies in studies/ (demo, mine, human), what was made of the last two in exports/."""
    shutil.move(finished_study(tmp_path).file, tmp_path / "studies" / "mine.yaml")
    shutil.copy(ROOT / "studies" / "demo.yaml", tmp_path / "studies")
    human_study(tmp_path / "studies")
    shutil.copytree(made_once("human", make_human) / "exports" / "human", tmp_path / "exports" / "human")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("study_folder")
@pytest.mark.parametrize(("package", "name"), [pair for pair in NAMES if pair[1] not in RECORDS])
def test_the_example_of_a_docstring_runs(package: str, name: str) -> None:
    function = getattr(importlib.import_module(package), name)
    (example,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={})
    said = io.StringIO()
    runner = doctest.DocTestRunner()
    assert runner.run(example, out=said.write).attempted > 1, f"{package}.{name} has no example"
    assert not runner.failures, said.getvalue()


@pytest.mark.parametrize("number", range(2))
def test_the_examples_of_the_page_print_what_it_says(number: int) -> None:
    code, says = EXAMPLES[number]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "docs/api.md", "exec"), {})  # noqa: S102 (the page is ours)
    assert [line.rstrip() for line in said.getvalue().splitlines()] == says.splitlines()
    assert len(EXAMPLES) == 2


def test_packages_load_nothing_until_a_name_is_asked_for() -> None:
    code = (
        "import sys, plumbline, annotation, evaluation\n"
        "heavy = {'numpy', 'pandas', 'pydantic', 'scipy', 'yaml'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
        "assert 'judge' in dir(annotation) and 'judge' not in vars(annotation)\n"
        "import signal\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "from evaluation import wilcoxon\n"
        "assert evaluation.wilcoxon is wilcoxon and 'torch' not in sys.modules\n"
        "try:\n    annotation.jugde\nexcept AttributeError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "module 'annotation' has no attribute 'jugde'\n"
