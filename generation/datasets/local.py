"""Data sets from local files: tables, and folders in BEIR's layout."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from generation.datasets import tables
from generation.datasets.dataset import Change, Dataset, QueryPassages, TextTable, drawn_others
from generation.datasets.mteb_loading import passage_names
from plumbline.errors import DataError, StudyError, nearest, read_each
from plumbline.languages import language_pair, pair_code
from plumbline.reading import text_lines
from plumbline.records import Text
from plumbline.study import file_hash
from plumbline.study.datasets import SEARCHES, SIMILARITIES, TRAINED, DatasetSpec, TaskType, refuse_pair

_WHOLE = re.compile(r"-?[0-9]{1,9}")


def _judged(path: Path, queries: Mapping[str, str], corpus: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """Return the relevance by query and passage. Raises DataError with file and row."""
    if not path.exists():
        raise DataError(f"no file {path}; retrieval needs it for the relevance judgements")
    rows = (line.rstrip("\r") for line in text_lines(path))
    if _WHOLE.fullmatch(next(rows, "").split("\t")[-1]):
        raise DataError(
            f"{path}: the first line is a judgement, not the header query-id, corpus-id, score; add the header"
        )
    qrels: dict[str, dict[str, int]] = {}

    def read(row: tuple[int, str]) -> None:
        line, cells = f"{path}: row {row[0]}", row[1].split("\t")
        if len(cells) < 3:
            raise DataError(f"{line} is not query id, passage id and relevance, separated by tabs")
        query, passage, relevance = cells[:3]
        if query not in queries or passage not in corpus:
            name, file = (query, "queries.jsonl") if query not in queries else (passage, "corpus.jsonl")
            raise DataError(f"{line}: {name[:60]!r} is not in {file}; correct the id or add the text")
        if not _WHOLE.fullmatch(relevance):
            raise DataError(f"{line}: the relevance {relevance[:60]!r} is not a whole number")
        if query == passage and int(relevance) > 0:
            raise DataError(f"{line}: query and passage share the id {query!r}, so the passage counts as the query and"
                            " is never its result; give queries other ids than passages")  # fmt: skip
        first = qrels.setdefault(query, {}).setdefault(passage, int(relevance))
        if first != int(relevance):
            raise DataError(f"{line}: {query!r} and {passage!r} have relevance {relevance} here, {first} further up;"
                            " keep one")  # fmt: skip

    read_each(filter(itemgetter(1), enumerate(rows, start=2)), read)  # below the header
    if not qrels:
        raise DataError(f"{path}: no query has a relevance judgement")
    if not any(value > 0 for judged in qrels.values() for value in judged.values()):
        raise DataError(f"{path}: no passage is relevant to any query (every relevance is 0); correct the judgements")
    return qrels


def _texts(file: Path, language: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts and languages of a file by id."""
    texts: dict[str, str] = {}
    languages: dict[str, str] = {}

    def read(row: tuple[int, dict[str, Any]]) -> None:
        (number, item), line = row, tables.row_of(file, row[0])
        if "_id" not in item or "text" not in item:
            raise DataError(f"{line} lacks '_id' or 'text'; add it")
        tables.refuse_empty(item["text"], file, number, "text")
        for name in ("title", language):
            if not isinstance(item.get(name) or "", str):
                raise DataError(f"{line}, field {name!r} is not text: {item[name]!r:.60}")
        title = (item.get("title") or "").strip()
        if isinstance(item["_id"], bool) or not isinstance(item["_id"], (str, int)) or item["_id"] == "":
            raise DataError(f"{line}, field '_id' is not an id: {item['_id']!r:.60}; correct it")
        key = str(item["_id"])
        if key in texts:
            raise DataError(f"{line}: the id {item['_id']!r} appears twice")
        texts[key] = f"{title} {item['text']}".strip()
        if item.get(language):
            languages[key] = str(item[language])

    read_each(tables.json_rows(file), read)
    return texts, languages


