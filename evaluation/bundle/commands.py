"""The commands of `plumbline bundle`: open bundles, call what computes and writes, and print results."""

from __future__ import annotations

import argparse
from pathlib import Path

from tqdm import tqdm

from evaluation.bundle import report
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.check import Fault, faults, refuse
from evaluation.bundle.evaluate import EvaluationRequest, evaluate_bundle, models_of, specs
from evaluation.bundle.export import export
from evaluation.work import quiet
from plumbline import cli
from plumbline.errors import ServiceError, StudyError
from plumbline.resources import working
from plumbline.store import is_remote
from plumbline.study.places import place
from plumbline.words import count


def export_study(options: argparse.Namespace) -> int:
    """Run `bundle export`: write a study's bundle."""
    study, out = cli.study_of(options), place(options.out, "--out")
    if out.is_dir():
        raise StudyError(f"--out {out}: this is a folder; name a file, such as {out / study.name}.zip")
    with quiet(study.datasets, ()), tqdm(unit="unit", desc="exporting", delay=1, leave=False) as bar:
        written = export(study, out, comments=options.comments, step=bar.update)
    bundle, simulated = written.bundle, "; its ratings are SIMULATED" if written.bundle.facts.simulated else ""
    tasks = count(len(written.tasks), "task")
    print(
        f"{study.name}: {len(bundle.sums)} files ({tasks} for mteb) written, read back and checked{simulated} -> {out}"
    )
    sign = "" if is_remote(out) else f"; to sign it: minisign -Sm {out}"
    print(*bundle.facts.warnings, *written.lacking, f"bundle {bundle.identity}{sign}", sep="\n")
    return 0


def inspect(options: argparse.Namespace) -> int:
    """Run `bundle inspect`: check a bundle and print its contents."""
    bundle, wrong = _checked(options.bundle)
    if not wrong:
        print(f"bundle {bundle.identity}", *bundle.facts.warnings, sep="\n")
        print(f"\n{report.claims(bundle)}\n\n{report.contents(bundle)}\n")
    print(report.checks(bundle, wrong))
    refuse(bundle, wrong)
    return 0


def evaluate(options: argparse.Namespace) -> int:
    """Run `bundle evaluate`: score models on what people accepted."""
    if not (options.model or options.study):
        raise StudyError("name the models to score: --model NAME, or --study FILE for those of your study")
    bundle, wrong = _checked(options.bundle)
    refuse(bundle, wrong)
    models = specs(bundle, options.model, models_of(options.study) if options.study else {})
    exports = place(options.exports, "--exports") if options.exports else working("exports")
    study = bundle.study(models)
    with quiet(study.datasets, study.evaluation.models):
        wanted = EvaluationRequest(_files(options.data), options.include_rejected, options.simulated)
        done = evaluate_bundle(bundle, models, exports, wanted)
    print(report.evaluation(bundle, done))
    outcome, path = done.outcome, done.study.folder / "scores.parquet"
    print(f"\n{count(outcome.made, 'score')} computed, {outcome.kept:,} already stored -> {path}")
    if outcome.failures:
        names = ", ".join(outcome.failures)
        raise ServiceError(
            f"models failed: {names} (the reasons are above); correct the errors and run the same command again, or"
            " name local copies: --model FOLDER, or --study FILE with a study whose `evaluation.models` have a `path`"
            " or `package` (studies/demo.yaml has an example)"
        )
    return 0


def _checked(path: Path) -> tuple[Bundle, list[Fault]]:
    """Open a bundle, and return it with its faults."""
    bundle = Bundle.open(path)
    with tqdm(total=len(bundle.sums), unit="file", desc="checking", delay=1, leave=False) as bar:
        return bundle, list(faults(bundle, bar.update))


def _files(arguments: list[str]) -> dict[str, Path]:
    """Return NAME=FILE arguments as a mapping. Raises StudyError for other forms."""
    files = {}
    for argument in arguments:
        name, equals, file = argument.partition("=")
        if not (equals and name and file):
            raise StudyError(
                f"--data {argument}: write NAME=FILE: the name of a data set of the bundle, and your copy of its file"
            )
        files[name] = Path(file)
    return files
