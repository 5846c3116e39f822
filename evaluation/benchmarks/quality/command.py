"""The command `check`: whether a study's tasks, or mteb's, are worth having."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evaluation.benchmarks.options import Commands, add_command, add_run_options, out_of
from plumbline import cli
from plumbline.errors import DataError, StudyError, nearest
from plumbline.study import Study, load_study

if TYPE_CHECKING:
    from evaluation.benchmarks.quality.checks import TaskCheck

_EXAMPLE = """example: python -m evaluation.benchmarks check --study studies/demo.yaml --task sample_sts

Tasks of mteb by name, without a study:

  python -m evaluation.benchmarks check --task STSBenchmark Banking77Classification
"""


def add_check_command(commands: Commands) -> None:
    """`check`, with its options."""
    parser = add_command(
        commands,
        "check",
        _check,
        "whether tasks are worth having: a table of checks with pass, look or fail",
        "Check a study's tasks (its data sets, and what accepted transformations made of them) or mteb's.\n"
        "A check that does not pass is a question to a person, not a verdict on the task.",
        _EXAMPLE,
    )
    add = parser.add_argument
    add("--study", metavar="FILE", help="the study whose tasks are checked, for example studies/demo.yaml")
    add("--exports", metavar="DIR", help="where its records are: a folder or an address (default: exports/)")
    add("--task", nargs="+", default=[], metavar="NAME", help="these data sets alone; without --study tasks of mteb")
    add("--models", nargs=2, default=[], metavar="NAME",
        help="two models, whose difference is looked at (default: the study's first two with scores)")  # fmt: skip
    add("--question", default="", metavar="NAME",
        help="of a study that had the items judged: the question that asked people for the gold")  # fmt: skip
    add_run_options(parser, "resampling", "the study's records, quality/; or ./quality")


def _check(options: argparse.Namespace) -> int:
    if not options.study and not options.task:
        raise StudyError("nothing to check: name a study (--study FILE), or tasks of mteb (--task NAME)")
    study = load_study(options.study, options.exports) if options.study else None
    out = out_of(options, study.folder / "quality" if study else "quality")
    if options.models and study is None:
        raise StudyError("--models: models are a study's; name one (--study FILE)")
    if options.question and (study is None or not study.subject):
        raise StudyError("--question: people answer for the gold in a study of items alone (`subject: {kind: items}`)")
    from evaluation.work import quiet  # noqa: PLC0415 (what takes long to import comes after --help)

    if study is None:
        checked, notes = _of_mteb(options.task)
    else:
        with quiet(study, study.evaluation.models):
            checked, notes = _of_study(study, options)
    from evaluation.benchmarks.quality import checks as files  # noqa: PLC0415

    files.write(out, checked, about(checked, notes, study, options.seed))
    print(text(checked))
    for note in notes:
        print(f"- {note}")
    print(f"-> {out}: {files.CHECKS}, rows/, statistics.json")
    return 0


def _of_mteb(names: Sequence[str]) -> tuple[list[TaskCheck], list[str]]:
    from tqdm import tqdm  # noqa: PLC0415

    from evaluation.benchmarks.quality.checks import CheckedTask, check  # noqa: PLC0415
    from generation.datasets.mteb_tasks import load_mteb  # noqa: PLC0415
    from plumbline.study.datasets import DatasetSpec  # noqa: PLC0415

    tasks = []
    for name in dict.fromkeys(names):
        tasks.append(CheckedTask(name, load_mteb(DatasetSpec.model_validate({"mteb": name}))))
    with tqdm(total=len(tasks), desc="checking", unit="task", delay=1, leave=False) as bar:
        return check(tasks, progress=bar.update), ["without a study there are no models whose scores could be checked"]


def _of_study(study: Study, options: argparse.Namespace) -> tuple[list[TaskCheck], list[str]]:
    import pandas as pd  # noqa: PLC0415
    from tqdm import tqdm  # noqa: PLC0415

    from evaluation.benchmarks.quality.checks import (  # noqa: PLC0415
        check,
        nothing,
        tasks_of,
    )
    from evaluation.benchmarks.quality.data_checks import readers_of  # noqa: PLC0415
    from evaluation.benchmarks.quality.people import PeopleChecks  # noqa: PLC0415
    from evaluation.benchmarks.quality.score_checks import ScoreChecks  # noqa: PLC0415
    from evaluation.results import SCORES, read_scores  # noqa: PLC0415
    from evaluation.units import chosen_models  # noqa: PLC0415

    names = options.task
    datasets = [dataset.name for dataset in study.datasets]
    for name in names:
        if name not in datasets:
            raise StudyError(f"--task {name}: {study.file} has no data set of that name; {nearest(name, datasets)}")
    if not datasets:
        raise DataError(f"{study.file}: there is no data set, so that there is nothing to check")
    tasks, notes = tasks_of(study, names)
    if not study.evaluation.models:
        people = PeopleChecks(study, options.question, options.seed) if study.subject else None
        with tqdm(total=len(tasks), desc="checking", unit="task", delay=1, leave=False) as bar:
            results = check(tasks, beside=people or nothing, progress=bar.update)
        return results, [*notes, "the study has no models whose scores could be checked"]
    compared = chosen_models(study, options.models) if options.models else []
    scores = read_scores(study) if (study.folder / SCORES).exists() else pd.DataFrame()
    readers = list(readers_of(study.evaluation.models, study.file.parent))
    scored = ScoreChecks(study, scores, compared, options.seed)
    with tqdm(total=len(tasks), desc="checking", unit="task", delay=1, leave=False) as bar:
        try:
            return check(tasks, readers, scored, bar.update), notes
        finally:
            scored.close()


def text(checked: Sequence[TaskCheck]) -> str:
    """What a terminal shows: how many checks passed of each task, and those that did not."""
    counts = Counter(finding.verdict for result in checked for finding in result.findings)
    rows = []
    for result in checked:
        for finding in result.findings:
            if finding.verdict != "pass":
                value = "–" if math.isnan(finding.value) else f"{finding.value:.4g}"
                rows.append([result.task, finding.check, finding.verdict, value, finding.reason])
    answer = (
        f"{len(checked)} tasks: {counts['pass']} checks passed, {counts['look']} to look at, {counts['fail']} failed."
    )
    return f"{answer}\n\n{cli.columns(['task', 'check', 'verdict', 'value', 'reason'], rows, 'every check passed')}\n"


def about(checked: Sequence[TaskCheck], notes: Sequence[str], study: Study | None, seed: int) -> dict[str, Any]:
    """What the checks rest on."""
    from evaluation.work import versions  # noqa: PLC0415

    return {
        "study": study.name if study else None,
        "tasks": [result.task for result in checked],
        "seed": seed,
        "notes": list(notes),
        "versions": versions(),
    }
