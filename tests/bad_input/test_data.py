"""Data sets, prompts and recordings that cannot be used, a row each: which file, row and field, and what is wrong."""

from __future__ import annotations

import datetime
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from plumbline import prompts
from plumbline.prompts import PROMPTS

from .ground import Bad, Place

E = "--study {s} --exports {e}"
GENERATE = f"generate {E}"
NAN, INF = float("nan"), float("inf")
WHEN = datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC)
PAIR = {"sentence1": "a b", "sentence2": "c d"}
STS = {**PAIR, "score": 1.0}
CLASS = {"text": "a b", "label": "x", "split": "train"}
BLANKS = {"empty": "", "spaces": " ", "zero-width": "\u200b", "byte order mark": "\ufeff", "bidi": "\u200e\u200f"}


def _jsonl(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _table(task: str, name: str, content: bytes | Callable[[Path], object]) -> Callable[[Place], None]:
    def spoil(place: Place) -> None:
        file = place.data / name
        if callable(content):
            content(file)
        else:
            file.write_bytes(content)
        place.change("datasets.0", {"name": "sentences", "task": task, "path": f"data/{name}", "language": "en"})

    return spoil


def _parquet(**columns: Any) -> Callable[[Path], object]:
    return lambda file: pd.DataFrame(columns).to_parquet(file)


def _retrieval(name: str, content: bytes) -> Callable[[Place], None]:
    return lambda place: (place.data / "retrieval" / name).write_bytes(content) and None


HEAD = "sentence1,sentence2,score\n"
TABLES: tuple[tuple[str, str, str, Any, str], ...] = (
    ("no rows", "sts", "t.csv", b"", "t.csv"),
    ("only a header", "sts", "t.csv", HEAD.encode(), "no rows in split 'test'"),
    ("no encoding", "sts", "t.csv", HEAD.encode() + b"caf\xe9\x81,b,1\n", "in an unknown encoding"),
    ("a null", "sts", "t.csv", (HEAD + "a\0b,b,1\n").encode(), "contains a null character (line 2)"),
    ("a row too long", "sts", "t.csv", (HEAD + "a,b,3,5\n").encode(), "line 2 has 4 cells, but the header has 3"),
    ("a row too short", "sts", "t.csv", (HEAD + "a,b,1\na\n").encode(), "row 3, field 'sentence2' is empty"),
    ("two columns of a name", "sts", "t.csv", b"sentence1,sentence2,score,score\na,b,1,2\n",
     "two columns are called 'score'"),
    ("a quotation mark open", "clustering", "t.csv", b'text,label\n"a,b\n',
     "a cell opens a quotation mark that is never closed"),
    ("semicolons", "sts", "t.csv", b"sentence1;sentence2;score\na;b;1\n", "the file has a single column"),
    ("no column", "sts", "t.csv", b"sentence1,sentence2,gold\na,b,1\n", "no column 'score', which sts needs"),
    ("a score of words", "sts", "t.csv", (HEAD + "a,b,high\n").encode(),
     "row 2, field 'score' is not a number: 'high'"),
    ("a score of 400 digits", "sts", "t.csv", (HEAD + f"a,b,{'9' * 400}\n").encode(), "row 2, field 'score' is not"),
    ("a score inf", "sts", "t.csv", (HEAD + "a,b,inf\n").encode(), "row 2, field 'score' is not a number"),
    ("a split", "sts", "t.csv", b"sentence1,sentence2,score,split\na,b,1,dev\n",
     "split 'dev' is neither train nor test"),
    ("a language", "sts", "t.csv", b"sentence1,sentence2,score,language\na,b,1,klingon\n", "row 2, field 'language'"),
    ("another kind", "sts", "t.txt", b"x", "is not a .csv, .tsv, .jsonl, .parquet or .xlsx file"),
    ("a folder", "sts", "t.csv", lambda file: file.mkdir(), "t.csv is a folder, not a file"),
    ("a pipe", "sts", "t.csv", os.mkfifo, "is not an ordinary file (a pipe or a device)"),
    ("a pipe as Parquet", "sts", "t.parquet", os.mkfifo, "is not an ordinary file"),
    ("a link to itself", "sts", "t.csv", lambda file: file.symlink_to(file.name), "cannot be resolved"),
    ("not there", "sts", "t.csv", lambda file: None, "no file"),
    ("not JSON", "sts", "t.jsonl", b"{\n", "line 1 is not JSON"),
    ("a list", "sts", "t.jsonl", b"[]\n", "line 1 is not a JSON object"),
    ("a key twice", "sts", "t.jsonl", b'{"score": 1, "score": 2}\n', "line 1 is not JSON: key 'score' appears twice"),
    ("3,000 deep", "sts", "t.jsonl", b"[" * 3000 + b"\n", "line 1 is not JSON: nested too deep"),
    ("5,000 digits", "sts", "t.jsonl", b'{"score": ' + b"9" * 5000 + b"}\n", "a number has too many digits"),
    ("half a character", "sts", "t.jsonl", b'{"sentence1": "\\ud800"}\n', "not JSON: holds half a surrogate pair"),
    ("an escaped null", "sts", "t.jsonl", _jsonl({**STS, "sentence1": "a\0b"}),
     "row 1, field 'sentence1' holds a null"),
    ("latin-1 lines", "sts", "t.jsonl", b'{"sentence1": "\xe9"}\n', "not UTF-8 (byte 0xe9 in line 1)"),
    ("a number for a text", "sts", "t.jsonl", _jsonl({**STS, "sentence1": 5}), "row 1, field 'sentence1' is empty"),
    ("a score true", "sts", "t.jsonl", _jsonl({**STS, "score": True}), "row 1, field 'score' is not a number"),
    ("a score null", "sts", "t.jsonl", _jsonl(STS, {**STS, "score": None}), "row 2, field 'score' is missing"),
    ("a score list", "sts", "t.jsonl", _jsonl({**STS, "score": [1]}), "row 1, field 'score' is not a number: [1]"),
    ("a score of 400 digits as JSON", "sts", "t.jsonl", _jsonl({**STS, "score": 10**400}), "row 1, field 'score'"),
    ("a score from a time", "sts", "t.parquet", _parquet(sentence1=["a"], sentence2=["b"], score=[WHEN]),
     "row 1, field 'score' is not a number"),
    ("bytes", "sts", "t.parquet", _parquet(sentence1=[b"a"], sentence2=["b"], score=[1]), "field 'sentence1' is empty"),
    ("no Parquet", "sts", "t.parquet", b"hello", "t.parquet cannot be read"),
    ("a label 2", "pair_classification", "t.jsonl", _jsonl({**PAIR, "label": 2}), "values other than 0 and 1"),
    ("a label null", "pair_classification", "t.jsonl", _jsonl({**PAIR, "label": None}),
     "row 1, field 'label' is missing; add a number or remove the row"),
    ("a class null", "classification", "t.jsonl", _jsonl({**CLASS, "label": None}), "field 'label' is not a label"),
    ("a class mapping", "clustering", "t.jsonl", _jsonl({**CLASS, "label": {}, "split": "test"}),
     "'label' is not a label"),
    ("a class blank", "clustering", "t.jsonl", _jsonl({**CLASS, "label": "\u200b", "split": "test"}),
     "'label' is empty"),
    ("a class time", "clustering", "t.parquet", _parquet(text=["a"], label=[WHEN]), "field 'label' is not a label"),
    ("no train split", "classification", "t.jsonl", _jsonl({**CLASS, "split": "test"}), "no rows in split 'train'"),
    ("labels no list", "multilabel_classification", "t.jsonl", _jsonl(CLASS), "field 'label' is not a list of labels"),
    ("labels with null", "multilabel_classification", "t.jsonl", _jsonl({**CLASS, "label": ["a", None]}),
     "not a label: None"),
    ("labels with NaN", "multilabel_classification", "t.jsonl", _jsonl({**CLASS, "label": [NAN]}), "not a label: nan"),
    ("labels with lists", "multilabel_classification", "t.jsonl", _jsonl({**CLASS, "label": [["a"]]}), "not a label"),
    ("positive no list", "reranking", "t.jsonl", _jsonl({"query": "q", "positive": "p", "negative": ["n"]}),
     "field 'positive' is not a list of texts"),
    ("negative of numbers", "reranking", "t.jsonl", _jsonl({"query": "q", "positive": ["p"], "negative": [3]}),
     "row 1, field 'negative' holds 3, which is not text"),
    ("changed and not relevant", "instruction_reranking", "t.jsonl",
     _jsonl({"query": "q", "instruction": "i", "changed_instruction": "c", "positive": ["p"], "negative": ["n"],
             "changed": ["n"]}), "'changed' holds a text that is not in 'positive': 'n'"),
    ("relevance too short", "summarisation", "t.jsonl",
     _jsonl({"human_summaries": ["a"], "machine_summaries": ["b", "c"], "relevance": [1]}), "not a list of 2 numbers"),
)  # fmt: skip
TEXT = {"_id": "p01", "text": "a"}
QRELS = "query-id\tcorpus-id\tscore\n"
SEARCHES: tuple[tuple[str, str, bytes, str], ...] = (
    ("_id null", "corpus.jsonl", _jsonl({**TEXT, "_id": None}), "corpus.jsonl: row 1, field '_id' is not an id: None"),
    ("_id a list", "queries.jsonl", _jsonl({**TEXT, "_id": ["q"]}), "queries.jsonl: row 1, field '_id' is not an id"),
    ("_id true", "corpus.jsonl", _jsonl({**TEXT, "_id": True}), "row 1, field '_id' is not an id: True"),
    ("_id twice", "corpus.jsonl", _jsonl(TEXT, TEXT), "row 2: the id 'p01' appears twice"),
    ("no text", "corpus.jsonl", _jsonl({"_id": "p01"}), "row 1 lacks '_id' or 'text'"),
    ("a blank text", "corpus.jsonl", _jsonl({**TEXT, "text": "\u200b"}), "corpus.jsonl: row 1, field 'text' is empty"),
    ("a title of a list", "corpus.jsonl", _jsonl({**TEXT, "title": ["x"]}), "row 1, field 'title' is not text: ['x']"),
    ("a language of a number", "corpus.jsonl", _jsonl({**TEXT, "language": 5}), "field 'language' is not text: 5"),
    ("no JSON", "corpus.jsonl", b"x\n", "corpus.jsonl: line 1 is not JSON"),
    ("latin-1", "queries.jsonl", b'{"_id": "q", "text": "\xe9"}', "queries.jsonl: not UTF-8"),
    ("contradictions", "qrels/test.tsv", f"{QRELS}q01\tp01\t1\nq01\tp01\t0\n".encode(),
     "test.tsv: row 3: 'q01' and 'p01' have relevance 0 here, 1 further up"),
    ("all 0", "qrels/test.tsv", f"{QRELS}q01\tp01\t0\nq02\tp02\t0\n".encode(), "no passage is relevant to any query"),
    ("no header", "qrels/test.tsv", b"q01\tp01\t1\n", "the first line is a judgement, not the header"),
    ("no judgement", "qrels/test.tsv", QRELS.encode(), "no query has a relevance judgement"),
    ("an unknown query", "qrels/test.tsv", f"{QRELS}q99\tp01\t1\n".encode(),
     "row 2: 'q99' is not in queries.jsonl"),
    ("an unknown passage", "qrels/test.tsv", f"{QRELS}q01\tp99\t1\n".encode(), "'p99' is not in corpus.jsonl"),
    ("a relevance of words", "qrels/test.tsv", f"{QRELS}q01\tp01\tyes\n".encode(), "'yes' is not a whole number"),
    ("a relevance of 5,000 digits", "qrels/test.tsv", f"{QRELS}q01\tp01\t{'9' * 5000}\n".encode(),
     "not a whole number"),
    ("spaces for tabs", "qrels/test.tsv", f"{QRELS}q01 p01 1\n".encode(), "row 2 is not query id, passage id"),
)  # fmt: skip
RECORDING = {"text": "a", "transformation": "paraphrasing", "language": None, "intermediate": None, "output": "b"}
RECORDINGS: tuple[tuple[str, bytes, str], ...] = (
    ("no JSON", b"x\n", "pairs.jsonl: line 1 is not JSON"),
    ("deep", b"[" * 3000, "line 1 is not JSON: nested too deep"),
    ("no recording", b"{}\n", "line 1: text: Field required"),
    ("another key", _jsonl({**RECORDING, "x": 1}), "line 1: x: Extra inputs are not permitted"),
    ("a number for a text", _jsonl({**RECORDING, "output": 3}), "line 1: output: Input should be a valid string"),
    ("twice", _jsonl({**RECORDING, "text": "caf\u00e9"}, {**RECORDING, "text": "cafe\u0301"}),
     "line 2: a second output for"),
    ("latin-1", b"\xe9\n", "not UTF-8 (byte 0xe9 in line 1)"),
)  # fmt: skip
WORDED = "name: paraphrasing\nsource: us\nlanguage: en\n"
WORDINGS: tuple[tuple[str, bytes, str], ...] = (
    ("latin-1", b"name: paraphrasing\ntext: caf\xe9\n", "not UTF-8 (byte 0xe9 in line 2)"),
    ("empty", b"", "paraphrasing.yaml: is not a mapping; write keys with their values"),
    ("deep", b"a: " + b"[" * 3000, "nest"),
    ("a key twice", b"name: a\nname: b\n", "key 'name' appears twice"),
    ("another name", f"{WORDED}variables: [text]\ntext: '{{text}}'\n".replace("name: p", "name: q").encode(),
     "its name is"),
    ("variables that differ", f"{WORDED}variables: [a]\ntext: '{{text}}'\n".encode(), "the text uses ['text']"),
    ("a variable nobody fills", f"{WORDED}variables: [text, tone]\ntext: '{{text}} {{tone}}'\n".encode(),
     "unknown variable {tone}"),
    ("no text in it", f"{WORDED}variables: []\ntext: hello\n".encode(), "lacks {text}"),
    ("a number for a text", f"{WORDED}variables: [text]\ntext: 5\n".encode(), 'write it in quotes: "5"'),
)  # fmt: skip


def _recordings(content: bytes) -> Callable[[Place], None]:
    """Recordings that are still to be served."""

    def spoil(place: Place) -> None:
        (place.data / "outputs" / "pairs.jsonl").write_bytes(content)
        shutil.rmtree(place.records / "transformations")

    return spoil


def _root(place: Place) -> None:
    place.change("generator.path", "/")
    shutil.rmtree(place.records / "transformations")


def rows() -> Iterator[Bad]:
    for name, task, file, content, says in TABLES:
        yield Bad(f"table: {name}", GENERATE, _table(task, file, content), (says,))
    columns = {"lable": "intent"}
    yield Bad("columns", GENERATE, lambda place: place.change("datasets.1.columns", columns), ("did you mean 'label'",))
    for name, blank in BLANKS.items():
        spoil = _table("sts", "t.jsonl", _jsonl(STS, {**STS, "sentence2": blank}))
        yield Bad(f"sentence2: {name}", GENERATE, spoil, ("t.jsonl: row 2, field 'sentence2' is empty",))
        spoil = _table("classification", "t.jsonl", _jsonl({**CLASS, "text": blank}, {**CLASS, "split": "test"}))
        yield Bad(f"text: {name}", f"evaluate {E}", spoil, ("t.jsonl: row 1, field 'text' is empty",))
    for name, file, content, says in SEARCHES:
        yield Bad(f"search: {name}", GENERATE, _retrieval(file, content), (says,))
    for name, content, says in RECORDINGS:
        yield Bad(f"recording: {name}", GENERATE, _recordings(content), (says,))
    yield Bad("recording: everything", GENERATE, _root, ("/ is the root of the file system",))
    for name in ("rubrics", "none"):
        says = (f"no folder {name!r} with prompts", "known: pteb, pteb_multilingual")
        yield Bad(f"prompts: {name}", GENERATE, lambda place, name=name: place.change("prompts", name), says)  # type: ignore[misc]


@pytest.mark.parametrize("bad", tuple(rows()), ids=lambda bad: bad.name)
def test_data_that_cannot_be_used_are_one_line(bad: Bad, assert_refused: Callable[[Bad], None]) -> None:
    assert_refused(bad)


@pytest.mark.parametrize(("name", "content", "says"), WORDINGS, ids=[name for name, _, _ in WORDINGS])
def test_a_prompt_that_cannot_be_used_is_one_line(
    name: str,
    content: bytes,
    says: str,
    assert_refused: Callable[[Bad], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(PROMPTS, tmp_path / "prompts")
    (tmp_path / "prompts" / "paraphrasing.yaml").write_bytes(content)
    monkeypatch.setattr(prompts, "PROMPTS", tmp_path / "prompts")
    monkeypatch.setattr(prompts.load_prompt, "__defaults__", (tmp_path / "prompts",))
    assert_refused(Bad(name, GENERATE, lambda place: None, ("paraphras", says)))
