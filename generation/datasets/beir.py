"""A folder in BEIR's layout: corpus.jsonl, queries.jsonl and qrels/test.tsv."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from generation.datasets.table_files import json_rows, refuse_empty, row_number
from plumbline.errors import DataError
from plumbline.reading import text_lines

_WHOLE = re.compile(r"-?[0-9]{1,9}")


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
    for number, query, passage, relevance in _judgements(judged):
        where = f"{judged}: row {number}"
        if query not in queries or passage not in corpus:
            name, file = (query, "queries.jsonl") if query not in queries else (passage, "corpus.jsonl")
            raise DataError(f"{where}: {name[:60]!r} is not in {file}; correct the id, or add the text")
        if not _WHOLE.fullmatch(relevance):
            raise DataError(f"{where}: the relevance {relevance[:60]!r} is not a whole number")
        before = qrels.setdefault(query, {}).setdefault(passage, int(relevance))
        if before != int(relevance):
            raise DataError(f"{where}: {query!r} and {passage!r} have relevance {relevance} here, {before} further up;"
                            " keep one")  # fmt: skip
    if qrels and not any(value > 0 for own in qrels.values() for value in own.values()):
        raise DataError(f"{judged}: no passage is relevant to any query (every relevance is 0); nothing could be found")
    queries = {query: text for query, text in queries.items() if query in qrels}
    if not queries:
        raise DataError(f"{judged}: no query has a relevance judgement")
    return Beir(queries, query_languages, corpus, passage_languages, qrels)


def _texts(file: Path, language: str) -> tuple[dict[str, str], dict[str, str]]:
    """Texts and languages of a file by id."""
    texts: dict[str, str] = {}
    languages: dict[str, str] = {}
    for number, item in enumerate(json_rows(file)):
        if "_id" not in item or "text" not in item:
            raise DataError(f"{file}: row {row_number(number)} lacks '_id' or 'text'")
        refuse_empty(item["text"], file, number, "text")
        for name in ("title", language):
            if not isinstance(item.get(name) or "", str):
                raise DataError(f"{file}: row {row_number(number)}, field {name!r} is not text: {item[name]!r:.60}")
        title = (item.get("title") or "").strip()
        if isinstance(item["_id"], bool) or not isinstance(item["_id"], (str, int)) or item["_id"] == "":
            raise DataError(
                f"{file}: row {row_number(number)}, field '_id' is not an id: {item['_id']!r:.60}; give it one"
            )
        key = str(item["_id"])
        if key in texts:
            raise DataError(f"{file}: row {row_number(number)}: the id {item['_id']!r} appears twice")
        texts[key] = f"{title} {item['text']}".strip()
        if item.get(language):
            languages[key] = str(item[language])
    return texts, languages


def _judgements(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Number, query id, passage id and relevance of each row after the header."""
    rows = (line.rstrip("\r") for line in text_lines(path))
    if _WHOLE.fullmatch(next(rows, "").split("\t")[-1]):
        raise DataError(f"{path}: the first line is a judgement, not the header query-id, corpus-id, score; add one")
    for number, row in enumerate(filter(None, rows), start=1):
        cells = row.split("\t")
        if len(cells) < 3:
            raise DataError(f"{path}: row {number} has not query id, passage id and relevance, with tabs between")
        yield number, cells[0], cells[1], cells[2]
