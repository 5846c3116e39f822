"""Scores by prompt: the long table's columns and checked reader, and mteb's result folders.

results/MODEL/REVISION/TASK.json                        the model's own prompt
results/MODEL/REVISION/experiments/NAME/TASK.json       with what NAME's model_meta.json sets
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd
from pydantic import Field

from evaluation.benchmarks.scores import main_score, mteb_tasks, slash
from evaluation.benchmarks.task_facts import numbers_of, read_table
from generation.datasets.tables import row_number
from plumbline.errors import DataError, nearest
from plumbline.identity import identity
from plumbline.manifest import StudyRecords
from plumbline.reading import read_json
from plumbline.records import Number, Record
from plumbline.words import count

SCORES = "instructions/scores.parquet"  # in a study's folder
DEFAULT, NONE, REPORTED = "default", "none", "reported"
NO_WORDINGS = (DEFAULT, NONE, REPORTED)  # prompt ids that are not wordings
ACCEPTABLE = "acceptable"
Label = Literal["acceptable", "irrelevant", "unnatural", ""]
_MOST_SEED = 10**15
_ROUNDING = 1e-9  # tolerance of the scale's limits
_OTHER_NAMES = {"model_revision": "revision", "prompt_source": "source", "prompt": "text"}


class PromptScore(Record):
    """One model's score on one part of a task under one prompt (`instructions/scores.parquet`)."""

    KEY = ("run", "model", "revision", "task", "split", "subset", "prompt_id", "seed")
    NEEDED: ClassVar[tuple[str, ...]] = ("model", "task", "prompt_id", "score")
    model: str = Field(description="the embedding model")
    revision: str = Field(default="", description="the model's revision")
    task: str = Field(description="the task, by mteb's name if it has one")
    task_type: str = Field(default="", description="the task's type; tasks of one type may share prompts")
    split: str = Field(default="", description="the split that was scored")
    subset: str = Field(default="", description="the subset that was scored; empty for the mean over several")
    metric: str = Field(default="", description="mteb's name of the main metric")
    prompt_id: str = Field(
        description="default: the model's own prompt; none: no prompt at all; reported: the published score of the"
        " default; else the wording's id"
    )
    text: str = Field(default="", description="the exact prompt; empty if there was none, or if the table lacks it")
    effective: str = Field(default="", description="the text before each input, with the model's template applied")
    source: Literal["machine", "human", ""] = Field(
        default="", description="author of the wording; empty for the model's own prompt"
    )
    label: Label = Field(default="", description="people's label; empty if nobody labelled it")
    simulated: bool = Field(default=False, description="true if a program labelled it instead of people")
    score: Number = Field(description="the metric's value, from -1 or 0 to 1; NaN if undefined")
    reason: str = Field(default="", description="why there is no score; empty otherwise")
    mteb_version: str = Field(default="", description="version of mteb that computed the score")
    dataset_revision: str = Field(default="", description="the data set's revision")
    seed: int = Field(default=0, description="seed of the evaluation's random draws, the same for all prompts of a run")
    run: str = Field(
        default="",
        description="hash that identifies the run; the model's own prompt is compared only with wordings of the same"
        " run",
    )


def read_scores(path: Path) -> pd.DataFrame:
    """Read the table of `PromptScore` in a file (CSV, TSV, JSONL, Parquet). Raises DataError as `checked_scores`."""
    return checked_scores(read_table(path), path)


def study_scores(records: StudyRecords) -> pd.DataFrame:
    """Return a study's scores by prompt. Raises DataError before its run."""
    frame = records.noted.frame(SCORES, PromptScore, records.study.command("sensitivity"))
    return checked_scores(frame, records.study.folder / SCORES)


