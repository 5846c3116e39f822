"""Scores by prompt from a folder of mteb's results: the default's, and those of its `experiments/`, by the prompt set.

results/MODEL/REVISION/TASK.json                        the model's own prompt
results/MODEL/REVISION/experiments/NAME/TASK.json       with what NAME's model_meta.json sets
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from evaluation.benchmarks.sources import mteb_tasks, slash
from evaluation.instructions.scores import DEFAULT, NONE, checked_scores
from plumbline.errors import DataError
from plumbline.identity import identity
from plumbline.reading import read_json

EXPERIMENTS = "experiments"
_SETTERS = ("model_prompts", "prompts_dict", "prompts")
#: Signs that mteb's names of experiments have one and the same sign for.
_LOST = re.compile(r'[<>:"|?*\\/]')


def folder_name(text: str) -> str:
    """A prompt as names of mteb's experiments have it: prompts of one such name share a folder, and its scores."""
    return _LOST.sub("_", text)


def of_folder(folder: Path, progress: Callable[[], object] = lambda: None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The long table (`evaluation.instructions.scores.PromptScore`) of a folder of mteb's result files, and notes.

    A row for each split and subset of each file, nothing averaged. What an experiment sets for its task is the prompt
    (`model_prompts`, `prompts_dict` or `prompts`; keys are looked up as the classes of mteb's models do); an experiment
    that sets none for the task, or sets something else besides, is left out and counted in a note. Raises DataError
    for a folder without such results, and for damaged files.
    """
    home = folder if (folder / "results").is_dir() else folder.parent
    if not (home / "results").is_dir():
        raise DataError(f"{folder}: no folder 'results' in it, as mteb's cache has one (results/MODEL/REVISION)")
    files = sorted(path for path in (home / "results").glob("*/*/*.json") if path.name != "model_meta.json")
    runs = sorted((home / "results").glob(f"*/*/{EXPERIMENTS}/*/*.json"))
    experiments = [path for path in runs if path.name != "model_meta.json"]
    if not experiments:
        raise DataError(
            f"{folder}: no result of an experiment in it (results/MODEL/REVISION/{EXPERIMENTS}/NAME/TASK.json)"
        )
    names = sorted({path.stem for path in (*files, *experiments)})
    about = {task.metadata.name: task.metadata for task in mteb_tasks(names)}
    rows, skipped = list[dict[str, Any]](), list[str]()
    for path in (*files, *experiments):
        is_default = path.parent.parent.name != EXPERIMENTS
        progress()
        meta = _meta(path.parent)
        prompt = "" if is_default else _prompt(meta.get("experiment_kwargs"), path.stem, _type(about, path.stem))
        if prompt is None:
            skipped.append(str(path.relative_to(home / "results")))
            continue
        rows += _rows(path, meta, DEFAULT if is_default else prompt, is_default, about.get(path.stem))
    if not rows:
        raise DataError(f"{folder}: none of {len(experiments)} results of experiments sets a prompt for its task")
    return checked_scores(pd.DataFrame(rows), folder), tuple(_notes(rows, skipped))


def _rows(path: Path, meta: Mapping[str, Any], prompt: str, is_default: bool, about: Any) -> Iterator[dict[str, Any]]:
    result = _json(path)
    model, revision = path.parts[-3:-1] if is_default else path.parts[-5:-3]
    if is_default:
        named = {"prompt_id": DEFAULT, "text": ""}
    else:
        named = {"prompt_id": identity("prompt-v1", prompt)[:12], "text": prompt} if prompt else {"prompt_id": NONE}
    shared = {
        "model": str(meta.get("name") or slash(model)), "revision": revision, "task": path.stem, **named,
        "task_type": about.type if about else "", "metric": about.main_score if about else "",
        "dataset_revision": str(result.get("dataset_revision") or ""),
    }  # fmt: skip
    try:
        for split, subsets in result["scores"].items():
            for subset in subsets:
                version = str(subset.get("mteb_version") or result.get("mteb_version") or "")
                row = {"split": split, "subset": str(subset["hf_subset"]), "score": subset["main_score"]}
                yield shared | row | {"mteb_version": version}
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: no result of mteb's ({type(error).__name__}: {error}); run that task again") from None


def _prompt(kwargs: Any, task: str, task_type: str) -> str | None:
    """The prompt that an experiment sets for a task; None where it sets none, or something else besides."""
    if not isinstance(kwargs, Mapping) or set(kwargs) - set(_SETTERS) or len(kwargs) != 1:
        return None
    (value,) = kwargs.values()
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        return None
    for key in (f"{task}-query", task, f"{task_type}-query", task_type, "query"):
        prompt = value.get(key)
        prompt = prompt.get("query") if isinstance(prompt, Mapping) else prompt
        if isinstance(prompt, str):
            return prompt
    return None


def _meta(folder: Path) -> dict[str, Any]:
    path = folder / "model_meta.json"
    return _json(path) if path.exists() else {}


def _json(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise DataError(f"{path} is not there any more") from None
    if not isinstance(content, dict):
        raise DataError(f"{path}: no result of mteb's; run that task again")
    return content


def _type(about: Mapping[str, Any], task: str) -> str:
    return str(about[task].type) if task in about else ""


def _notes(rows: list[dict[str, Any]], skipped: list[str]) -> Iterator[str]:
    if skipped:
        yield (
            f"left out: {len(skipped)} results of experiments that set no prompt for their task, or something else"
            f" besides ({skipped[0]}{', ...' if len(skipped) > 1 else ''})"
        )
    texts = {row["text"] for row in rows if row.get("text")}
    if lost := sorted(text for text in texts if _LOST.search(text)):
        yield (
            f"{len(lost)} of {len(texts)} prompts hold signs that mteb's folders do not tell apart, as in"
            f" {json.dumps(lost[0], ensure_ascii=False)}: one that differs in these alone would have been given its"
            " scores from the cache, and none of its own"
        )
