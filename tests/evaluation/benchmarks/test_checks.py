"""Checks of what tasks hold: each fault is found where it was put, by mteb's own counting where mteb counts."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from mteb.data_cleaning import remove_duplicates, remove_train_leakage

from evaluation.benchmarks.checks import COLUMNS, check, duplicates, leakage
from evaluation.benchmarks.contents import THRESHOLDS, CheckedTask, Finding, contents_of
from evaluation.tasks.scoring import make_task, unusable
from generation.datasets.local import TableDataset
from plumbline.study import Study
from plumbline.study.datasets import TaskType
from tests.commands import here


def table(task: TaskType, **splits: dict[str, list[Any]]) -> TableDataset:
    return TableDataset("made", task, "en", "1", {name: pd.DataFrame(columns) for name, columns in splits.items()})


def findings(dataset: Any) -> dict[str, Finding]:
    by_check = {one.check: one for one in check([CheckedTask(dataset.name, dataset)])[dataset.name]}
    assert list(by_check) == [name for name in THRESHOLDS if name in by_check]
    return by_check


def verdicts(found: dict[str, Finding]) -> dict[str, str]:
    return {name: one.verdict for name, one in found.items() if one.verdict != "pass"}


CLEAN = table(
    "classification",
    train={"text": [f"train text {i}" for i in range(20)], "label": [f"l{i % 2}" for i in range(20)]},
    test={"text": [f"test text {i}" for i in range(10)], "label": [f"l{i % 2}" for i in range(10)]},
)


def test_a_sound_task_passes_and_every_fault_is_found_at_its_rows() -> None:
    assert verdicts(findings(CLEAN)) == {}
    train = {"text": [*CLEAN.splits["train"]["text"]], "label": [*CLEAN.splits["train"]["label"]]}
    texts = ["train text 3 ", "no", "", "Train text 4", "again", "again", "one two three four five", "x" * 4000]
    texts += [f"t {i}" for i in range(92)]
    labels = ["l1", "l0", "l1", "l1", "l0", "l0", "l1", "l0", *["l0", "l1"] * 45, "seldom", "l0"]
    found = findings(table("classification", train=train, test={"text": texts, "label": labels}))
    assert verdicts(found) == {
        "duplicates": "look",  # 1 of 100: not above 1%
        "leakage": "fail",
        "conflicts": "fail",  # `Train text 4` is l0 in the train split: 2 of 120 items
        "empty_texts": "fail",
        "short_texts": "look",
    }
    items = {name: list(one.rows["item"]) for name, one in found.items()}
    assert items["duplicates"] == ["5"] and items["leakage"] == ["0"] and items["empty_texts"] == ["2"]
    assert items["short_texts"] == ["1", *[str(i) for i in range(8, 18)]]
    assert sorted(items["conflicts"]) == ["3", "4"]
    assert found["leakage"].value == pytest.approx(0.01) and found["duplicates"].value == pytest.approx(0.01)


def test_repeated_and_leaked_items_are_those_that_mtebs_cleaning_removes() -> None:
    train = {"text": ["a a", "b b", "a a ", "c c"], "label": ["x", "y", "x", "y"]}
    test = {"text": ["b b", " b b", "d d", "e e", "d d", "A a"], "label": ["x", "y", "x", "y", "x", "y"]}
    made = table("classification", train=train, test=test)
    task = make_task(made, "mteb")
    contents = contents_of(made)
    left = {split: remove_duplicates(task).dataset["default"][split].num_rows for split in ("train", "test")}
    assert left == {"train": 4 - 1, "test": 6 - 2}
    found = duplicates(contents)
    assert found.rows.groupby("split").size().to_dict() == {"train": 1, "test": 2}
    assert found.value == pytest.approx(2 / 6) and found.verdict == "fail"
    assert remove_train_leakage(task).dataset["default"]["test"].num_rows == 6 - 2
    assert list(leakage(contents).rows["item"]) == ["0", "1"]


def test_tasks_that_can_give_no_score_fail() -> None:
    constant = table("sts", test={"sentence1": list("abcd"), "sentence2": list("efgh"), "score": [2.0] * 4})
    assert findings(constant)["constant_gold"].verdict == "fail"
    one_label = table("clustering", test={"text": ["one text", "another text"], "label": ["x", "x"]})
    assert findings(one_label)["labels"].verdict == "fail" and findings(one_label)["labels"].value == 1
    queries = pd.DataFrame({"id": ["q1", "q2", "q3"], "query": ["first query", "second query", "third query"]})
    judged = {"q1": {"p1": 1}, "q2": {"p1": 0}, "q3": {"p9": 1}}
    search = TableDataset("made", "retrieval", "en", "1", {"test": queries}, {"p1": "a passage"}, judged)
    found = findings(search)
    assert [found[name].verdict for name in ("without_relevant", "missing_passages")] == ["fail", "fail"]
    assert list(found["without_relevant"].rows["item"]) == ["q2"]
    assert list(found["missing_passages"].rows["item"]) == ["q3"]


def test_tasks_with_one_item_or_without_labels_are_checked_and_not_scored() -> None:
    one = {"sentence1": ["a cat"], "sentence2": ["a dog"]}
    pair = findings(table("pair_classification", test={**one, "label": [1]}))
    assert pair["labels"].verdict == "fail"
    assert (
        unusable(table("sts", test={**one, "score": [1.0]}), "paper")
        == "there is only one pair: Spearman's rho needs two"
    )
    train = {"text": [f"text {i}" for i in range(4)], "label": [["a"], ["b"], ["a", "b"], []]}
    bare = table("multilabel_classification", train=train, test={"text": ["one text", "two texts"], "label": [[], []]})
    found = findings(bare)["labels"]
    assert (found.verdict, found.value, found.reason) == ("fail", 0, "0 labels in split test")
    assert unusable(bare, "paper") == "no scored text has a label"


def test_what_is_undefined_passes_nothing() -> None:
    for name, threshold in THRESHOLDS.items():
        assert threshold.verdict(math.nan) == "look", name
    assert THRESHOLDS["random"].verdict(math.nan, 0.01) == "fail"


def run(study: Study, *words: str) -> tuple[int, str, str]:
    done = here("check", "--study", str(study.file), "--exports", str(study.folder.parent), *words)
    return done.returncode, done.stdout, done.stderr.replace("\r", "\n").strip().rpartition("\n")[2]


def test_data_sets_and_their_accepted_transformations_are_checked(study: Study) -> None:
    status, out, err = run(study)
    assert status == 0, err
    table = pd.read_csv(study.folder / "quality" / "checks.csv", keep_default_na=False)
    assert list(table.columns) == list(COLUMNS)
    names = ["paraphrasing-1337", "translation-1337"]
    assert list(dict.fromkeys(table["task"])) == [
        f"{name}{copy}" for name in ("sts", "requests") for copy in ("", *(f" {one}" for one in names))
    ]
    assert set(table["verdict"]) <= {"pass", "look", "fail"} and out.startswith("6 tasks, ")
    assert not table["threshold"].eq("").any() and not table["reason"].eq("").any()
    for name in table["rows_file"]:
        assert not name or len(pd.read_csv(study.folder / "quality" / name)) > 0
    before = (study.folder / "quality" / "checks.csv").read_bytes()
    assert run(study, "--task", "sts")[0] == 0
    assert set(pd.read_csv(study.folder / "quality" / "checks.csv")["task"]) == {"sts", *(f"sts {n}" for n in names)}
    assert run(study)[0] == 0 and (study.folder / "quality" / "checks.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--study", "nowhere.yaml"), "nowhere.yaml"),
        ((), "name a study (--study FILE) or tasks of mteb (--task NAME)"),
        (("--task", "STSBenchmarkk"), "did you mean 'STSBenchmark'?"),
    ],
)
def test_what_cannot_be_checked_is_one_line(words: tuple[str, ...], said: str) -> None:
    done = here("check", *words)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1
