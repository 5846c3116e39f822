"""Describe a bundle and an evaluation on it for a terminal. What its maker says stands apart from what was checked."""

from __future__ import annotations

import math
import re
import shutil
import unicodedata
from collections.abc import Sequence

import pandas as pd

from annotation.records import Summary, Verdict
from annotation.verdicts.rules import unchecked
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.check import Fault
from evaluation.bundle.evaluate import BundleEvaluation
from evaluation.report.printed import scores_text
from plumbline.cli import columns
from plumbline.languages import language_name
from plumbline.words import count, printable_line

_BAR = "  | "  # before the maker's own statements
_CELL = 60  # most letters of a cell, so that no row fills several lines


def claims(bundle: Bundle) -> str:
    """Return the maker's own statements, behind a bar that no text can leave on terminals of any width."""
    width = max(20, min(120, shutil.get_terminal_size().columns) - len(_BAR) - 1)
    lines = filter(None, map(printable_line, bundle.facts.claims))
    folded = (f"{_BAR}{part}" for line in lines for part in _folded(line, width))
    return "\n".join(["Stated by the bundle (not checked):", *folded])


def _folded(line: str, width: int) -> list[str]:
    """Return a line in parts that fit; letters of wide scripts take two columns."""
    parts = [""]
    for word in re.findall(r"\S+\s?", line):
        for sign in [word] if _places(word) <= width else word:
            if _places(parts[-1] + sign.rstrip()) > width:
                parts.append("")
            parts[-1] += sign
    return [part.rstrip() for part in parts]


def _places(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(sign) in "FW") for sign in text)


def contents(bundle: Bundle) -> str:
    """Return tables of its data sets and verdicts."""
    mteb = {spec.name for spec in bundle.evidence.study.datasets if spec.mteb}
    places = {"include": "in the bundle", "reference": "in your own copy (--data)"}
    rows = []
    for name, s in bundle.manifest.datasets.items():
        location = "on the hub" if name in mteb else places[s.texts]
        rows.append([name, s.task, ", ".join(s.languages), str(s.n_texts), s.licence, location])
    cells = [[cell if len(cell) <= _CELL else f"{cell[:_CELL]} ..." for cell in row] for row in rows]
    datasets = columns(["data set", "task", "languages", "texts", "licence", "data"], cells)
    return f"{datasets}\n\n{_verdicts(bundle.verdicts)}"


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    """Return a table of the verdicts with pairs, means and agreement."""
    questions = list(dict.fromkeys(summary.question for verdict in verdicts for summary in verdict.questions))
    rows = []
    for verdict in verdicts:
        by_question = {summary.question: summary for summary in verdict.questions}
        where = language_name(verdict.language) + (f" ({verdict.task_type})" if verdict.task_type else "")
        cells = [cell for name in questions for cell in _mean_and_agreement(by_question.get(name))]
        rows.append([verdict.transformation, where, verdict.decision, str(verdict.n_pairs), *cells])
    head = ["transformation", "language", "decision", "pairs", *(word for name in questions for word in (name, "AC2"))]
    table = columns(head, rows, "no verdict was reached")
    return f"{table}\n{note}" if (note := unchecked(verdicts)) else table


def _mean_and_agreement(summary: Summary | None) -> list[str]:
    values = (summary.mean, summary.ac2.value) if summary else (math.nan, math.nan)
    return ["–" if math.isnan(value) else f"{value:.2f}" for value in values]


def checks(bundle: Bundle, faults: Sequence[Fault]) -> str:
    """Return the checks and their results, one per line."""
    lines = [printable_line(f"wrong  {file} {what}") for file, what in faults] or [
        f"ok     {len(bundle.sums)} files match SHA256SUMS",
        "ok     verdicts, means and agreement match the values computed again from the ratings",
    ]
    return "\n".join(["Checked by this program:", *lines])


def evaluation(bundle: Bundle, done: BundleEvaluation) -> str:
    """Return the scores of an evaluation, with comparable ones of the maker's other models."""
    scores = pd.concat([done.scores, done.makers], ignore_index=True)
    head = [printable_line(f"Scores times 100 on {bundle.facts.title}, bundle {bundle.identity[:8]}.")]
    if done.n_left_out:
        left_out = count(done.n_left_out, "score")
        head.append(f"The maker's other scores: {left_out} left out, as items, texts or settings differ.")
    warnings = map(printable_line, bundle.facts.warnings)
    return "\n\n".join(["\n".join([*head, *warnings]), scores_text(scores, bundle.verdicts)])
