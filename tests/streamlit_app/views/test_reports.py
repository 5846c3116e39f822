"""The pages of reports: what has data is there as the report has it, and nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from evaluation.instructions.scores import SCORES, PromptScore
from evaluation.records import ABSTENTION, AbstentionRow
from plumbline.statistics.abstention import CONFIDENCES, SHARES, abstention
from plumbline.store import write_table
from streamlit_app.app import PAGES
from tests.evaluation.human.rehearsed import human_study, make_human
from tests.evaluation.instructions.made import long
from tests.shared import made_once
from tests.streamlit_app.conftest import DEMO, MODELS, Open
from tests.streamlit_app.test_app import assert_calm, boxes, captions, specs, table_with, texts


def made_rows() -> list[dict[str, object]]:
    """Curves of two models, original and paraphrased."""
    rng = np.random.default_rng(0)
    rows = []
    for model in MODELS:
        for name, axis in (("original", "original"), ("paraphrasing", "lexical_stylistic")):
            found = abstention(rng.random(40), rng.random(40))
            row: dict[str, object] = {"oracle": found.oracle, "oracle_original": found.oracle}
            for confidence in CONFIDENCES:
                row |= {f"nauc_{confidence}": found.nauc, f"nauc_original_{confidence}": found.nauc}
                row |= {f"{kind}_{confidence}": found.curve for kind in ("curve", "curve_original", "kept")}
                row |= {f"threshold_{confidence}": found.thresholds, f"answered_{confidence}": SHARES}
            row |= {"model": model, "dataset": "find", "task_type": "retrieval", "transformation": name, "axis": axis}
            row |= {"seed": 1337 if axis != name else 0, "status": "evaluated", "unit_id": "", "reason": ""}
            rows.append(row | {"metric": "ndcg_at_10", "n": 40})
    return rows


@pytest.fixture
def filled(exports: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A study that asked for abstention, with a selection and checks in its folder; its file and its exports."""
    data = yaml.safe_load(DEMO.read_text(encoding="utf-8"))
    data["evaluation"]["abstention"] = True
    for dataset in data["datasets"]:
        dataset["path"] = str(DEMO.parent / dataset["path"])
    for engine in data["engines"].values():
        engine["path"] = str(DEMO.parent / engine["path"])
    file = tmp_path / "asking.yaml"
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    folder = exports / "demo"
    write_table(folder / ABSTENTION.name, [AbstentionRow.model_validate(row) for row in made_rows()], AbstentionRow)
    (folder / "selection").mkdir()
    curve = [(way, n, 0.9, n / 9, n / 10, n / 8) for way in ("agreement", "random") for n in (3, 5, 8)]
    columns = ["method", "tasks", "rho", "tau", "tau_low", "tau_high"]
    pd.DataFrame(curve, columns=columns).to_csv(folder / "selection" / "curve.csv", index=False)
    summary = {"answer": "3 of 8 tasks do, <b>so</b> it says.", "models": {"held_out": 7}}
    (folder / "selection" / "selection.json").write_text(json.dumps(summary), encoding="utf-8")
    (folder / "quality").mkdir()
    checks = [
        ("a", "duplicates", "pass", 0.0, "at most 1%", "", ""),
        ("a", "labels", "fail", 1.0, "2", "one label", "rows/a.labels.csv"),
    ]
    columns = ["task", "check", "verdict", "value", "threshold", "reason", "rows_file"]
    pd.DataFrame(checks, columns=columns).to_csv(folder / "quality" / "checks.csv", index=False)
    return file, exports


