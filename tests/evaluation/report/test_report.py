"""The report of an evaluated study, from its records alone: no model is loaded."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page

from annotation.campaign.counting import counting_ratings
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.records import Verdict
from annotation.statistics.summaries import Design
from annotation.verdicts.verdicts import verdicts as annotation_verdicts
from evaluation.records import AcceptedScore
from evaluation.report.material import StudyEvaluation, other_prompts
from evaluation.report.page import FOLDER, Choices, write_report
from evaluation.tables.scores import axis_table
from plumbline.__main__ import run
from plumbline.errors import DataError, StudyError
from plumbline.exhibits import page as exhibits
from plumbline.manifest import Manifest
from plumbline.records import DriftRecord, Pair, Rating, Score
from plumbline.study import Study, load_study
from plumbline.study.transformations import EIGHT
from tests.annotation.verdicts.fixed import fixed_in_2025
from tests.axe import grave_of_file
from tests.evaluation.conftest import believe_print_outs, json_of, print_verdicts, verdict, write_pairs, write_study
from tests.evaluation.made_scores import score_row
from tests.shared import rating_of

NAMES = ("paraphrasing", "expansion", "summarisation", "translation")
REJECTED = "summarisation"
WHY = "mean quality 2.10 [1.90, 2.30]: under 3"
REFUSED = {"status": "left_out", "reason": f"rejected: {WHY}"}


def write_scores(study: Study, models: Sequence[str] = ("one", "two"), **refused: Any) -> pd.DataFrame:
    """Scores of six data sets and two seeds; summarisation was rejected, and five outputs of d1 failed."""
    rng = np.random.default_rng(0)
    rows = []
    for position, model in enumerate(models):
        for k in range(6):
            where = {"model": model, "dataset": f"d{k}", "task_type": "sts" if k < 3 else "retrieval"}
            original = 0.6 + 0.1 * position + 0.01 * k
            rows.append(score_row(transformation="original", score=original, **where))
            for number, name in enumerate(NAMES, 1):
                for seed in (1, 2):
                    changes: dict[str, Any] = {"seed": seed}
                    if name == REJECTED:
                        changes |= {**REFUSED, **refused}
                    if (k, name) == (1, "expansion"):
                        changes |= {"n_failed": 5, "original_score": original - 0.03}
                    left = changes.get("status") == "left_out"
                    score = float("nan") if left else original - 0.02 * number * rng.random()
                    rows.append(score_row(transformation=name, score=score, **where, **changes))
    frame = pd.DataFrame(rows)
    Manifest.of(study).write_table("scores.parquet", frame, Score)
    return frame


def write_ratings(study: Study, pairs: Sequence[Pair], simulated: bool) -> None:
    """Two raters of each pair; quality 3 to 5, of summarisation 1 to 3 (mean 2.2), fluency 4 and 5."""
    rows = [
        rating_of(pair, rater, question, value, simulated=simulated)
        for number, pair in enumerate(pairs)
        for question, value in (
            ("quality", (1 if pair.transformation == REJECTED else 3) + number % 3),
            ("fluency", 4 + number % 2),
        )
        for rater in ("r1", "r2")
    ]
    Manifest.of(study).write_table("ratings.parquet", rows, Rating)


def write_records(folder: Path, *, simulated: bool = True, **changes: Any) -> Study:
    """A study that was evaluated: scores, drift, ratings and verdicts that fit one another."""
    study = write_study(folder, transformations=list(NAMES), seeds=[1, 2], **changes)
    pairs = write_pairs(study)
    write_ratings(study, pairs, simulated)
    write_scores(study)
    moved = [
        DriftRecord(pair_id=pair.pair_id, model=model, drift=0.01 * (number % 7))
        for model in ("one", "two")
        for number, pair in enumerate(pairs)
    ]
    Manifest.of(study).write_table("drift.parquet", moved, DriftRecord)
    write_beside(study)
    fixed_in_2025(study)
    print_verdicts(study, verdicts(study, simulated))
    return study


def write_beside(study: Study) -> None:
    """Accepted pairs alone, enough of them for paraphrasing on d0 in its first run."""
    accepted = []
    for model in ("one", "two"):
        for name in NAMES:
            for seed in (1, 2):
                if name == REJECTED:
                    continue
                where = {"model": model, "dataset": "d0", "transformation": name, "seed": seed}
                where |= {"axis": EIGHT[name].axis, "status": "evaluated", "unit_id": ""}
                hole = (name, seed) == ("paraphrasing", 1)
                item_row = {"original": 0.7, "score": 0.65, "n": 21, "reason": ""}
                few = {"original": None, "score": None, "n": 3, "reason": "3 items, too few"}
                accepted.append(AcceptedScore.model_validate({**where, **(item_row if hole else few)}))
    Manifest.of(study).write_table("accepted_scores.parquet", accepted, AcceptedScore)


def verdicts(study: Study, simulated: bool, **decisions: str) -> list[Verdict]:
    decided = {REJECTED: "rejected", **decisions}
    design = Design.of(study, load_rubric(study))
    counting = counting_ratings(CampaignRecords(study).all_ratings, study.raters.per_pair)
    by_name = {
        verdict.transformation: verdict
        for verdict in annotation_verdicts(CampaignRecords(study).collected.sample, counting, design, 1)
    }
    return [
        verdict(
            study,
            name,
            decision=decided.get(name, "accepted"),
            reasons=(WHY,) if name in decided else (),
            questions=by_name[name].questions,
            n_pairs=by_name[name].n_pairs,
            simulated=simulated,
        )
        for name in study.transformations
    ]


@pytest.fixture(scope="module", autouse=True)
def by_hand() -> Iterator[None]:
    """Verdicts that a test makes up are taken as they are."""
    with pytest.MonkeyPatch.context() as patch:
        believe_print_outs(patch)
        yield


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study with simulated ratings; not to be written to."""
    return write_records(tmp_path_factory.mktemp("evaluated"))


