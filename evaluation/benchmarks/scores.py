"""Read scores of models on tasks from mteb's result cache, its result files, or a table, and close gaps.

Each omission is named with its reason.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from cyclopts import Parameter
from tqdm import tqdm

from evaluation.benchmarks import task_facts
from evaluation.benchmarks.task_facts import of_mteb
from evaluation.score_frames import (
    SUBSET,
    by_task,
    mteb_tasks,
    numbers_of,
    of_one_revision,
    read_results,
    read_table,
    results_home,
    slash,
)
from plumbline.cli import Local, names, no_address, reads
from plumbline.errors import DataError, StudyError, nearest
from plumbline.exhibits.table import plain
from plumbline.identity import identity
from plumbline.resources import installed_versions
from plumbline.statistics.estimates import Floats, stream
from plumbline.words import count

PACKAGES = ("plumbline", "mteb", "numpy", "scipy")
GAPS = ("refuse", "models", "tasks", "fewest")
LEAST_MODELS = 3  # on each side of the split


@dataclass(frozen=True)
class MatrixOmission:
    """A model or a task (`kind`) that is not in the matrix, and the reason."""

    kind: str
    name: str
    reason: str


@dataclass(frozen=True)
class Scores:
    """Scores as read: models (index) by tasks (columns), NaN without a score.

    `families` name each model's; `files` are what they were read from, with their hashes; `notes` say what was
    settled while reading (revisions, splits, languages); `omissions` what is not in them. `incomparable` has the reason
    for each score that is not comparable with the others of its task, by task and model.
    """

    frame: pd.DataFrame
    families: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    omissions: tuple[MatrixOmission, ...] = ()
    incomparable: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def marked(self) -> dict[str, dict[str, str]]:
        """`incomparable`, of the scores that are in the matrix."""
        present = self.frame.notna()
        marks = {
            task: {
                model: reason
                for model, reason in self.incomparable.get(task, {}).items()
                if model in present.index and present.loc[model, task]
            }
            for task in map(str, present)
        }
        return {task: reasons for task, reasons in marks.items() if reasons}

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and which scores are not comparable with the others of their task."""
        if not (marked := self.marked):
            return self.notes
        of = f"{len(marked)} of {count(self.frame.shape[1], 'task')}"
        line = f"scores that are not comparable with the others on {of}: {self._by_task(marked)}"
        return (*self.notes, f"{line}; --comparable leaves them out")

    def left_out(self, file: str) -> list[str]:
        """Return lines on the models and tasks that are not in the matrix; `file` has the reasons."""
        names: dict[str, list[str]] = {"model": [], "task": []}
        for omission in self.omissions:
            names[omission.kind].append(omission.name)
        return [
            f"left out: {count(len(some), kind)} ({', '.join([*some[:5], *['...'] * (len(some) > 5)])}); see {file}"
            for kind, some in names.items()
            if some
        ]

    def _by_task(self, marked: Mapping[str, Mapping[str, str]]) -> str:
        scored = self.frame.notna().sum()
        return ", ".join(
            f"{task} ({'; '.join(f'{number} of {scored[task]} models: {reason}' for reason, number in numbers)})"
            for task, reasons in marked.items()
            for numbers in [Counter(reasons.values()).most_common()]
        )

    def comparable(self) -> Scores:
        """Return the scores without those that are not comparable with the others of their task."""
        if not (marked := self.marked):
            return self
        frame = self.frame.copy()
        for task, reasons in marked.items():
            frame.loc[list(reasons), task] = float("nan")
        number = count(sum(map(len, marked.values())), "score")
        note = f"left out by --comparable: {number} on {count(len(marked), 'task')}: {self._by_task(marked)}"
        return dataclasses.replace(self, frame=frame, notes=(*self.notes, note), incomparable={})

    @property
    def array(self) -> Floats:
        """The matrix as numbers."""
        return self.frame.to_numpy(np.float64)

    @property
    def rows(self) -> list[list[Any]]:
        """Each model's name and scores; undefined ones are None."""
        return [[str(name), *map(plain, row)] for name, row in zip(self.frame.index, self.array.tolist(), strict=True)]

    def basis(self, tasks: Sequence[str], seed: int) -> dict[str, Any]:
        """Return what a result of these scores on these tasks rests on, for its file."""
        names = list(map(str, self.frame.columns))
        return {
            "left_out": [vars(omission) for omission in self.omissions],
            "rests_on": {
                "files": self.files,
                "scores": identity("score-matrix-v1", names, self.rows),
                "task_list": identity("task-list-v1", list(tasks)),
            },
            "seed": seed,
            "versions": dict.fromkeys(PACKAGES) | installed_versions(PACKAGES),
        }


