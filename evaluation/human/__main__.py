"""`python -m evaluation.human`: the report on people and models on the same items."""

from __future__ import annotations

from annotation.human.records import ITEMS
from evaluation.human.records import AGREEMENT, ANNOTATORS, DIFFERENCES, DIFFICULTY, ITEM_SCORES, NOTES, SCORES
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError
from plumbline.manifest import stage
from plumbline.study.human import HumanSubject

PROGRAM = "python -m evaluation.human"


def main() -> int:
    """The command line."""
    parser = cli.Parser(
        prog=as_called(PROGRAM),
        description="Write what people and models score on the same items: tables (CSV, Markdown, LaTeX), figures (SVG,"
        " PNG) and one HTML page.",
        epilog=as_called(f"example: {PROGRAM} --study studies/human.yaml"),
    )
    cli.add_study_options(parser)
    study = cli.study_of(parser.parse_args())
    if not isinstance(study.subject, HumanSubject):
        raise StudyError(f"{study.file}: no people do tasks in this study; `{study.command('evaluation.report')}`")
    from evaluation.human.headline import headline  # noqa: PLC0415 (what takes long to import comes after --help)
    from evaluation.human.material import read_material  # noqa: PLC0415
    from evaluation.human.page import FOLDER, write_report  # noqa: PLC0415

    inputs = [
        study.folder / name
        for name in (SCORES, AGREEMENT, DIFFERENCES, ITEM_SCORES, ANNOTATORS, DIFFICULTY, NOTES, ITEMS)
    ]
    with stage(study, "evaluation human report", inputs, [study.folder / FOLDER]):
        page = write_report(study)
    print("\n".join(headline(read_material(study))))
    print(f"-> {page}")
    return 0


if __name__ == "__main__":
    cli.run(main)
