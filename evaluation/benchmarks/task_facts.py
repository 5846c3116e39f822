"""Facts about tasks: type, languages, texts, characters; from mteb, or from a user's table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evaluation.score_frames import numbers_of, read_table
from generation.datasets.tables import row_of
from plumbline.errors import DataError, PlumblineError, StudyError, nearest
from plumbline.languages import iso639_3
from plumbline.statistics.estimates import Floats

UNITS = ("tasks", "texts", "characters", "minutes")
COLUMNS = ("type", "languages", "texts", "characters", "seconds")
NUMBERS = ("texts", "characters", "seconds")


def of_table(path: Path) -> pd.DataFrame:
    """Read a user's table: a row a task, `task` and any of type, languages (by spaces), texts, characters, seconds."""
    frame = read_table(path)
    if "task" not in frame:
        raise DataError(f"{path}: no column 'task'; the table has {', '.join(map(str, frame.columns))}")
    names = frame["task"].astype(str)
    if names.duplicated().any():
        raise DataError(f"{path}: task {names[names.duplicated()].iloc[0]!r} is in two rows; keep one")
    facts = pd.DataFrame(index=pd.Index(names, name="task"))
    for name in ("type", "languages"):
        if name in frame:
            cells = frame[name].where(frame[name].notna(), "").astype(str)
            facts[name] = cells.where(cells != "").to_list()
    if "languages" in facts:
        try:
            facts["languages"] = facts["languages"].map(
                lambda cell: tuple(dict.fromkeys(map(code, cell.split()))), na_action="ignore"
            )
        except PlumblineError as error:
            raise DataError(f"{path}, column 'languages': {error}") from None
    for name in NUMBERS:
        if name in frame:
            facts[name] = numbers_of(frame, name, path)
            if (below := facts[name].to_numpy() < 0).any():
                raise DataError(f"{row_of(path, frame.index[int(below.argmax())])}, field {name!r} is below 0")
    return facts


def of_mteb(tasks: Iterable[Any]) -> pd.DataFrame:
    """Return metadata and statistics of mteb's task objects, for the subsets and splits that each will score."""
    rows = {}
    for task in tasks:
        texts, characters = _sizes(task)
        rows[task.metadata.name] = {
            "type": task.metadata.type,
            "languages": tuple(sorted({language.split("-")[0] for language in task.languages})),
            "texts": texts,
            "characters": characters,
        }
    frame_of_tasks = pd.DataFrame.from_dict(rows, orient="index", columns=["type", "languages", "texts", "characters"])
    return frame_of_tasks.rename_axis("task")


def _sizes(task: Any) -> tuple[float, float]:
    """Return the scored texts and characters; NaN if mteb's statistics lack them."""
    statistics = task.metadata.descriptive_stats
    texts = characters = 0.0
    for split in task.eval_splits:
        of_split = (statistics or {}).get(split)
        if of_split is None:
            return float("nan"), float("nan")
        parts = of_split.get("hf_subset_descriptive_stats") or {}
        subsets = [parts[name] for name in task.hf_subsets if name in parts]
        if len(subsets) < len(
            task.hf_subsets
        ):  # only statistics of the whole exist, which apply unless the task was narrowed
            if set(task.hf_subsets) != set(task.metadata.hf_subsets):
                return float("nan"), float("nan")
            subsets = [of_split]
        for part in subsets:
            part_characters = _characters(part)
            texts += part["num_samples"]
            characters += part_characters
    return texts, characters


def _characters(part: dict[str, Any]) -> float:
    """Return the characters of all texts of a part: as counted, or summed over its columns."""
    if part.get("number_of_characters") is not None:  # not counted of images
        return float(part["number_of_characters"])
    lengths = [
        part["total_text_length"] for part in part.values() if isinstance(part, dict) and "total_text_length" in part
    ]
    return float(sum(lengths)) if lengths else float("nan")


def merged(names: Sequence[str], mteb: pd.DataFrame, own_facts: pd.DataFrame | None) -> pd.DataFrame:
    """Return the facts of these tasks; the user's table overrides mteb."""
    merged_facts = mteb if own_facts is None else own_facts.astype(object).combine_first(mteb.astype(object))
    merged_facts = merged_facts.reindex(index=pd.Index(names, name="task"), columns=list(COLUMNS))
    for name in NUMBERS:
        merged_facts[name] = pd.to_numeric(merged_facts[name])
    untyped = [name for name in names if not isinstance(merged_facts["type"][name], str)]
    if untyped:
        raise DataError(
            f"task {untyped[0]!r}{_and_others(untyped)} is not a task of mteb and has no type; list it in a table with"
            " the columns task, type, languages, and name the table with --tasks FILE"
        )
    merged_facts["languages"] = [cell if isinstance(cell, tuple) else () for cell in merged_facts["languages"]]
    return merged_facts


def costs(facts: pd.DataFrame, unit: str) -> Floats:
    """Return the cost of each task in a unit. Raises DataError if one is unknown."""
    if unit == "tasks":
        return np.ones(len(facts))
    column = "seconds" if unit == "minutes" else unit
    amounts = facts[column].to_numpy(np.float64)
    if np.isnan(amounts).any():
        unknown = list(facts.index[np.isnan(amounts)])
        reason = "mteb does not measure time" if unit == "minutes" else "mteb's statistics lack them"
        raise DataError(
            f"--budget N {unit}: the {column} of task {unknown[0]!r}{_and_others(unknown)} are unknown"
            f" ({reason}); list them in a table with the columns task, {column}, and name the table with --tasks FILE"
        )
    return amounts / 60 if unit == "minutes" else amounts


def amount(cost: float) -> str:
    """Return a cost for people: 1,613,630,000 and 12.5."""
    return f"{cost:,.0f}" if cost >= 1000 or float(cost).is_integer() else f"{cost:.4g}"


def with_languages(facts: pd.DataFrame, languages: Sequence[str]) -> pd.DataFrame:
    """Return the tasks in any of these languages. Raises StudyError for a language without a task."""
    spoken_anywhere = sorted({language for spoken in facts["languages"] for language in spoken})
    for language in languages:
        if language not in spoken_anywhere:
            raise StudyError(f"--languages: no task is in {language!r}; {nearest(language, spoken_anywhere)[:400]}")
    return facts[[bool(set(languages) & set(spoken)) for spoken in facts["languages"]]]


def code(value: str) -> str:
    """Return a language as mteb names it: three letters of ISO 639-3."""
    return iso639_3(value.split("_", maxsplit=1)[0])


def _and_others(names: Sequence[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""
