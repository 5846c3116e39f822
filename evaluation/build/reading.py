"""Scores and facts of tasks as a command's options name them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from evaluation.build import sources, task_facts
from evaluation.build.matrix import Scores
from plumbline.errors import DataError, PlumblineError, StudyError

_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def read(options: argparse.Namespace) -> tuple[Scores, pd.DataFrame, dict[str, Any]]:
    """Scores with their gaps, the facts of their tasks, and mteb's task objects by name.

    `options` are those of `add_source_options`; its languages become mteb's codes.
    """
    path = Path(options.source)
    try:
        languages = tuple(dict.fromkeys(map(task_facts.code, options.languages)))
    except PlumblineError as error:
        raise StudyError(f"--languages: {error}") from None
    options.languages = languages
    own = task_facts.of_table(Path(options.tasks)) if options.tasks else None
    if path.suffix.lower() in _TABLES:
        scores = sources.of_table(path, options.benchmark)
        known = sources.mteb_tasks([str(name) for name in scores.frame])
        if options.benchmark:
            known = list(sources.benchmark(options.benchmark).tasks)
            scores = sources.as_asked(scores, known)
        if languages:
            note = "the table's scores are over all languages of a task, not over those asked for alone"
            scores = Scores(scores.frame, scores.families, scores.files, (*scores.notes, note), scores.left)
    else:
        scores, known = _results(path, options, languages)
    facts = task_facts.merged([str(name) for name in scores.frame], task_facts.of_mteb(known), own)
    if languages:
        facts = task_facts.with_languages(facts, languages)
        scores = Scores(scores.frame[list(facts.index)], scores.families, scores.files, scores.notes, scores.left)
    return scores, facts, {task.metadata.name: task for task in known}


def _results(path: Path, options: argparse.Namespace, languages: tuple[str, ...]) -> tuple[Scores, list[Any]]:
    """Scores of mteb's result files, and the tasks that they are of."""
    if not path.is_dir() and ("/" in options.source or path.exists()):
        raise DataError(f"--from {path}: no folder and no table ({', '.join(_TABLES)})")
    folder = path if path.is_dir() else None
    name = options.benchmark if folder else options.source
    whole_benchmark = list(sources.benchmark(name).tasks) if name else sources.tasks_in(path)
    known = sources.narrowed(whole_benchmark, languages)
    if not known:
        raise StudyError(f"--languages {','.join(languages)}: no task of {name or path} is in any of them")
    with tqdm(desc="reading results", unit="file", delay=1, leave=False) as bar:
        return sources.of_results(folder, known, bar.update), known