def without_gaps(scores: Scores, gaps: str) -> Scores:
    """Return the scores without gaps and without constant tasks, which separate no models. Raises as `closed`."""
    scores = closed(scores, gaps)
    frame, omissions = scores.frame, list(scores.omissions)
    constant = [name for name in frame if len(frame) and np.ptp(frame[name].to_numpy()) == 0]
    omissions += [
        MatrixOmission("task", str(name), "all models have the same score") for name in constant if len(frame) > 1
    ]
    frame = frame.drop(columns=constant) if len(frame) > 1 else frame
    return dataclasses.replace(scores, frame=frame, omissions=tuple(omissions))


def closed(scores: Scores, gaps: str) -> Scores:
    """Return the scores without gaps. Raises DataError for gaps with "refuse".

    "models" leaves out every model that lacks a score; "tasks" every task that does; "fewest" the model or task that
    lacks the largest share of its scores, one after another, until no gap is left. "keep" keeps gaps, and leaves out
    only models and tasks without any score.
    """
    frame, omissions = scores.frame, list(scores.omissions)
    for kind, axis in (("model", 1), ("task", 0)):
        for name in list(frame.index[frame.isna().all(axis=1)] if axis else frame.columns[frame.isna().all(axis=0)]):
            omissions.append(MatrixOmission(kind, str(name), "no score at all"))
            frame = frame.drop(index=name) if axis else frame.drop(columns=name)
    if frame.isna().to_numpy().any() and gaps != "keep":
        if gaps == "refuse":
            raise DataError(_holes(frame))
        complete = _without_gaps(frame, gaps)
        for kind, names, lacks in (
            ("model", frame.index, frame.isna().sum(axis=1)),
            ("task", frame.columns, frame.isna().sum(axis=0)),
        ):
            remaining = set(complete.index if kind == "model" else complete.columns)
            of = frame.shape[1] if kind == "model" else frame.shape[0]
            omissions += [
                MatrixOmission(kind, str(name), f"lacks {lacks[name]} of {of} scores (--gaps {gaps})")
                for name in names
                if name not in remaining
            ]
        frame = complete
    families = {name: scores.families[name] for name in frame.index}
    return dataclasses.replace(scores, frame=frame, families=families, omissions=tuple(omissions))


def _without_gaps(frame: pd.DataFrame, gaps: str) -> pd.DataFrame:
    if gaps == "models":
        return frame.dropna(axis=0)
    if gaps == "tasks":
        return frame.dropna(axis=1)
    while (missing := frame.isna()).to_numpy().any():
        rows, columns = missing.mean(axis=1), missing.mean(axis=0)
        by_task = columns.max() >= rows.max()
        frame = frame.drop(columns=columns.idxmax()) if by_task else frame.drop(index=rows.idxmax())
    return frame


