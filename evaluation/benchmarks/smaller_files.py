"""`plumbline shrink`: write a smaller data set for studies, with its evidence."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from evaluation.benchmarks.checks import originals_of, refuse_unknown_data
from evaluation.benchmarks.contents import Contents, contents_of
from evaluation.benchmarks.score_checks import known_scores
from evaluation.benchmarks.selection_files import correlation
from evaluation.benchmarks.smaller import (
    BM25,
    Holding,
    Smaller,
    draw_documents,
    draw_queries,
    holding,
    pool,
    rankings,
    refuse_unfit,
    refuse_without_bm25,
    with_queries,
)
from evaluation.models.encoder import ModelHost
from evaluation.records import SCORES, EvaluationRecords
from evaluation.units import Model
from evaluation.work import quiet, versions
from generation.datasets.dataset import Dataset
from plumbline import cli
from plumbline.errors import StudyError
from plumbline.exhibits.table import Exhibit, cell, csv_bytes, json_file, numbers, write_files
from plumbline.study import Study
from plumbline.study.places import output_folder

_QUERIES, _DEPTH = 1000, 250  # MMTEB, 2.3.1
#: Options by type of data set.
_OF = {"clustering": ("documents", "draw"), "retrieval": ("queries", "depth", "pool")}


def shrink(options: argparse.Namespace) -> int:
    """Run `shrink`: make a smaller data set from a large one."""
    study = cli.study_of(options)
    refuse_unknown_data([options.task], study.datasets, study.file)
    if study.subject or not study.evaluation.models:
        raise StudyError(f"{study.file} has no `evaluation.models`, which judge the smaller data set; add them")
    out = output_folder(options.out, f"{options.task}-small")
    with quiet(study.datasets, study.evaluation.models):
        smaller, holds, pooled = _made(study, options)

    about = {
        "answer": answer(holds),
        "task": options.task,
        "whole": smaller.whole,
        "smaller": smaller.counts,
        "how": [*smaller.how],
        "pooled_by": pooled,
        "rho": dict(holds.rho),
        "tau": dict(holds.tau),
        "rests_on": {"data set": smaller.dataset.revision},
        "seed": options.seed,
        "versions": versions(),
    }
    write(out, smaller, holds, about)
    print(exhibit(smaller, holds).text("no model has a score on both"))
    print(f"-> {out}: {', '.join(sorted(path.name for path in out.iterdir()))}")
    return 0


def _made(study: Study, options: argparse.Namespace) -> tuple[Smaller, Holding, list[str]]:
    whole_data = tuple(spec for spec in study.datasets if spec.name == options.task)
    (unit,), host = originals_of(study.model_copy(update={"datasets": whole_data})), ModelHost.of(study)
    refuse_unfit(unit.dataset)
    for kind, names in _OF.items():
        if kind != unit.task and (named := [name for name in names if getattr(options, name)]):
            options_of_task = ", ".join(f"--{name}" for name in _OF[unit.task])
            raise StudyError(
                f"--{named[0]} works only for {kind}, but {options.task!r} is {unit.task}; use {options_of_task}"
            )
    pooled: list[str] = []
    if unit.task == "clustering":
        number = options.documents or int(0.04 * len(contents_of(unit.dataset).scored[0].items))
        smaller = draw_documents(unit.dataset, number, stratified=options.draw != "uniform", seed=options.seed)
    else:
        smaller, pooled = _pooled(host, unit.dataset, options)
    records = EvaluationRecords.open(study)
    scores = records.scores if records.has(SCORES) else pd.DataFrame()
    whole = known_scores(scores, unit, Model.all_of(host), study.evaluation.protocol)
    with tqdm(total=len(whole), desc="scoring", unit="model", delay=1, leave=False) as bar:
        return smaller, holding(host, smaller.dataset, whole, pooled, options.seed, bar.update), pooled


def _pooled(host: ModelHost, dataset: Dataset, options: argparse.Namespace) -> tuple[Smaller, list[str]]:
    bm25 = BM25 in options.pool
    if bm25:
        refuse_without_bm25()
    names = [name for name in options.pool if name != BM25]
    specs = host.chosen(names) if names or not bm25 else []
    queries, depth = draw_queries(dataset, options.queries or _QUERIES, options.seed), options.depth or _DEPTH
    drawn = with_queries(dataset, queries)
    by_model = {}
    with tqdm(total=len(specs) + bm25, desc="ranking", unit="model", delay=1, leave=False) as bar:
        for name, ranking in rankings(host, drawn, specs, depth, bm25=bm25):
            by_model[name] = ranking
            bar.update()
    return pool(dataset, queries, by_model, depth), list(by_model)


def answer(holds: Holding) -> str:
    """Return the answer in one sentence."""
    n = len(holds.scores)
    if math.isnan(holds.tau.value):
        why = holds.tau.reason if n else "no model of the study has a score on the whole data set; evaluate it first"
        return f"Whether the smaller data set ranks models like the whole one is unknown: {why}."
    tau, rho = map(correlation, (holds.tau, holds.rho))
    return f"Agreement between the rankings of {n} models on the smaller and the whole data set: tau {tau}, rho {rho}."


def exhibit(smaller: Smaller, holds: Holding) -> Exhibit:
    """Return the models' scores on the whole and the smaller data set."""
    columns = {
        "Model": "model",
        "Whole": numbers("whole", 4),
        "Smaller": numbers("smaller", 4),
        "In the pool": cell("in_pool", lambda pooled: "yes" if pooled else "no"),
    }
    return Exhibit.of("scores", answer(holds), holds.scores, columns, notes(smaller, holds))


