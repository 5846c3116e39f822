"""Where things are, in a checkout and outside one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from annotation.server import environment
from annotation.server.home import Home
from plumbline import prompts, resources, samples
from plumbline.errors import StudyError
from plumbline.resources import ROOT, installing, working
from plumbline.study import load_study
from plumbline.transformations import TRANSFORMATIONS


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As from a wheel, in an empty folder."""
    for module in (resources, prompts, environment):
        monkeypatch.setattr(module, "IN_CHECKOUT", False)
    monkeypatch.setenv("PLUMBLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(environment.LOCATION_VARIABLE, raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def test_in_a_checkout_records_and_the_server_are_in_its_root_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(environment.LOCATION_VARIABLE, raising=False)
    for place in (ROOT, ROOT / "docs", tmp_path):
        monkeypatch.chdir(place)
        assert load_study(ROOT / "studies" / "demo.yaml").folder == ROOT / "exports" / "demo"
        assert Home().path == ROOT / ".argilla"
        assert environment.location() == ROOT / ".venv-argilla"
    assert installing("ray") == "pip install '.[ray]'"


def test_outside_a_checkout_they_are_where_one_stands_and_the_environment_is_in_the_cache(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_study(ROOT / "studies" / "demo.yaml").folder == installed / "exports" / "demo"
    assert Home().path == installed / ".argilla"
    assert environment.location().parent == installed.parent / "cache"
    before = environment.location()
    monkeypatch.setattr(environment, "stamp", lambda: "of another version")
    assert environment.location() != before  # that of a version whose server runs stays
    assert installing("ray") == "pip install 'plumbline[ray]'"


def test_wordings_of_ones_own_are_found_beside_ours_and_never_in_the_place_of_ours(installed: Path) -> None:
    paraphrasing = TRANSFORMATIONS["paraphrasing"]
    text = (prompts.PROMPTS / "paraphrasing.yaml").read_text(encoding="utf-8")
    for name in ("", "mine", "pteb"):
        file = installed / "prompts" / name / "paraphrasing.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.replace("Rephrase", "Changed here. Rephrase"), encoding="utf-8")
    texts = {name: prompts.prompts_of(paraphrasing, name)[0].text for name in ("", "mine", "pteb")}
    assert [name for name, text in texts.items() if text.startswith("Changed here.")] == ["mine"]


def test_who_stands_in_a_folder_that_is_gone_hears_it(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "resource", lambda name: ROOT / name)
    installed.rmdir()
    with pytest.raises(StudyError, match="is gone; change to another"):
        working("exports")
    with pytest.raises(StudyError, match="no folder can be made where you stand; change to another"):
        samples.put_samples()


def test_a_module_of_one_of_our_names_is_named_itself(tmp_path: Path) -> None:
    other = tmp_path / "annotation.py"
    other.write_text("", encoding="utf-8")
    for place, path, advice in (
        (tmp_path, [], "run from another folder, or start the command as `plumbline`"),
        (ROOT, [str(tmp_path)], f"take {tmp_path} out of PYTHONPATH, or rename it"),
    ):
        asked = [sys.executable, *(["-P"] if path else []), "-m", "generation.errors", "--help"]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, str(ROOT)])}
        ended = subprocess.run(asked, cwd=place, env=env, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
        assert ended.stderr.startswith(f"error: {other} stands in the way of") and advice in ended.stderr
