"""Data sets, read into one form whatever their file: a frame a split, with the task's own column names.

| task | columns | transformed |
|---|---|---|
| sts | sentence1, sentence2, score | both sentences |
| pair_classification | sentence1, sentence2, label (0 or 1) | both sentences |
| classification | text, label, split (train and test) | text, in both splits |
| clustering | text, label | text |
| reranking | query, positive (list), negative (list) | query |
| retrieval | a folder in BEIR's layout: corpus.jsonl, queries.jsonl, qrels/test.tsv | queries |

A table's own column names are mapped in the study (`columns: {score: gold}`). Rows without a column
`split` are the test split, and so are all rows where the study says `rows: all`. What is transformed follows
HTEB: of reranking and retrieval the queries alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from generation.exceptions import DataError
from generation.records import Text, nfc, text_id
from generation.study import DatasetSpec, Study, TaskType, file_hash, nearest

COLUMNS: dict[TaskType, tuple[str, ...]] = {
    "sts": ("sentence1", "sentence2", "score"),
    "pair_classification": ("sentence1", "sentence2", "label"),
    "classification": ("text", "label", "split"),
    "clustering": ("text", "label"),
    "reranking": ("query", "positive", "negative"),
    "retrieval": ("id", "query"),
}
TRANSFORMED: dict[TaskType, tuple[str, ...]] = {
    "sts": ("sentence1", "sentence2"),
    "pair_classification": ("sentence1", "sentence2"),
    "classification": ("text",),
    "clustering": ("text",),
    "reranking": ("query",),
    "retrieval": ("query",),
}


@dataclass(frozen=True)
class Dataset:
    """A data set in memory.

    `splits` maps train and test to frames with the task's columns; a row's position is its item number.
    `corpus` (id: passage) and `qrels` (query id: {passage id: relevance}) are retrieval's alone.
    `revision` is the hash of the file it came from.
    """

    name: str
    task: TaskType
    language: str
    revision: str
    splits: Mapping[str, pd.DataFrame]
    corpus: Mapping[str, str] = field(default_factory=dict)
    qrels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def texts(self) -> Iterator[Text]:
        """Every text that is transformed, in order."""
        for split, frame in self.splits.items():
            for column in TRANSFORMED[self.task]:
                for item, value in enumerate(frame[column]):
                    text = nfc(value)
                    yield Text(
                        dataset=self.name,
                        split=split,
                        item=str(item),
                        field=column,
                        language=self.language,
                        text_id=text_id(text, self.language),
                        text=text,
                    )


def load_datasets(study: Study) -> list[Dataset]:
    """All data sets of a study, in its order. Raises DataError with file, row and field for what cannot be used."""
    return [load_dataset(spec, study.resolve(spec.path)) for spec in study.datasets]


def load_dataset(spec: DatasetSpec, path: Path) -> Dataset:
    """One data set from its file or folder."""
    if not path.exists():
        raise DataError(f"data set {spec.name!r}: no file {path}; correct `path` in the study")
    if spec.task == "retrieval":
        return _load_retrieval(spec, path)
    frame = _renamed(_read_table(spec, path), spec, path)
    if "split" not in frame or spec.rows == "all":
        frame = frame.assign(split="test")
    frame = frame.assign(split=frame["split"].astype(str).str.strip())
    unknown = sorted(set(frame["split"]) - {"train", "test"})
    if unknown:
        raise DataError(f"{path}: split {unknown[0]!r} is neither train nor test; correct column `split`")
    splits = {}
    for split in ("train", "test"):
        part = frame[frame["split"] == split].drop(columns="split")
        if len(part):
            splits[split] = _checked(part, spec, path).reset_index(drop=True)
    needed = ("train", "test") if spec.task == "classification" else ("test",)
    for split in needed:
        if split not in splits:
            raise DataError(f"{path}: no rows in split {split!r}, which {spec.task} needs")
    if spec.task != "classification":
        splits = {"test": splits["test"]}
    return Dataset(spec.name, spec.task, spec.language, file_hash(path), splits)


def _read_table(spec: DatasetSpec, path: Path) -> pd.DataFrame:
    """The rows of a file, every cell as it stands there."""
    kind = path.suffix.lower()
    try:
        if kind in (".csv", ".tsv"):
            separator = "," if kind == ".csv" else "\t"
            frame = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8")
            if not isinstance(frame.index, pd.RangeIndex):  # pandas then takes the first column for row names
                raise DataError(f"data set {spec.name!r}: {path} cannot be read: rows have more cells than the header")
            return frame
        if kind == ".jsonl":
            return pd.DataFrame(list(_json_lines(path)))
        if kind == ".parquet":
            return pd.read_parquet(path)
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError, pa.ArrowException) as error:
        raise DataError(f"data set {spec.name!r}: {path} cannot be read: {error}") from None
    raise DataError(f"data set {spec.name!r}: {path} is not a .csv, .tsv, .jsonl or .parquet file")


def _renamed(frame: pd.DataFrame, spec: DatasetSpec, path: Path) -> pd.DataFrame:
    """The frame with the task's column names; refuses mappings of columns that the task does not have."""
    allowed = [*COLUMNS[spec.task], "split"]
    own = {}
    for column, name in spec.columns.items():
        if column not in allowed:
            raise DataError(f"data set {spec.name!r}: {spec.task} has no column {column!r}; {nearest(column, allowed)}")
        own[column] = name
    needed = COLUMNS[spec.task]
    for column in needed:
        name = own.get(column, column)
        if name not in frame:
            hint = nearest(name, [str(known) for known in frame.columns])
            if len(frame.columns) == 1 and any(mark in str(frame.columns[0]) for mark in (";", "\t", ",")):
                hint = "there is one column alone: commas separate those of a .csv, tabs those of a .tsv"
            raise DataError(f"{path}: no column {name!r}, which {spec.task} needs; {hint} (`columns` maps names)")
    chosen = [column for column in allowed if own.get(column, column) in frame]
    return pd.DataFrame({column: frame[own.get(column, column)] for column in dict.fromkeys(chosen)})


