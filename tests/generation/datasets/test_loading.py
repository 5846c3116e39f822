from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.datasets.dataset import Change, TextTable
from generation.datasets.loading import iter_datasets, load_dataset
from generation.datasets.local import TableDataset
from plumbline.errors import DataError
from plumbline.records import Text, text_id
from plumbline.study import ROOT, load_study
from plumbline.study.datasets import DatasetSpec, TaskType
from plumbline.words import shows
from tests.generation.helpers import small_study


def load(path: Path, task: TaskType, **changes: object) -> TableDataset:
    settings = {"name": "d", "task": task, "path": path.name, "language": "en", **changes}
    dataset = load_dataset(DatasetSpec.model_validate(settings), path.parent)
    assert isinstance(dataset, TableDataset)
    return dataset


def test_split_all_takes_every_split_as_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,label,split\na,x,train\nb,y,test\nc,y,dev\n")
    assert list(load(tmp_path / "t.csv", "clustering", split="all").splits["test"]["text"]) == ["a", "b", "c"]


def test_all_rows_that_hold_no_texts_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sentence1,sentence2,score\na,,1\nb,c,2\n,d,3\n")
    with pytest.raises(DataError) as error:
        load(tmp_path / "t.csv", "sts")
    assert re.findall(r"row (\d), field '(\w+)' is empty", str(error.value)) == [("4", "sentence1"), ("2", "sentence2")]
    (tmp_path / "t.csv").write_text("sentence1,sentence2,score\na,b,high\nb,c,2\nc,d,\n")
    with pytest.raises(DataError) as error:
        load(tmp_path / "t.csv", "sts")
    assert re.findall(r"row (\d), field 'score' is (\w+)", str(error.value)) == [("2", "not"), ("4", "not")]
    (tmp_path / "t.jsonl").write_text(
        '{"text": "a", "label": 1, "split": "test"}\n{"text": "b", "label": [null], "split": "test"}\n'
    )
    with pytest.raises(DataError) as error:
        load(tmp_path / "t.jsonl", "multilabel_classification", split="all")
    assert len(str(error.value).splitlines()) == 2
    for name, content in {
        "corpus": '{"_id": "p1"}\n{"_id": "p1", "text": "a"}\n{"_id": "p1", "text": "b"}\n[]\n',
        "qrels": "query-id\tcorpus-id\tscore\nq1\tp1\tx\nq1\n\nq9\tp1\t1\n",
    }.items():
        folder = retrieval(tmp_path / name, **{name: content})
        with pytest.raises(DataError) as error:
            load(folder, "retrieval")
        assert len(str(error.value).splitlines()) == 3
    assert re.findall(r"row (\d)", str(error.value)) == ["2", "3", "5"]


def test_cells_are_texts_as_they_stand_and_texts_are_composed(tmp_path: Path) -> None:
    # "cafe" with a combining accent is five code points; in NFC, four. NA and 007 are texts, not numbers.
    (tmp_path / "t.csv").write_text("text,label\nNA,007\ncafe\u0301,b\n", encoding="utf-8")
    data = load(tmp_path / "t.csv", "clustering")
    assert [text.text for text in data.texts()] == ["NA", "caf\u00e9"]
    assert list(data.splits["test"]["label"]) == ["007", "b"]


def test_a_line_separator_within_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    row = {"query": "one\u2028two\x85three", "positive": ["a"], "negative": ["b"]}
    (tmp_path / "t.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [text.text for text in load(tmp_path / "t.jsonl", "reranking").texts()] == [row["query"]]


def retrieval(folder: Path, **files: str) -> Path:
    """A small folder in BEIR's layout, with files replaced."""
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
        path.write_text(content, encoding="utf-8")
    return folder


def test_retrieval_keeps_the_judged_queries_alone(tmp_path: Path) -> None:
    data = load(retrieval(tmp_path), "retrieval")
    assert list(data.splits["test"]["id"]) == ["q1"]
    assert data.corpus == {"p1": "T passage"}
    assert data.qrels == {"q1": {"p1": 2}}
    assert [text.field for text in data.texts()] == ["query"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "xlsx", "jsonl"])