PAIRS = ("sentence1", "sentence2")
SUMMARIES = ("human_summaries", "machine_summaries")
CANDIDATES = ("positive", "negative")
INSTRUCTIONS = ("instruction", "changed_instruction")
COLUMNS: dict[TaskType, tuple[str, ...]] = {
    "sts": (*PAIRS, "score"),
    "str": (*PAIRS, "score"),
    "pair_classification": (*PAIRS, "label"),
    "classification": ("text", "label", "split"),
    "clustering": ("text", "label"),
    "reranking": ("query", *CANDIDATES),
    "retrieval": (),
    "summarisation": (*SUMMARIES, "relevance"),
    "bitext_mining": PAIRS,
    "multilabel_classification": ("text", "label", "split"),
    "instruction_reranking": ("query", *INSTRUCTIONS, *CANDIDATES, "changed"),
}
TRANSFORMED: dict[TaskType, tuple[str, ...]] = {
    "sts": PAIRS,
    "str": PAIRS,
    "pair_classification": PAIRS,
    "classification": ("text",),
    "clustering": ("text",),
    "reranking": ("query",),
    "retrieval": ("query",),
    "summarisation": SUMMARIES,
    "bitext_mining": PAIRS[:1],
    "multilabel_classification": ("text",),
    "instruction_reranking": ("query",),
}
# Columns whose texts are the second of an item's two texts.
_SECOND = ("sentence2", *CANDIDATES)
_OPTIONAL = ("split", "language")


class ColumnError(DataError):
    """A study names a column that its file or its task lacks."""


