"""`python -m evaluation.bundle`: a study's validated outputs as one file, checked, scored and compared."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.resources import installing, working

_EXAMPLE = """example: python -m evaluation.bundle inspect hteb-english-v1.plumb

  python -m evaluation.bundle export --study studies/hteb_english.yaml --out hteb-english-v1.plumb
  python -m evaluation.bundle evaluate hteb-english-v1.plumb --model intfloat/multilingual-e5-small
"""


def main() -> int:
    """The command line."""
    parser = cli.Parser(
        prog=as_called("python -m evaluation.bundle"),
        description="Validated sets: what people accepted of a study, with the ratings behind it, in one file\n"
        "that others check and evaluate on.",
        epilog=as_called(_EXAMPLE),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    export = _command(
        commands, "export", _export, "write a study's bundle", "--study studies/demo.yaml --out demo.plumb"
    )
    cli.add_study_options(export)
    export.add_argument("--out", required=True, metavar="FILE", help="the bundle's file, such as demo.plumb, or folder")
    formats = "a bundle, or a folder of Parquet files with its data card, for the `datasets` library (default: bundle)"
    export.add_argument("--format", choices=("bundle", "parquet"), default="bundle", help=formats)
    export.add_argument("--comments", action="store_true", help="let raters' free words travel too")
    inspect = _command(commands, "inspect", _inspect, "what is in a bundle, and whether it holds", "demo.plumb")
    _add_bundle(inspect)
    _add_evaluate(commands)
    text = "write a study of a bundle's pairs, to be rated again by other people"
    study = _command(commands, "study", _study, text, "demo.plumb --out studies/again.yaml")
    _add_bundle(study)
    out = "the study's file; its name is the file's"
    study.add_argument("--out", required=True, type=cli.local, metavar="FILE", help=out)
    study.add_argument("--exports", metavar="DIR", help="where records are written (default: exports/)")
    _add_copies(study)
    diff = _command(commands, "diff", _diff, "how two bundles differ", "first.plumb second.plumb")
    diff.add_argument("bundle", type=cli.local, metavar="FILE", help="the first bundle")
    second = "the second one, or a study (.yaml) whose people rated its pairs again"
    diff.add_argument("other", type=cli.local, metavar="OTHER", help=second)
    diff.add_argument("--exports", metavar="DIR", help="where that study's records are (default: exports/)")
    options = parser.parse_args()
    status: int = options.run(options)
    return status


def _add_evaluate(commands: Any) -> None:
    example = "demo.plumb --model intfloat/multilingual-e5-small"
    evaluate = _command(commands, "evaluate", _evaluate, "score models on what people accepted", example)
    _add_bundle(evaluate)
    add = evaluate.add_argument
    add("--model", nargs="+", default=[], metavar="NAME", help="models: names on the hub, of the maker's, or folders")
    add("--study", type=cli.local, metavar="FILE", help="a study of yours whose `evaluation.models` say how to load")
    add("--exports", metavar="DIR", help="where records are written (default: exports/)")
    _add_copies(evaluate)
    add("--beside", nargs="+", default=[], type=cli.local, metavar="FOLDER", help="other evaluations for the tables")
    add("--include-rejected", action="store_true", help="also score what the verdicts reject; marked everywhere")
    add("--simulated", action="store_true", help="rehearse on a bundle whose ratings are simulated")


def _add_copies(parser: argparse.ArgumentParser) -> None:
    copies = "your copies of texts that may not be handed on"
    parser.add_argument("--data", nargs="+", default=[], metavar="NAME=FILE", help=copies)


def _command(commands: Any, name: str, run: Any, text: str, example: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=as_called(f"example: python -m evaluation.bundle {name} {example}"),
    )
    parser.set_defaults(run=run)
    return parser


def _add_bundle(parser: argparse.ArgumentParser) -> None:
    key = "minisign's public key, or its file: check the signature"
    parser.add_argument("bundle", type=cli.local, metavar="FILE", help="the bundle")
    parser.add_argument("--key", metavar="KEY", default="", help=key)


def _export(options: argparse.Namespace) -> int:
    from tqdm import tqdm  # noqa: PLC0415 (what takes long to import comes after --help)

    from annotation.verdicts.rules import late_lines  # noqa: PLC0415
    from evaluation.bundle.bundle import Bundle  # noqa: PLC0415
    from evaluation.bundle.check import open_checked  # noqa: PLC0415
    from evaluation.bundle.export import export  # noqa: PLC0415
    from evaluation.bundle.folder import export_folder, lacking_line  # noqa: PLC0415
    from plumbline.store import is_remote  # noqa: PLC0415
    from plumbline.study.places import place  # noqa: PLC0415

    study, out = cli.study_of(options), place(options.out, "--out")
    folder, lacking, bundles = options.format == "parquet", list[str](), list[Bundle]()
    if folder and is_remote(out):
        raise StudyError(f"--out {out}: the `datasets` library reads a folder of this machine; name one, and copy it")
    if not folder and out.is_dir():
        raise StudyError(f"--out {out}: a folder is there; name a file, such as {out / study.name}.plumb")
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
    simulated = ", its ratings SIMULATED" if bundle.manifest.simulated else ""
    if folder:
        print(f"{study.name}: bundle {bundle.identity} and its tables, checked{simulated} -> {out}")
        last = f"nothing was sent anywhere; to read it: datasets.load_dataset({str(out)!r}, 'outputs')"
    else:
        print(f"{study.name}: {len(bundle.manifest.members)} members, read back and checked{simulated} -> {out}")
        last = f"bundle {bundle.identity}" + ("" if is_remote(out) else f"; to sign it: minisign -Sm {out}")
    print(*late_lines(bundle.verdicts), last, *lacking_line(lacking, study.file), sep="\n")
    return 0


def _inspect(options: argparse.Namespace) -> int:
    from evaluation.bundle import report  # noqa: PLC0415

    bundle, faults = _looked_through(options.bundle)
    print(f"{report.heading(bundle)}\n\n{report.set_apart(report.claims(bundle))}", flush=True)
    if not faults:
        print(f"\n{report.contents(bundle)}")
    signed = _signed(options)
    print(f"\n{report.checks(bundle, faults, signed)}")
    if faults:
        raise DataError(f"{options.bundle}: {faults[0][0]} {faults[0][1]}; get it again from where it came from")
    return 0


def _diff(options: argparse.Namespace) -> int:
    from evaluation.bundle.diff import difference  # noqa: PLC0415

    first = _held(options.bundle)
    if options.other.suffix in (".yaml", ".yml"):
        from annotation.comparison import CampaignRatings  # noqa: PLC0415
        from evaluation.bundle.diff import compared  # noqa: PLC0415
        from plumbline.study import load_study  # noqa: PLC0415

        print(compared(first, CampaignRatings.of(load_study(options.other, options.exports))))
    else:
        print(difference(first, _held(options.other)))
    return 0


def _study(options: argparse.Namespace) -> int:
    from evaluation.bundle.again import study_again  # noqa: PLC0415

    bundle = _held(options.bundle)
    _signed(options)
    again = study_again(bundle, options.out, options.exports, _files(options.data))
    left_out = f" ({again.left_out} left out, whose texts may not be handed on)" if again.left_out else ""
    counts = f"{again.pairs} pairs and {again.controls} controls"
    print(f"{again.study.name}: {counts}{left_out}, no answers -> {again.study.folder}")
    where = ["--exports", options.exports] if options.exports else []
    diff = shlex.join(["python", "-m", "evaluation.bundle", "diff", str(options.bundle), str(options.out), *where])
    print(
        f"look at raters and rules in {options.out}, then: {again.study.command('annotation publish')};"
        f" when people have answered: {as_called(diff)}"
    )
    return 0


def _evaluate(options: argparse.Namespace) -> int:
    from evaluation.bundle import report  # noqa: PLC0415
    from evaluation.bundle.evaluate import EvaluationRequest, evaluate_bundle, models_of, scores_in, specs  # noqa: PLC0415
    from evaluation.work import quiet  # noqa: PLC0415
    from plumbline.study.places import place  # noqa: PLC0415

    if not (options.model or options.study):
        raise StudyError("name the models to score: --model NAME, or --study FILE for those of a study of yours")
    bundle = _held(options.bundle)
    _signed(options)
    models = specs(bundle, options.model, models_of(options.study) if options.study else {})
    exports = place(options.exports, "--exports") if options.exports else working("exports")
    beside = [(folder.name, scores_in(folder)) for folder in options.beside]
    wanted = EvaluationRequest(_files(options.data), beside, options.include_rejected, options.simulated)
    with quiet(bundle.study(models), bundle.study(models).evaluation.models):
        evaluation = evaluate_bundle(bundle, models, exports, wanted)
    print(report.evaluation(bundle, evaluation))
    outcome, path = evaluation.outcome, evaluation.study.folder / "scores.parquet"
    print(f"\n{outcome.made} scores made, {outcome.kept} were there -> {path}")
    try:
        print(f"report -> {report.write_report(bundle, evaluation)}")
    except ModuleNotFoundError as error:
        print(f"no report page: it needs {error.name}: {installing('report')}")
    if outcome.failures:
        names = ", ".join(outcome.failures)
        raise ServiceError(
            f"models failed: {names} (the reason stands above); mend it and run the same command again, or say where"
            " they are on this machine: --model FOLDER, or --study FILE with a study whose `evaluation.models` have"
            " their `path` or `package` (studies/demo.yaml has an example)"
        )
    return 0


def _held(path: Path) -> Any:
    """A bundle in which nothing is wrong. Raises DataError with the first thing that is."""
    bundle, faults = _looked_through(path)
    if faults:
        raise DataError(f"{path}: {faults[0][0]} {faults[0][1]}; get it again from where it came from")
    return bundle


def _looked_through(path: Path) -> tuple[Any, list[tuple[str, str]]]:
    """The bundle, and what is wrong with it."""
    from tqdm import tqdm  # noqa: PLC0415

    from evaluation.bundle.bundle import Bundle  # noqa: PLC0415
    from evaluation.bundle.check import faults, steps  # noqa: PLC0415

    bundle = Bundle.open(path)
    with tqdm(total=steps(bundle), unit="check", desc="checking", delay=1, leave=False) as bar:
        return bundle, list(faults(bundle, bar.update))


def _signed(options: argparse.Namespace) -> str:
    """What there is to say of the signature; empty where nobody gave a key. Raises as `check_signature`."""
    from evaluation.bundle.archive import check_signature  # noqa: PLC0415

    return f"signature: {check_signature(options.bundle, options.key)}".strip() if options.key else ""


def _files(arguments: list[str]) -> dict[str, Path]:
    """NAME=FILE as a mapping. Raises StudyError for what is none."""
    files = {}
    for argument in arguments:
        name, equals, file = argument.partition("=")
        if not (equals and name and file):
            raise StudyError(
                f"--data {argument}: write it as NAME=FILE, a data set of the bundle and your copy of its file"
            )
        files[name] = Path(file)
    return files


if __name__ == "__main__":
    cli.run(main)
