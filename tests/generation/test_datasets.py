from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from generation.datasets import Dataset, load_dataset
from generation.exceptions import DataError
from generation.study import ROOT, DatasetSpec, TaskType, load_study


def load(path: Path, task: TaskType, **changes: object) -> Dataset:
    return load_dataset(DatasetSpec(name="d", task=task, path="-", language="en", **changes), path)  # type: ignore[arg-type]


def refused(path: Path, task: TaskType, **changes: object) -> str:
    with pytest.raises(DataError) as error:
        load(path, task, **changes)
    line = str(error.value)
    assert str(path) in line
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("task", "content", "says"),
    [
        ("sts", "sentence1,sentence2,scores\na,b,1\n", "no column 'score', which sts needs; did you mean 'scores'"),
        ("sts", "sentence1,sentence2,score\na,b,1\na,b,good\n", "row 2, field 'score' is not a number: 'good'"),
        ("sts", "sentence1,sentence2,score\na,b\n", "row 1, field 'score' is not a number"),
        ("sts", "sentence1,sentence2,score\na, ,1\n", "row 1, field 'sentence2' is empty"),
        ("pair_classification", "sentence1,sentence2,label\na,b,2\n", "other values than 0 and 1"),
        ("classification", "text,label,split\na,x,dev\n", "split 'dev' is neither train nor test"),
        ("classification", "text,label,split\na,x,train\n", "no rows in split 'test'"),
        ("clustering", "text,label\n", "no rows in split 'test'"),
        ("clustering", "", "cannot be read"),
        ("clustering", "text,label\na,b,c\n", "cannot be read"),
        ("clustering", "text,label\na,b\na,b,c,d\n", "cannot be read"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path: Path, task: TaskType, content: str, says: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)
    assert says in refused(path, task)


def test_missing_files_and_unknown_kinds_are_refused(tmp_path: Path) -> None:
    assert "no file" in refused(tmp_path / "none.csv", "sts")
    (tmp_path / "t.xlsx").write_bytes(b"x")
    assert "is not a .csv" in refused(tmp_path / "t.xlsx", "sts")


def test_a_table_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("text,label\ncafé,a\n".encode("latin-1"))
    assert "cannot be read" in refused(tmp_path / "t.csv", "clustering")


@pytest.mark.parametrize("keep", [0, 10, -20])
def test_a_damaged_parquet_file_is_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"text": ["a"], "label": ["b"]}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:keep])
    assert "cannot be read" in refused(path, "clustering")


def test_a_mapped_column_that_the_task_does_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,label\na,b\n")
    with pytest.raises(DataError, match="clustering has no column 'lable'; did you mean 'label'"):
        load(tmp_path / "t.csv", "clustering", columns={"lable": "label"})


def test_rows_all_takes_every_split_as_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,label,split\na,x,train\nb,y,test\nc,y,dev\n")
    assert list(load(tmp_path / "t.csv", "clustering", rows="all").splits["test"]["text"]) == ["a", "b", "c"]


def test_cells_are_texts_as_they_stand_and_texts_are_composed(tmp_path: Path) -> None:
    # "cafe" with a combining accent is five code points; in NFC, four. NA and 007 are texts, not numbers.
    (tmp_path / "t.csv").write_text("text,label\nNA,007\ncafe\u0301,b\n", encoding="utf-8")
    data = load(tmp_path / "t.csv", "clustering")
    assert [text.text for text in data.texts()] == ["NA", "caf\u00e9"]
    assert list(data.splits["test"]["label"]) == ["007", "b"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"query": "q", "positive": ["a"]', "line 1 is not JSON"),
        ("[1]", "line 1 is not a JSON object"),
        ('{"query": "q", "positive": "a", "negative": ["b"]}', "field 'positive' is not a list"),
        ('{"query": "q", "positive": ["a"], "negative": []}', "field 'negative' is not a list"),
        ('{"query": "q", "positive": ["a"], "negative": [""]}', "field 'negative' is empty"),
        ('{"query": "", "positive": ["a"], "negative": ["b"]}', "field 'query' is empty"),
        ('{"query": "\\ud83d", "positive": ["a"], "negative": ["b"]}', "half a character"),
    ],
)
def test_a_jsonl_line_that_cannot_be_used_is_refused(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "t.jsonl").write_text(line + "\n")
    assert says in refused(tmp_path / "t.jsonl", "reranking")


