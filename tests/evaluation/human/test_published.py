"""`human-report --scores`: the tables of published scores by one command, held to those that HUME printed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.commands import here
from tests.evaluation.human.test_standing import FACTS, HALF, ROUNDED, SHARED, printed

RATERS = {"lower": "annotator_1", "higher": "annotator_2"}
PAPERS = [name for name in printed("scores").columns if name not in (*FACTS, "Human")]


def run(*words: object) -> tuple[int, str, str]:
    done = here("evaluation.human", *map(str, words))
    return done.returncode, done.stdout, done.stderr


def table(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / "tables" / f"{name}.csv", encoding="utf-8-sig")


def made(folder: Path) -> tuple[Path, Path]:
    """The printed scores in the form in which they were published, and what Table 8 says of items and agreement."""
    wide = printed("scores")
    long = wide.melt(FACTS, var_name="model", value_name="value").dropna(subset="value")
    raters = wide[wide["raters"] > 0].melt(["task_type", "task", "language", "raters"], list(RATERS), "who", "value")
    raters = raters[(raters["who"] == "lower") | (raters["raters"] == 2)]
    raters = raters.assign(model="Human", revision=raters["who"].map(RATERS))
    every = pd.concat([long.assign(revision="v1"), raters], ignore_index=True)
    every = every.assign(value=every["value"] / 100, metric="main_score", task="HUME" + every["task"])
    every.loc[every["model"] == "Human", "model"] = "baseline__Human"
    scores, agreement = folder / "scores.parquet", folder / "agreement.json"
    every[["model", "revision", "task", "task_type", "language", "metric", "value"]].to_parquet(scores)
    rows = [
        {"task": f"HUME{row.task}", "language": row.language, "agreement": {"n_items": row.n, "value": row.agreement}}
        for row in printed("table_8").itertuples()
    ]
    agreement.write_text(json.dumps({"rows": rows}), encoding="utf-8")
    return scores, agreement


def test_the_tables_are_those_that_hume_printed(tmp_path: Path) -> None:
    scores, agreement = made(tmp_path)
    out = tmp_path / "report"
    status, said, wrong = run("--scores", scores, "--agreement", agreement, "--out", out)
    assert status == 0, wrong
    assert "On 26 tasks (in one language each)" in said and "rank 4 of 14" in said and "is 76.2, rank 7" in said
    assert "People are above the best model on 4 of 26 tasks." in said
    held_to_the_paper(out, printed("table_8"))
    for name in ("groups", "standing", "gaps", "as_hume", "tasks_sts"):
        assert {path.suffix for path in (out / "tables").glob(f"{name}.*")} == {".csv", ".md", ".tex"}
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "Table 8: people with intervals and agreement" in page


def held_to_the_paper(out: Path, of_agreement: pd.DataFrame) -> None:
    """Tables 1, 4 to 7, the wins, and of Table 8 the rows whose items are known."""
    groups, paper = table(out, "groups").set_index("scorer"), printed("table_1").set_index("model")
    names = {f"{kind}, {language}": f"{kind} {language}" for kind, language in map(str.split, paper.columns[:-1])}
    mine = 100 * groups.rename(columns={**names, "all": "overall"})
    assert set(paper.columns) <= set(mine.columns)
    np.testing.assert_allclose(mine.loc[paper.index, paper.columns], paper, atol=HALF)
    assert [name for name in groups.index if name != "raters' mean"].index("Human") == 3
    wins = table(out, "standing").set_index(["people", "by", "against"], drop=False)
    whole = wins[wins["by"].isna()].droplevel("by")["wins"]
    assert whole["Human"].to_dict() == {"best": 4, "median": 16, "mean": 16} and whole["raters' mean", "median"] == 13
    tasks = printed("tables_4_to_7").pivot(index="model", columns="task", values="score")
    for kind in ("classification", "clustering", "reranking", "sts"):
        frame = 100 * table(out, f"tasks_{kind}").set_index("scorer")
        np.testing.assert_allclose(frame.loc[tasks.index], tasks[frame.columns], atol=HALF)
    gaps = table(out, "gaps")
    assert gaps["difficulty"].value_counts().to_dict() == {"easy": 18, "moderate": 6, "hard": 2}
    eight = table(out, "as_hume").set_index(["task", "language"])
    paper = of_agreement.set_index(["task", "language"])
    mine = eight.loc[paper.index]
    assert (mine["n"] == paper["n"]).all() and (mine["raters"] == paper["raters"]).all()
    np.testing.assert_allclose(100 * mine["people"], paper["human"], atol=HALF)
    np.testing.assert_allclose(100 * mine["best"], paper["best"], atol=HALF)
    loose = np.where((mine["interval"] == "Wilson") & (mine["task_type"] != "classification"), 0.1001, HALF)
    for end in ("low", "high"):
        assert ((100 * mine[end] - paper[end]).abs() <= loose).all()
    assert (mine["star"] == (paper["star"] == 1)).all()
    np.testing.assert_allclose(mine["agreement"], paper["agreement"], atol=ROUNDED / 9)


@pytest.mark.data
def test_the_authors_own_files_give_the_same(tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("HUME's published results are not beside the checkout")
    files = ("--scores", SHARED / "scores.parquet", "--agreement", SHARED / "agreement.json")
    status, said, wrong = run(*files, "--models", ",".join(PAPERS), "--out", tmp_path / "papers")
    assert status == 0, wrong
    assert "rank 4 of 14" in said
    paper = printed("table_8")
    held_to_the_paper(tmp_path / "papers", paper[paper["agreement"].notna()])
    eight = table(tmp_path / "papers", "as_hume")
    unknown = eight[eight["n"] == 0]
    assert len(unknown) == 10 and unknown["low"].isna().all() and not unknown["star"].any()
    assert set(unknown["reason"]) == {"the number of items is unknown, so there is no interval"}
    status, said, wrong = run(*files, "--out", tmp_path / "all")
    assert status == 0 and "On 26 tasks (in one language each)" in said and "of 19;" in said, wrong  # all but BM25
    assert "baseline-bm25s (6 of 26 scores)" in (tmp_path / "all" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"drop": "revision"}, "no column 'revision'; the table needs model, revision, task, language, value"),
        ({"metric": "accuracy"}, "no row has the metric 'main_score'"),
        ({"model": "nobody"}, "no scores of people; add them, with the model name 'Human'"),
        ({"value": 45.8}, "has the score 45.8; scores must be from -1 to 1"),
        ({"drop": "task_type"}, "do not show its type; add a column 'task_type'"),
    ],
)
def test_a_file_that_is_none_is_one_line(tmp_path: Path, change: dict[str, object], line: str) -> None:
    scores, _ = made(tmp_path)
    frame = pd.read_parquet(scores)
    frame = frame.drop(columns=str(change["drop"])) if "drop" in change else frame.assign(**change)
    frame.to_parquet(scores)
    status, _, wrong = run("--scores", scores, "--out", tmp_path / "report")
    assert status == 2 and line in wrong and wrong.count("\n") == 1
    assert not (tmp_path / "report").exists()
