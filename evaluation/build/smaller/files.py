"""The files of a smaller data set: the data, a task of mteb's, what a study says of it, scores, what was done."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.build.quality.contents import Contents, contents_of
from evaluation.build.smaller.draw import Smaller
from evaluation.build.smaller.holding import Holding
from evaluation.tasks.protocols import METRICS
from generation.datasets.dataset import Dataset
from plumbline.exhibits.csv import csv_bytes
from plumbline.exhibits.folder import write_files
from plumbline.identity import identity
from plumbline.languages import with_script

TASK, DATASET = "task.py", "dataset.yaml"


def write(folder: Path, smaller: Smaller, holds: Holding | None, about: Mapping[str, Any]) -> None:
    """Write all files, each atomically; those that were written before there go, and no others."""
    contents = contents_of(smaller.dataset)
    languages = _languages(smaller.dataset)
    data = _documents(contents) if smaller.dataset.task == "clustering" else _search(contents)
    name = f"{smaller.dataset.name}-small"
    files = {
        **{path: content.encode() for path, content in data.items()},
        TASK: _task(name, smaller, languages, identity("smaller-v1", sorted(data.items()))).encode(),
        DATASET: _study_lines(name, smaller.dataset, languages).encode(),
        "about.json": (json.dumps(_plain(about), indent=2, ensure_ascii=False) + "\n").encode(),
    }
    if holds is not None:
        files["scores.csv"] = csv_bytes(holds.scores)
    write_files(folder, files)


def _documents(contents: Contents) -> dict[str, str]:
    (part,) = contents.scored
    labels = [gold[0] if isinstance(gold, list) else gold for gold in part.gold]
    rows = [{"text": texts[0], "label": str(label)} for texts, label in zip(part.texts, labels, strict=True)]
    return {"data.jsonl": _lines(rows)}


def _search(contents: Contents) -> dict[str, str]:
    """BEIR's layout; a passage's title stands before its text, as models read it."""
    parts = {part.what: part for part in contents.scored}
    (search,) = contents.searches
    sides = {
        name: _lines(
            [{"_id": item, "text": texts[0]} for item, texts in zip(parts[name].items, parts[name].texts, strict=True)]
        )
        for name in ("queries", "passages")
    }
    judged = "".join(
        f"{query}\t{passage}\t{value}\n"
        for query in search.queries
        for passage, value in search.relevant[query].items()
        if passage in search.passages
    )
    return {
        "data/queries.jsonl": sides["queries"],
        "data/corpus.jsonl": sides["passages"],
        "data/qrels/test.tsv": f"query-id\tcorpus-id\tscore\n{judged}",
    }


def _lines(rows: list[dict[str, str]]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _languages(dataset: Dataset) -> list[str]:
    """The language of the texts (codes), or those of queries and passages; the first where there are several."""
    found = [next((text.language for text in dataset.texts()), "und")]
    if dataset.task == "retrieval":
        found += [one.language for one in dataset.passages_of()][:1]
    return list(dict.fromkeys(found))


def _study_lines(name: str, dataset: Dataset, languages: list[str]) -> str:
    path = "data.jsonl" if dataset.task == "clustering" else "data"
    return (
        "# Into a study, with `path` as it is seen from there:\n"
        f"datasets:\n  - {{name: {name}, task: {dataset.task}, path: {path}, language: {'-'.join(languages)}}}\n"
    )


def _task(name: str, smaller: Smaller, languages: list[str], revision: str) -> str:
    """A Python file with a task of mteb's; what it names stands in it as strings."""
    clustering = smaller.dataset.task == "clustering"
    kind, base, category = (
        ("Clustering", "AbsTaskClustering", "t2c") if clustering else ("Retrieval", "AbsTaskRetrieval", "t2t")
    )
    module = "clustering" if clustering else "retrieval"
    told = json.dumps(f"{smaller.dataset.name} made smaller: {'; '.join(smaller.how)}")
    return f'''"""A smaller data set as a task of mteb, made by `python -m evaluation.build shrink`.

`python task.py MODEL` runs it.
"""

import json
from pathlib import Path

import mteb
from datasets import Dataset, DatasetDict
from mteb.abstasks.{module} import {base}
from mteb.abstasks.task_metadata import TaskMetadata

HERE = Path(__file__).parent


def rows(name):
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").split("\\n") if line]


class Smaller({base}):
    metadata = TaskMetadata(
        name={json.dumps(name)},
        description={told},
        dataset={{"path": {json.dumps(f"local/{name}")}, "revision": {json.dumps(revision)}}},
        type="{kind}",
        category="{category}",
        eval_splits=["test"],
        eval_langs={json.dumps([with_script(code) for code in languages])},
        main_score="{METRICS[smaller.dataset.task]}",
    )
{_CLUSTERING if clustering else _RETRIEVAL}        self.data_loaded = True


TASK = Smaller()

if __name__ == "__main__":
    import sys

    print(mteb.evaluate(mteb.get_model(sys.argv[1]), TASK).to_dataframe())
'''


_CLUSTERING = """    input_column_name = "text"
    label_column_name = "label"
    max_fraction_of_documents_to_embed = None  # all of them: the 4% have been drawn

    def load_data(self, **_):
        self.dataset = DatasetDict({"test": Dataset.from_list(rows("data.jsonl"))})
"""
_RETRIEVAL = """
    def load_data(self, **_):
        judged = {}
        lines = (HERE / "data" / "qrels" / "test.tsv").read_text(encoding="utf-8").split("\\n")[1:]
        for query, passage, value in (line.split("\\t") for line in lines if line):
            judged.setdefault(query, {})[passage] = int(value)
        sides = [
            Dataset.from_list([{"id": row["_id"], "text": row["text"]} for row in rows(f"data/{side}.jsonl")])
            for side in ("queries", "corpus")
        ]
        split = {"queries": sides[0], "corpus": sides[1], "relevant_docs": judged, "top_ranked": None}
        self.dataset = {"default": {"test": split}}
"""


def _plain(value: Any) -> Any:
    """Undefined numbers are null."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