def notes(smaller: Smaller, holds: Holding) -> Sequence[str]:
    """Return notes on the basis of the numbers."""
    lines = list(smaller.how)
    for name, estimate in (("rho", holds.rho), ("tau", holds.tau)):
        if math.isnan(estimate.low) and estimate.reason:
            lines.append(estimate.reason if estimate.reason.startswith(name) else f"{name}: {estimate.reason}")
    if len(holds.scores) and holds.scores["in_pool"].all():
        lines.append("every ranked model also helped to make the pool, so nothing is known about other models")
    return lines


def write(folder: Path, smaller: Smaller, holds: Holding, about: Mapping[str, Any]) -> None:
    """Write all files atomically; delete those of an earlier run, and no others."""
    contents = contents_of(smaller.dataset)
    languages = _languages(smaller.dataset)
    name, task = f"{smaller.dataset.name}-small", smaller.dataset.task
    data, path = (_documents(contents), "data.jsonl") if task == "clustering" else (_search(contents), "data")
    files = {
        **{file: content.encode() for file, content in data.items()},
        "dataset.yaml": (
            "# Copy this into a study, with `path` relative to the study file:\n"
            f"datasets:\n  - {{name: {name}, task: {task}, path: {path}, language: {'-'.join(languages)}}}\n"
        ).encode(),
        "scores.csv": csv_bytes(holds.scores),
        "about.json": json_file(about),
    }
    write_files(folder, files)


def _documents(contents: Contents) -> dict[str, str]:
    (part,) = contents.scored
    labels = [gold[0] if isinstance(gold, list) else gold for gold in part.gold]
    rows = [{"text": texts[0], "label": str(label)} for texts, label in zip(part.texts, labels, strict=True)]
    return {"data.jsonl": _lines(rows)}


def _search(contents: Contents) -> dict[str, str]:
    """Return the files in BEIR's layout; a passage's title comes before its text, as models read it.

    A study leaves a passage with a query's id out of its results. Unless the task does so too, queries get other ids.
    """
    parts = {part.what: part for part in contents.scored}
    (search,) = contents.searches
    before = ""
    while not search.ignores_own_id and search.passages.intersection(before + query for query in search.queries):
        before += "query-"
    sides = {
        name: _lines(
            [
                {"_id": prefix + item, "text": texts[0]}
                for item, texts in zip(parts[name].items, parts[name].texts, strict=True)
            ]
        )
        for name, prefix in (("queries", before), ("passages", ""))
    }
    judged = "".join(
        f"{before}{query}\t{passage}\t{value}\n"
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
    """Return the language of the texts (codes), or those of queries and passages; the first of several."""
    languages = [next((text.language for text in dataset.texts()), "und")]
    if dataset.task == "retrieval":
        languages += [passage.language for passage in dataset.passages_of()][:1]
    return list(dict.fromkeys(languages))
