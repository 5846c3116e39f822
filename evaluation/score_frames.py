"""Scores as one long frame: a row a model, task, split, subset and prompt; its checked reader, mteb's result folders.

results/MODEL/REVISION/TASK.json                        the model's own prompt
results/MODEL/REVISION/experiments/NAME/TASK.json       with what NAME's model_meta.json sets
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd
from pydantic import Field

from generation.datasets.tables import read_frame, row_of
from plumbline.errors import DataError, nearest
from plumbline.identity import identity
from plumbline.manifest import StudyRecords
from plumbline.reading import read_json
from plumbline.records import Number, Record
from plumbline.statistics.estimates import Floats
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


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV, TSV, JSONL or Parquet file with at least one row."""
    if not path.exists():
        raise DataError(f"no file {path}")
    frame = read_frame(path)
    if frame.empty:
        raise DataError(f"{path} has no rows")
    return frame


def numbers_of(frame: pd.DataFrame, name: str, path: Path) -> Floats:
    """Return a column's numbers, NaN for empty cells. Raises DataError with the row of another cell."""
    cells = frame[name]
    empty = cells.isna() | (cells.astype(str).str.strip() == "")
    values = pd.to_numeric(cells.where(~empty), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    invalid = ~np.isfinite(values) & ~empty.to_numpy(bool)
    if invalid.any():
        row = int(invalid.argmax())
        raise DataError(f"{row_of(path, cells.index[row])}, field {name!r} is not a number: {cells.iloc[row]!r}")
    return values


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
    frame = _named(frame, path)
    rows, fields = frame.index, PromptScore.model_fields
    scores = numbers_of(frame, "score", path)
    seeds = np.nan_to_num(numbers_of(frame, "seed", path)) if "seed" in frame else None
    frame = frame.reset_index(drop=True)
    columns: dict[str, Any] = {
        name: _words(frame[name]) if name in frame else field.default for name, field in fields.items()
    }
    columns["score"] = scores
    _refuse(
        np.abs(scores) > 1 + _ROUNDING, path, rows,
        lambda row: f": {scores[row]:g} is not between -1 and 1; divide percentages by 100",
    )  # fmt: skip
    if seeds is not None:
        faulty = (seeds != np.floor(seeds)) | (np.abs(seeds) > _MOST_SEED)
        _refuse(faulty, path, rows, lambda row: f": seed {seeds[row]:g} is not a whole number of at most 15 digits")
        columns["seed"] = seeds.astype(np.int64)
    if "simulated" in frame:
        truths = columns["simulated"].str.strip().str.lower()
        _refuse_unknown(truths, ("true", "1", "yes", "false", "0", "no", ""), path, rows)
        columns["simulated"] = truths.isin(("true", "1", "yes"))
    checked = pd.DataFrame(columns, index=frame.index)
    defaults = checked["source"].isin(NO_WORDINGS)  # other tables mark non-wordings in this way
    checked.loc[defaults & is_wording(checked["prompt_id"]), "prompt_id"] = DEFAULT
    checked.loc[defaults, "source"] = ""
    for name in ("source", "label"):
        _refuse_unknown(checked[name], get_args(fields[name].annotation), path, rows)
    for name in ("model", "task", "prompt_id"):
        _refuse(checked[name].str.strip() == "", path, rows, f" has no {name}; fill it in")
    ids = checked["prompt_id"]
    names = ids.str.strip().str.lower()
    _refuse(  # `Default` and the like would count as wordings
        names.isin(NO_WORDINGS) & (names != ids), path, rows,
        lambda row: f": prompt_id {ids[row]!r} differs from {names[row]!r} only in case or blanks; write"
        f" {names[row]!r}, or give the wording another id",
    )  # fmt: skip
    if (twice := checked.duplicated(list(PromptScore.KEY))).any():
        first = checked.loc[twice].iloc[0]
        named = ", ".join(f"{name} {first[name]}" for name in PromptScore.KEY if first[name] not in ("", 0))
        raise DataError(f"{path}: two scores of {named}; keep one, or distinguish them by run, split, subset or seed")
    _refuse_two_texts(checked, path)
    return checked


def _refuse(faulty: Any, path: Path, rows: pd.Index, reason: Callable[[int], str] | str) -> None:
    """Raise DataError for the first faulty row; `reason`, which may depend on its position, follows its number."""
    for row in np.flatnonzero(faulty)[:1].tolist():
        raise DataError(f"{row_of(path, rows[row])}{reason if isinstance(reason, str) else reason(row)}")


def _refuse_unknown(column: pd.Series, allowed: Sequence[str], path: Path, rows: pd.Index) -> None:
    choices = [choice for choice in allowed if choice]
    _refuse(
        ~column.isin(allowed), path, rows,
        lambda row: f": {column.name} {column[row]!r} is unknown; {nearest(column[row], choices)}",
    )  # fmt: skip


def _named(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the table with our names of columns."""
    frame = frame.rename(columns={old: new for old, new in _OTHER_NAMES.items() if new not in frame})
    if "prompt_id" not in frame and "text" in frame:
        texts = _words(frame["text"])
        advice = "write `none` for no prompt, `default` for the model's own"
        _refuse(texts.str.strip() == "", path, frame.index, f" has no prompt; {advice}")
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
    codes, words = pd.factorize(column)  # few texts fill many rows; -1, the last, is a missing one
    texts = np.array([*map(str, words), ""], dtype=object)
    return pd.Series(texts[codes], index=column.index, name=column.name, dtype=object)


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
SUBSET = "::"  # between task and subset
_ABOUT = "model_meta.json"
_SETTERS = ("model_prompts", "prompts_dict", "prompts")
#: Characters that mteb's names of experiments replace by one.
_LOST = re.compile(r'[<>:"|?*\\/]')


def of_folder(folder: Path, progress: Callable[[], object] = lambda: None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the long table (`PromptScore`) of a folder of mteb's result files with experiments, and notes.

    Experiments that set no prompt for their task, or set more than a prompt, are left out and counted in a note. Raises
    DataError for a folder without results of experiments, and for damaged files.
    """
    home = results_home(folder) / "results"
    own_prompts, experiments = (
        sorted(path for path in home.glob(pattern) if path.name != _ABOUT)
        for pattern in ("*/*/*.json", f"*/*/{EXPERIMENTS}/*/*.json")
    )
    if not experiments:
        raise DataError(f"{folder}: no results of experiments (results/MODEL/REVISION/{EXPERIMENTS}/NAME/TASK.json)")
    paths = [*own_prompts, *experiments]
    rows, unprompted = read_results(paths, mteb_tasks(sorted({path.stem for path in paths})), progress)
    rows = rows[rows["split"] != ""]
    if rows.empty:
        raise DataError(f"{folder}: none of its {len(experiments)} experiments sets a prompt for its task")
    notes, texts = [], set(rows["text"]) - {""}
    if unprompted:
        notes.append(
            f"left out: {count(len(unprompted), 'result')} of experiments that set no prompt for their task, or set"
            f" more than a prompt ({unprompted[0].relative_to(home)}{', ...' if len(unprompted) > 1 else ''})"
        )
    if mixed := sorted(text for text in texts if _LOST.search(text)):
        notes.append(
            f"{len(mixed)} of {len(texts)} prompts {'has' if len(mixed) == 1 else 'have'} characters that mteb's folder"
            f" names replace, as in {json.dumps(mixed[0], ensure_ascii=False)}: two prompts that differ only in"
            " such characters share a folder, so one may have received the other prompt's scores"
        )
    return checked_scores(with_numbers(rows), folder), tuple(notes)


def results_home(folder: Path) -> Path:
    """Return the folder that contains `results/`, as mteb's cache does, for it or for `results/` itself."""
    if (folder / "results").is_dir():
        return folder
    if folder.name == "results" and folder.is_dir():
        return folder.parent
    raise DataError(f"{folder}: no folder 'results' as in mteb's cache (results/MODEL/REVISION/TASK.json)")


def mteb_tasks(names: Sequence[str]) -> list[Any]:
    """Return mteb's task objects of the names that it has."""
    import mteb  # noqa: PLC0415 (takes seconds)

    tasks = []
    for name in names:
        with contextlib.suppress(KeyError):  # not a task of mteb
            tasks.append(mteb.get_task(name))
    return tasks


def slash(name: str) -> str:
    """Return a model's name with the slash that mteb's folders write as two underscores."""
    return name.replace("__", "/", 1)


def read_results(
    paths: Sequence[Path], tasks: Sequence[Any], progress: Callable[[], object]
) -> tuple[pd.DataFrame, list[Path]]:
    """Return the rows of mteb's result files, one a split and subset, and the files of experiments without a prompt.

    A file without any score has one row, with neither of them, so that a board lists its model. The prompt is what an
    experiment sets for its task (`model_prompts`, `prompts_dict` or `prompts`, with keys as in mteb's models). `tasks`
    are mteb's, those that it has. Further columns: `file`, and `file_version`: mteb's version of the whole file, which
    is a range if that of its subsets differs. Raises DataError for a damaged file.
    """
    logging.getLogger("mteb").setLevel(logging.ERROR)  # it tells of every missing split
    about = {task.metadata.name: (str(task.metadata.type), task.metadata.main_score) for task in tasks}
    files, parts, unprompted = list[dict[str, str]](), list[tuple[Any, ...]](), list[Path]()
    for path in paths:
        progress()
        in_experiment = path.parents[1].name == EXPERIMENTS
        model, revision = path.parts[-5:-3] if in_experiment else path.parts[-3:-1]
        about_model, meta = path.parent / _ABOUT, {}
        with contextlib.suppress(FileNotFoundError):
            meta = read_json(about_model)
        if not isinstance(meta, dict):
            raise DataError(f"{about_model}: not a file of mteb; delete it, or fetch it again")
        task_type, metric = about.get(path.stem, ("", ""))
        prompt, prompt_id = "", DEFAULT
        if in_experiment:
            of_experiment = _prompt(meta.get("experiment_kwargs"), path.stem, task_type)
            if of_experiment is None:
                unprompted.append(path)
                continue
            prompt, prompt_id = of_experiment, identity("prompt-v1", of_experiment)[:12] if of_experiment else NONE
        result = _result(path)
        version = str(result.mteb_version or "")
        entries: list[tuple[Any, ...]] = [
            (len(files), split, part["hf_subset"], part["main_score"], str(part.get("mteb_version") or version))
            for split, subsets in result.scores.items()
            for part in subsets
        ]
        parts += entries or [(len(files), "", "", None, version)]
        files.append(
            {
                "file": str(path), "file_version": version, "dataset_revision": str(result.dataset_revision or ""),
                "model": str(meta.get("name") or slash(model)), "revision": str(meta.get("revision") or revision),
                "task": result.task_name, "task_type": task_type, "metric": metric,
                "prompt_id": prompt_id, "text": prompt,
            }
        )  # fmt: skip
    rows = pd.DataFrame(parts, columns=["number", "split", "subset", "score", "mteb_version"])
    return rows.join(pd.DataFrame(files), on="number"), unprompted


def _result(path: Path) -> Any:
    """Return the result in a file, of earlier versions as mteb converts it."""
    from mteb.results import TaskResult  # noqa: PLC0415 (takes seconds)

    try:
        return TaskResult.from_disk(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}; run again") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path}: not a result file of mteb; delete it, or fetch it again") from None


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


def with_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `read_results`, scores as numbers, null as NaN. Raises DataError, with the file, for others."""
    for file, score in zip(rows["file"], rows["score"], strict=True):
        number = isinstance(score, int | float) and not isinstance(score, bool) and not math.isinf(score)
        if score is not None and not number:
            raise DataError(f"{file}: main_score {score!r:.60} is no number; fetch the file again")
    return rows.assign(score=rows["score"].astype(np.float64))


def of_one_revision(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one file of each model and task, by mteb's own rule for several revisions (`join_revisions`).

    The registered revision counts, or else that of the newest mteb version.
    """
    from mteb.results import BenchmarkResults, ModelResult, TaskResult  # noqa: PLC0415 (takes seconds)

    results = [
        ModelResult.model_construct(
            model_name=row["model"],
            model_revision=row["revision"],
            task_results=[
                TaskResult.from_validated(
                    task_name=row["task"], mteb_version=row["file_version"], scores={row["file"]: []}
                )
            ],
        )
        for row in rows.drop_duplicates("file").to_dict(orient="records")
    ]
    joined = BenchmarkResults.model_construct(model_results=results).join_revisions()
    files = [file for model in joined for result in model.task_results for file in result.scores]
    return rows[rows["file"].isin(files)]


def by_task(rows: pd.DataFrame, tasks: Sequence[Any], *, by_subset: bool = False) -> pd.DataFrame:
    """Return models by tasks: the plain mean over the splits and subsets that a task requires, NaN if one is missing.

    With `by_subset` each subset of a task is a column, TASK::SUBSET.
    """
    column_of = {
        (name, split, subset): f"{name}{SUBSET}{subset}" if by_subset else name
        for task, name in ((task, task.metadata.name) for task in tasks)
        for subset in (["default"] if task.is_aggregate else task.hf_subsets)
        for split in task.eval_splits
    }
    n_parts = Counter(column_of.values())
    columns = [column_of.get(part, "") for part in zip(rows["task"], rows["split"], rows["subset"], strict=True)]
    required = rows.assign(column=columns).drop_duplicates(["model", "task", "split", "subset"], keep="last")
    required = required[required["column"] != ""]
    frame = pd.DataFrame(index=sorted(rows["model"].unique()), columns=list(n_parts), dtype=np.float64)
    for (model, column), scores in with_numbers(required).groupby(["model", "column"])["score"]:
        if len(scores) == n_parts[column]:
            frame.at[model, column] = np.mean(scores.to_numpy())
    return frame
