"""Accepted sets as tasks of mteb's: loaded by plain mteb, with all that its tests of new tasks ask for."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import datasets
import mteb
import pandas as pd
import pytest

from evaluation.bundle import mteb_tasks
from evaluation.bundle.export import export
from evaluation.bundle.mteb_tasks import SharedItems, TaskDraft, write_tasks
from evaluation.records import EvaluationRecords
from evaluation.sources import Folder
from evaluation.tasks.kinds import KINDS
from evaluation.tasks.scoring import make_task
from evaluation.units import plan_units
from generation.datasets.local import TableDataset
from plumbline.study.datasets import SEARCHES, TaskType
from tests.annotation.statistics.test_summaries import long, summary
from tests.evaluation.bundle.samples import sample_study


def sentences(n: int, what: str = "sentence") -> list[str]:
    return [f"the {what} number {number} of all" for number in range(n)]


def tables() -> dict[TaskType, TableDataset]:
    """A small data set of each type of task that has a class in mteb without code of its own."""
    labels = ["ab"[row % 2] for row in range(40)]
    queries = pd.DataFrame({"id": ["q1", "q2"], "query": sentences(2, "query")})
    corpus = {f"d{row}": text for row, text in enumerate(sentences(6, "passage"))}
    lists = {"positive": [["the query number 0"], ["the query number 1"]], "negative": [["cats purr"], ["dogs bark"]]}
    pairs = {"sentence1": sentences(12), "sentence2": sentences(12, "other")}
    summaries = {
        "human_summaries": [["a good summary", "another one"]] * 3,
        "machine_summaries": [["a good summary", "something else"], ["another one", "nothing"], ["a good one", "bad"]],
        "relevance": [[5.0, 1.0], [4.0, 2.0], [5.0, 1.0]],
    }
    rows: dict[TaskType, dict[str, pd.DataFrame]] = {
        "sts": {"test": pd.DataFrame(pairs | {"score": [float(row % 6) for row in range(12)]})},
        "pair_classification": {"test": pd.DataFrame(pairs | {"label": [row % 2 for row in range(12)]})},
        "classification": {
            split: pd.DataFrame({"text": sentences(40, split), "label": labels}) for split in ("train", "test")
        },
        "multilabel_classification": {
            split: pd.DataFrame({"text": sentences(40, split), "label": [[label] for label in labels]})
            for split in ("train", "test")
        },
        "clustering": {"test": pd.DataFrame({"text": sentences(40), "label": labels})},
        "bitext_mining": {"test": pd.DataFrame(pairs)},
        "summarisation": {"test": pd.DataFrame(summaries)},
        "reranking": {"test": pd.DataFrame({"query": sentences(2, "query"), **lists})},
    }
    found = {kind: TableDataset(kind, kind, "en", "1", splits) for kind, splits in rows.items()}
    judged = {"q1": {"d1": 1}, "q2": {"d2": 1, "d3": 0}}
    search = TableDataset("retrieval", "retrieval", "en", "1", {"test": queries}, corpus, judged)
    return found | {"retrieval": search}


def loaded(task: Any) -> Any:
    """What mteb has in memory, as Python's own lists and dictionaries."""
    if isinstance(task, list | str | int | float | None):
        return task
    if hasattr(task, "to_list"):
        return task.to_list()
    return {name: loaded(part) for name, part in task.items() if part is not None}