def _checked(frame: pd.DataFrame, spec: DatasetSpec, path: Path) -> pd.DataFrame:
    """The frame with numbers as numbers; refuses empty texts, scores that are no numbers, empty candidate lists."""
    for column in TRANSFORMED[spec.task]:
        for row, value in frame[column].items():
            _refuse_empty(value, path, row, column)
    if spec.task in ("classification", "clustering"):
        for row, value in frame["label"].items():
            _refuse_empty(str(value), path, row, "label")
    if spec.task == "sts":
        frame = frame.assign(score=_numbers(frame["score"], path))
    if spec.task == "pair_classification":
        labels = _numbers(frame["label"], path)
        if not labels.isin([0, 1]).all():
            raise DataError(f"{path}: column 'label' holds other values than 0 and 1, which pair_classification needs")
        frame = frame.assign(label=labels.astype(int))
    if spec.task == "reranking":
        for column in ("positive", "negative"):
            for row, value in frame[column].items():
                if not isinstance(value, list) or not value:
                    raise DataError(f"{path}: row {_line(row)}, field {column!r} is not a list of texts")
                for text in value:
                    _refuse_empty(text, path, row, column)
    return frame


def _load_retrieval(spec: DatasetSpec, path: Path) -> Dataset:
    """A folder in BEIR's layout."""
    rows = {name: list(_json_lines(path / f"{name}.jsonl")) for name in ("corpus", "queries")}
    texts: dict[str, dict[str, str]] = {}
    for name, items in rows.items():
        texts[name] = {}
        for number, item in enumerate(items):
            file = path / f"{name}.jsonl"
            if "_id" not in item or "text" not in item:
                raise DataError(f"{file}: row {number + 1} lacks '_id' or 'text'")
            _refuse_empty(item["text"], file, number, "text")
            title = str(item.get("title") or "").strip()
            if str(item["_id"]) in texts[name]:
                raise DataError(f"{file}: row {number + 1}: the id {item['_id']!r} stands there twice")
            texts[name][str(item["_id"])] = f"{title} {item['text']}".strip()
    judged = path / "qrels" / "test.tsv"
    if not judged.exists():
        raise DataError(f"data set {spec.name!r}: no file {judged}; retrieval needs its relevance judgements")
    qrels: dict[str, dict[str, int]] = {}
    for number, (query, passage, relevance) in enumerate(_judgements(judged), start=1):
        if query not in texts["queries"] or passage not in texts["corpus"]:
            raise DataError(f"{judged}: {query!r} or {passage!r} stands neither in queries.jsonl nor in corpus.jsonl")
        if not relevance.lstrip("-").isdecimal():
            raise DataError(f"{judged}: row {number}: the relevance {relevance!r} is not a whole number")
        qrels.setdefault(query, {})[passage] = int(relevance)
    queries = {query: text for query, text in texts["queries"].items() if query in qrels}
    if not queries:
        raise DataError(f"{judged}: no query has a relevance judgement")
    frame = pd.DataFrame({"id": list(queries), "query": list(queries.values())})
    return Dataset(spec.name, spec.task, spec.language, file_hash(path), {"test": frame}, texts["corpus"], qrels)


def _judgements(path: Path) -> Iterator[tuple[str, str, str]]:
    """Query id, passage id and relevance of each row after the header."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error}") from None
    for number, line in enumerate(lines[1:], start=1):
        cells = line.rstrip("\r").split("\t")
        if cells == [""]:
            continue
        if len(cells) < 3:
            raise DataError(f"{path}: row {number} has not query id, passage id and relevance, with tabs between")
        yield cells[0], cells[1], cells[2]


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # not splitlines: texts may hold U+2028
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"no file {path}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error}") from None
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            json.dumps(row, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            raise DataError(f"{path}: line {number + 1} is not JSON: {error}") from None
        except UnicodeEncodeError:  # JSON may escape one half of a surrogate pair; no other format can hold it
            raise DataError(f"{path}: line {number + 1} holds half a character (\\ud8.. alone); correct it") from None
        if not isinstance(row, dict):
            raise DataError(f"{path}: line {number + 1} is not a JSON object")
        yield row


def _numbers(column: pd.Series[Any], path: Path) -> pd.Series[Any]:
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = ~np.isfinite(numbers.to_numpy(float))
    if wrong.any():
        row = numbers.index[wrong][0]
        raise DataError(f"{path}: row {_line(row)}, field {column.name!r} is not a number: {column[row]!r}")
    return numbers


def _refuse_empty(value: Any, path: Path, row: Any, column: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{path}: row {_line(row)}, field {column!r} is empty; give it a text or remove the row")


def _line(row: Any) -> int:
    """Rows as people count them: the first after the header is 1."""
    return int(row) + 1
