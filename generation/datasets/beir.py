"""A folder in BEIR's layout: corpus.jsonl, queries.jsonl and qrels/test.tsv."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from generation.datasets.table_files import json_lines, refuse_empty
from generation.exceptions import DataError


@dataclass(frozen=True)
class Beir:
    """What stands in the folder: texts and languages (where there are any) by id, and relevance by query and passage.

    Queries without a judgement are left out. A passage is its title, a space and its text.
    """

    queries: dict[str, str]
    query_languages: dict[str, str]
    corpus: dict[str, str]
    passage_languages: dict[str, str]
    qrels: dict[str, dict[str, int]]


def read_beir(folder: Path, language: str) -> Beir:
    """Read a folder; `language` is the key of a text's own language. Raises DataError with file and row."""
    corpus, passage_languages = _texts(folder / "corpus.jsonl", language)
    queries, query_languages = _texts(folder / "queries.jsonl", language)
    judged = folder / "qrels" / "test.tsv"
    if not judged.exists():
        raise DataError(f"no file {judged}; retrieval needs its relevance judgements")
    qrels: dict[str, dict[str, int]] = {}
    for number, (query, passage, relevance) in enumerate(_judgements(judged), start=1):
        if query not in queries or passage not in corpus:
            raise DataError(f"{judged}: {query!r} or {passage!r} stands neither in queries.jsonl nor in corpus.jsonl")
        if not relevance.lstrip("-").isdecimal():
            raise DataError(f"{judged}: row {number}: the relevance {relevance!r} is not a whole number")
        qrels.setdefault(query, {})[passage] = int(relevance)
    queries = {query: text for query, text in queries.items() if query in qrels}
    if not queries:
        raise DataError(f"{judged}: no query has a relevance judgement")
    return Beir(queries, query_languages, corpus, passage_languages, qrels)


def _texts(file: Path, language: str) -> tuple[dict[str, str], dict[str, str]]:
    """Texts and languages of a file by id."""
    texts: dict[str, str] = {}
    languages: dict[str, str] = {}
    for number, item in enumerate(json_lines(file)):
        if "_id" not in item or "text" not in item:
            raise DataError(f"{file}: row {number + 1} lacks '_id' or 'text'")
        refuse_empty(item["text"], file, number, "text")
        title = str(item.get("title") or "").strip()
        key = str(item["_id"])
        if key in texts:
            raise DataError(f"{file}: row {number + 1}: the id {item['_id']!r} stands there twice")
        texts[key] = f"{title} {item['text']}".strip()
        if item.get(language):
            languages[key] = str(item[language])
    return texts, languages


def _judgements(path: Path) -> Iterator[tuple[str, str, str]]:
    """Query id, passage id and relevance of each row after the header."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error}") from None
    for number, row in enumerate(lines[1:], start=1):
        cells = row.rstrip("\r").split("\t")
        if cells == [""]:
            continue
        if len(cells) < 3:
            raise DataError(f"{path}: row {number} has not query id, passage id and relevance, with tabs between")
        yield cells[0], cells[1], cells[2]
