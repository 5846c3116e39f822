"""Where things are, in a checkout and outside one."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from annotation.server import process
from annotation.server.home import Home
from plumbline import prompts, resources
from plumbline.resources import ROOT, installing
from plumbline.study import load_study
from plumbline.study.transformations import EIGHT


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As from a wheel, in an empty folder."""
    for module in (resources, process):
        monkeypatch.setattr(module, "IN_CHECKOUT", False)
    monkeypatch.setenv("PLUMBLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(process.LOCATION_VARIABLE, raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def test_a_checkouts_commands_too_write_where_one_stands_and_never_into_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(process.LOCATION_VARIABLE, raising=False)
    for folder in (ROOT, ROOT / "docs", tmp_path):
        monkeypatch.chdir(folder)
        assert load_study(ROOT / "studies" / "demo.yaml").folder == folder / "exports" / "demo"
        assert Home().path == folder / ".argilla"
        assert prompts.prompt_folders() == tuple(dict.fromkeys((ROOT / "prompts", folder / "prompts")))
        assert process.location() == ROOT / ".venv-argilla"  # no user's file: made again where it is missing


def test_a_hint_installs_this_plumbline_and_never_another_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert installing("ray") == "pip install -e '.[ray]'"
    monkeypatch.chdir(tmp_path)
    assert installing("ray") == f"pip install -e '{ROOT}[ray]'"
    monkeypatch.setattr(resources, "IN_CHECKOUT", False)  # PyPI's `plumbline` is another project
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert installing("crowd,demo") == f"pip install 'plumbline-embeddings[crowd,demo]=={version}'"


def test_outside_a_checkout_they_are_where_one_stands_and_the_environment_is_in_the_cache(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_study(ROOT / "studies" / "demo.yaml").folder == installed / "exports" / "demo"
    assert Home().path == installed / ".argilla"
    assert process.location().parent == installed.parent / "cache"
    before = process.location()
    monkeypatch.setattr(process, "stamp", lambda: "of another version")
    assert process.location() != before  # that of a version whose server runs stays


def test_wordings_of_ones_own_are_found_beside_ours_and_never_in_the_place_of_ours(installed: Path) -> None:
    paraphrasing = EIGHT["paraphrasing"]
    text = (prompts.PROMPTS / "paraphrasing.yaml").read_text(encoding="utf-8")
    for name in ("", "mine", "pteb"):
        file = installed / "prompts" / name / "paraphrasing.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.replace("Rephrase", "Changed here. Rephrase"), encoding="utf-8")
    texts = {name: prompts.prompts_of(paraphrasing, name)[0].text for name in ("", "mine", "pteb")}
    assert [name for name, text in texts.items() if text.startswith("Changed here.")] == ["mine"]


def test_a_module_of_one_of_our_names_is_named_itself(tmp_path: Path) -> None:
    other = tmp_path / "annotation.py"
    other.write_text("", encoding="utf-8")
    for place, path, advice in (
        (tmp_path, [], "run from another folder, or start the command as `plumbline`"),
        (ROOT, [str(tmp_path)], f"take {tmp_path} out of PYTHONPATH, or rename it"),
    ):
        asked = [sys.executable, *(["-P"] if path else []), "-m", "plumbline", "errors", "--help"]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, str(ROOT)])}
        ended = subprocess.run(asked, cwd=place, env=env, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
        assert ended.stderr.startswith(f"error: {other} hides") and advice in ended.stderr
