"""`python -m evaluation.human`: the report on people and models on the same items."""

from __future__ import annotations

import argparse

from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError

PROGRAM = "python -m evaluation.human"
FOLDER = "report_human"
_EXAMPLE = f"""example: {PROGRAM} --study studies/human.yaml

HUME's tables of scores that somebody published (model, revision, task, language, metric, value), without running
anything:

  {PROGRAM} --scores scores.parquet --agreement agreement.json --out report
"""


def main() -> int:
    """The command line."""
    parser = cli.Parser(
        prog=as_called(PROGRAM),
        description="Write what people and models score on the same items: tables (CSV, Markdown, LaTeX), figures (SVG,"
        " PNG) and one HTML page.",
        epilog=as_called(_EXAMPLE),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_options(parser)
    options = parser.parse_args()
    return _of_scores(options) if options.scores else _of_study(options)


def _add_options(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--study", metavar="FILE", help="an evaluated human study")
    source.add_argument(
        "--scores", type=cli.local, metavar="FILE", help="scores that somebody published, of people and models"
    )
    add = parser.add_argument
    add("--exports", metavar="DIR", help="with --study: where its records are (default: exports/)")
    add("--agreement", type=cli.local, metavar="FILE", help="with --scores: items and raters' agreement by task (JSON)")
    add("--models", type=_names, default=(), metavar="NAMES", help="with --scores: these models alone, by commas")
    add("--out", metavar="FOLDER", help=f"with --scores: where the report goes (default: {FOLDER})")


def _of_scores(options: argparse.Namespace) -> int:
    from evaluation.human.published import (  # noqa: PLC0415
        headline,
        read_published,
        write_published,
    )
    from plumbline.study.places import place  # noqa: PLC0415

    published = read_published(options.scores, options.agreement, options.models)
    folder = place(options.out or FOLDER, "--out")
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"--out {folder}: a file is there; name a folder")
    page = write_published(folder, published, f"People and models: {options.scores.name}")
    print("\n".join(headline(published)))
    print(f"-> {page}")
    return 0


def _of_study(options: argparse.Namespace) -> int:
    if options.agreement or options.models or options.out:
        raise StudyError("--agreement, --models and --out go with --scores; a study has its own, leave them out")
    study = cli.study_of(options)
    if not study.judging.does_tasks:
        raise StudyError(f"{study.file}: no people do tasks in this study; `{study.command('evaluation.report')}`")
    from annotation.human.records import ITEMS  # noqa: PLC0415 (after --help)
    from evaluation.human.material import headline, read_material  # noqa: PLC0415
    from evaluation.human.records import FILES  # noqa: PLC0415
    from evaluation.human.report import write_report  # noqa: PLC0415
    from plumbline.manifest import stage  # noqa: PLC0415

    inputs = [study.folder / name for name in (*FILES, ITEMS)]
    with stage(study, "evaluation human report", inputs, [study.folder / FOLDER]):
        page = write_report(study)
    print("\n".join(headline(read_material(study))))
    print(f"-> {page}")
    return 0


def _names(value: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in value.split(",") if part.strip())
    if not names:
        raise argparse.ArgumentTypeError(f"{value!r} names no model")
    return names


if __name__ == "__main__":
    cli.run(main)
