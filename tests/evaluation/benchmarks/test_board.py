"""`plumbline board`: MMTEB's own averages come out, files say what they rest on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evaluation.tables.comparisons import board
from plumbline.study import ROOT
from tests.evaluation.benchmarks.mteb_files import run

# MMTEB, Table 18 (MTEB(eng)): the means of six types, and the column Category, which is the mean over them.
TYPES = ["PairClassification", "Classification", "STS", "Retrieval", "Clustering", "Reranking"]
PRINTED = {
    "e5-mistral-7b-instruct": ([88.4, 75.2, 83.6, 54.8, 51.4, 49.8], 67.2),
    "GritLM-7B": ([87.3, 77.0, 82.5, 53.2, 50.8, 49.6], 66.7),
    "multilingual-e5-large-instruct": ([86.2, 73.2, 84.3, 51.0, 49.9, 48.7], 65.6),
    "multilingual-e5-large": ([84.7, 72.8, 80.6, 49.0, 42.8, 44.7], 62.4),
    "all-mpnet-base-v2": ([83.0, 56.6, 72.2, 41.9, 46.6, 48.4], 58.1),
    "multilingual-e5-base": ([83.6, 70.0, 79.1, 46.1, 42.2, 44.3], 60.9),
    "LaBSE": ([78.9, 66.8, 70.2, 16.8, 36.1, 41.3], 51.7),
}
# The same table's Borda counts; its print broke two ties by rounding errors (270 for 269.5, 211 for 211.5).
COUNTS = {
    "e5-mistral-7b-instruct": 393, "GritLM-7B": 384, "multilingual-e5-large-instruct": 357,
    "multilingual-e5-large": 269.5, "all-mpnet-base-v2": 211, "multilingual-e5-base": 211.5,
    "paraphrase-multilingual-mpnet-base-v2": 188, "all-MiniLM-L12-v2": 172, "all-MiniLM-L6-v2": 149,
    "multilingual-e5-small": 147, "paraphrase-multilingual-MiniLM-L12-v2": 109, "LaBSE": 49,
}  # fmt: skip
DATA = ROOT.parent / "shared" / "data" / "mmteb" / "paper_scores.parquet"
# Of its tasks one of each of two types, where mteb knows the type.
OF_TYPE = {"TwitterSemEval2015": "PairClassification", "STS12": "STS", "STS13": "STS"}


def printed() -> pd.DataFrame:
    return pd.DataFrame([scores for scores, _ in PRINTED.values()], index=list(PRINTED), columns=TYPES)


def test_the_mean_of_types_is_the_papers() -> None:
    table = board(printed(), {name: name for name in TYPES}, seed=1).set_index("model")
    for model, (_, category) in PRINTED.items():
        assert table.loc[model, "category_mean"] == pytest.approx(category, abs=0.06)  # six numbers that were rounded
    # Of each type on a task of its own, by hand: mistral beats 6 5 5 6 6 6 of the others.
    assert table.loc["e5-mistral-7b-instruct", ["borda", "rank"]].tolist() == [34, 1]
    twice = printed().assign(STS13=50.0).rename(columns={"STS": "STS12"})
    types = {name: OF_TYPE.get(name, name) for name in twice}
    found = board(twice, types).set_index("model").loc["LaBSE"]
    # The type's mean is over its tasks, and weighs as one: (70.2 + 50) / 2 = 60.1.
    assert found["STS"] == pytest.approx(60.1)
    assert found["category_mean"] == pytest.approx((78.9 + 66.8 + 60.1 + 16.8 + 36.1 + 41.3) / 6)
    assert found["mean"] == pytest.approx((78.9 + 66.8 + 70.2 + 50 + 16.8 + 36.1 + 41.3) / 7)


@pytest.mark.skipif(not DATA.is_file(), reason=f"no {DATA.name} beside the checkout")
def test_borda_counts_of_the_papers_scores_are_the_papers() -> None:
    scores = pd.read_parquet(DATA).query("benchmark == 'MTEB(eng, v2)'")
    table = scores.pivot(index="model", columns="task", values="score")
    table.index = table.index.str.split("__").str[1]
    assert table.shape == (12, 40) and sum(COUNTS.values()) == 40 * 66  # 0 + 1 + ... + 11 points a task
    found = board(table, dict.fromkeys(table, "any")).set_index("model")
    assert found["borda"].to_dict() == COUNTS


def test_a_table_becomes_a_board(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    tasks = ["STS12", "STS13", "STS14", "Banking77Classification", "ImdbClassification", "NFCorpus"]
    frame = pd.DataFrame(rng.random((3, 6)) / 10 + np.array([[0.6], [0.5], [0.1]]), columns=tasks)
    frame.insert(0, "model", ["one/a", "one/b", "c"])
    frame.loc[2, "STS14"] = np.nan
    frame.to_csv(tmp_path / "scores.csv", index=False)
    status, out, err = run(tmp_path, tmp_path / "scores.csv", "--gaps", "keep")
    assert status == 0, err
    assert out.startswith("3 models ranked over 6 tasks, scores times 100")
    assert "c: lacks 1 of 6 scores" in out and "STS 3, Classification 2, Retrieval 1" in out
    made = pd.read_csv(tmp_path / "board" / "board.csv").set_index("model")
    assert made["rank"].to_dict() == {"one/a": 1, "one/b": 2, "c": 3} and np.isnan(made.loc["c", "mean"])
    assert made.loc["one/a", "category_mean"] == pytest.approx(
        made.loc["one/a", ["STS", "Classification", "Retrieval"]].mean()
    )
    about = json.loads((tmp_path / "board" / "board.json").read_text(encoding="utf-8"))
    assert about["rests_on"]["files"] and about["types"]["NFCorpus"] == "Retrieval" and about["seed"] == 1337
    assert (tmp_path / "board" / "board.tex").read_text(encoding="utf-8").count("one/a") == 1
    status, out, err = run(tmp_path, tmp_path / "scores.csv")
    assert status == 0 and out.startswith("2 models ranked over 6 tasks") and "left out: 1 model (c)" in out
