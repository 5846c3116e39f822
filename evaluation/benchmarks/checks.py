"""Check the tasks of a study, its data sets and their accepted transformations, or tasks of mteb.

Models' scores show whether a task separates them from chance, and from one another.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from cyclopts import Parameter
from tqdm import tqdm

from annotation.campaign.records import LOOKS
from evaluation.benchmarks.contents import THRESHOLDS, CheckedTask, Finding, contents_of, finding, undefined
from evaluation.benchmarks.data_checks import check_contents
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.registered import MtebModel
from evaluation.records import SCORES, EvaluationRecords
from evaluation.sources import Folder
from evaluation.tasks import scoring
from evaluation.tasks.protocols import Protocol
from evaluation.units import Model, ScoreUnit, plan_units
from evaluation.work import quiet, versions
from generation.datasets.loading import load_dataset
from generation.datasets.mteb_tasks import load_mteb
from plumbline.cli import Named, Several
from plumbline.errors import DataError, StudyError, nearest
from plumbline.exhibits.table import UNDEFINED, Exhibit, cell, csv_bytes, json_file, write_files
from plumbline.study import Study, load_study
from plumbline.study.datasets import DatasetSpec
from plumbline.study.evaluation import MtebSpec
from plumbline.study.places import output_folder
from plumbline.study.subject import ORIGINAL
from plumbline.words import count

BASELINE = MtebSpec(name="mteb/baseline-random-encoder")
_SCORED = ("random", "near_perfect", "equal_scores")


class ScoreChecks:
    """Checks of tasks by models' scores. `scores` is the study's table (empty without scores).

    `evaluate` is the command that computes scores.
    """

    def __init__(self, host: ModelHost, scores: pd.DataFrame, evaluate: str) -> None:
        self._scores, self._evaluation, self._evaluate = scores, host.evaluation, evaluate
        self._models = Model.all_of(host)
        self._baselines: dict[str, float] = {}

    def findings(self, task: CheckedTask) -> Iterator[Finding]:
        """Yield the findings of one task."""
        protocol = self._evaluation.protocol
        scores = known_scores(self._scores, task.unit, self._models, protocol) if task.unit is not None else {}
        if not scores:
            reason = self._unscored(task)
            for check in _SCORED:
                yield undefined(check, reason)
            return
        yield self._random(task, scores)
        yield near_perfect(scores)
        yield equal_scores(scores)

    def _unscored(self, task: CheckedTask) -> str:
        """Return why no model has a score, and what to do about it."""
        if reason := scoring.unusable(task.dataset, self._evaluation.protocol):
            return f"the task cannot be scored: {reason}"
        if not self._scores.empty and task.unit is not None:
            keys = [task.unit.unit_id(self._evaluation.protocol, model) for model in self._models]
            rows = self._scores[self._scores["unit_id"].isin(keys) & (self._scores["dataset"] == task.dataset.name)]
            if len(rows):
                return f"every model's score is undefined ({'; '.join(dict.fromkeys(rows['reason']))})"
        return f"no model of the study has a score on the task; run `{self._evaluate}`"

    def _random(self, task: CheckedTask, scores: Mapping[str, float]) -> Finding:
        """Check how far the models are above random vectors (mteb's random baseline)."""
        (dataset, *_), protocol = task.unit.place if task.unit else ("",), self._evaluation.protocol
        if dataset not in self._baselines and task.unit is not None:
            model = Encoder(MtebModel(BASELINE), BASELINE.name, "")
            original = task.unit.dataset
            with _hidden_bars("mteb.models.model_implementations.random_baseline"):
                result = scoring.evaluate(original, model, protocol, self._evaluation.batch_size)
            self._baselines[dataset] = result
            model.close()
        base = self._baselines[dataset]
        if math.isnan(base):
            return undefined("random", "the random baseline's own score is undefined")
        worst, best = min(scores, key=lambda name: scores[name]), max(scores, key=lambda name: scores[name])
        ends = f"weakest model: {worst} ({scores[worst]:.4f}); best model: {best} ({scores[best]:.4f})"
        text = f"{BASELINE.name} scores {base:.4f} on the original texts; {ends}"
        return finding("random", scores[worst] - base, text, fails=scores[best] - base)


def known_scores(
    scores: pd.DataFrame, unit: ScoreUnit, models: Iterable[Model], protocol: Protocol
) -> dict[str, float]:
    """Return models' valid scores on a unit from a study's table, in the models' order."""
    if scores.empty:
        return {}
    evaluated = scores[scores["status"] == "evaluated"].set_index("unit_id")
    evaluated = evaluated[(evaluated["dataset"] == unit.name) & (evaluated["transformation"] == unit.transformation)]
    by_model = {}
    for model in models:
        key = unit.unit_id(protocol, model)
        values = evaluated.loc[[key], "score"] if key in evaluated.index else pd.Series(dtype=float)
        if len(values) and math.isfinite(values.iloc[0]):
            by_model[model.name] = float(values.iloc[0])
    return by_model


def near_perfect(scores: Mapping[str, float]) -> Finding:
    """Check whether the best model, and the weakest, leave room for improvement."""
    worst, best = min(scores, key=lambda name: scores[name]), max(scores, key=lambda name: scores[name])
    text = f"{best} scores {scores[best]:.4f}, {worst} {scores[worst]:.4f}"
    return finding("near_perfect", scores[best], text, fails=scores[worst])


def equal_scores(scores: Mapping[str, float]) -> Finding:
    """Check how far apart the models' scores are."""
    if len(scores) < 2:
        return undefined("equal_scores", f"only {next(iter(scores))} has a score on the task")
    low, high = min(scores.values()), max(scores.values())
    return finding("equal_scores", high - low, f"scores of {len(scores)} models from {low:.4f} to {high:.4f}")


@contextlib.contextmanager
def _hidden_bars(module: str) -> Iterator[None]:
    """Hide the progress bars of a module of mteb: commands have their own."""
    mteb_module: Any = importlib.import_module(module)
    bar = mteb_module.tqdm
    mteb_module.tqdm = functools.partial(bar, disable=True)
    try:
        yield
    finally:
        mteb_module.tqdm = bar


def check(
    tasks: Sequence[CheckedTask], scored: ScoreChecks | None = None, progress: Callable[[], object] = lambda: None
) -> dict[str, list[Finding]]:
    """Return the findings on each task by its name, in the thresholds' order; also by scores if there are any."""
    findings_by_task, order = {}, list(THRESHOLDS)
    for task in tasks:
        findings = [*check_contents(contents_of(task.dataset)), *(scored.findings(task) if scored else ())]
        findings_by_task[task.name] = sorted(findings, key=lambda finding: order.index(finding.check))
        progress()
    return findings_by_task


CHECKS = "checks.csv"
COLUMNS = ("task", "check", "verdict", "value", "threshold", "reason", "rows_file")


def table(checked: Mapping[str, Sequence[Finding]]) -> pd.DataFrame:
    """Return one row for each task and check; `rows_file` names the file of the rows concerned, empty without any."""
    rows = [
        (task, finding.check, finding.verdict, finding.value, finding.threshold, finding.reason,
         _rows_file(task, finding.check) if len(finding.rows) else "")
        for task, findings in checked.items()
        for finding in findings
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"value": "float64"})


