"""Tables as mteb takes them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plumbline.identity import identity

if TYPE_CHECKING:
    import pandas as pd


def in_memory(columns: Mapping[Any, Iterable[Any]]) -> Any:
    """A `datasets.Dataset` of these columns, in memory, whose fingerprint is a hash of its Arrow stream.

    `Dataset.from_dict` would pickle the whole table to draw one: for 50 rows that takes six times as long.
    """
    import pyarrow as pa  # noqa: PLC0415
    from datasets import Dataset  # noqa: PLC0415

    table = pa.table({name: list(column) for name, column in columns.items()})
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    fingerprint = hashlib.blake2b(stream.getvalue(), digest_size=8).hexdigest()
    return Dataset(table, fingerprint=fingerprint)


def search_data(frame: pd.DataFrame) -> dict[str, Any]:
    """Rows with a query and its positive and negative candidates, in the form that mteb 2 gives reranking.

    Rows that lack one or the other are left out, as mteb does.
    """
    queries: dict[str, str] = {}
    corpus: dict[str, str] = {}
    judged: dict[str, dict[str, int]] = {}
    for number, (query_text, right, wrong) in enumerate(
        zip(frame["query"], frame["positive"], frame["negative"], strict=True)
    ):
        if not len(right) or not len(wrong):
            continue
        query = f"q{number}"
        queries[query], judged[query] = query_text, {}
        texts = [*right, *wrong]
        for index, (passage, text) in enumerate(zip(passage_names(query, texts), texts, strict=True)):
            corpus[passage] = text
            judged[query][passage] = int(index < len(right))
    return {
        "queries": in_memory({"id": list(queries), "text": list(queries.values())}),
        "corpus": in_memory({"id": list(corpus), "text": list(corpus.values())}),
        "relevant_docs": judged,
        "top_ranked": {query: list(passages) for query, passages in judged.items()},
    }


def passage_names(query: str, texts: Sequence[str]) -> list[str]:
    """The ids of a query's own passages, relevant ones first; `query` is `q` and its row."""
    return [_passage(query, index, text) for index, text in enumerate(texts)]


def _passage(query: str, index: int, text: str) -> str:
    return f"{query}-{identity('passage-v1', text)[:12]}-{index}"


def instruction_data(frame: pd.DataFrame) -> dict[str, Any]:
    """Rows with a query, two instructions and candidates, in the form that mteb gives instruction reranking.

    Each query is asked twice, with `instruction` and with `changed_instruction`, which makes those positive passages
    irrelevant for which `changed` is true. Rows that have none of them are left out.
    """
    single = search_data(frame)
    queries: dict[str, list[str]] = {"id": [], "text": [], "instruction": []}
    judged: dict[str, dict[str, int]] = {}
    ranked: dict[str, list[str]] = {}
    changed: dict[str, list[str]] = {}
    for query, query_text in zip(single["queries"]["id"], single["queries"]["text"], strict=True):
        row = frame.iloc[int(query.removeprefix("q"))]
        relevance = single["relevant_docs"][query]
        lost = [
            _passage(query, index, text)
            for index, (text, changes) in enumerate(zip(row["positive"], row["changed"], strict=True))
            if changes
        ]
        if not lost:
            continue
        changed[query] = lost
        for version, instruction in (("og", row["instruction"]), ("changed", row["changed_instruction"])):
            name = f"{query}-{version}"
            for column, value in zip(queries, (name, query_text, instruction), strict=True):
                queries[column].append(value)
            judged[name] = {
                passage: 0 if version == "changed" and passage in lost else value
                for passage, value in relevance.items()
            }
            ranked[name] = list(relevance)
    return single | {
        "queries": in_memory(queries),
        "relevant_docs": judged,
        "top_ranked": ranked,
        "changed": changed,
    }
