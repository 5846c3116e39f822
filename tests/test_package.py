"""The platform without its checkout: a wheel in an environment of its own, used from an empty folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pandas as pd
import pytest

from plumbline.resources import ROOT

PARTS = ("plumbline", "generation", "annotation", "evaluation", "streamlit_app", "prompts", "studies", "constraints")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
STUDY = ("--study", "studies/demo.yaml")
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


def build(tree: Path, hook: str, target: Path) -> None:
    """One half of what `python -m build` does, without the network."""
    subprocess.run([sys.executable, "-c", BUILD, hook, str(target)], cwd=tree, check=True, capture_output=True)


class Installed:
    """An environment with Plumbline's wheel, and an empty folder to stand in."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.environment, self.work = folder / "environment", folder / "work"
        self.work.mkdir()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.environment)], check=True)
        python = self.environment / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
        subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
        self.packages = next((self.environment / "lib").glob("python3*/site-packages"))
        # What Plumbline needs, without the link to the checkout that stands beside it there.
        (self.packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")

    def run(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """A program of the environment."""
        own = ("PYTHONPATH", "PLUMBLINE_", "ARGILLA_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        command = [str(self.environment / "bin" / words[0]), *words[1:]]
        return subprocess.run(
            command, cwd=cwd or self.work, env=environment, capture_output=True, text=True, check=False
        )

    def done(self, *words: str) -> str:
        """What a command of `plumbline` prints that succeeds."""
        ended = self.run("plumbline", *words)
        assert ended.returncode == 0, f"plumbline {' '.join(words)}: {ended.stderr}"
        return ended.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of the source distribution of this tree."""
    folder = tmp_path_factory.mktemp("package")
    tree = folder / "tree"
    for name in PARTS:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copyfile(ROOT / name, tree / name)
    (tree / "studies" / "mine.yaml").write_text("name: mine\n", encoding="utf-8")
    build(tree, "build_sdist", folder)
    [source] = folder.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    build(folder / source.name.removesuffix(".tar.gz"), "build_wheel", folder)
    [wheel] = folder.glob("*.whl")
    return Installed(folder, wheel)


@pytest.fixture(scope="module")
def studied(installed: Installed) -> Installed:
    """The sample study, as far as it goes without raters."""
    assert installed.done("studies").endswith("next: plumbline generate --study studies/demo.yaml\n")
    installed.done("generate", *STUDY)
    installed.done("sample", *STUDY)
    return installed


def test_all_that_is_read_travels_in_the_wheel_and_no_study_of_the_builder(installed: Installed) -> None:
    carried = installed.packages / "plumbline" / "data"
    found = {str(file.relative_to(carried)) for file in carried.rglob("*") if file.is_file()}
    tracked = subprocess.run(
        ["git", "ls-files", "prompts", "studies"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found == {*tracked.stdout.split(), "constraints/argilla-server.txt"}
    for folder in ("plumbline", "generation", "annotation", "evaluation", "streamlit_app"):
        listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
        missing = [name for name in listed.stdout.split() if not (installed.packages / name).is_file()]
        assert not missing


def test_the_sample_study_runs_where_one_stands(studied: Installed) -> None:
    folder = studied.work / "exports" / "demo"
    pairs = pd.read_parquet(folder / "pairs.parquet")
    answers = pd.DataFrame({"pair": pairs["pair_id"], "rater": "ada", "quality": 4, "fluency": 4})
    raters = [answers.assign(rater=name) for name in ("ada", "grace", "mary")]
    pd.concat(raters).to_csv(studied.work / "answers.csv", index=False)
    columns = "pair=pair,rater=rater,quality=quality,fluency=fluency"
    studied.done("collect", *STUDY, "--csv", "answers.csv", "--columns", columns)
    assert "paraphrasing" in studied.done("accept", *STUDY).lower()
    studied.done("campaign-report", *STUDY)
    assert "next" in studied.done("status", *STUDY).lower()
    studied.done("evaluate", *STUDY)
    assert len(pd.read_parquet(folder / "scores.parquet"))
    studied.done("report", *STUDY)
