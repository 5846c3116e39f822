"""The commands of `plumbline bundle`: open bundles, call what computes and writes, and print results.

What a bundle's maker says stands apart from what was checked.
"""

from __future__ import annotations

import re
import shutil
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pandas as pd
from cyclopts import Parameter
from tqdm import tqdm

from evaluation.bundle.bundle import Bundle
from evaluation.bundle.check import Fault, faults, refuse
from evaluation.bundle.evaluate import BundleEvaluation, EvaluationRequest, evaluate_bundle, models_of, specs
from evaluation.bundle.export import export
from evaluation.report.paper_tables import scores_text
from evaluation.work import quiet
from plumbline.cli import Local, Named, Several, StudyOptions
from plumbline.errors import ServiceError, StudyError
from plumbline.resources import working
from plumbline.store import is_remote
from plumbline.study.places import place
from plumbline.words import count, printable_line

_BAR = "  | "  # before the maker's own statements
_CELL = 60  # most letters of a cell, so that no row fills several lines


def export_study(
    *, options: StudyOptions, out: Annotated[Named, Parameter(metavar="FILE")], comments: bool = False
) -> None:
    """Write a study's bundle.

    A bundle is one file with the accepted transformations of a study and the ratings behind them, which others can
    check and evaluate on.

    Example: plumbline bundle export --study studies/demo.yaml --out demo.zip

    Args:
        options: The study.
        out: The file to write, such as demo.zip.
        comments: Include raters' comments and free answers.
    """
    study, path = options.load(), place(out, "--out")
    if path.is_dir():
        raise StudyError(f"--out {path}: this is a folder; name a file, such as {path / study.name}.zip")
    with quiet(study.datasets, ()), tqdm(unit="unit", desc="exporting", delay=1, leave=False) as bar:
        written = export(study, path, comments=comments, step=bar.update)
    bundle, simulated = written.bundle, "; its ratings are SIMULATED" if written.bundle.facts.simulated else ""
    tasks = count(len(written.tasks), "task")
    print(
        f"{study.name}: {len(bundle.sums)} files ({tasks} for mteb) written, read back and checked{simulated} -> {path}"
    )
    sign = "" if is_remote(path) else f"; to sign it: minisign -Sm {path}"
    print(*bundle.facts.warnings, *written.gaps, f"bundle {bundle.identity}{sign}", sep="\n")


def inspect(file: Local, /) -> None:
    """Check a bundle and show its contents.

    Example: plumbline bundle inspect demo.zip

    Args:
        file: The bundle.
    """
    bundle, found_faults = _checked(file)
    if not found_faults:
        print(f"bundle {bundle.identity}", *bundle.facts.warnings, sep="\n")
        print(f"\n{_claims(bundle)}\n\n{_contents(bundle)}\n")
    lines = [printable_line(f"wrong  {file} {fault}") for file, fault in found_faults] or [
        f"ok     {len(bundle.sums)} files match SHA256SUMS",
        "ok     verdicts, means and agreement match the values computed again from the ratings",
    ]
    print("Checked by this program:", *lines, sep="\n")
    refuse(bundle, found_faults)


def evaluate(
    file: Local,
    /,
    *,
    model: Annotated[tuple[str, ...], Several, Parameter(metavar="NAME...")] = (),
    study: Local | None = None,
    exports: Annotated[Named | None, Parameter(metavar="DIR")] = None,
    request: EvaluationRequest = EvaluationRequest(),
) -> None:
    """Score models on the accepted transformations.

    Example: plumbline bundle evaluate demo.zip --model intfloat/multilingual-e5-small

    Args:
        file: The bundle.
        model: Models to score: names on the hub, names of the maker's models, or folders.
        study: Your study, whose `evaluation.models` are scored.
        exports: The folder for records (default: exports/).
        request: What is scored.
    """
    if not (model or study):
        raise StudyError("name the models to score: --model NAME, or --study FILE for those of your study")
    bundle, found_faults = _checked(file)
    refuse(bundle, found_faults)
    models = specs(bundle, model, models_of(study) if study else {})
    folder = place(exports, "--exports") if exports else working("exports")
    evaluated = bundle.study(models)
    with quiet(evaluated.datasets, evaluated.evaluation.models):
        done = evaluate_bundle(bundle, models, folder, request)
    print(evaluation_text(bundle, done))
    outcome, path = done.outcome, done.study.folder / "scores.parquet"
    print(f"\n{count(outcome.made, 'score')} computed, {outcome.kept:,} already stored -> {path}")
    if outcome.failures:
        names = ", ".join(outcome.failures)
        raise ServiceError(
            f"models failed: {names} (the reasons are above); correct the errors and run the same command again, or"
            " name local copies: --model FOLDER, or --study FILE with a study whose `evaluation.models` have a `path`"
            " or `package` (studies/demo.yaml has an example)"
        )


def _checked(path: Path) -> tuple[Bundle, list[Fault]]:
    bundle = Bundle.open(path)
    with tqdm(total=len(bundle.sums), unit="file", desc="checking", delay=1, leave=False) as bar:
        return bundle, list(faults(bundle, bar.update))


def _claims(bundle: Bundle) -> str:
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


def _contents(bundle: Bundle) -> str:
    """Return the tables of its data sets and verdicts, with long cells cut."""
    sources, decisions = bundle.facts.sources, bundle.facts.decisions
    sources = replace(sources, printed=sources.printed.drop(columns="Source"))  # the maker's own words stand apart
    if decisions.frame.empty:
        decisions = replace(decisions, notes=())
    short = (
        replace(table, printed=table.printed.map(lambda cell: cell if len(cell) <= _CELL else f"{cell[:_CELL]} ..."))
        for table in (sources, decisions)
    )
    return "\n\n".join(table.text("none") for table in short)


def evaluation_text(bundle: Bundle, done: BundleEvaluation) -> str:
    """Return the scores of an evaluation, with comparable ones of the maker's other models."""
    scores = pd.concat([done.scores, done.makers], ignore_index=True)
    head = [printable_line(f"Scores times 100 on {bundle.facts.title}, bundle {bundle.identity[:8]}.")]
    if done.n_left_out:
        left_out = count(done.n_left_out, "score")
        head.append(f"The maker's other scores: {left_out} left out, as items, texts or settings differ.")
    warnings = map(printable_line, bundle.facts.warnings)
    return "\n\n".join(["\n".join([*head, *warnings]), scores_text(scores, bundle.verdicts)])