@dataclass(frozen=True)
class TableDataset(Dataset):
    """A data set of local files.

    `splits` maps train and test to frames with the task's columns; a row's position is its item number, and a column
    `language` overrides the data set's language. Only retrieval has `corpus` (id: passage), `corpus_languages` (id:
    code, if it is not `language`), `qrels` (query id: {passage id: relevance}) and `candidates` (query id: the passages
    ranked for it; all if it is empty). `revision` hashes the file.
    """

    name: str
    task: TaskType
    language: str
    revision: str
    splits: Mapping[str, pd.DataFrame]
    corpus: Mapping[str, str] = field(default_factory=dict)
    qrels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    corpus_languages: Mapping[str, str] = field(default_factory=dict)
    candidates: Mapping[str, Sequence[str]] = field(default_factory=dict)
    passages: bool = False

    def texts(self) -> Iterator[Text]:
        for split, frame in self.splits.items():
            yield from self._table(split, frame).texts()
        if self.corpus and self.passages:
            yield from self._corpus_table().texts()

    def replaced(self, change: Change) -> TableDataset:
        corpus, splits = dict(self.corpus), dict(self.splits)
        if self.corpus and self.passages:
            passages = self._corpus_table().replaced(change)
            ids = list(self.corpus)
            corpus = dict(zip([ids[row] for row in passages.rows], passages.columns["passage"], strict=True))
            splits = {name: frame[self._answerable(frame, corpus)] for name, frame in splits.items()}
        for split, frame in splits.items():
            replacement = self._table(split, frame).replaced(change)
            remaining = frame.iloc[replacement.rows].reset_index(drop=True)
            splits[split] = remaining.assign(
                **{name: pd.Series(column, dtype=object) for name, column in replacement.columns.items()}
            )
        qrels = {
            query: {passage: value for passage, value in self.qrels[query].items() if passage in corpus}
            for query in (splits["test"]["id"] if self.qrels else ())
        }
        return dataclasses.replace(self, splits=splits, corpus=corpus, qrels=qrels)

    def sizes(self) -> dict[str, int]:
        """Return the number of rows or queries of the test split; for summarisation, of summaries."""
        frame = self.splits["test"]
        if self.task == "summarisation":
            return {"": int(sum(frame[column].map(len).sum() for column in SUMMARIES))}
        return {"": len(frame)}

    def labels(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield the labels of classification's train split, or of clustering's and pair classification's test split."""
        if self.task in (*TRAINED, "clustering", "pair_classification"):
            split = "train" if self.task in TRAINED else "test"
            labels = self.splits[split]["label"].tolist()
            several = self.task == "multilabel_classification"
            yield f"its {split} split", [", ".join(sorted(row)) for row in labels] if several else labels

    def gold_scores(self) -> dict[str, float]:
        scores = self.splits["test"]["score"] if self.task in SIMILARITIES else ()
        return {str(row): float(score) for row, score in enumerate(scores)}

    def searches(self) -> Iterator[QueryPassages]:
        """Yield each query with its passages: a row's own, or those of the corpus."""
        if self.task not in SEARCHES:
            return
        frame, ids = self.splits["test"], list(self.corpus)
        languages = frame["language"] if "language" in frame else [self.language] * len(frame)
        for number, (language, row) in enumerate(zip(languages, frame.to_dict(orient="records"), strict=True)):
            if self.task == "retrieval":
                query, judged = row["id"], self.qrels[row["id"]]
                names = [*judged, *drawn_others(ids, list(judged), query)]
                passages = {name: self.corpus[name] for name in names if name in self.corpus and name != query}
                relevant = [name for name in passages if judged.get(name, 0) > 0]
            else:
                query, texts = str(number), [*row["positive"], *row["negative"]]
                passages = dict(zip(passage_names(f"q{number}", texts), texts, strict=True))
                relevant = list(passages)[: len(row["positive"])]
            yield QueryPassages("", query, language_pair(language), row["query"], passages, frozenset(relevant))

    def _table(self, split: str, frame: pd.DataFrame) -> TextTable:
        candidates = self.task in ("reranking", "instruction_reranking") and self.passages
        names = [*TRANSFORMED[self.task], *(CANDIDATES if candidates else ())]
        languages = frame["language"] if "language" in frame else pd.Series([self.language] * len(frame), dtype=object)
        sides = [language_pair(language) for language in languages]
        partners = {}
        if self.task == "summarisation":
            partners = {"machine_summaries": {"relevance": list(frame["relevance"])}}
        elif self.task == "instruction_reranking" and candidates:
            partners = {"positive": {"changed": list(frame["changed"])}}
        return TextTable(
            dataset=self.name,
            task=self.task,
            split=split,
            items=list(frame["id"]) if self.task == "retrieval" else [str(row) for row in range(len(frame))],
            columns={name: list(frame[name]) for name in names},
            languages={name: [side[name in _SECOND] for side in sides] for name in names},
            partners=partners,
        )

    def _corpus_table(self) -> TextTable:
        second = language_pair(self.language)[1]
        return TextTable(
            dataset=self.name,
            task=self.task,
            split="test",
            items=list(self.corpus),
            columns={"passage": list(self.corpus.values())},
            languages={"passage": [self.corpus_languages.get(key, second) for key in self.corpus]},
        )

    def _answerable(self, frame: pd.DataFrame, corpus: Mapping[str, str]) -> list[bool]:
        """Return which queries still have a relevant passage, or never had one."""
        relevant = [{p for p, value in self.qrels[query].items() if value > 0} for query in frame["id"]]
        return [not wanted or any(p in corpus for p in wanted) for wanted in relevant]


def load_local(spec: DatasetSpec, path: Path) -> TableDataset:
    """Load one data set from its file or folder. Raises DataError with file, row and field for unusable data."""
    if not path.exists():
        raise DataError(f"data set {spec.name!r}: no file {path}; correct `path` in the study")
    if spec.task_type == "retrieval":
        return _load_retrieval(spec, path)
    frame = _renamed(tables.read_frame(path, spec.sheet), spec, path)
    if "split" not in frame or spec.rows == "all":
        frame = frame.assign(split="test")
    frame = frame.assign(split=frame["split"].astype(str).str.strip())
    if unknown := sorted(set(frame["split"]) - {"train", "test"}):
        raise DataError(f"{path}: split {unknown[0]!r} is neither train nor test; correct the column `split`")
    splits = {}
    for split in ("train", "test"):
        part = frame[frame["split"] == split].drop(columns="split")
        if len(part):
            splits[split] = _checked(part, spec, path).reset_index(drop=True)
    needed = ("train", "test") if spec.task_type in TRAINED else ("test",)
    for split in needed:
        if split not in splits:
            raise DataError(f"{path}: no rows in split {split!r}, which {spec.task_type} needs")
    splits = {split: splits[split] for split in needed}
    revision = spec.revision_of(file_hash(path))
    return TableDataset(spec.name, spec.task_type, spec.code, revision, splits, passages=spec.passages)


def _load_retrieval(spec: DatasetSpec, path: Path) -> TableDataset:
    """Load a folder in BEIR's layout; queries without a judgement are left out.

    A passage is its title, a space and its text. One with a query's id counts as that query, as in Quora: by BEIR's
    rule it is no result of the query.
    """
    for column in spec.columns:
        if column != "language":
            raise DataError(f"data set {spec.name!r}: BEIR's layout has fixed names; `columns` can only map `language`")
    language = spec.columns.get("language", "language")
    corpus, passage_languages = _texts(path / "corpus.jsonl", language)
    texts, query_languages = _texts(path / "queries.jsonl", language)
    qrels = _judged(path / "qrels" / "test.tsv", texts, corpus)
    ids = [query for query in texts if query in qrels]
    queries = pd.DataFrame({"id": ids, "query": [texts[query] for query in ids]})
    if query_languages:
        codes = pd.Series([query_languages.get(query, spec.code) for query in ids], ids, dtype=object)
        codes = languages_of_rows(codes, "retrieval", path / "queries.jsonl", spec.code)
        queries = queries.assign(language=codes.to_numpy())
    passages = pd.Series(passage_languages, dtype=object)
    return TableDataset(
        spec.name,
        spec.task_type,
        spec.code,
        file_hash(path),
        {"test": queries},
        corpus,
        qrels,
        dict(languages_of_rows(passages, "retrieval", path / "corpus.jsonl", spec.code)),
        passages=spec.passages,
    )


def _renamed(frame: pd.DataFrame, spec: DatasetSpec, path: Path) -> pd.DataFrame:
    """Return the frame with the task's column names; refuse mappings of columns that the task lacks."""
    needed = COLUMNS[spec.task_type]
    allowed = [*needed, *_OPTIONAL]
    if unknown := [column for column in spec.columns if column not in allowed]:
        raise ColumnError(
            *(f"{path}: {spec.task_type} has no column {name!r}; {nearest(name, allowed)}" for name in unknown)
        )
    header, faults = [str(label) for label in frame.columns], list[str]()
    for column in sorted({*needed, *spec.columns}, key=allowed.index):
        name = spec.columns.get(column, column)
        if name not in frame:
            named = f"{name!r} ('train' or 'test' in each row)" if column == "split" else repr(name)
            fault = f"{path}: no column {named}, which {spec.task_type} needs"
            if len(header) == 1 and any(mark in header[0] for mark in (";", "\t", ",")):
                way = "the file has a single column: separate columns by commas in a .csv, by tabs in a .tsv"
                raise ColumnError(f"{fault}; {way}")
            faults.append(f"{fault}; {nearest(name, header)} (`columns` maps names)")
    if faults:
        raise ColumnError(*faults)
    chosen = [column for column in dict.fromkeys(allowed) if spec.columns.get(column, column) in frame]
    return pd.DataFrame({column: frame[spec.columns.get(column, column)] for column in chosen})


def _checked(frame: pd.DataFrame, spec: DatasetSpec, path: Path) -> pd.DataFrame:
    """Return the frame with numbers as numbers; refuse empty texts, scores that are no numbers, and empty lists."""
    lists = (*SUMMARIES, *CANDIDATES)
    columns = frame.columns.intersection([*TRANSFORMED[spec.task_type], *PAIRS, *CANDIDATES, *INSTRUCTIONS])
    listed = tables.LISTS.get(spec.task_type, ("",))[0]
    for name in frame.columns.intersection([*lists, listed]):
        frame = frame.assign(**{name: frame[name].map(tables.unpacked_list)})
    read_each(columns.difference(list(lists)), lambda name: tables.refuse_lists(frame[name], path))

    def check(cell: tuple[str, Any, Any]) -> None:
        column, row, value = cell
        (tables.texts_of if column in lists else tables.refuse_empty)(value, path, row, column)

    read_each(((str(column), *cell) for column in columns for cell in frame[column].items()), check)
    if spec.task_type in ("classification", "clustering"):
        read_each(frame["label"].items(), lambda cell: tables.label_of(cell[1], path, cell[0]))
    if spec.task_type in ("sts", "str"):
        frame = frame.assign(score=tables.numbers(frame["score"], path))
    if spec.task_type == "pair_classification":
        labels = tables.numbers(
            frame["label"].map(lambda label: int(label) if isinstance(label, bool) else label), path
        )
        if not labels.isin([0, 1]).all():
            raise DataError(f"{path}: column 'label' holds values other than 0 and 1; pair_classification needs these")
        frame = frame.assign(label=labels.astype(int))
    if spec.task_type in tables.LISTS:
        column, checked = tables.LISTS[spec.task_type]
        frame = frame.assign(**{column: checked(frame, path)})
    if "language" in frame:
        frame = frame.assign(language=languages_of_rows(frame["language"], spec.task_type, path, spec.code))
    return frame


def languages_of_rows(column: pd.Series[Any], task: TaskType, path: Path, usual: str) -> pd.Series[Any]:
    """Return the code, or pair of codes, of each row; `usual` for an empty cell.

    Raises DataError with the first row of each value that is no language.
    """
    values = column.where(column.notna(), "").astype(str).str.strip()

    def code(row: Any, value: str) -> tuple[str, str]:
        try:
            language = pair_code(value) if value else usual
            refuse_pair(task, language)
        except (StudyError, ValueError) as error:
            where = tables.row_of(path, row) if isinstance(row, int) else f"{path}: row {row!r}"
            raise DataError(f"{where}, field {column.name or 'language'!r}: {error}") from None
        return value, language

    codes = dict(read_each(values.drop_duplicates().items(), lambda cell: code(*cell)))
    return values.map(codes).astype(object)
