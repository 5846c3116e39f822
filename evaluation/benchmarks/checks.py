"""Check the tasks of a study, its data sets and their accepted transformations, or tasks of mteb."""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from annotation.campaign_records import LOOKS
from evaluation.benchmarks.contents import THRESHOLDS, CheckedTask, Finding, contents_of
from evaluation.benchmarks.data_checks import check_gold, check_texts
from evaluation.benchmarks.score_checks import ScoreChecks
from evaluation.models.encoder import ModelHost
from evaluation.records import SCORES, EvaluationRecords
from evaluation.sources import Folder
from evaluation.units import ScoreUnit, plan_units
from evaluation.work import quiet, versions
from generation.datasets.loading import load_dataset
from generation.datasets.mteb_tasks import load_mteb
from plumbline.errors import DataError, StudyError, nearest
from plumbline.exhibits.table import UNDEFINED, Exhibit, cell, csv_bytes, json_file, write_files
from plumbline.study import Study, load_study
from plumbline.study.datasets import DatasetSpec
from plumbline.study.places import output_folder
from plumbline.transformations import ORIGINAL
from plumbline.words import count


@dataclass(frozen=True)
class TaskCheck:
    """The findings on a task, in the order of the thresholds."""

    task: str
    findings: list[Finding]


def check(
    tasks: Sequence[CheckedTask],
    scored: ScoreChecks | None = None,
    progress: Callable[[], object] = lambda: None,
) -> list[TaskCheck]:
    """Check each task, also by models' scores if there are any (`scored`)."""
    results, order = [], list(THRESHOLDS)
    for task in tasks:
        contents = contents_of(task.dataset)
        findings = [*check_texts(contents), *check_gold(contents), *(scored.findings(task) if scored else ())]
        results.append(TaskCheck(task.name, sorted(findings, key=lambda finding: order.index(finding.check))))
        progress()
    return results


CHECKS = "checks.csv"
COLUMNS = ("task", "check", "verdict", "value", "threshold", "reason", "rows_file")


def table(checked: Sequence[TaskCheck]) -> pd.DataFrame:
    """Return one row for each task and check; `rows_file` names the file of the rows concerned, empty without any."""
    rows = [
        (result.task, finding.check, finding.verdict, finding.value, finding.threshold, finding.reason,
         _rows_file(result.task, finding.check) if len(finding.rows) else "")
        for result in checked
        for finding in result.findings
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"value": "float64"})


def write(folder: Path, checked: Sequence[TaskCheck], about: dict[str, Any]) -> None:
    """Write all files, each atomically; delete those of an earlier check, and no others."""
    files = {
        CHECKS: csv_bytes(table(checked)),
        "about.json": json_file(about),
    }
    for result in checked:
        for finding in result.findings:
            if len(finding.rows):
                files[_rows_file(result.task, finding.check)] = csv_bytes(finding.rows)
    write_files(folder, files)


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
    records = EvaluationRecords.open(study)
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


def check_tasks(options: argparse.Namespace) -> int:
    """Run `check`: check a study's tasks, or mteb's."""
    if not options.study and not options.task:
        raise StudyError("nothing to check: name a study (--study FILE) or tasks of mteb (--task NAME)")
    study = load_study(options.study, options.exports) if options.study else None
    out = output_folder(options.out, study.folder / "quality" if study else "quality")
    if study is None:
        checked, notes = _of_mteb(options.task)
    else:
        with quiet(study.datasets, study.evaluation.models):
            checked, notes = _of_study(study, options)
    about = {"study": study.name if study else None, "tasks": [result.task for result in checked]}
    write(out, checked, about | {"notes": notes, "versions": versions()})
    print(_text(checked, notes))
    print(f"-> {out}: {CHECKS}, rows/")
    return 0


def _of_mteb(names: Sequence[str]) -> tuple[list[TaskCheck], list[str]]:
    specs = {name: DatasetSpec.model_validate({"mteb": name}) for name in names}
    tasks = [CheckedTask(name, load_mteb(spec)) for name, spec in specs.items()]
    with tqdm(total=len(tasks), desc="checking", unit="task", delay=1, leave=False) as bar:
        return check(tasks, progress=bar.update), ["scores are not checked, as only a study names models"]


def _of_study(study: Study, options: argparse.Namespace) -> tuple[list[TaskCheck], list[str]]:
    refuse_unknown_data(options.task, study.datasets, study.file)
    if not study.datasets:
        raise DataError(f"{study.file}: no data set to check; add `datasets`")
    tasks, notes = tasks_of(study, options.task)
    with tqdm(total=len(tasks), desc="checking", unit="task", delay=1, leave=False) as bar:
        if not study.evaluation.models:
            notes.append("scores are not checked, as the study has no models")
            return check(tasks, progress=bar.update), notes
        records = EvaluationRecords.open(study)
        scores = records.scores if records.has(SCORES) else pd.DataFrame()
        checks = ScoreChecks(ModelHost.of(study), scores, study.command("evaluate"))
        return check(tasks, checks, bar.update), notes


def _text(checked: Sequence[TaskCheck], notes: Sequence[str]) -> str:
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
