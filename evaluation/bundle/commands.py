"""The commands of `plumbline bundle`: open bundles, call what computes and writes, and print results."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from tqdm import tqdm

from annotation.comparison import CampaignRatings
from annotation.verdicts.rules import late_lines
from evaluation.bundle import report
from evaluation.bundle.bundle import Bundle, check_signature
from evaluation.bundle.check import faults, open_checked, steps
from evaluation.bundle.contribution import export_tasks
from evaluation.bundle.evaluate import EvaluationRequest, evaluate_bundle, models_of, scores_in, specs
from evaluation.bundle.export import export
from evaluation.bundle.folder import CARD, export_folder, lacking_line
from evaluation.bundle.records import Fault
from evaluation.bundle.report import compared, difference
from evaluation.bundle.source import study_again
from evaluation.work import quiet
from plumbline import cli
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.resources import installing, working
from plumbline.store import is_remote
from plumbline.study import Study, load_study
from plumbline.study.places import place
from plumbline.words import count


def export_study(options: argparse.Namespace) -> int:
    """Run `bundle export`: write a study's bundle, or its tables as a folder."""
    study, out = cli.study_of(options), place(options.out, "--out")
    folder, lacking, bundles = options.format == "parquet", list[str](), list[Bundle]()
    if options.format != "bundle" and is_remote(out):
        raise StudyError(f"--out {out}: this format needs a local folder; name one, then copy it")
    if options.format == "mteb":
        return _export_tasks(study, out, comments=options.comments)
    if not folder and out.is_dir():
        raise StudyError(f"--out {out}: this is a folder; name a file, such as {out / study.name}.plumb")
    units = len(study.transformations) * len(study.seeds)
    with tqdm(total=units, unit="unit", desc="exporting", delay=1, leave=False) as bar:
        if folder:
            bundle, lacking = export_folder(study, out, comments=options.comments, step=bar.update)
            bundles.append(bundle)
        else:
            export(
                study, out, comments=options.comments, step=bar.update,
                check=lambda file: bundles.append(open_checked(file)),
            )  # fmt: skip
    bundle = bundles[-1]
    simulated = "; its ratings are SIMULATED" if bundle.manifest.simulated else ""
    if folder:
        print(f"{study.name}: bundle {bundle.identity} and its tables written and checked{simulated} -> {out}")
        last = f"nothing was uploaded; to read it: datasets.load_dataset({str(out)!r}, 'outputs')"
    else:
        print(
            f"{study.name}: {len(bundle.manifest.members)} members written, read back and checked{simulated} -> {out}"
        )
        last = f"bundle {bundle.identity}" + ("" if is_remote(out) else f"; to sign it: minisign -Sm {out}")
    print(*late_lines(bundle.verdicts), last, *lacking_line(lacking, study.file), sep="\n")
    return 0


def _export_tasks(study: Study, out: Path, *, comments: bool) -> int:
    with tqdm(unit="task", desc="exporting", delay=1, leave=False) as bar:
        written = export_tasks(study, out, comments=comments, step=bar.update)
    simulated = "; its ratings are SIMULATED" if written.bundle.manifest.simulated else ""
    print(f"{study.name}: {count(len(written.tasks), 'task')} for mteb written, loaded and scored{simulated} -> {out}")
    print(*(f"left out: {line}" for line in written.left_out), sep="\n", end="\n" * bool(written.left_out))
    print(*late_lines(written.bundle.verdicts), f"nothing was uploaded; next steps are in {out / CARD}", sep="\n")
    return 0


def inspect(options: argparse.Namespace) -> int:
    """Run `bundle inspect`: check a bundle and print its contents."""
    bundle, wrong = _looked_through(options.bundle)
    print(f"{report.heading(bundle)}\n\n{report.set_apart(report.claims(bundle))}", flush=True)
    if not wrong:
        print(f"\n{report.contents(bundle)}")
    signed = _signed(options)
    print(f"\n{report.checks(bundle, wrong, signed)}")
    if wrong:
        raise DataError(f"{options.bundle}: {wrong[0][0]} {wrong[0][1]}; get it again from its source")
    return 0


