"""`plumbline select` as a user meets it, on made-up scores of mteb's tasks."""

from __future__ import annotations

import json
import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evaluation.benchmarks.task_facts import of_table
from evaluation.models.encoder import Encoder
from plumbline.errors import DataError
from tests.commands import here
from tests.evaluation.conftest import FakeModel

TASKS = ["STS12", "STS13", "STS14", "STS15", "Banking77Classification", "ImdbClassification", "NFCorpus", "SCIDOCS"]


@pytest.fixture(scope="module")
def long() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    rows = [
        (f"org{i // 2}/m{i}", task, able + rng.normal() / 3)
        for i, able in enumerate(rng.normal(size=24))
        for task in TASKS
    ]
    return pd.DataFrame(rows, columns=["model", "task", "score"])


def run(folder: Path, frame: pd.DataFrame, *words: str) -> tuple[int, str, str]:
    path = folder / "scores.csv"
    frame.to_csv(path, index=False)
    done = here("select", "--from", str(path), "--out", str(folder / "small"), *words)
    return done.returncode, done.stdout, done.stderr.replace("\r", "\n").strip().rpartition("\n")[2]


def test_a_table_becomes_a_benchmark_a_study_and_an_answer(tmp_path: Path, long: pd.DataFrame) -> None:
    pd.DataFrame({"task": TASKS, "seconds": 60.0}).to_csv(tmp_path / "seconds.csv", index=False)
    words = ("--budget", "4", "minutes", "--cover", "type", "--tasks", str(tmp_path / "seconds.csv"))
    status, out, err = run(tmp_path, long, *words)
    assert status == 0, err
    assert out.startswith("4 of 8 tasks were chosen. ")
    assert "random" in out.splitlines()[0]
    small = tmp_path / "small"
    found = json.loads((small / "selection.json").read_text())
    assert len(found["tasks"]) == 4 and found["answer"] == out.splitlines()[0]
    assert found["rests_on"]["files"] and found["seed"] == 1337 and found["versions"]["mteb"]
    made = runpy.run_path(str(small / "benchmark.py"))["BENCHMARK"]
    assert [task.metadata.name for task in made.tasks] == found["tasks"]
    assert {task.metadata.type for task in made.tasks} == {"STS", "Classification", "Retrieval"}
    before = (small / "selection.json").read_bytes()
    run(tmp_path, long, *words)
    assert (small / "selection.json").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget", "2"), "cheapest selection"),
        (("--budget", "3", "hours"), "write a number and one of tasks, texts, characters, minutes"),
        (("--budget", "5", "minutes"), "list them in a table with the columns task, seconds"),
        (("--benchmark", "MTEB(eng, v2)"), "name the right version of the benchmark"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, long: pd.DataFrame, words: tuple[str, ...], said: str) -> None:
    status, _, err = run(tmp_path, long, *words)
    assert status == 2 and err.startswith("error: ") and said in err
    assert not (tmp_path / "small").exists()


def test_bad_tables_are_one_line(tmp_path: Path, long: pd.DataFrame) -> None:
    for frame, said in (
        (long.drop(index=3), "1 of 192 scores are missing"),
        (long.assign(score="high"), "row 2, field 'score' is not a number"),
        (long[long["model"] == "org0/m0"], "1 models of 1 families cannot be split"),
        (pd.concat([long, long.head(1)]), "has two scores on task 'STS12'"),
        (long.assign(task=long["task"] + "-own"), "is not a task of mteb and has no type"),
    ):
        status, _, err = run(tmp_path, frame, "--budget", "4", "--cover", "type")
        assert status == 2 and said in err, err
    (tmp_path / "facts.csv").write_text("task,languages\na,zzz\n", encoding="utf-8")
    with pytest.raises(DataError, match="facts.csv, column 'languages': language 'zzz' is not known"):
        of_table(tmp_path / "facts.csv")


def test_mtebs_own_result_files_are_read_by_mtebs_rules(tmp_path: Path, long: pd.DataFrame) -> None:
    for (model, task), own in long.groupby(["model", "task"]):
        folder = tmp_path / "cache" / "results" / str(model).replace("/", "__") / "r1"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model_meta.json").write_text(json.dumps({"name": model, "revision": "r1"}))
        score = {"hf_subset": "default", "languages": ["eng-Latn"], "main_score": float(own["score"].iloc[0])}
        split = "test"
        result = {"dataset_revision": "x", "task_name": task, "mteb_version": "2.1.0", "scores": {split: [score]},
                  "evaluation_time": 1.0, "kg_co2_emissions": None}  # fmt: skip
        (folder / f"{task}.json").write_text(json.dumps(result))
    words = ("--budget", "4", "--cover", "type", "--out", str(tmp_path / "small"))
    done = here("select", "--from", str(tmp_path / "cache"), *words)
    assert done.returncode == 0, done.stderr
    status, out, _ = run(tmp_path, long, "--budget", "4", "--cover", "type")
    assert status == 0 and done.stdout.splitlines()[0] == out.splitlines()[0]


def _load_offline(task: Any, **_: Any) -> None:
    """A little of what a task of mteb's would hold, in the place of the hub's data."""
    from datasets import Dataset, DatasetDict

    words = [f"text {number} of {task.metadata.name}" for number in range(12)]
    rows = {"sentence1": words, "sentence2": words[::-1], "score": [float(number % 5) for number in range(12)]}
    task.dataset = DatasetDict(dict.fromkeys(task.eval_splits, Dataset.from_dict(rows)))
    task.data_loaded = True


def test_a_selection_runs_in_mteb_and_its_cache_is_read_by_the_benchmarks_name(
    tmp_path: Path, long: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import mteb
    from mteb.abstasks.abstask import AbsTask

    pairs = long[long["task"].str.startswith("STS")]
    assert run(tmp_path, pairs, "--budget", "3", "--cover", "type")[0] == 0
    monkeypatch.setattr(AbsTask, "load_data", _load_offline)
    monkeypatch.setattr(sys, "argv", ["benchmark.py", "mteb/baseline-random-encoder"])
    with warnings.catch_warnings(action="ignore"):  # mteb's own: that some of the tasks have newer versions, say
        made = runpy.run_path(str(tmp_path / "small" / "benchmark.py"), run_name="__main__")["BENCHMARK"]
        assert "mteb/baseline-random-encoder" in capsys.readouterr().out
        mteb.evaluate(Encoder(FakeModel(), "tiny/words", "1"), made, co2_tracker=False)
        words = ("--gaps", "fewest", "--out", str(tmp_path / "board"))
        done = here("board", "--from", "MTEB(eng, v1)", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 models ranked over 3 tasks")
    kinds = json.loads((tmp_path / "board" / "board.json").read_text())["types"]
    assert set(kinds) == {task.metadata.name for task in made.tasks}
