"""A study whose rubric has a label, a ranking and a text, and rates nothing: to the end, by commands and files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from annotation.sampling.controls import read_controls
from annotation.sampling.sample import read_pairs
from annotation.server_commands import HOME_VARIABLE
from annotation.verdicts.verdicts import read_verdicts
from evaluation.results import read_scores
from plumbline.study import load_study
from tests.annotation.kinds import ask
from tests.annotation.test_questions import SHARE, labels_alone
from tests.streamlit_app.conftest import APP
from tests.test_own_transformations import DEMO, own_study, run

COLUMNS = "time=time,rater=rater,pair=pair,naturalness=naturalness,order=order"
ORDERS = ("tone>form=sense", "form>tone>sense")


def test_a_study_that_rates_nothing_goes_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ada says odd of every other pair, Bob of the others: a share of 0.5. They agree on half the orders."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    ask(monkeypatch, tmp_path, labels_alone())
    recorded = {"kind": "recorded", "model": "plumbline-sample", "revision": "1", "path": str(DEMO / "outputs")}
    file = own_study(tmp_path, "paraphrasing", generator=recorded, rubric="kinds", acceptance={"rules": [SHARE]})
    study = load_study(file, tmp_path / "exports")
    for command in ("generation.run", "annotation sample", "annotation preview"):
        run(file, *command.split())
    planned = run(file, "annotation", "plan", "--campaigns", "2", "--pairs", "30")
    assert "share of odd in naturalness at most 0.5, decided by its value" in planned
    pairs = dict.fromkeys(one.pair_id for one in (*read_pairs(study), *read_controls(study)))
    answers = [
        {"time": f"2026-03-01T13:{place % 60:02}:00Z", "rater": rater, "pair": pair, "order": ORDERS[who * place % 2]}
        | {"naturalness": ("Natural", "odd")[(place + who) % 2]}
        for who, rater in enumerate(("ada", "bob"))
        for place, pair in enumerate(pairs)
    ]
    pd.DataFrame(answers).to_csv(tmp_path / "answers.csv", index=False)
    run(file, "annotation", "collect", "--csv", str(tmp_path / "answers.csv"), "--columns", COLUMNS)
    for command in ("status", "review"):
        run(file, "annotation", command)
    told = run(file, "annotation", "accept")
    assert "mean rank" in told and "Agreement with 95%" not in told
    run(file, "annotation", "report")
    page = (study.folder / "report" / "index.html").read_text(encoding="utf-8")
    assert "Raters were asked about each pair by the rubric kinds." in page
    assert "Drift (1 - cos) stands beside no mean" in run(file, "evaluation.run")
    (verdict,) = read_verdicts(study)
    assert verdict.decision == "accepted" and verdict.probability == verdict.probabilities[0].probability == 0.5
    sound, order, _ = verdict.questions
    assert {one.label: one.share.value for one in sound.shares} == {"natural": 0.5, "odd": 0.5, "wrong": 0}
    # Half the pairs have equal orders: tau 1. Of the others' three twos one agrees, one does not, one is tied: tau 0.
    assert order.coefficients[0].name == "tau-b" and order.coefficients[0].estimate.value == pytest.approx(0.5)
    assert read_scores(study)["status"].eq("evaluated").all()
    monkeypatch.setattr("sys.argv", [str(APP), "--study", str(study.file), "--exports", str(tmp_path / "exports")])
    for view in ("drift", "verdicts", "campaign"):
        shown = AppTest.from_file(str(APP), default_timeout=60).switch_page(f"views/{view}.py").run()
        assert not shown.exception and not shown.error, (view, shown.exception, shown.error)