def write(folder: Path, checked: Mapping[str, Sequence[Finding]], about: dict[str, Any]) -> None:
    """Write all files, each atomically; delete those of an earlier check, and no others."""
    rows = {
        _rows_file(task, finding.check): csv_bytes(finding.rows)
        for task, findings in checked.items()
        for finding in findings
        if len(finding.rows)
    }
    write_files(folder, {CHECKS: csv_bytes(table(checked)), "about.json": json_file(about), **rows})


def _rows_file(task: str, check: str) -> str:
    """Return the file for the rows of a check; characters that files cannot have are replaced."""
    return f"rows/{re.sub(r'[^A-Za-z0-9._-]', '_', task)}.{check}.csv"


_NO_VERDICTS = "there are no verdicts yet, so only untransformed data sets are checked"


def tasks_of(study: Study, names: Sequence[str]) -> tuple[list[CheckedTask], list[str]]:
    """Return the data sets (or those of `names`) and their accepted copies, with notes on missing ones.

    Verdicts must follow from the files on disk, as for an evaluation. Raises as planning an evaluation.
    """
    wanted = [spec for spec in study.datasets if not names or spec.name in names]
    if study.subject:
        return [CheckedTask(spec.name, load_dataset(spec, study.file.parent)) for spec in wanted], []
    if not (study.folder / LOOKS.name).exists():
        units = originals_of(study.model_copy(update={"datasets": tuple(wanted)}))
        return [CheckedTask(name_of(unit), unit.dataset, unit) for unit in units], [_NO_VERDICTS]
    records = EvaluationRecords(study)
    units = plan_units(
        Folder(study.model_copy(update={"datasets": tuple(wanted)})), records.conclusion.verdicts, records.pairs
    )
    out_units = [unit for unit in units if unit.decision.status == "left_out" and unit.transformation != ORIGINAL]
    tasks = [
        CheckedTask(name_of(unit), unit.data(), unit)
        for unit in units
        if unit.decision.status == "evaluated" or unit.transformation == ORIGINAL
    ]
    skipped = {unit.transformation for unit in out_units}
    notes = (
        [f"transformations not checked on data sets where verdicts do not accept them: {', '.join(sorted(skipped))}"]
        if skipped
        else []
    )
    return tasks, notes