@pytest.mark.parametrize("kind", sorted(tables()))
def test_plain_mteb_loads_each_type_of_task_as_it_was(
    kind: TaskType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    task = make_task(tables()[kind], "mteb")
    facts = task.metadata.model_copy(update={"name": "Made"})
    file = write_tasks(tmp_path, "made", [TaskDraft("made", "original", KINDS[kind], task, facts)], "Made")
    (found,) = runpy.run_path(str(file))["TASKS"]
    found.load_data()
    data = loaded(found.dataset if kind in SEARCHES else {"default": found.dataset})
    due = loaded(task.dataset)
    for part, rows in data["default"].items():
        if kind in SEARCHES:
            assert rows == due["default"][part]
            continue
        columns = list(rows[0])
        assert rows == [{name: row[name] for name in columns} for row in due["default"][part]]
        assert len(columns) == {"summarisation": 4, "bitext_mining": 2}.get(kind, 3 if "sentence1" in columns else 2)
    model = mteb.get_model("mteb/baseline-random-encoder")
    (result,) = mteb.evaluate(model, found, cache=None, co2_tracker=False, show_progress_bar=False).task_results
    assert math.isfinite(result.get_score())


def test_subsets_of_a_task_of_mteb_are_configurations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    original = mteb.get_task("STS17", hf_subsets=["en-de", "fr-en"])
    rows = {"sentence1": sentences(6), "sentence2": sentences(6, "other"), "score": [float(n % 3) for n in range(6)]}
    original.dataset = {
        subset: datasets.DatasetDict(test=datasets.Dataset.from_dict(rows)) for subset in ("en-de", "fr-en")
    }
    facts = original.metadata.model_copy(update={"name": "Made", "eval_langs": {
        subset: original.metadata.eval_langs[subset] for subset in original.dataset
    }})  # fmt: skip
    file = write_tasks(tmp_path, "made", [TaskDraft("made", "original", KINDS["sts"], original, facts)], "Made")
    (found,) = runpy.run_path(str(file))["TASKS"]
    found.load_data()
    assert loaded(found.dataset) == loaded(original.dataset)
    assert (found.min_score, found.max_score) == (original.min_score, original.max_score)


def test_words_of_others_are_literals_in_the_module(tmp_path: Path) -> None:
    task = make_task(tables()["sts"], "mteb")
    hostile = 'x"""\n\nraise SystemExit("ran")\n\u202e\\ <script>'
    facts = task.metadata.model_copy(update={"name": "Made", "description": hostile, "bibtex_citation": hostile})
    file = write_tasks(tmp_path, "made", [TaskDraft("made", "original", KINDS["sts"], task, facts)], hostile, [hostile])
    (found,) = runpy.run_path(str(file))["TASKS"]
    assert found.metadata.description == found.metadata.bibtex_citation == hostile
    assert "\u202e" not in file.read_text(encoding="utf-8")
    assert "<" not in (tmp_path / "tasks" / "Made" / "README.md").read_text(encoding="utf-8")


def test_items_are_the_same_in_all_tasks_good_in_each_and_at_most_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = sample_study(tmp_path)
    records = EvaluationRecords(study)
    units = plan_units(Folder(study), records.conclusion.verdicts, records.pairs)
    whole = [unit for unit in units if unit.name == "sts"]
    items = SharedItems.of(whole, 7)
    assert len(items.chosen) == items.n_drawn_from and items.n_flawed == 0
    monkeypatch.setattr(mteb_tasks, "MOST", 5)
    few = SharedItems.of(whole, 7)
    assert few.chosen < items.chosen and len(few.chosen) == 5 and few == SharedItems.of(whole, 7)
    golds = [list(few.data(unit).gold_scores().values()) for unit in whole]
    assert len(golds) == 3 and golds[0] == golds[1] == golds[2] and len(golds[0]) == 5


def test_a_mean_without_an_interval_names_none() -> None:
    assert mteb_tasks.mean_words(summary(long([(5, 4)]))) == "quality 4.50"
    assert mteb_tasks.mean_words(summary(long([(5, 4), (3, 2)] * 4))).startswith("quality 3.50 (95% interval ")


def test_what_has_no_task_is_named(tmp_path: Path) -> None:
    written = export(sample_study(tmp_path, withheld=["sts"]), tmp_path / "a.zip")
    assert "no task for mteb: sts: its texts may not be shared" in written.gaps
    assert {task.dataset for task in written.tasks} == {"requests"}
