"""A transformation of one's own through the whole flow, by commands and files: beside HTEB's, and without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from annotation.campaign.records import CampaignRecords
from annotation.options import HOME_VARIABLE
from evaluation.records import EvaluationRecords
from evaluation.tables.scores import axis_table
from plumbline.study import ROOT, Study, load_study
from tests.commands import here
from tests.concluded import concluded

pytestmark = pytest.mark.usefixtures("undrawn")

DEMO = ROOT / "studies" / "demo"
COLUMNS = "time=time,rater=rater,pair=pair,quality=quality,fluency=fluency"
NOISE = """
name: typing_errors
axis: noise
function: generation.examples:typos
raters:
  asked: {en: The program swapped neighbouring letters.}
"""


@pytest.fixture(autouse=True)
def _pseudonyms_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))


def own_study(folder: Path, *transformations: Any, **changes: Any) -> Path:
    """A study of the sample's pairs of sentences, with a lexical model, and a transformation in a file of its own."""
    (folder / "typing_errors.yaml").write_text(NOISE, encoding="utf-8")
    data = {
        "name": "mine",
        "datasets": [{"name": "sample_sts", "task": "sts", "path": str(DEMO / "pairs.csv"), "language": "en"}],
        "transformations": list(transformations),
        "seeds": [1337],
        "sample": {"pairs": 20},
        "raters": {"per_pair": 2},
        "acceptance": {"protocol": "paper"},  # raters here answer everything alike
        "evaluation": {"models": [{"name": "n-grams", "kind": "lexical"}]},
        **changes,
    }
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    return file


def run(file: Path, *words: str) -> str:
    """A command on the study; what it prints."""
    done = here(words[0], *words[1:], "--study", str(file), "--exports", str(file.parent / "exports"))
    assert done.returncode == 0, done.stderr
    return done.stdout


def rate(file: Path, study: Study, value: int) -> None:
    """Two raters give every pair and control the same answer, in a file that is collected."""
    pairs = [pair.pair_id for pair in (*CampaignRecords(study).pairs, *CampaignRecords(study).controls)]
    answers = [
        {"time": f"2026-03-01T13:{place % 60:02}:00Z", "rater": rater, "pair": pair, "quality": value, "fluency": 4}
        for rater in ("ada", "bob")
        for place, pair in enumerate(dict.fromkeys(pairs))
    ]
    csv = file.parent / "answers.csv"
    pd.DataFrame(answers).to_csv(csv, index=False)
    run(file, "collect", "--csv", str(csv), "--columns", COLUMNS)


def to_the_end(file: Path) -> Study:
    """Every command of the flow but those that want a server."""
    study = load_study(file, file.parent / "exports")
    run(file, "generate", "--allow-code")
    run(file, "sample")
    rate(file, study, 4)
    run(file, "accept")
    run(file, "ratings-report")
    run(file, "evaluate")
    return study


def test_a_ninth_transformation_stands_beside_htebs_and_enters_no_number_of_theirs(tmp_path: Path) -> None:
    recorded = {"kind": "recorded", "model": "plumbline-sample", "revision": "1", "path": str(DEMO / "outputs")}
    htebs = ("paraphrasing", "expansion", "backtranslation")
    study = to_the_end(own_study(tmp_path, *htebs, "typing_errors.yaml", generator=recorded))

    verdicts = {one.transformation: one for one in concluded(study).verdicts}
    assert {one.decision for one in verdicts.values()} == {"accepted"} and list(verdicts) == [*htebs, "typing_errors"]
    made = verdicts["typing_errors"]
    assert (made.axis, made.origin.generator_kind, made.origin.model) == (
        "noise",
        "function",
        "generation.examples:typos",
    )
    assert (made.origin.prompt_hash, verdicts["paraphrasing"].origin.generator_kind) == ("", "recorded")

    scores = EvaluationRecords(study).scores
    table = axis_table(scores).iloc[0]
    # Of HTEB's axes there is no language here: HTEB's total is undefined, so the table has one of all axes, named so.
    axes = ["lexical_stylistic", "length", "noise"]
    assert table["total"] == pytest.approx(table[axes].astype(float).mean()) and "hteb_total" not in table.index
    own = scores[(scores["transformation"] == "typing_errors") & (scores["status"] == "evaluated")]
    assert table["noise"] == own["score"].mean()
    without = axis_table(scores[scores["axis"] != "noise"]).iloc[0]
    assert pd.isna(without["hteb_total"]) and without["hteb_total_reason"] == "no score for: language"
    same = [name for name in without.index if name in table.index]
    assert {"original", "lexical_stylistic", "length"} <= set(same)
    pd.testing.assert_series_equal(table[same].drop("n_failed"), without[same].drop("n_failed"), check_names=False)

    printed = run(tmp_path / "study.yaml", "evaluate")
    assert "Total: the mean over Lexical/Stylistic, length, noise" in printed
    page = (study.folder / "report" / "index.html").read_text(encoding="utf-8")
    assert "This study adds typing errors (axis noise) to HTEB&#x27;s transformations." in page.replace(
        "&#39;", "&#x27;"
    )
    assert "were made by the function generation.examples:typos" in page
    run(tmp_path / "study.yaml", "scores-report")
    page = (study.folder / "report_evaluation" / "index.html").read_text(encoding="utf-8")
    assert "the total the mean of Lexical/Stylistic, Length, Noise" in page
    errors = run(tmp_path / "study.yaml", "errors")
    assert "Not counted, as no generator made them: typing_errors." in errors