def checked_scores(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return a long table with all columns of `PromptScore` in order and type; `path` names it in errors.

    model, task, score and prompt_id (or the prompt itself: prompt or text) are required; other missing columns are
    empty. Unknown columns are dropped. Raises DataError for cells that are not scores, unknown sources and labels,
    duplicate rows, and a prompt id with two texts. A row of the source `default` is one of the default.
    """
    frame = _named(frame, path).reset_index(drop=True)
    fields = PromptScore.model_fields
    columns: dict[str, Any] = {
        name: _words(frame[name]) if name in frame else field.default for name, field in fields.items()
    }
    scores = columns["score"] = numbers_of(frame, "score", path)
    _refuse(
        np.abs(scores) > 1 + _ROUNDING, path,
        lambda row: f": {scores[row]:g} is not between -1 and 1; divide percentages by 100",
    )  # fmt: skip
    if "seed" in frame:
        seeds = np.nan_to_num(numbers_of(frame, "seed", path))
        faulty = (seeds != np.floor(seeds)) | (np.abs(seeds) > _MOST_SEED)
        _refuse(faulty, path, lambda row: f": seed {seeds[row]:g} is not a whole number of at most 15 digits")
        columns["seed"] = seeds.astype(np.int64)
    if "simulated" in frame:
        truths = columns["simulated"].str.strip().str.lower()
        _refuse_unknown(truths, ("true", "1", "yes", "false", "0", "no", ""), path)
        columns["simulated"] = truths.isin(("true", "1", "yes"))
    checked = pd.DataFrame(columns, index=frame.index)
    defaults = checked["source"].isin(NO_WORDINGS)  # other tables mark non-wordings in this way
    checked.loc[defaults & is_wording(checked["prompt_id"]), "prompt_id"] = DEFAULT
    checked.loc[defaults, "source"] = ""
    for name in ("source", "label"):
        _refuse_unknown(checked[name], get_args(fields[name].annotation), path)
    for name in ("model", "task", "prompt_id"):
        _refuse(checked[name].str.strip() == "", path, f" has no {name}; fill it in")
    ids = checked["prompt_id"]
    names = ids.str.strip().str.lower()
    _refuse(  # `Default` and the like would count as wordings
        names.isin(NO_WORDINGS) & (names != ids), path,
        lambda row: f": prompt_id {ids[row]!r} differs from {names[row]!r} only in case or blanks; write"
        f" {names[row]!r}, or give the wording another id",
    )  # fmt: skip
    _refuse_twice(checked, path)
    _refuse_two_texts(checked, path)
    return checked


def _refuse(faulty: Any, path: Path, reason: Callable[[int], str] | str) -> None:
    """Raise DataError for the first faulty row; `reason`, which may depend on its position, follows its number."""
    for row in np.flatnonzero(faulty)[:1].tolist():
        raise DataError(f"{path}: row {row_number(row)}{reason if isinstance(reason, str) else reason(row)}")


def _refuse_unknown(column: pd.Series, allowed: Sequence[str], path: Path) -> None:
    choices = [choice for choice in allowed if choice]
    _refuse(
        ~column.isin(allowed), path,
        lambda row: f": {column.name} {column[row]!r} is unknown; {nearest(column[row], choices)}",
    )  # fmt: skip


def _named(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the table with our names of columns."""
    frame = frame.rename(columns={old: new for old, new in _OTHER_NAMES.items() if new not in frame})
    if "prompt_id" not in frame and "text" in frame:
        texts = _words(frame["text"])
        advice = "write `none` for no prompt, `default` for the model's own"
        _refuse(texts.str.strip() == "", path, f" has no prompt; {advice}")
        named = {text: text if text in NO_WORDINGS else identity("prompt-v1", text)[:12] for text in texts.unique()}
        frame = frame.assign(prompt_id=texts.map(named), text=texts.where(~texts.isin(NO_WORDINGS), ""))
    if missing := [name for name in PromptScore.NEEDED if name not in frame]:
        present = ", ".join(map(str, frame.columns))[:300]
        raise DataError(
            f"{path}: no column {missing[0]!r}; the table needs {', '.join(PromptScore.NEEDED)}, but has {present}"
        )
    if frame.empty:
        raise DataError(f"{path}: no rows")
    return frame


def _words(column: pd.Series) -> pd.Series:
    """Return a column of texts, with empty ones for missing cells."""
    codes, words = pd.factorize(column)  # few texts fill many rows; -1, the last, is a missing one
    texts = np.array([*map(str, words), ""], dtype=object)
    return pd.Series(texts[codes], index=column.index, name=column.name, dtype=object)


def _refuse_twice(frame: pd.DataFrame, path: Path) -> None:
    twice = frame.duplicated(list(PromptScore.KEY))
    if twice.any():
        row = frame.loc[twice].iloc[0]
        named = ", ".join(f"{name} {row[name]}" for name in PromptScore.KEY if row[name] not in ("", 0))
        raise DataError(f"{path}: two scores of {named}; keep one, or distinguish them by run, split, subset or seed")


def _refuse_two_texts(frame: pd.DataFrame, path: Path) -> None:
    """Raise DataError for a wording's id with two texts, sources or labels."""
    worded = frame.loc[~frame["prompt_id"].isin(NO_WORDINGS), ["task", "prompt_id", "text", "source", "label"]]
    once = worded.drop_duplicates()
    twice = once.duplicated(["task", "prompt_id"])
    if twice.any():
        row = once.loc[twice].iloc[0]
        of_prompt = once[(once["task"] == row["task"]) & (once["prompt_id"] == row["prompt_id"])]
        fact = next(name for name in ("text", "source", "label") if of_prompt[name].nunique() > 1)
        values = " and ".join(repr(text) for text in of_prompt[fact].unique()[:2])
        raise DataError(
            f"{path}: prompt {row['prompt_id']!r} of task {row['task']} has two {fact}s ({values}); give each its own"
            " id"
        )


def is_wording(prompt_ids: pd.Series) -> pd.Series:
    """Return which rows are wordings, and not the model's own prompt or none."""
    return ~prompt_ids.isin(NO_WORDINGS)


EXPERIMENTS = "experiments"
_SETTERS = ("model_prompts", "prompts_dict", "prompts")
#: Characters that mteb's names of experiments replace by one.
_LOST = re.compile(r'[<>:"|?*\\/]')


def of_folder(folder: Path, progress: Callable[[], object] = lambda: None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the long table (`PromptScore`) of a folder of mteb's result files, and notes.

    There is a row for each split and subset of each file, without averaging. The prompt is what an experiment sets for
    its task (`model_prompts`, `prompts_dict` or `prompts`, with keys as in mteb's models); experiments that set none
    for the task, or set more than a prompt, are left out and counted in a note. Raises DataError for a folder without
    such results, and for damaged files.
    """
    home = folder if (folder / "results").is_dir() else folder.parent
    if not (home / "results").is_dir():
        raise DataError(f"{folder}: no folder 'results' as in mteb's cache (results/MODEL/REVISION)")
    files = sorted(path for path in (home / "results").glob("*/*/*.json") if path.name != "model_meta.json")
    runs = sorted((home / "results").glob(f"*/*/{EXPERIMENTS}/*/*.json"))
    experiments = [path for path in runs if path.name != "model_meta.json"]
    if not experiments:
        raise DataError(f"{folder}: no results of experiments (results/MODEL/REVISION/{EXPERIMENTS}/NAME/TASK.json)")
    names = sorted({path.stem for path in (*files, *experiments)})
    about = {task.metadata.name: task.metadata for task in mteb_tasks(names)}
    rows, skipped = list[dict[str, Any]](), list[str]()
    for path in (*files, *experiments):
        is_default = path.parent.parent.name != EXPERIMENTS
        progress()
        meta = _json(file) if (file := path.parent / "model_meta.json").exists() else {}
        task_type = str(about[path.stem].type) if path.stem in about else ""
        prompt = "" if is_default else _prompt(meta.get("experiment_kwargs"), path.stem, task_type)
        if prompt is None:
            skipped.append(str(path.relative_to(home / "results")))
            continue
        rows += _rows(path, meta, DEFAULT if is_default else prompt, is_default, about.get(path.stem))
    if not rows:
        raise DataError(f"{folder}: none of its {len(experiments)} experiments sets a prompt for its task")
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
                row = {"split": split, "subset": str(subset["hf_subset"]), "score": main_score(subset, str(path))}
                yield shared | row | {"mteb_version": version}
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} is not an mteb result ({type(error).__name__}: {error}); run that task again"
        ) from None


def _prompt(kwargs: Any, task: str, task_type: str) -> str | None:
    """Return the prompt that an experiment sets for a task; None if it sets none, or more than a prompt."""
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


def _json(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise DataError(f"{path} was deleted while it was read; run again") from None
    if not isinstance(content, dict):
        raise DataError(f"{path} is not an mteb result; run that task again")
    return content


def _notes(rows: list[dict[str, Any]], skipped: list[str]) -> Iterator[str]:
    if skipped:
        yield (
            f"left out: {count(len(skipped), 'result')} of experiments that set no prompt for their task, or set more"
            f" than a prompt ({skipped[0]}{', ...' if len(skipped) > 1 else ''})"
        )
    texts = {row["text"] for row in rows if row.get("text")}
    if mixed := sorted(text for text in texts if _LOST.search(text)):
        yield (
            f"{len(mixed)} of {len(texts)} prompts {'has' if len(mixed) == 1 else 'have'} characters that mteb's folder"
            f" names replace, as in {json.dumps(mixed[0], ensure_ascii=False)}: two prompts that differ only in"
            " such characters share a folder, so one may have received the other prompt's scores"
        )
