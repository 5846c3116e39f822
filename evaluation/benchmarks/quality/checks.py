"""The tasks of a study that are checked: its data sets, and what accepted transformations made of them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.campaign_records import CampaignRecords
from annotation.judges.decisions import refuse_other_judgements
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.verdicts import refuse_stale
from annotation.verdicts.verification import refuse_edited
from evaluation.benchmarks.quality.contents import Contents, contents_of
from evaluation.benchmarks.quality.data_checks import Reader, check_gold, check_texts, too_long
from evaluation.benchmarks.quality.findings import THRESHOLDS, Finding
from evaluation.benchmarks.quality.statistics import Statistics, check_statistics, statistics_of
from evaluation.planner import plan_units
from evaluation.units import ScoreUnit
from generation.datasets.dataset import Dataset
from generation.datasets.loading import load_dataset
from plumbline.exhibits.files import csv_bytes, write_files
from plumbline.study import Study
from plumbline.transformations import ORIGINAL


@dataclass(frozen=True)
class CheckedTask:
    """A task that is checked: a data set as it is, or as an accepted transformation left it.

    `name` is the data set's, with transformation and seed behind it where there is one; `unit` is what a study scores.
    """

    name: str
    dataset: Dataset
    unit: ScoreUnit | None = None


@dataclass
class TaskCheck:
    """What was found of a task, in the order of the thresholds, and mteb's descriptive statistics of it."""

    task: str
    findings: list[Finding] = field(default_factory=list)
    statistics: Statistics = field(default_factory=dict)


Beside = Callable[[CheckedTask, Contents], Iterator[Finding]]


def nothing(_task: CheckedTask, _contents: Contents) -> Iterator[Finding]:
    """Find nothing beside what a task holds."""
    yield from ()


def check(
    tasks: Sequence[CheckedTask],
    readers: Sequence[Reader] | None = None,
    beside: Beside = nothing,
    progress: Callable[[], object] = lambda: None,
) -> list[TaskCheck]:
    """Check each task.

    `readers` are models whose room for texts is known (None without any models); `beside` finds what scores, or
    people, tell of a task.
    """
    results = []
    for task in tasks:
        contents = contents_of(task.dataset)
        result = TaskCheck(task.name, [*check_texts(contents), *check_gold(contents)])
        if all(part.items for part in contents.scored):
            result.statistics = statistics_of(contents)
            published = check_statistics(task.dataset, contents, result.statistics)
            result.findings += [published] if published is not None else []
        result.findings += [too_long(contents, readers)] if readers is not None else []
        result.findings += beside(task, contents)
        order = list(THRESHOLDS)
        result.findings.sort(key=lambda finding: order.index(finding.check))
        results.append(result)
        progress()
    return results


CHECKS = "checks.csv"
COLUMNS = ("task", "check", "verdict", "value", "threshold", "reason", "rows_file")


def table(checked: Sequence[TaskCheck]) -> pd.DataFrame:
    """A row a task and check; `rows_file` names the file of the rows that it is about, empty where there are none."""
    rows = [
        (result.task, finding.check, finding.verdict, finding.value, finding.threshold, finding.reason,
         _rows_file(result.task, finding.check) if len(finding.rows) else "")
        for result in checked
        for finding in result.findings
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"value": "float64"})


def write(folder: Path, checked: Sequence[TaskCheck], about: dict[str, Any]) -> None:
    """Write all files, each atomically; those that the check before it wrote go, and no others."""
    files = {
        CHECKS: csv_bytes(table(checked)),
        "statistics.json": _json({result.task: result.statistics for result in checked}),
        "about.json": _json(about),
    }
    for result in checked:
        for finding in result.findings:
            if len(finding.rows):
                files[_rows_file(result.task, finding.check)] = csv_bytes(finding.rows)
    write_files(folder, files)


def _rows_file(task: str, check: str) -> str:
    """Where the rows of a check stand; names of mteb's tasks may hold signs that files cannot have."""
    return f"rows/{re.sub(r'[^A-Za-z0-9._-]', '_', task)}.{check}.csv"


def _json(value: Any) -> bytes:
    return (json.dumps(_plain(value), indent=2, ensure_ascii=False, default=str) + "\n").encode()


def _plain(value: Any) -> Any:
    """Undefined numbers are null."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_NO_VERDICTS = "there are no verdicts yet, so that data sets are checked as they are, and no transformation of them"


def tasks_of(study: Study, names: Sequence[str]) -> tuple[list[CheckedTask], list[str]]:
    """The data sets (those of `names`, where any are named) and their accepted copies, with notes on what is not there.

    Verdicts must follow from what is on disk, as for an evaluation. Raises what that raises.
    """
    wanted = [spec for spec in study.datasets if not names or spec.name in names]
    if study.subject:
        return [CheckedTask(spec.name, load_dataset(spec, study.file.parent)) for spec in wanted], []
    if not (study.folder / "verdicts.json").exists():
        originals = study.model_copy(update={"transformations": (), "datasets": tuple(wanted)})
        return [CheckedTask(name_of(unit), unit.dataset, unit) for unit in plan_units(originals, [], [])], [
            _NO_VERDICTS
        ]
    verdicts = CampaignRecords.open(study).verdicts
    evidence = Evidence.read(study)
    refuse_stale(evidence, verdicts)
    refuse_edited(evidence, verdicts)
    refuse_other_judgements(evidence, verdicts)
    units = plan_units(
        study.model_copy(update={"datasets": tuple(wanted)}), verdicts, CampaignRecords.open(study).pairs
    )
    out_units = [unit for unit in units if unit.decision.status == "left_out" and unit.transformation != ORIGINAL]
    tasks = [
        CheckedTask(name_of(unit), unit.data(), unit)
        for unit in units
        if unit.decision.status == "evaluated" or unit.transformation == ORIGINAL
    ]
    skipped = {unit.transformation for unit in out_units}
    notes = [f"not accepted everywhere, and not checked there: {', '.join(sorted(skipped))}"] if skipped else []
    return tasks, notes


def original_of(study: Study, name: str) -> ScoreUnit:
    """One data set of a study as it is."""
    spec = next(spec for spec in study.datasets if spec.name == name)
    (unit,) = plan_units(study.model_copy(update={"transformations": (), "datasets": (spec,)}), [], [])
    return unit


def name_of(unit: ScoreUnit) -> str:
    """A task's name: the data set's, with transformation and seed behind it."""
    if unit.transformation == ORIGINAL:
        return unit.name
    return f"{unit.name} {unit.transformation}-{unit.seed}"