def test_rows_are_counted_as_a_spreadsheet_counts_them(tmp_path: Path, suffix: str) -> None:
    """Blank rows too, and a row of several lines once."""
    file, rows = tmp_path / f"t.{suffix}", [["", ""], ["sentence1", "sentence2"], ["a\nb", "c"], ["", ""], ["d", " "]]
    if suffix == "jsonl":
        file.write_text('{"sentence1": "a", "sentence2": "b"}\n\n\n\n{"sentence1": "d", "sentence2": " "}\n')
    elif suffix == "xlsx":
        frame = pd.DataFrame(rows).replace("", None)
        frame.to_excel(file, header=False, index=False)
    else:
        table = "\n".join("\t".join(f'"{cell}"' for cell in row) if any(row) else "" for row in rows)
        content = (table if suffix == "tsv" else table.replace("\t", ",")).encode()
        file.write_bytes(gzip.compress(content) if suffix == "csv.gz" else content)
    with pytest.raises(DataError, match="row 5, field 'sentence2' is empty"):
        load(file, "bitext_mining", split="all")


def test_a_query_that_is_judged_by_itself_is_refused(tmp_path: Path) -> None:
    both = {"queries": '{"_id": "p1", "text": "one?"}', "qrels": "query-id\tcorpus-id\tscore\np1\tp1\t1\n"}
    with pytest.raises(DataError, match="row 2: query and passage share the id 'p1'"):
        load(retrieval(tmp_path, **both), "retrieval")


def test_the_sample_study_has_the_items_that_its_readme_promises() -> None:
    study = load_study(ROOT / "studies" / "demo.yaml")
    sets = {dataset.task: dataset for dataset in iter_datasets(study)}
    assert all(isinstance(dataset, TableDataset) for dataset in sets.values())
    assert len(sets["sts"].splits["test"]) >= 24
    assert len(sets["clustering"].splits["test"]) == 36
    assert sets["clustering"].splits["test"]["label"].nunique() == 6
    assert len(sets["reranking"].splits["test"]) == 10
    assert len(sets["retrieval"].splits["test"]) == 10
    assert len(sets["retrieval"].corpus) == 60


SUMMARIES = {
    "human_summaries": ["short one", "short two"],
    "machine_summaries": ["made one", "made two", "made three"],
    "relevance": [4.5, 2, 1],
}


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_summaries_of_both_kinds_are_texts_and_the_source_is_none(tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame([{"text": "the source", **SUMMARIES}])
    path = tmp_path / f"t{suffix}"
    if suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path)
    data = load(path, "summarisation")
    assert [(text.item, text.text) for text in data.texts()] == [
        ("0/human_summaries/0", "short one"),
        ("0/human_summaries/1", "short two"),
        ("0/machine_summaries/0", "made one"),
        ("0/machine_summaries/1", "made two"),
        ("0/machine_summaries/2", "made three"),
    ]
    assert data.sizes() == {"": 5}


def test_the_tasks_that_hteb_has_no_data_of_are_read(tmp_path: Path) -> None:
    rows = {
        "bitext_mining": {"sentence1": "ein Satz", "sentence2": "a sentence"},
        "multilabel_classification": {"text": "a cat", "label": ["pet", 3]},
        "instruction_reranking": {
            "query": "pets",
            "instruction": "any",
            "changed_instruction": "no cats",
            "positive": ["a dog", "a cat"],
            "negative": ["a stone"],
            "changed": ["a cat"],
        },
    }
    loaded = {}
    for task, row in rows.items():
        path = tmp_path / f"{task}.jsonl"
        lines = [json.dumps({**row, "split": split}) for split in ("train", "test")]
        path.write_text("\n".join(lines), encoding="utf-8")
        loaded[task] = load(path, task)  # type: ignore[arg-type]
    texts = {task: [(text.field, text.text) for text in dataset.texts()] for task, dataset in loaded.items()}
    assert texts == {
        "bitext_mining": [("sentence1", "ein Satz")],
        "multilabel_classification": [("text", "a cat")] * 2,
        "instruction_reranking": [("query", "pets")],
    }
    assert loaded["multilabel_classification"].splits["test"]["label"][0] == ["pet", "3"]
    assert list(loaded["multilabel_classification"].labels()) == [("its train split", ["3, pet"])]
    assert loaded["instruction_reranking"].splits["test"]["changed"][0] == [False, True]