def originals_of(study: Study) -> list[ScoreUnit]:
    """Return the units of a study's untransformed data sets."""
    return plan_units(Folder(study.model_copy(update={"transformations": ()})), [], [])


def refuse_unknown_data(names: Sequence[str], datasets: Sequence[DatasetSpec], file: Path) -> None:
    """Raise StudyError for a data set of --task that the study lacks."""
    data_names = [dataset.name for dataset in datasets]
    for name in names:
        if name not in data_names:
            raise StudyError(f"--task {name}: {file} has no data set of that name; {nearest(name, data_names)}")


def name_of(unit: ScoreUnit) -> str:
    """Return a task's name: the data set's, followed by transformation and seed."""
    if unit.transformation == ORIGINAL:
        return unit.name
    return f"{unit.name} {unit.transformation}-{unit.seed}"


def check_tasks(
    *,
    study: Annotated[Named | None, Parameter(metavar="FILE")] = None,
    exports: Annotated[Named | None, Parameter(metavar="DIR")] = None,
    task: Annotated[tuple[str, ...], Several, Parameter(metavar="NAME...")] = (),
    out: Annotated[Named | None, Parameter(metavar="FOLDER")] = None,
) -> None:
    """Check the data and the scores of tasks.

    The tasks are a study's (its data sets and their accepted transformations) or mteb's. A check that does not pass
    asks a person to review the task; it is not a verdict on the task.

    Example: plumbline check --study studies/demo.yaml --task sample_sts

    Tasks of mteb by name, without a study:

        plumbline check --task STSBenchmark Banking77Classification

    Args:
        study: The study whose tasks are checked, for example studies/demo.yaml.
        exports: Folder or address of its records (default: exports/).
        task: Only these data sets; without --study, tasks of mteb.
        out: The folder for the files (default: quality/ in the folder of the study's records; without a study,
            ./quality).
    """
    if not study and not task:
        raise StudyError("nothing to check: name a study (--study FILE) or tasks of mteb (--task NAME)")
    loaded = load_study(study, exports) if study else None
    folder = output_folder(out, loaded.folder / "quality" if loaded else "quality")
    with quiet(loaded.datasets, loaded.evaluation.models) if loaded else contextlib.nullcontext():
        tasks, checks, notes = _of_study(loaded, task) if loaded else _of_mteb(task)
        with tqdm(total=len(tasks), desc="checking", unit="task", delay=1, leave=False) as bar:
            checked = check(tasks, checks, bar.update)
    about = {"study": loaded.name if loaded else None, "tasks": list(checked)}
    write(folder, checked, about | {"notes": notes, "versions": versions()})
    print(_text(checked, notes))
    print(f"-> {folder}: {CHECKS}, rows/")


def _of_mteb(names: Sequence[str]) -> tuple[list[CheckedTask], ScoreChecks | None, list[str]]:
    specs = {name: DatasetSpec.model_validate({"mteb": name}) for name in names}
    tasks = [CheckedTask(name, load_mteb(spec)) for name, spec in specs.items()]
    return tasks, None, ["scores are not checked, as only a study names models"]


def _of_study(study: Study, names: Sequence[str]) -> tuple[list[CheckedTask], ScoreChecks | None, list[str]]:
    refuse_unknown_data(names, study.datasets, study.file)
    if not study.datasets:
        raise DataError(f"{study.file}: no data set to check; add `datasets`")
    tasks, notes = tasks_of(study, names)
    if not study.evaluation.models:
        return tasks, None, [*notes, "scores are not checked, as the study has no models"]
    records = EvaluationRecords(study)
    scores = records.scores if records.has(SCORES) else pd.DataFrame()
    return tasks, ScoreChecks(ModelHost.of(study), scores, study.command("evaluate")), notes


def _text(checked: Mapping[str, Sequence[Finding]], notes: Sequence[str]) -> str:
    """Return the text for a terminal: how many checks passed, and the others."""
    frame = table(checked)
    counts = Counter(frame["verdict"])
    answer = (
        f"{count(len(checked), 'task')}, {count(counts.total(), 'check')}: {counts['pass']:,} passed,"
        f" {counts['look']:,} to review (look), {counts['fail']:,} failed."
    )
    columns = {
        "Task": "task",
        "Check": "check",
        "Verdict": "verdict",
        "Value": cell("value", lambda value: UNDEFINED if math.isnan(value) else f"{value:.4g}"),
        "Reason": "reason",
    }
    return Exhibit.of("checks", answer, frame[frame["verdict"] != "pass"], columns, notes).text("every check passed")
