"""`python -m evaluation.report`: the papers' tables and figures of an evaluated study."""

from __future__ import annotations

from evaluation.report.contents import Choices
from evaluation.report.page import FOLDER, write_report
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError
from plumbline.manifest import stage
from plumbline.study import load_study

_INPUTS = (
    "scores.parquet",
    "drift.parquet",
    "accepted_scores.parquet",
    "text_drift.parquet",
    "abstention.parquet",
    "verdicts.json",
    "pairs.parquet",
    "ratings.parquet",
)


def main() -> int:
    """The command line."""
    parser = cli.Parser(
        prog=as_called("python -m evaluation.report"),
        description="Write an evaluated study's tables (CSV, Markdown, LaTeX), figures (SVG, PNG) and one HTML page.",
        epilog=as_called("example: python -m evaluation.report --study studies/demo.yaml"),
    )
    cli.add_study_options(parser)
    parser.add_argument(
        "--baseline", metavar="MODEL", default="", help="the model to compare others with (default: the first)"
    )
    parser.add_argument(
        "--compare", metavar="FILE", help="an evaluated study with another generator (HTEB, Tables 22 and 23)"
    )
    parser.add_argument(
        "--prompts",
        nargs="+",
        metavar="FILE",
        default=[],
        help="evaluated studies with the same generator under other `prompts` (PTEB, Table 12)",
    )
    parser.add_argument(
        "--translation", nargs=2, metavar="NAME", help="a data set and its translation (HTEB, Table 16)"
    )
    parser.add_argument(
        "--multilingual", nargs="+", metavar="MODEL", default=[], help="models for the second group of that table"
    )
    options = parser.parse_args()
    study = cli.study_of(options)
    if study.judging.does_tasks:
        raise StudyError(
            f"{study.file}: people do tasks here; the report on them is `{study.command('evaluation.human')}`"
        )
    compared = load_study(options.compare, options.exports) if options.compare else None
    prompts = [load_study(file, options.exports) for file in options.prompts]
    if compared and compared.folder == study.folder:
        raise StudyError(f"--compare: {options.compare} is the study itself; name one with another generator")
    folders = [named.folder for named in (study, *prompts)]
    if twice := [named for position, named in enumerate(prompts, 1) if named.folder in folders[:position]]:
        raise StudyError(f"--prompts: {twice[0].file} is named twice; name each study once, and not {study.file}")
    pair = tuple(options.translation) if options.translation else None
    if options.multilingual and not pair:
        raise StudyError("--multilingual goes with --translation: name the data set and its translation, too")
    if pair and pair[0] == pair[1]:
        raise StudyError(f"--translation: {pair[0]!r} is named twice; name a data set and its translation")
    inputs = [named.folder / name for named in (study, compared, *prompts) if named for name in _INPUTS]
    with stage(study, "evaluation report", inputs, [study.folder / FOLDER]):
        page = write_report(study, Choices(options.baseline, pair, tuple(options.multilingual)), compared, prompts)
    print(f"{study.name}: tables and figures -> {page}")
    return 0


if __name__ == "__main__":
    cli.run(main)