def _holes(frame: pd.DataFrame) -> str:
    """Return a line on the gaps, and what each way to close them leaves."""
    missing = frame.isna()
    by_model, by_task = missing.sum(axis=1), missing.sum(axis=0)
    ways = []
    for way in GAPS[1:]:
        rest = _without_gaps(frame, way)
        ways.append(f"--gaps {way} leaves {count(rest.shape[0], 'model')} and {count(rest.shape[1], 'task')}")
    return (
        f"{int(missing.to_numpy().sum())} of {frame.size} scores are missing ({frame.shape[0]} models, {frame.shape[1]}"
        f" tasks; model {by_model.idxmax()!s} lacks {int(by_model.max())}, the most of any model, and task"
        f" {by_task.idxmax()!s} lacks {int(by_task.max())}, the most of any task); choose what to leave out:"
        f" {'; '.join(ways)}"
    )


def split(scores: Scores, share: float, seed: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which models are held out: whole families, drawn by `seed`, up to `share` of the models.

    Raises DataError if fewer than three models would be on one side.
    """
    names = list(scores.frame.index)
    families = pd.Series([scores.families[name] for name in names])
    sizes = families.value_counts().sort_index()
    most = round(share * len(names))
    drawn: set[str] = set()
    n_held = 0
    for family in stream(seed, "held-out models").permutation(np.array(sizes.index, dtype=object)):
        if n_held + sizes[family] <= most:
            drawn.add(str(family))
            n_held += int(sizes[family])
    if n_held < LEAST_MODELS or len(names) - n_held < LEAST_MODELS:
        raise DataError(
            f"{len(names)} models of {len(sizes)} families cannot be split: a selection needs {LEAST_MODELS} models to"
            f" choose by and {LEAST_MODELS} held out, but --held-out {share:g} would hold out {n_held}; add models,"
            " name smaller families, or change --held-out"
        )
    return families.isin(drawn).to_numpy(bool)


RULE = "for each task the registered revision is used, or else the result of the newest mteb version"
_MEAN_OF_SUBSET = "Each score is the plain mean of mteb's main score on a subset over the splits that the task requires"
_MEAN = "Each score is the plain mean of mteb's main score over the splits and subsets that the task requires"


def benchmark(name: str) -> Any:
    """Return mteb's benchmark. Raises StudyError with the nearest name."""
    import mteb  # noqa: PLC0415 (takes seconds)

    try:
        return mteb.get_benchmark(name)
    except KeyError:
        names = [entry.name for entry in mteb.get_benchmarks()]
        raise StudyError(f"mteb {mteb.__version__} has no benchmark {name!r}; {nearest(name, names)[:600]}") from None


def public_tasks(name: str) -> list[Any]:
    """Return a benchmark's tasks that mteb's board ranks models by: of RTEB the public ones."""
    from mteb.benchmarks.benchmark import RtebBenchmark  # noqa: PLC0415 (takes seconds)

    chosen = benchmark(name)
    return [task for task in chosen.tasks if task.metadata.is_public or not isinstance(chosen, RtebBenchmark)]


def narrowed(tasks: Sequence[Any], languages: Sequence[str]) -> list[Any]:
    """Return new mteb task objects that score only subsets in these languages, without tasks that have none."""
    import mteb  # noqa: PLC0415 (takes seconds)

    narrowed_tasks = []
    for task in tasks:
        if languages and not set(languages) & {code.split("-")[0] for code in task.languages}:
            continue
        of_subsets = mteb.get_task(
            task.metadata.name, hf_subsets=list(task.hf_subsets), eval_splits=list(task.eval_splits)
        )
        if languages:
            spoken = of_subsets.metadata.hf_subsets_to_langscripts
            of_subsets.hf_subsets = [
                name
                for name in of_subsets.hf_subsets
                if set(languages) & {code.split("-")[0] for code in spoken.get(name, [])}
            ]
        narrowed_tasks.append(of_subsets)
    return narrowed_tasks


def of_results(
    folder: Path | None, tasks: Sequence[Any], progress: Callable[[], object], *, by_subset: bool = False
) -> Scores:
    """Return scores of mteb's tasks from a folder of its result files, or from its cache (None).

    A folder is one with `results/` in it, or such a one itself: MODEL/REVISION/TASK.json. A task with fewer entries
    than asked for is a gap. Of several revisions mteb's own rule takes one for each task (`join_revisions`). With
    `by_subset` each subset of a task is a column, TASK::SUBSET.
    """
    import mteb  # noqa: PLC0415 (takes seconds)

    cache = mteb.ResultCache(results_home(folder) if folder else None)
    task_of = {task.metadata.name: task for task in tasks}
    roots = (cache.cache_path / "results", cache.remote_results_path)
    paths = [path for root in roots for path in sorted(root.glob("*/*/*.json")) if path.stem in task_of]
    source = str(folder or cache.cache_path)
    rows, _ = read_results(paths, tasks, progress)
    if rows.empty:
        fill = "name another folder" if folder else "fill mteb's cache with mteb.ResultCache().download_from_remote()"
        raise DataError(f"{source}: no result files of these {len(task_of)} tasks (MODEL/REVISION/TASK.json); {fill}")
    rows = rows[rows["task"].isin(list(task_of))]
    several = int((rows.drop_duplicates(["model", "revision"])["model"].value_counts() > 1).sum())
    rows = of_one_revision(rows)
    frame, files = by_task(rows, tasks, by_subset=by_subset), rows.drop_duplicates("file").sort_values("model")
    reasons = {name: reasons_by_model(task, files[files["task"] == name]) for name, task in task_of.items()}
    notes = [_MEAN_OF_SUBSET if by_subset else _MEAN]
    if several:
        notes.append(f"{count(several, 'model')} {'has' if several == 1 else 'have'} several revisions: {RULE}")
    hashes = [[path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in sorted(paths)]
    incomparable = {column: reasons[column.partition(SUBSET)[0]] for column in map(str, frame)}
    from_files = {source: identity("results-v1", hashes)}
    return Scores(frame, families(list(frame.index)), from_files, tuple(notes), incomparable=incomparable)


#: Tasks that mteb scored wrongly, the first version that is right, and the fault of earlier ones.
FAULTS = {
    "TwitterHjerneRetrieval": ("1.18.1", "whose scores are too low (mteb issue 5228)"),
    "WebLINXCandidatesReranking": ("2.18.19", "which ranks the right answer first among ties (mteb issue 5092)"),
    "GermanQuAD-Retrieval": ("2.18.19", "which ranks ties by the data's order (mteb issue 5092)"),
}
_CONVERTED = "1.11.0"  # mteb converts files of earlier versions when it reads them
_UNKNOWN = ("", "dataset revision not available")  # mteb's words for a file that names no revision


def reasons_by_model(task: Any, files: pd.DataFrame) -> dict[str, str]:
    """Return why models' scores on a task are not comparable with the others.

    Args:
        task: mteb's task.
        files: Each model's file, with its dataset_revision and file_version, which are empty where it names none.

    Returns:
        The reason for each model whose score is on an unknown revision of the data set, or on another one than is
        registered (than most, if none is on that), or was computed by a version of mteb with a known fault.
    """
    numbers = Counter(revision for revision in files["dataset_revision"] if revision not in _UNKNOWN)
    usual = str(task.metadata.revision)
    if numbers and usual not in numbers:
        usual = min(numbers, key=lambda revision: (-numbers[revision], revision))
    reasons = {}
    columns = (files[name] for name in ("model", "dataset_revision", "file_version"))
    for model, revision, version in zip(*columns, strict=True):
        parts = [_of_version(task.metadata.name, version)]
        if revision != usual:
            name = "unknown" if revision in _UNKNOWN else revision[:8]
            parts.append(f"data set revision {name}, not {usual[:8]}")
        reasons[str(model)] = "; ".join(filter(None, parts))
    return {model: reason for model, reason in reasons.items() if reason}


def _of_version(task: str, version: str) -> str:
    """Return the fault of a version of mteb on a task; of a range such as 2.1.0-2.3.0, of its first version."""
    first, fault = FAULTS.get(task, (_CONVERTED, "whose files mteb converts"))
    if not _numbers(version):
        return "by an unknown version of mteb"
    return f"mteb {version}, before {first}, {fault}" if _numbers(version) < _numbers(first) else ""


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]{1,9}", version)[:3]]


def tasks_in(folder: Path) -> list[Any]:
    """Return the mteb tasks that have results in a folder. Raises DataError if there are none."""
    names = sorted({path.stem for path in (results_home(folder) / "results").glob("*/*/*.json")} - {"model_meta"})
    tasks = mteb_tasks(names)
    if not tasks:
        raise DataError(
            f"{folder}: no result files of mteb tasks (results/MODEL/REVISION/TASK.json); name another folder"
        )
    return tasks


def of_table(path: Path) -> Scores:
    """Return the scores of a table: long (columns model, task, score), or a model a row and a task a column.

    Either may have the column family: models of one are held out together.
    """
    frame = read_table(path)
    files = {str(path): hashlib.sha256(path.read_bytes()).hexdigest()}
    if "model" not in frame:
        raise DataError(f"{path}: no column 'model'; the table has {', '.join(map(str, frame.columns))[:300]}")
    frame["model"] = frame["model"].astype(str).map(slash)
    notes = ("scores are taken from the table, whatever splits and languages they cover",)
    if {"task", "score"} <= set(frame.columns):
        frame = frame.assign(task=frame["task"].astype(str), score=numbers_of(frame, "score", path))
        if (double := frame.duplicated(["model", "task"])).any():
            first = frame[double].iloc[0]
            raise DataError(f"{path}: model {first['model']!r} has two scores on task {first['task']!r}; keep one")
        wide = frame.pivot(index="model", columns="task", values="score")
    else:
        wide = frame.set_index("model").drop(columns=["family"], errors="ignore")
        if wide.index.has_duplicates:
            twice = wide.index[wide.index.duplicated()][0]
            raise DataError(f"{path}: model {twice!r} is in two rows; keep one")
        wide = pd.DataFrame({str(name): numbers_of(frame, str(name), path) for name in wide}, index=wide.index)
    wide = wide.sort_index().rename_axis(index=None, columns=None)
    if not wide.shape[1]:
        raise DataError(f"{path}: no tasks; add a column for each, or use the columns model, task, score")
    family_of = families(list(wide.index))
    if "family" in frame:
        first_rows = frame.dropna(subset=["family"]).drop_duplicates("model").set_index("model")["family"]
        family_of |= {
            name: str(first_rows[name]) for name in wide.index if name in first_rows and str(first_rows[name]).strip()
        }
    return Scores(wide, family_of, files, notes)


def families(names: Sequence[str]) -> dict[str, str]:
    """Return each model's family: its organisation, or that of its registered base model.

    A name without an organisation is a family of its own.
    """
    from mteb.models.get_model_meta import get_model_metas  # noqa: PLC0415 (takes seconds)

    metas = get_model_metas() if any("/" in name for name in names) else []
    base_of = {str(meta.name): meta.adapted_from for meta in metas if isinstance(meta.adapted_from, str)}
    family_of = {}
    for name in names:
        root, bases = name, set[str]()
        while (base := base_of.get(root)) and base not in bases:
            bases.add(root)
            root = base
        family_of[name] = root.split("/")[0] if "/" in root else name
    return family_of


def as_asked(scores: Scores, tasks: Sequence[Any]) -> Scores:
    """Return the scores of a benchmark's tasks, leaving out others by name. Raises DataError for missing tasks."""
    wanted = list(of_mteb(tasks).index)
    if missing := [name for name in wanted if name not in scores.frame]:
        raise DataError(
            f"the scores lack {len(missing)} of the benchmark's {len(wanted)} tasks ({', '.join(missing[:5])}"
            f"{' ...' if len(missing) > 5 else ''}); name the right version of the benchmark, or add the scores"
        )
    omissions = [
        MatrixOmission("task", str(name), "not in the benchmark") for name in scores.frame if name not in wanted
    ]
    return dataclasses.replace(scores, frame=scores.frame[wanted], omissions=(*scores.omissions, *omissions))


_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def _codes(value: str) -> tuple[str, ...]:
    """Return comma-separated languages by mteb's codes. Raises LanguageError."""
    return tuple(dict.fromkeys(map(task_facts.code, names(value))))


@Parameter(name="*")
@dataclass(frozen=True)
class ScoreSource:
    """The source of scores, and which of them are used.

    Args:
        source: Source of scores: a benchmark (from mteb's result cache), a folder of mteb's result files, or a table.
        benchmark: For a folder or a table: use only the tasks of this benchmark.
        languages: Only tasks and subsets in these languages, such as dan,swe.
        comparable: Leave out scores on another revision of a data set, and by versions of mteb with known faults; a
            note names them otherwise.
        tasks: Table of tasks with the column task and any of type, languages, texts, characters, seconds.
    """

    source: Annotated[str, reads(no_address), Parameter(name="--from", metavar="WHAT")]
    benchmark: Annotated[str, Parameter(metavar="NAME")] = ""
    languages: Annotated[tuple[str, ...], reads(_codes), Parameter(metavar="CODES")] = ()
    comparable: bool = False
    tasks: Local | None = None

    @property
    def path(self) -> Path:
        """The file or folder, if it is one."""
        return Path(self.source)

    @property
    def benchmark_name(self) -> str:
        """The benchmark, or "". Raises DataError for a path with nothing to read."""
        if self.path.is_dir() or self.path.suffix.lower() in _TABLES:
            return self.benchmark
        if "/" in self.source or self.path.exists():
            raise DataError(f"--from {self.source}: neither an existing folder nor a table ({', '.join(_TABLES)})")
        return self.source


def read(source: ScoreSource, *, by_subset: bool = False) -> tuple[Scores, pd.DataFrame, dict[str, Any]]:
    """Return scores with their gaps, the facts of their tasks, and mteb's task objects by name.

    With `by_subset` columns of result files are subsets of tasks (`of_results`), with the facts of their tasks.
    """
    own_facts = task_facts.of_table(source.tasks) if source.tasks else None
    if source.path.suffix.lower() in _TABLES:
        scores = of_table(source.path)
        tasks = mteb_tasks([str(name) for name in scores.frame])
        if source.benchmark:
            tasks = public_tasks(source.benchmark)
            scores = as_asked(scores, tasks)
        if source.languages:
            note = "the table's scores cover all languages of a task, not only those in --languages"
            scores = dataclasses.replace(scores, notes=(*scores.notes, note))
        if source.comparable:
            raise StudyError("--comparable: a table has no revisions of data sets; name a folder of result files")
    else:
        folder, name = source.path if source.path.is_dir() else None, source.benchmark_name
        tasks = narrowed(public_tasks(name) if name else tasks_in(source.path), source.languages)
        if not tasks:
            codes = ",".join(source.languages)
            raise StudyError(f"--languages {codes}: no task of {name or source.path} is in these languages")
        with tqdm(desc="reading results", unit="file", delay=1, leave=False) as bar:
            scores = of_results(folder, tasks, bar.update, by_subset=by_subset)
        scores = scores.comparable() if source.comparable else scores
    task_of = {str(name): str(name).partition(SUBSET)[0] if by_subset else str(name) for name in scores.frame}
    facts = task_facts.merged(list(dict.fromkeys(task_of.values())), task_facts.of_mteb(tasks), own_facts)
    facts = facts.loc[list(task_of.values())].set_axis(pd.Index(list(task_of), name="task"))
    if source.languages:
        facts = task_facts.with_languages(facts, source.languages)
        scores = dataclasses.replace(scores, frame=scores.frame[list(facts.index)])
    return scores, facts, {task.metadata.name: task for task in tasks}
