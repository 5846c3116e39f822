"""Scores and facts of tasks as a command's options name them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
from tqdm import tqdm

from evaluation.benchmarks import sources, task_facts
from evaluation.benchmarks.matrix import Scores
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import DataError, PlumblineError, StudyError
from plumbline.study.places import place

Commands: TypeAlias = "argparse._SubParsersAction[cli.Parser]"


def add_command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], words: str, description: str, example: str
) -> argparse.ArgumentParser:
    """A command that `run` carries out; `words` stand in the list of all commands."""
    parser = commands.add_parser(
        name,
        help=words,
        description=description,
        epilog=as_called(example),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_source_options(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Where scores come from, and which of them are taken; `more` is what else may be named."""
    add = parser.add_argument
    what = "scores: a benchmark (from mteb's result cache), a folder of mteb's result files, or a table"
    add("--from", dest="source", type=cli.no_address, required=True, metavar="WHAT", help=what + more)
    add("--benchmark", default="", metavar="NAME", help="with a folder or a table: take the tasks of this benchmark")
    add(
        "--languages", type=_list, default=(), metavar="CODES", help="tasks and subsets in these alone, such as dan,swe"
    )
    add(
        "--tasks",
        type=cli.no_address,
        metavar="FILE",
        help="a table: task, and type, languages, texts, characters or seconds",
    )


def add_run_options(parser: argparse.ArgumentParser, drawn: str, out: str) -> None:
    """The seed of what is `drawn`, and the folder for the files (`out`: what it is without the option)."""
    parser.add_argument("--seed", type=int, default=1337, metavar="N", help=f"of {drawn} (default: 1337)")
    parser.add_argument("--out", metavar="FOLDER", help=f"where the files go (default: {out})")


def out_of(options: argparse.Namespace, default: Path | str) -> Path:
    """The folder for the files. Raises StudyError where it is a file, and for a seed below 0."""
    if options.seed < 0:
        raise StudyError(f"--seed {options.seed}: give a whole number from 0 on")
    out = place(options.out, "--out") if options.out else Path(default) if isinstance(default, str) else default
    if out.exists() and not out.is_dir():
        raise StudyError(f"--out {out}: a file is there; name a folder")
    return out


def _list(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


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
    own_facts = task_facts.of_table(Path(options.tasks)) if options.tasks else None
    if path.suffix.lower() in _TABLES:
        scores = sources.of_table(path, options.benchmark)
        tasks = sources.mteb_tasks([str(name) for name in scores.frame])
        if options.benchmark:
            tasks = list(sources.benchmark(options.benchmark).tasks)
            scores = sources.as_asked(scores, tasks)
        if languages:
            note = "the table's scores are over all languages of a task, not over those asked for alone"
            scores = Scores(scores.frame, scores.families, scores.files, (*scores.notes, note), scores.omissions)
    else:
        scores, tasks = _results(path, options, languages)
    facts = task_facts.merged([str(name) for name in scores.frame], task_facts.of_mteb(tasks), own_facts)
    if languages:
        facts = task_facts.with_languages(facts, languages)
        scores = Scores(scores.frame[list(facts.index)], scores.families, scores.files, scores.notes, scores.omissions)
    return scores, facts, {task.metadata.name: task for task in tasks}


def _results(path: Path, options: argparse.Namespace, languages: tuple[str, ...]) -> tuple[Scores, list[Any]]:
    """Scores of mteb's result files, and the tasks that they are of."""
    if not path.is_dir() and ("/" in options.source or path.exists()):
        raise DataError(f"--from {path}: no folder and no table ({', '.join(_TABLES)})")
    folder = path if path.is_dir() else None
    name = options.benchmark if folder else options.source
    whole_benchmark = list(sources.benchmark(name).tasks) if name else sources.tasks_in(path)
    tasks = sources.narrowed(whole_benchmark, languages)
    if not tasks:
        raise StudyError(f"--languages {','.join(languages)}: no task of {name or path} is in any of them")
    with tqdm(desc="reading results", unit="file", delay=1, leave=False) as bar:
        return sources.of_results(folder, tasks, bar.update), tasks
