"""A study as a finished run leaves it, made without a server and without a model."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from annotation.records import Verdict
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from plumbline.manifest import Manifest, stage
from plumbline.records import DriftRecord, Pair, Rating, Score
from plumbline.study import ROOT, Study, load_study
from plumbline.study.subject import ORIGINAL
from plumbline.study.transformations import EIGHT
from streamlit_app.app import PAGES
from tests.annotation.verdicts.fixed import fixed_in_2025
from tests.evaluation.made_scores import score_row
from tests.shared import generate_once, made_once, rating_of

DEMO = ROOT / "studies" / "demo.yaml"
APP = ROOT / "streamlit_app" / "app.py"
MODELS = ("tests/first", "tests/second")
TIME = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
VIEWS = tuple(PAGES)
Open = Callable[..., AppTest]


def go_to(shown: AppTest, view: str) -> AppTest:
    """The dashboard at another page's address, from its next run on; Streamlit's own switch knows files alone."""
    if view != "answer":
        shown._page_hash = calc_hash(view)
    return shown


@pytest.fixture(scope="session")
def finished() -> Path:
    """The exports folder of the sample study with every record made; not to be written to."""
    return made_once("records", make_records)


def make_records(folder: Path) -> None:
    """Every record of the sample study."""
    study = load_study(DEMO, folder)
    with stage(study, "generation"):
        generate_once(study)
    with stage(study, "sample"):
        pairs = draw_sample(study)
    for name in ("publish", "collect", "evaluation"):
        with stage(study, name):
            pass
    Manifest.of(study).write_table("ratings.parquet", made_ratings(pairs), Rating)
    Manifest.of(study).write_table("control_ratings.parquet", list[Rating](), Rating)
    fixed_in_2025(study)
    with stage(study, "accept"):
        verdicts = accept(study).verdicts
    Manifest.of(study).write_table("drift.parquet", made_drift(pairs), DriftRecord)
    Manifest.of(study).write_table("scores.parquet", made_scores(study, verdicts), Score)


@pytest.fixture
def exports(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished study for one test to change."""
    shutil.copytree(finished, tmp_path / "exports")
    return tmp_path / "exports"


@pytest.fixture
def study(exports: Path) -> Study:
    """The study whose records stand in `exports`."""
    return load_study(DEMO, exports)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Open:
    """Run a page with these arguments, as `streamlit run` does, without an error; equal files are not read again."""
    # For components, of which the pages have none, it would parse every installed package's metadata for each page.
    monkeypatch.setattr("streamlit.components.v2.manifest_scanner.scan_component_manifests", list)

    def run(*arguments: object, view: str = "answer", **address: str) -> AppTest:
        monkeypatch.setattr("sys.argv", [str(APP), *map(str, arguments)])
        shown = AppTest.from_file(str(APP), default_timeout=60)
        go_to(shown, view)
        shown.query_params.update(address)
        assert_calm(shown.run())
        return shown

    return run


def assert_calm(page: AppTest) -> None:
    assert [item.message for item in page.exception] == []
    assert [item.value for item in page.error] == []


def made_ratings(pairs: list[Pair]) -> list[Rating]:
    """Three simulated raters by a seeded rule; style changes are bad, so that something is refused."""
    rng = np.random.default_rng(7)
    rows = []
    for pair in pairs:
        level = 2.0 if pair.transformation == "style_change" else 3.9
        felt = level + rng.normal(0, 0.8)
        for rater in ("simulated-1a2b3c4d", "simulated-5e6f7a8b", "simulated-9c0d1e2f"):
            for question in ("quality", "fluency"):
                value = int(np.clip(round(felt + rng.normal(0, 0.5)), 1, 5))
                rows.append(rating_of(pair, rater, question, value, submitted_at=TIME, simulated=True))
    return rows


def made_drift(pairs: list[Pair]) -> list[DriftRecord]:
    """Drift for two models, by a seeded rule."""
    rng = np.random.default_rng(8)
    return [
        DriftRecord(pair_id=pair.pair_id, model=model, drift=float(rng.beta(2, 9)))
        for model in MODELS
        for pair in pairs
    ]


def made_scores(study: Study, verdicts: list[Verdict]) -> pd.DataFrame:
    """Scores of two models; what the verdicts refuse is left out with their reasons."""
    rng = np.random.default_rng(9)
    refused = {verdict.transformation: verdict for verdict in verdicts if verdict.decision != "accepted"}
    rows = []
    for model in MODELS:
        for dataset in study.datasets:
            row = partial(score_row, model, dataset.name, task_type=dataset.task, metric="main", n=24)
            score = float(rng.uniform(0.6, 0.9))
            rows.append(row(ORIGINAL, score))
            for name in EIGHT:
                if verdict := refused.get(name):
                    why = f"{verdict.decision}: {'; '.join(verdict.reasons)}"
                    rows.append(row(name, math.nan, seed=1337, status="left_out", reason=why))
                else:
                    rows.append(row(name, score - float(rng.uniform(0, 0.1)), seed=1337))
    return pd.DataFrame(rows)