def test_relatedness_is_read_as_similarity_is(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sentence1,sentence2,score\na,b,0.5\n")
    assert [text.task_type for text in load(tmp_path / "t.csv", "str").texts()] == ["str", "str"]


def languages(texts: Iterator[Text]) -> list[tuple[str, str]]:
    return [(text.text, text.language) for text in texts]


def test_a_column_gives_each_row_its_language_and_pairs_theirs_by_side(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sentence1,sentence2,score,lang\na,b,1,eng-deu\nc,d,1,ary\ne,f,1,\n")
    data = load(tmp_path / "t.csv", "sts", language="fr-it", columns={"language": "lang"})
    assert languages(data.texts()) == [("a", "en"), ("c", "ar"), ("e", "fr"), ("b", "de"), ("d", "ar"), ("f", "it")]
    first = next(data.texts())
    assert first.text_id == text_id("a", "en") != text_id("a", "de")


def test_a_language_of_queries_and_passages_in_beirs_layout(tmp_path: Path) -> None:
    folder = retrieval(
        tmp_path,
        queries='{"_id": "q1", "text": "one?", "language": "da"}\n{"_id": "q2", "text": "two?"}\n',
        corpus='{"_id": "p1", "title": "T", "text": "passage", "language": "fra"}\n{"_id": "p2", "text": "other"}\n',
        qrels="query-id\tcorpus-id\tscore\nq1\tp1\t2\nq2\tp2\t1\n",
    )
    data = load(folder, "retrieval", language="en-de", passages=True)
    # A title and its text are one text: they cannot be sent to two languages.
    assert languages(data.texts()) == [("one?", "da"), ("two?", "en"), ("T passage", "fr"), ("other", "de")]


def test_passages_are_texts_where_the_study_says_so(tmp_path: Path) -> None:
    row = {"query": "q", "positive": ["a", "b"], "negative": ["c"]}
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    assert [text.text for text in load(tmp_path / "t.jsonl", "reranking").texts()] == ["q"]
    assert [text.text for text in load(tmp_path / "t.jsonl", "reranking", passages=True).texts()] == [
        "q",
        "a",
        "b",
        "c",
    ]


def upper(without: str) -> Change:
    return lambda text, _: None if text.text == without else text.text.upper()


def test_a_pair_goes_where_one_of_its_texts_goes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sentence1,sentence2,score\na,b,1\nc,d,2\ne,f,3\n")
    data = load(tmp_path / "t.csv", "sts")
    copy = data.replaced(upper("d")).splits["test"]
    assert copy.to_dict(orient="list") == {"sentence1": ["A", "E"], "sentence2": ["B", "F"], "score": [1, 3]}
    assert list(data.splits["test"]["sentence2"]) == ["b", "d", "f"]


@pytest.mark.parametrize(
    ("without", "human", "machine", "relevance"),
    [
        ("made two", ["SHORT ONE", "SHORT TWO"], ["MADE ONE", "MADE THREE"], [4.5, 1.0]),
        ("short one", ["SHORT TWO"], ["MADE ONE", "MADE TWO", "MADE THREE"], [4.5, 2.0, 1.0]),
    ],
)
def test_a_summary_goes_with_its_relevance(
    tmp_path: Path, without: str, human: list[str], machine: list[str], relevance: list[float]
) -> None:
    (tmp_path / "t.jsonl").write_text(json.dumps(SUMMARIES) + "\n")
    (row,) = load(tmp_path / "t.jsonl", "summarisation").replaced(upper(without)).splits["test"].to_dict("records")
    assert row == {"human_summaries": human, "machine_summaries": machine, "relevance": relevance}


def test_a_row_goes_with_the_last_text_of_a_list(tmp_path: Path) -> None:
    rows = [{"query": "q", "positive": ["a"], "negative": ["c"]}, {"query": "r", "positive": ["d"], "negative": ["e"]}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    copy = load(tmp_path / "t.jsonl", "reranking", passages=True).replaced(upper("c"))
    assert list(copy.splits["test"]["query"]) == ["R"]


def test_a_query_goes_with_its_judgements_and_with_its_last_relevant_passage(tmp_path: Path) -> None:
    folder = retrieval(
        tmp_path,
        corpus="".join(json.dumps({"_id": f"p{i}", "text": f"passage {i}"}) + "\n" for i in range(3)),
        qrels="query-id\tcorpus-id\tscore\nq1\tp0\t1\nq1\tp1\t1\nq2\tp1\t1\nq2\tp2\t0\n",
    )
    data = load(folder, "retrieval", passages=True)
    without_query = data.replaced(upper("one?"))
    assert (list(without_query.splits["test"]["id"]), without_query.qrels) == (["q2"], {"q2": {"p1": 1, "p2": 0}})
    # q2's one relevant passage is p1; what is left of its judgements says that p2 is not relevant.
    without_passage = data.replaced(upper("passage 1"))
    assert (list(without_passage.splits["test"]["id"]), without_passage.qrels) == (["q1"], {"q1": {"p0": 1}})
    assert without_passage.corpus == {"p0": "PASSAGE 0", "p2": "PASSAGE 2"}


CELLS = st.text().filter(shows)


@given(st.lists(st.tuples(CELLS, st.lists(CELLS, min_size=1, max_size=4)), max_size=6), st.data())
def test_reading_and_replacing_walk_the_same_places(rows: list[tuple[str, list[str]]], data: st.DataObject) -> None:
    table = TextTable(
        dataset="d",
        task="reranking",
        split="test",
        items=[f"i{row}" for row in range(len(rows))],
        columns={"one": [one for one, _ in rows], "many": [many for _, many in rows]},
        languages={"one": ["en"] * len(rows), "many": ["de"] * len(rows)},
        partners={"many": {"ranks": [list(range(len(many))) for _, many in rows]}},
    )
    texts = list(table.texts())
    assert len({(text.item, text.field) for text in texts}) == len(texts) == sum(1 + len(many) for _, many in rows)
    same = table.replaced(lambda _, cell: cell)
    assert (same.rows, same.columns["one"], same.columns["many"]) == (
        list(range(len(rows))),
        [one for one, _ in rows],
        [many for _, many in rows],
    )
    lost = {text.item for text in texts if data.draw(st.booleans())}
    left = table.replaced(lambda text, _: None if text.item in lost else text.item)
    whole = [row for row, item in enumerate(table.items) if item not in lost]
    places = {
        row: [f"i{row}/many/{n}" for n in range(len(rows[row][1])) if f"i{row}/many/{n}" not in lost] for row in whole
    }
    assert left.rows == [row for row in whole if places[row]]
    assert left.columns["many"] == [places[row] for row in left.rows]
    assert left.columns["ranks"] == [[int(place.rsplit("/", 1)[1]) for place in places[row]] for row in left.rows]


def test_data_sets_are_read_one_at_a_time(tmp_path: Path) -> None:
    words = {"task": "clustering", "path": "words.csv", "language": "en"}
    study = small_study(tmp_path, datasets=[{"name": "one", **words}, {"name": "two", **words, "path": "none.csv"}])
    found = iter_datasets(study)
    assert next(found).name == "one"
    with pytest.raises(DataError, match="data set 'two': no file"):
        next(found)
    both = [{"name": name, **words, "path": f"{name}.csv", "columns": {"text": "t"}} for name in ("words", "none")]
    with pytest.raises(DataError) as caught:
        list(iter_datasets(small_study(tmp_path, datasets=both)))
    assert "no column 't'" in caught.value.args[0] and "no file" in caught.value.args[1]