def test_sections_that_have_data_are_there(page: Open, filled: tuple[Path, Path]) -> None:
    file, exports = filled
    shown = page("--study", file, "--exports", exports, view="benchmark")
    assert_calm(shown)
    assert [heading.value for heading in shown.header] == [
        "Board",
        "Smallest sufficient number of tasks",
        "When models should not answer",
        "Task quality",
    ]
    assert "3 of 8 tasks do, <b>so</b> it says." in texts(shown)  # as text
    assert "1 task checked: 1 fail, 1 pass." in texts(shown)
    quality = table_with(shown, "Verdict", "Reason")
    assert quality["Verdict"].tolist() == ["✘ fail", "✔ pass"] and quality["Rows"].tolist()[0] == "rows/a.labels.csv"
    assert table_with(shown, "nAUC (max)")["Model"].tolist() == [MODELS[0]] * 2 + [MODELS[1]] * 2
    assert "dotted line: the mean score of all queries on the original texts" in captions(shown) and len(
        specs(shown)
    ) == 2 + ("rank_low" in str(specs(shown)))
    for name, content in (("selection/selection.json", "{"), ("quality/checks.csv", "task\n1\n")):
        (exports / "demo" / name).write_text(content, encoding="utf-8")
    damaged = page("--study", file, "--exports", exports, view="benchmark")
    assert_calm(damaged)
    assert boxes(damaged, "cannot be shown") == 2 and "Task quality" not in [header.value for header in damaged.header]


def test_what_was_not_made_is_left_out(page: Open, finished: Path) -> None:
    shown = page("--study", DEMO, "--exports", finished, view="benchmark")
    assert_calm(shown)
    assert [heading.value for heading in shown.header] == ["Board"] and boxes(shown, "Not available yet") == 0


def test_the_page_shows_the_reports_parts_and_says_what_is_simulated(page: Open, exports: Path) -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((3, 5, 6)) / 2 + 0.3
    frame = long(scores, scores.mean(axis=-1), label="acceptable", simulated=True)
    frame["text"] = frame["text"].replace("Word 0:", "<b>0</b>:")
    write_table(exports / "demo" / SCORES, frame, PromptScore)
    shown = page("--study", DEMO, "--exports", exports, view="instructions")
    assert_calm(shown)
    headings = [heading.value for heading in shown.header]
    assert (
        headings[:3] == ["In short", "The recommended score", "Defaults among wordings"] and headings[-1] == "Coverage"
    )
    assert "Over 6 wordings a task, the scores of 3 models on 5 tasks vary by" in texts(shown)
    assert any("SIMULATED LABELS" in warning.value for warning in shown.warning)
    assert len(specs(shown)) == 5
    best = next(table.value for table in shown.dataframe if "Best wording" in table.value)
    assert set(best["Best wording"]) <= {"<b>0</b>:", "default", *(f"Word {k}:" for k in range(1, 6))}


def test_the_page_shows_the_reports_parts_and_items_of_a_task(page: Open, tmp_path: Path) -> None:
    shutil.copytree(made_once("human", make_human) / "exports", tmp_path / "exports")
    study = human_study(tmp_path)
    shown = page("--study", study.file, "--exports", tmp_path / "exports", view="human")
    assert_calm(shown)
    headings = [heading.value for heading in shown.header]
    assert headings[:3] == ["In short", "People and models", "Differences"] and "Items answered differently" in headings
    assert "On 6 tasks people score" in texts(shown)
    assert sum("SIMULATED" in warning.value for warning in shown.warning) == 1
    assert len(specs(shown)) == 3
    items = next(table.value for table in shown.dataframe if "People said" in table.value)
    assert list(items["Apart"]) == sorted(items["Apart"], reverse=True) and len(items) > 1
    overview = page("--study", study.file, "--exports", tmp_path / "exports", view="overview")
    assert_calm(overview)
    assert "On 6 tasks people score" in texts(overview)
    assert sum("SIMULATED" in warning.value for warning in overview.warning) == 1


def test_there_is_no_page_where_people_did_no_tasks(page: Open, exports: Path) -> None:
    shown = page("--study", DEMO, "--exports", exports, view="overview")
    assert "People and models" in PAGES and "People and models" not in texts(shown)