@pytest.fixture(scope="module")
def reported(evaluated: Study, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The study with its report; not to be written to."""
    study = copied(evaluated, tmp_path_factory.mktemp("reported"))
    write_report(study)
    return study


@pytest.fixture
def study(evaluated: Study, tmp_path: Path) -> Study:
    """The study, to be changed."""
    return copied(evaluated, tmp_path)


def copied(study: Study, folder: Path) -> Study:
    """The study with its files in another folder."""
    shutil.copytree(study.file.parent, folder, dirs_exist_ok=True)
    return load_study(folder / study.file.name, folder / study.folder.parent.name)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of a report's time; `reported` has all figures."""
    monkeypatch.setattr("evaluation.report.page.all_figures", lambda *_: {})


TABLES = {
    "accepted_pairs", "axes", "baseline_averages", "baseline_runs", "datasets", "differences", "drift_correlations",
    "drops", "kendall", "left_out", "profiles", "ranking_original", "ranking_transformed", "shifts", "split_half",
    "transformations",
}  # fmt: skip
BARE = str.maketrans("", "", r"\{}")  # the signs of Markdown's and LaTeX's escapes
FIGURES = {"drift", "axes", "transformations", "shifts", "drift_1", "drift_2", "drops", "profiles"}


def test_every_table_is_there_in_every_form(reported: Study) -> None:
    files = {path.name for path in (reported.folder / FOLDER / "tables").iterdir()}
    assert files == {f"{name}.{end}" for name in TABLES for end in ("csv", "md", "tex")}
    drawn = {path.name for path in (reported.folder / FOLDER / "figures").iterdir()}
    assert drawn == {f"{name}.{end}" for name in FIGURES for end in ("svg", "png")}
    assert (reported.folder / FOLDER / "figures" / "axes.png").read_bytes().startswith(b"\x89PNG")


def test_csv_files_have_all_digits(reported: Study) -> None:
    frame = pd.read_csv(reported.folder / FOLDER / "tables" / "axes.csv")
    scores = pd.read_parquet(reported.folder / "scores.parquet")
    expected = axis_table(scores)
    for name in ("original", "length", "hteb_total_difference"):
        np.testing.assert_allclose(frame[name], expected[name], rtol=1e-12)


@pytest.mark.parametrize("name", sorted(TABLES - {"left_out"}))
def test_every_table_says_what_is_not_in_it_and_why(reported: Study, name: str) -> None:
    folder = reported.folder / FOLDER / "tables"
    for end in ("md", "tex"):
        text = (folder / f"{name}.{end}").read_text(encoding="utf-8").translate(BARE).replace("_", " ")
        assert f"Summarisation, left out: rejected: {WHY}" in text
        assert "Expansion, evaluated: 10 items whose outputs failed were dropped" in text  # five in each run
        assert "SIMULATED RATINGS" in text


def test_the_page_says_it_too(reported: Study) -> None:
    page = (reported.folder / FOLDER / "index.html").read_text(encoding="utf-8")
    assert page.count(f">Summarisation, left out: rejected: {WHY}") == 1  # one note for all tables
    assert page.index("SIMULATED RATINGS") < page.index("<h2>")
    for name in TABLES:
        assert f"{name}.csv" in page
    headings = re.findall(r"<h2>(.*)</h2>", page)
    assert headings[:4] == ["In short", "Contents", "What is doubtful", "Scores by axis"]
    assert headings[-3:] == ["Left out", "This report", "Notes"]
    assert page.index("Doubtful: the ratings behind the verdicts are SIMULATED") < page.index("Contents")
    assert page.count("<svg") == len(FIGURES) and "SIMULATED ratings" in page


@pytest.mark.usefixtures("undrawn")
def test_people_are_not_called_simulated(tmp_path: Path) -> None:
    study = write_records(tmp_path, simulated=False)
    page = write_report(study)[0]
    assert "simulated" not in page.read_text(encoding="utf-8").lower()
    assert "simulated" not in (page.parent / "tables" / "kendall.md").read_text(encoding="utf-8").lower()


def test_what_was_refused_but_included_has_tables_of_its_own(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"></svg>'
    monkeypatch.setattr(exhibits, "svg", lambda _: empty)  # which figures there are, and no drawing of them
    write_scores(study, status="included_rejected")
    tables = write_report(study)[0].parent / "tables"
    drawn = {path.stem for path in (tables.parent / "figures").iterdir()}
    assert {"axes_with_refused", "transformations_with_refused"} < drawn
    apart = (tables / "axes_with_refused.md").read_text(encoding="utf-8")
    assert "INCLUDING TRANSFORMATIONS THAT NO VERDICT ACCEPTS" in apart and apart.count("not accepted") == 2
    assert "not accepted" not in (tables / "axes.md").read_text(encoding="utf-8")
    assert "Summarisation, included rejected" in (tables / "axes.md").read_text(encoding="utf-8").replace("\\", "")


@pytest.mark.usefixtures("undrawn")
def test_models_that_lack_scores_are_said(study: Study) -> None:
    scores = write_scores(study, models=["one"])
    fewer = pd.concat([scores, scores.iloc[:-3].assign(model="three")])
    Manifest.of(study).write_table("scores.parquet", fewer, Score)
    text = (write_report(study)[0].parent / "tables" / "axes.md").read_text(encoding="utf-8")
    assert "Without scores (failed or not run): two." in text
    assert "Scores still missing: three (3)" in text


@pytest.mark.parametrize(
    ("decisions", "says"),
    [
        ({"expansion": "undecided"}, "expansion (en) was accepted when the file was written and is undecided now"),
        (
            {"summarisation": "accepted"},
            "summarisation (en) was rejected when the file was written and is accepted now",
        ),
    ],
)
def test_scores_that_verdicts_have_outrun_are_refused(study: Study, decisions: dict[str, str], says: str) -> None:
    print_verdicts(study, verdicts(study, True, **decisions))
    with pytest.raises(DataError) as caught:
        write_report(study)
    assert says in str(caught.value) and "plumbline evaluate" in str(caught.value)
    assert "\n" not in str(caught.value) and not (study.folder / FOLDER).exists()


def test_scores_whose_verdict_is_gone_are_refused(study: Study) -> None:
    print_verdicts(study, verdicts(study, True)[1:])
    with pytest.raises(DataError, match=r"paraphrasing \(en\) was accepted .* is without a verdict now"):
        write_report(study)


@pytest.mark.parametrize(
    ("noted", "says"),
    [
        ({"protocol": "mteb"}, "computed with protocol 'mteb', but the study now has 'paper'; run"),
        ({"precision": "float16"}, "computed with precision 'float16', but the study now has 'float32'; run"),
        ({"generator_hash": "0123456789"}, "computed with generator '01234567', but the study now has"),
    ],
)
def test_scores_that_the_study_has_outrun_are_refused(study: Study, noted: dict[str, str], says: str) -> None:
    Manifest.of(study).write_table("scores.parquet", write_scores(study).assign(**noted), Score)
    with pytest.raises(DataError) as caught:
        write_report(study)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_scores_of_two_protocols_are_not_compared(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    study = write_records(first)
    models = [{"name": "one", "revision": "1"}]
    second_study = write_records(second, name="other", evaluation={"models": models, "protocol": "mteb"})
    with pytest.raises(StudyError, match="scores of two protocols cannot be compared"):
        write_report(study, compared=second_study)


@pytest.mark.usefixtures("undrawn")
def test_nothing_accepted_is_a_report_all_the_same(study: Study) -> None:
    scores = write_scores(study)
    changed = scores["transformation"] != "original"
    scores.loc[changed, ["status", "reason", "score"]] = ["left_out", REFUSED["reason"], np.nan]
    Manifest.of(study).write_table("scores.parquet", scores, Score)
    print_verdicts(study, verdicts(study, True, **dict.fromkeys(NAMES, "rejected")))
    tables = write_report(study)[0].parent / "tables"
    assert "| one | – | – | – | – | – |" in (tables / "axes.md").read_text(encoding="utf-8")
    # The original scores of one are 60 to 65, those of two 10 more: two beats it on six data sets. Of two models and
    # six signs p is 2 ** -5, so they are told apart; no drawing changes the counts.
    assert "| one | 2 (0) | 2 to 2 | 2 to 2 | b | – | 62.50 | " in (tables / "ranking_original.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.usefixtures("undrawn")
def test_what_nobody_rated_has_a_report_where_it_was_included(study: Study) -> None:
    scores = write_scores(study)
    Manifest.of(study).write_models("looks.json", [])
    for name in ("verdicts.json", "pairs.parquet", "ratings.parquet"):
        (study.folder / name).unlink()
    with pytest.raises(DataError, match="verdicts.json"):  # these scores came through the gate
        write_report(study)
    included = {"status": "included_rejected", "reason": "no verdict for it in English: have a sample rated"}
    changed = scores["transformation"] != "original"
    scores.loc[changed, list(included)] = list(included.values())
    scores["score"] = scores["score"].fillna(0.5)
    Manifest.of(study).write_table("scores.parquet", scores, Score)
    Manifest.of(study).write_table("drift.parquet", [], DriftRecord)
    tables = write_report(study)[0].parent / "tables"
    assert "| one | – | – | – | – | – |" in (tables / "axes.md").read_text(encoding="utf-8")
    apart = (tables / "axes_with_refused.md").read_text(encoding="utf-8").replace("\\", "")
    assert "| one [not accepted] | 62.50 |" in apart and included["reason"] in apart
    assert not (tables / "thresholds.md").exists()


@pytest.mark.usefixtures("undrawn")
def test_the_baseline_and_table_16_are_chosen(study: Study) -> None:
    tables = write_report(study, Choices("two", ("d0", "d1"), ("two",)))[0].parent / "tables"
    assert "two against each model" in (tables / "baseline_runs.md").read_text(encoding="utf-8")
    frame = pd.read_csv(tables / "translation.csv", keep_default_na=False)
    assert frame[["group", "model"]].to_numpy().tolist() == [
        ["English-only", "one"],
        ["English-only", "Subtotal"],
        ["Multilingual", "two"],
        ["Multilingual", "Subtotal"],
        ["", "Total"],
    ]
    for wrong in (Choices("three"), Choices("", ("d0", "d9")), Choices("", ("d0", "d1"), ("three",))):
        with pytest.raises(StudyError, match=r"no (model 'three'|data set 'd9') has scores"):
            write_report(study, wrong)


@pytest.mark.usefixtures("undrawn")
def test_another_generator_is_set_beside_the_studys(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    generator = {"kind": "recorded", "model": "qwen", "path": "outputs.jsonl"}
    first_study, second_study = (
        write_records(first, simulated=False),
        write_records(second, name="other", generator=generator),
    )
    changed = write_scores(second_study)
    changed.loc[changed["transformation"] == "translation", "score"] += 0.1
    refused = {"status": "included_rejected", "reason": "no verdict for paraphrasing in English: have a sample rated"}
    changed.loc[changed["transformation"] == "paraphrasing", list(refused)] = list(refused.values())
    Manifest.of(second_study).write_table("scores.parquet", changed, Score)
    print_verdicts(second_study, verdicts(second_study, True)[1:])
    tables = write_report(first_study, compared=second_study)[0].parent / "tables"
    frame = pd.read_csv(tables / "generators.csv").set_index("name")
    assert frame["change"].to_dict() == pytest.approx(
        {"lexical_stylistic": 0, "paraphrasing": 0, "length": 0, "expansion": 0}
        | {"language": 10, "translation": 10, "hteb_total": 10 / 3},
        abs=1e-9,
    )
    words = (tables / "generators.md").read_text(encoding="utf-8").replace("\\", "")
    assert "| Paraphrasing |" in words and "| qwen [not accepted] |" in words
    assert "Summarisation, left out" in words and "qwen: Paraphrasing, included rejected: no verdict" in words
    assert "qwen: SIMULATED RATINGS" in words
    assert not (tables / "lengths.md").exists()  # there are no texts to count
    print_verdicts(second_study, verdicts(second_study, True, expansion="rejected")[1:])
    with pytest.raises(DataError, match=r"expansion \(en\) was accepted .* is rejected now"):
        write_report(first_study, compared=second_study)


@pytest.mark.usefixtures("undrawn")
def test_one_transformation_alone_has_ptebs_tables(study: Study) -> None:
    scores = write_scores(study)
    some = scores[scores["transformation"].isin(["original", "paraphrasing"])]
    Manifest.of(study).write_table("scores.parquet", some, Score)
    text = (write_report(study)[0].parent / "tables" / "datasets_paraphrasing.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if "| d2 |" in line)
    values = some[(some["dataset"] == "d2") & (some["model"] == "one") & (some["seed"] > 0)]["score"]
    assert f"| 62.00 | {100 * values.mean():.2f} ± {100 * values.std():.2f} |" in row


@pytest.mark.usefixtures("undrawn")
def test_the_command_sets_several_prompts_of_one_generator_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    study = write_records(folders[0], simulated=False)
    exports = str(study.folder.parent)
    second_study = load_study(write_records(folders[1], name="other", prompts="pteb_variation_1").file, exports)
    (folders[1] / "exports" / "other").rename(second_study.folder)
    changed = write_scores(second_study)
    changed.loc[changed["transformation"] == "translation", "score"] -= 0.1
    Manifest.of(second_study).write_table("scores.parquet", changed, Score)
    arguments = ["scores-report", "--study", str(study.file), "--exports", exports, "--prompts", str(second_study.file)]
    assert run(arguments) == 0
    assert f"-> {study.folder / FOLDER / 'index.html'}" in capsys.readouterr().out
    assert "evaluation report" in json_of(study.folder / "manifest.json")["stages"]
    file = study.folder / FOLDER / "tables" / "prompts.csv"
    frame = pd.read_csv(file, keep_default_na=False).set_index(["name", "prompts"])
    assert {prompts for _, prompts in frame.index} == {"default", "pteb_variation_1"}
    changes = frame.xs("pteb_variation_1", level="prompts")["change"].astype(float)
    assert changes.to_dict() == pytest.approx({"paraphrasing": 0, "expansion": 0, "translation": -10}, abs=1e-9)
    words = file.with_suffix(".md").read_text(encoding="utf-8").replace("\\", "")
    assert "pteb_variation_1: SIMULATED RATINGS" in words and "no judge rated outputs of the same texts" in words
    qwen = second_study.model_copy(update={"generator": second_study.generator.model_copy(update={"model": "qwen"})})
    plain, beside = (StudyEvaluation(beside_study, (), changed, ()) for beside_study in (study, qwen))
    with pytest.raises(
        StudyError, match="--prompts: .* and .* have different generators or settings; name studies that differ only in"
    ):
        other_prompts(plain, [beside])
    with pytest.raises(StudyError, match="is named twice"):
        run([*arguments, str(study.file)])


@pytest.mark.browser
def test_it_keeps_nobody_out(reported: Study, page: Page) -> None:
    assert grave_of_file(page, reported.folder / FOLDER / "index.html") == []