def compare(options: argparse.Namespace) -> int:
    """Run `bundle diff`: print how two bundles differ, or a bundle and a study whose raters rated its pairs again."""
    first = _held(options.bundle)
    if options.other.suffix in (".yaml", ".yml"):
        print(compared(first, CampaignRatings.of(load_study(options.other, options.exports))))
    else:
        print(difference(first, _held(options.other)))
    return 0


def write_study(options: argparse.Namespace) -> int:
    """Run `bundle study`: write a study with a bundle's pairs, for other people to rate again."""
    bundle = _held(options.bundle)
    _signed(options)
    again = study_again(bundle, options.out, options.exports, _files(options.data))
    left_out = f" ({again.left_out} left out, as their texts may not be shared)" if again.left_out else ""
    counts = f"{count(again.pairs, 'pair')} and {count(again.controls, 'control')}"
    print(f"{again.study.name}: {counts}{left_out} written, without answers -> {again.study.folder}")
    where = ["--exports", options.exports] if options.exports else []
    diff = shlex.join(["plumbline", "bundle", "diff", str(options.bundle), str(options.out), *where])
    print(
        f"check raters and rules in {options.out}, then run {again.study.command('publish')};"
        f" when people have answered, run {diff}"
    )
    return 0


def evaluate(options: argparse.Namespace) -> int:
    """Run `bundle evaluate`: score models on what people accepted."""
    if not (options.model or options.study):
        raise StudyError("name the models to score: --model NAME, or --study FILE for those of your study")
    bundle = _held(options.bundle)
    _signed(options)
    models = specs(bundle, options.model, models_of(options.study) if options.study else {})
    exports = place(options.exports, "--exports") if options.exports else working("exports")
    beside = [(folder.name, scores_in(folder)) for folder in options.beside]
    wanted = EvaluationRequest(_files(options.data), beside, options.include_rejected, options.simulated)
    study = bundle.study(models)
    with quiet(study.datasets, study.evaluation.models):
        done = evaluate_bundle(bundle, models, exports, wanted)
    print(report.evaluation(bundle, done))
    outcome, path = done.outcome, done.study.folder / "scores.parquet"
    print(f"\n{count(outcome.made, 'score')} computed, {outcome.kept:,} already stored -> {path}")
    try:
        print(f"report -> {report.write_report(bundle, done)}")
    except ModuleNotFoundError as error:
        print(f"no report page was written, as {error.name} is not installed: {installing('report')}")
    if outcome.failures:
        names = ", ".join(outcome.failures)
        raise ServiceError(
            f"models failed: {names} (the reasons are above); correct the errors and run the same command again, or"
            " name local copies: --model FOLDER, or --study FILE with a study whose `evaluation.models` have a `path`"
            " or `package` (studies/demo.yaml has an example)"
        )
    return 0


def _held(path: Path) -> Bundle:
    """Open a bundle without faults. Raises DataError with the first fault."""
    bundle, wrong = _looked_through(path)
    if wrong:
        raise DataError(f"{path}: {wrong[0][0]} {wrong[0][1]}; get it again from its source")
    return bundle


def _looked_through(path: Path) -> tuple[Bundle, list[Fault]]:
    """Open a bundle, and return it with its faults."""
    bundle = Bundle.open(path)
    with tqdm(total=steps(bundle), unit="check", desc="checking", delay=1, leave=False) as bar:
        return bundle, list(faults(bundle, bar.update))


def _signed(options: argparse.Namespace) -> str:
    """Return a line on the signature; empty without a key. Raises as `check_signature`."""
    return f"signature: {check_signature(options.bundle, options.key)}".strip() if options.key else ""


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