def test_a_line_separator_within_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    row = {"query": "one\u2028two\x85three", "positive": ["a"], "negative": ["b"]}
    (tmp_path / "t.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [text.text for text in load(tmp_path / "t.jsonl", "reranking").texts()] == [row["query"]]


def retrieval(folder: Path, **files: str | bytes | None) -> Path:
    """A small folder in BEIR's layout, with files replaced (None removes one)."""
    contents = {
        "corpus": '{"_id": "p1", "title": "T", "text": "passage"}\n',
        "queries": '{"_id": "q1", "text": "one?"}\n{"_id": "q2", "text": "two?"}\n',
        "qrels": "query-id\tcorpus-id\tscore\nq1\tp1\t2\n",
        **files,
    }
    paths = {"corpus": "corpus.jsonl", "queries": "queries.jsonl", "qrels": "qrels/test.tsv"}
    for name, content in contents.items():
        path = folder / paths[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_retrieval_keeps_the_judged_queries_alone(tmp_path: Path) -> None:
    data = load(retrieval(tmp_path), "retrieval")
    assert list(data.splits["test"]["id"]) == ["q1"]
    assert data.corpus == {"p1": "T passage"}
    assert data.qrels == {"q1": {"p1": 2}}
    assert [text.field for text in data.texts()] == ["query"]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"corpus": None}, "no file"),
        ({"qrels": None}, "retrieval needs its relevance judgements"),
        ({"corpus": '{"id": "p1", "text": "a"}\n'}, "lacks '_id' or 'text'"),
        ({"corpus": '{"_id": "p1", "text": "a"}\n' * 2}, "the id 'p1' stands there twice"),
        ({"queries": '{"_id": "q1", "text": ""}\n'}, "field 'text' is empty"),
        ({"qrels": "query-id\tcorpus-id\tscore\nq1\tp9\t1\n"}, "'p9' stands neither"),
        ({"qrels": "query-id\tcorpus-id\tscore\n"}, "no query has a relevance judgement"),
        ({"qrels": ""}, "no query has a relevance judgement"),
        ({"qrels": "query-id\tcorpus-id\tscore\nq1 p1 1\n"}, "row 1 has not query id"),
        ({"qrels": "query-id\tcorpus-id\tscore\nq1\tp1\thigh\n"}, "the relevance 'high' is not a whole number"),
        ({"qrels": b"query-id\tcorpus-id\tscore\nq\xff\tp1\t1\n"}, "not UTF-8"),
    ],
)
def test_a_retrieval_folder_that_cannot_be_used_is_refused(tmp_path: Path, files: dict[str, str], says: str) -> None:
    assert says in refused(retrieval(tmp_path, **files), "retrieval")


def test_a_file_where_retrieval_needs_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("a")
    assert "no file" in refused(tmp_path / "t", "retrieval")


def test_the_sample_study_has_the_items_that_its_readme_promises() -> None:
    study = load_study(ROOT / "studies" / "demo.yaml")
    sets = {spec.task: load_dataset(spec, study.resolve(spec.path)) for spec in study.datasets}
    assert len(sets["sts"].splits["test"]) >= 24
    assert len(sets["clustering"].splits["test"]) == 36
    assert sets["clustering"].splits["test"]["label"].nunique() == 6
    assert len(sets["reranking"].splits["test"]) == 10
    assert len(sets["retrieval"].splits["test"]) == 10
    assert len(sets["retrieval"].corpus) == 60
