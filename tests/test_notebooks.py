"""The notebooks: every cell runs, in its order, on the records of a finished sample study."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from plumbline.resources import ROOT
from tests.shared import made_once
from tests.streamlit_app.conftest import make_records

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def run(file: Path) -> tuple[dict[str, Any], list[Any]]:
    """The names that a notebook leaves, and what its cells show: the value of each last expression."""
    names: dict[str, Any] = {}
    shown = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]), str(file))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, str(file), "exec"), names)  # noqa: S102 (our own notebook)
            if isinstance(last, ast.Expr):
                shown.append(eval(compile(ast.Expression(last.value), str(file), "eval"), names))  # noqa: S307
    return names, shown


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in that has `exports/demo`."""
    (tmp_path / "exports").symlink_to(made_once("records", make_records))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "exports" / "demo"


def test_notebooks_keep_no_outputs() -> None:
    assert len(NOTEBOOKS) == 3
    for file in NOTEBOOKS:
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        assert not [cell for cell in cells if cell.get("outputs")], f"{file.name}: outputs go stale; clear them"


def test_ratings_become_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    run(ROOT / "docs/notebooks/ratings_to_verdicts.ipynb")
    said = capsys.readouterr().out
    assert "mean | paraphrasing | accepted" in said
    assert "lower_bound | summarisation | rejected" in said or "lower_bound | summarisation | undecided" in said


def test_drift_is_laid_beside_ratings(records: Path) -> None:
    names, shown = run(ROOT / "docs/notebooks/drift_against_ratings.ipynb")
    n_pairs = len(pd.read_parquet(records / "pairs.parquet"))
    assert len(names["both"]) == n_pairs * names["both"]["model"].nunique()
    assert len(shown[-1]) == 3


def test_records_are_read_with_duckdb(records: Path) -> None:
    outputs, ratings, scores = run(ROOT / "docs/notebooks/records_with_duckdb.ipynb")[1]
    made = pd.concat(map(pd.read_parquet, (records / "transformations").glob("*/*.parquet")))
    assert outputs["outputs"].sum() == len(made)
    assert outputs["failed"].sum() == (made["status"] == "failed").sum()
    assert ratings["ratings"].sum() == len(pd.read_parquet(records / "ratings.parquet"))
    own = pd.read_parquet(records / "scores.parquet")
    wide = own.pivot_table(index=["model", "dataset"], columns="transformation", values="score")
    first = scores.iloc[0]
    part = wide.loc[first["model"]]
    assert first["points"] == pytest.approx(100 * (part[first["transformation"]] - part["original"]).mean(), abs=0.005)
