"""The records of a check: the table, the rows that its checks are about, mteb's statistics, and what all rests on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from evaluation.build.quality.checks import Checked
from plumbline.exhibits.csv import csv_bytes
from plumbline.exhibits.folder import write_files

CHECKS = "checks.csv"
COLUMNS = ("task", "check", "verdict", "value", "threshold", "reason", "rows_file")


def table(checked: Sequence[Checked]) -> pd.DataFrame:
    """A row a task and check; `rows_file` names the file of the rows that it is about, empty where there are none."""
    rows = [
        (one.task, finding.check, finding.verdict, finding.value, finding.threshold, finding.reason,
         _rows_file(one.task, finding.check) if len(finding.rows) else "")
        for one in checked
        for finding in one.findings
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"value": "float64"})


def write(folder: Path, checked: Sequence[Checked], about: dict[str, Any]) -> None:
    """Write all files, each atomically; those that the check before it wrote go, and no others."""
    files = {
        CHECKS: csv_bytes(table(checked)),
        "statistics.json": _json({one.task: one.statistics for one in checked}),
        "about.json": _json(about),
    }
    for one in checked:
        for finding in one.findings:
            if len(finding.rows):
                files[_rows_file(one.task, finding.check)] = csv_bytes(finding.rows)
    write_files(folder, files)


def _rows_file(task: str, check: str) -> str:
    """Where the rows of a check stand; names of mteb's tasks may hold signs that files cannot have."""
    return f"rows/{re.sub(r'[^A-Za-z0-9._-]', '_', task)}.{check}.csv"


def _json(value: Any) -> bytes:
    return (json.dumps(_plain(value), indent=2, ensure_ascii=False, default=str) + "\n").encode()


def _plain(value: Any) -> Any:
    """Undefined numbers are null."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
