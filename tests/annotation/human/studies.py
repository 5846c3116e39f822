"""Small studies of tasks that people do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from plumbline.study import Study, load_study

WORDS = ("tea", "sea", "bee", "oak")
CLASSES = [
    {"text": f"Number {i} is about {WORDS[i % 4]}.", "label": WORDS[i % 4], "split": "train" if i % 5 == 4 else "test"}
    for i in range(40)
]
#: More labels than a crowd's page has buttons for.
INTENTS = [
    {"text": f"I want number {i}.", "label": f"want {i}", "split": split}
    for i in range(30)
    for split in ("test", "train")
]
PAIRS = [{"sentence1": f"One {i}.", "sentence2": f"Two {i}.", "score": i % 6, "label": i % 2} for i in range(12)]
SEARCH = [
    {"query": f"Where is {i}?", "positive": [f"{i} is here."], "negative": [f"{i} is not there {k}." for k in range(5)]}
    for i in range(6)
]
LONG_SEARCH = [{**row, "negative": [f"{row['query']} No, {k}." for k in range(12)]} for row in SEARCH[:2]]
SEVERAL = [
    {"text": f"Text {i}.", "label": [word for k, word in enumerate(WORDS) if i >> k & 1], "split": split}
    for i in range(10)
    for split in ("test", "train")
]
BITEXT = [{"sentence1": f"Sentence {i}.", "sentence2": f"Satz {i}."} for i in range(8)]
SUMMARIES = [
    {"human_summaries": [f"Storm {i}."], "machine_summaries": [f"A {i}.", f"B {i}.", f"C {i}."], "relevance": [5, 1, 3]}
    for i in range(4)
]
DATA: Mapping[str, tuple[str, Iterable[Mapping[str, Any]]]] = {
    "classes": ("classification", CLASSES),
    "intents": ("classification", INTENTS),
    "alike": ("sts", PAIRS),
    "near": ("str", PAIRS),
    "same": ("pair_classification", PAIRS),
    "groups": ("clustering", [{"text": one["text"], "label": one["label"]} for one in CLASSES]),
    "search": ("reranking", SEARCH),
    "marks": ("reranking", SEARCH),
    "order": ("reranking", SEARCH),
    "long": ("reranking", LONG_SEARCH),
    "several": ("multilabel_classification", SEVERAL),
    "bitext": ("bitext_mining", BITEXT),
    "summaries": ("summarisation", SUMMARIES),
}


def study_of(folder: Path, *tasks: Mapping[str, Any], data: Mapping[str, Any] | None = None, **more: Any) -> Study:
    """A study of some tasks; `data` has other rows for data sets, or other entries of them."""
    given = data or {}
    used = dict.fromkeys(str(task["dataset"]) for task in tasks)
    datasets = []
    for name in used:
        kind, rows = DATA[name]
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in given.get(name, rows)))
        language = "en-de" if kind == "bitext_mining" else "en"
        datasets.append({"name": name, "task": kind, "path": f"{name}.jsonl", "language": language})
    raters = [{"name": "ada"}, {"name": "bob"}]
    content = {
        "name": "people", "subject": {"kind": "human", "tasks": list(tasks)}, "datasets": datasets,
        "raters": {"simulated": raters}, **more,
    }  # fmt: skip
    (folder / "people.yaml").write_text(yaml.safe_dump(content))
    return load_study(folder / "people.yaml", folder / "exports")
