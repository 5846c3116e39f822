"""The page of the tasks as a benchmark: sections that have data are there, and others are not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from evaluation.measures.abstention import FILE, AbstentionRow
from plumbline.statistics.abstention import CONFIDENCES, SHARES, abstention
from plumbline.store import write_table
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
    data["generator"]["path"] = str(DEMO.parent / data["generator"]["path"])
    file = tmp_path / "asking.yaml"
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    folder = exports / "demo"
    write_table(folder / FILE, [AbstentionRow.model_validate(row) for row in made_rows()], AbstentionRow)
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
        "How few tasks would do",
        "When models should not answer",
        "Task quality",
    ]
    assert "3 of 8 tasks do, <b>so</b> it says." in texts(shown)  # as text
    assert "1 tasks checked: 1 fail, 1 pass." in texts(shown)
    quality = table_with(shown, "Verdict", "Reason")
    assert quality["Verdict"].tolist() == ["✘ fail", "✔ pass"] and quality["Rows"].tolist()[0] == "rows/a.labels.csv"
    assert table_with(shown, "nAUC (max)")["Model"].tolist() == [MODELS[0]] * 2 + [MODELS[1]] * 2
    assert "dotted: no order" in captions(shown) and len(specs(shown)) == 2 + ("rank_low" in str(specs(shown)))
    for name, content in (("selection/selection.json", "{"), ("quality/checks.csv", "task\n1\n")):
        (exports / "demo" / name).write_text(content, encoding="utf-8")
    damaged = page("--study", file, "--exports", exports, view="benchmark")
    assert_calm(damaged)
    assert boxes(damaged, "cannot be shown") == 2 and "Task quality" not in [header.value for header in damaged.header]


def test_what_was_not_made_is_left_out(page: Open, finished: Path) -> None:
    shown = page("--study", DEMO, "--exports", finished, view="benchmark")
    assert_calm(shown)
    assert [heading.value for heading in shown.header] == ["Board"] and boxes(shown, "Not there yet") == 0
