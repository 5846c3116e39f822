"""A data set's items as people judge them: which texts stand together, and which passages beside a query."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from datasets import Dataset

from generation.datasets.dataset import QueryPassages, chosen, drawn_others, items_of
from generation.datasets.loading import load_dataset
from generation.datasets.mteb_loading import in_memory
from generation.datasets.mteb_tasks import MtebTask
from generation.datasets.scored import scored_items
from plumbline.study import ROOT
from plumbline.study.datasets import DatasetSpec, TaskType
from tests.mteb_site import site

DEMO = ROOT / "studies" / "demo"


def local(task: str, path: str, **more: object) -> DatasetSpec:
    return DatasetSpec.model_validate({"name": "mine", "task": task, "path": path, "language": "en", **more})


def test_two_sentences_stand_together_with_their_languages(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("sentence1,sentence2,score\nOne,Eins,5\nTwo,Zwei,4\n", encoding="utf-8")
    spec = local("sts", "pairs.csv", language="en-de")
    found = [
        (one.item, one.fields, one.language, one.output_language) for one in items_of(load_dataset(spec, tmp_path), 5)
    ]
    assert found == [
        ("0", {"sentence1": "One", "sentence2": "Eins"}, "en", "de"),
        ("1", {"sentence1": "Two", "sentence2": "Zwei"}, "en", "de"),
    ]  # fmt: skip


def test_of_classification_the_test_split_alone_is_judged_and_summaries_are_lists(tmp_path: Path) -> None:
    requests = list(
        items_of(load_dataset(local("classification", "requests.csv", columns={"label": "intent"}), DEMO), 5)
    )
    assert len(requests) == 12 and all(list(one.fields) == ["text"] for one in requests)
    row = {"human_summaries": ["A", "B"], "machine_summaries": ["C", "D"], "relevance": [1, 2]}
    (tmp_path / "sums.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    (item,) = items_of(load_dataset(local("summarisation", "sums.jsonl"), tmp_path), 5)
    assert item.fields == {"human_summaries": ["A", "B"], "machine_summaries": ["C", "D"]}


def test_a_query_has_relevant_and_other_passages_in_an_order_that_says_nothing() -> None:
    rows = [json.loads(line) for line in (DEMO / "reranking.jsonl").read_text(encoding="utf-8").splitlines()]
    for passages in (False, True):  # whether they are transformed too
        found = list(items_of(load_dataset(local("reranking", "reranking.jsonl", passages=passages), DEMO), 5))
        places = set()
        for row, one in zip(rows, found, strict=True):
            shown = one.fields["candidates"]
            assert list(one.fields) == ["query", "candidates"] and one.fields["query"] == row["query"]
            relevant = [place for place, text in enumerate(shown) if text in row["positive"]]
            assert len(shown) == 5 and len(relevant) == 2  # of 2 relevant ones and 6 others: half of 5, rounded down
            assert set(shown) <= {*row["positive"], *row["negative"]}
            places |= set(relevant)
        assert places == {0, 1, 2, 3, 4}


def test_a_query_of_retrieval_has_passages_that_nobody_judged() -> None:
    dataset = load_dataset(local("retrieval", "retrieval"), DEMO)
    judged = {one.item: {one.passages[name] for name in one.relevant} for one in dataset.searches()}
    found = list(items_of(dataset, 6))
    assert {one.item for one in found} == judged.keys()
    for one in found:
        shown = one.fields["candidates"]
        assert len(shown) == len(set(shown)) == 6 and 1 <= len(judged[one.item] & set(shown)) <= 3


def test_a_passage_with_the_querys_id_is_not_shown_with_it(tmp_path: Path) -> None:
    """It counts as the query itself, so models' results leave it out."""
    (tmp_path / "qrels").mkdir()
    texts = [json.dumps({"_id": name, "text": f"text {name}"}) for name in ("p1", "p2", "p3")]
    (tmp_path / "corpus.jsonl").write_text("\n".join(texts), encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text(texts[0], encoding="utf-8")
    judged = "query-id\tcorpus-id\tscore\np1\tp1\t0\np1\tp2\t1\n"
    (tmp_path / "qrels" / "test.tsv").write_text(judged, encoding="utf-8")
    dataset = load_dataset(local("retrieval", "."), tmp_path)
    assert [(set(one.relevant), list(one.passages)) for one in dataset.searches()] == [({"p2"}, ["p2", "p3"])]
    assert [list(one.candidates) for one in scored_items(dataset)] == [["p2", "p3"]]


@pytest.mark.parametrize(("ignored", "shown"), [(True, ["d1", "d2"]), (False, ["d0", "d1", "d2"])])
def test_a_passage_with_the_querys_id_is_shown_as_mtebs_task_counts_it(ignored: bool, shown: list[str]) -> None:
    task = site().tasks["ArguAna"]
    (parts,) = task.loaded.task.dataset.values()
    search = {
        **parts[task.loaded.split],
        "queries": in_memory({"id": ["d0"], "text": ["asked"]}),
        "relevant_docs": {"d0": {"d0": 0, "d1": 1}},
        "top_ranked": {"d0": ["d0", "d2"]},
    }
    dataset = replace(task, loaded=task.loaded.with_data({"default": {task.loaded.split: search}}))
    dataset.loaded.task.ignore_identical_ids = ignored
    assert [list(one.candidates) for one in scored_items(dataset)] == [shown]


def test_as_many_passages_are_shown_as_there_are() -> None:
    def number(relevant: int, others: int, most: int) -> tuple[int, int]:
        right, wrong = [f"right {one}" for one in range(relevant)], [f"wrong {one}" for one in range(others)]
        shown = chosen(search(right, wrong), most)
        return sum(one in right for one in shown), sum(one in wrong for one in shown)

    def search(right: list[str], wrong: list[str]) -> QueryPassages:
        names = {str(number): text for number, text in enumerate([*right, *wrong])}
        return QueryPassages("", "q", ("en", "en"), "asked", names, frozenset(list(names)[: len(right)]))

    assert number(9, 9, 7) == (3, 4)
    assert number(1, 9, 7) == (1, 6)
    assert number(9, 2, 7) == (5, 2)
    assert number(2, 1, 7) == (2, 1)
    assert number(9, 0, 4) == (4, 0)
    assert chosen(search(["same"], ["same", "other"]), 4) in (["same", "other"], ["other", "same"])


def test_others_are_drawn_by_the_query_and_never_judged_ones() -> None:
    ids = [f"d{one}" for one in range(200)]
    drawn = drawn_others(ids, ["d3", "d4"], "q1")
    assert len(drawn) == len(set(drawn)) == 50 and not {"d3", "d4"} & set(drawn)
    assert drawn == drawn_others(ids, ["d3", "d4"], "q1") != drawn_others(ids, ["d3", "d4"], "q2")
    assert sorted(drawn_others(ids[:5], ["d3"], "q1")) == ["d0", "d1", "d2", "d4"]
    assert sorted(drawn_others(ids[:5], ["d3"], "d0")) == ["d1", "d2", "d4"], "a query's own text is not shown with it"


@pytest.mark.parametrize(
    ("kind", "rows", "fields"),
    [
        ("summarisation", {"whole": [["A"]], "made": [["B", "C"]]}, {"human_summaries": ["A"], "summary": "B"}),
        ("clustering", {"sentences": [["B", "C"]]}, {"text": "B"}),
    ],
)
def test_gold_of_lists_that_is_kept_back_is_none_of_each_text(
    kind: TaskType, rows: dict[str, Any], fields: dict[str, Any]
) -> None:
    """The table of mteb's task has no such column: people are then not asked, with the reason."""
    names = {"human_summaries_column_name": "whole", "machine_summaries_column_name": "made"}
    names |= {"relevancy_column_name": "relevance", "label_column_name": "labels", "input_column_name": "sentences"}
    task = SimpleNamespace(dataset={"default": {"test": Dataset.from_dict(rows)}}, **names)
    loaded = cast("Any", SimpleNamespace(task=task, split="test", languages={"default": ("en", "en")}))
    first, second = scored_items(MtebTask("kept back", kind, "1", loaded, 0))
    assert first.fields == fields
    assert [(one.labels, math.isnan(one.score)) for one in (first, second)] == [((), True)] * 2
