"""The command `shrink`: a smaller data set in the place of a large one."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaluation.build.options import Commands, add_command, add_run_options, out_of
from plumbline import cli
from plumbline.errors import StudyError, nearest
from plumbline.study import Study

if TYPE_CHECKING:
    from annotation.statistics.paired import Estimate
    from evaluation.build.smaller.draw import Smaller
    from evaluation.build.smaller.holding import Holding
    from generation.datasets.dataset import Dataset

_EXAMPLE = """example: python -m evaluation.build shrink --study studies/demo.yaml --task sample_retrieval --depth 20
"""
_QUERIES, _DEPTH = 1000, 250  # MMTEB, 2.3.1
#: Options by the type of data set that they are for.
_OF = {"clustering": ("documents", "draw", "replacement"), "retrieval": ("queries", "depth", "pool")}


def add_shrink_command(commands: Commands) -> None:
    """`shrink`, with its options."""
    parser = add_command(
        commands,
        "shrink",
        _shrink,
        "a smaller data set that ranks models as before: clustering and retrieval",
        "Make a data set smaller, as MMTEB does: documents of clustering are drawn; of retrieval\n"
        "queries are drawn, and passages are kept that models rank high or people judged.",
        _EXAMPLE,
    )
    cli.add_study_options(parser)
    add = parser.add_argument
    add("--task", required=True, metavar="NAME", help="the study's data set that is made smaller")
    add("--documents", type=cli.count, metavar="N", help="clustering: so many documents (default: 4%% of them)")
    add("--draw", choices=("stratified", "uniform"),
        help="clustering: documents by label (default), or whatever their label")  # fmt: skip
    add(
        "--replacement",
        action="store_true",
        help="clustering: documents may be drawn more than once (default: without replacement)",
    )
    add("--queries", type=cli.count, metavar="N", help=f"retrieval: at most so many (default: {_QUERIES})")
    add("--depth", type=cli.count, metavar="N",
        help=f"retrieval: passages that each model gives for each query (default: {_DEPTH})")  # fmt: skip
    add("--pool", nargs="+", default=[], metavar="MODEL",
        help="retrieval: models that give them: bm25, and the study's (default: all of the study's)")  # fmt: skip
    add_run_options(parser, "what is drawn, and of resampling", "NAME-small")


def _shrink(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    known = [dataset.name for dataset in study.datasets]
    if options.task not in known:
        raise StudyError(
            f"--task {options.task}: {study.file} has no data set of that name; {nearest(options.task, known)}"
        )
    if study.subject or not study.evaluation.models:
        raise StudyError(
            f"{study.file}: it has no `evaluation.models`, by which a smaller data set is judged; add them"
        )
    out = out_of(options, f"{options.task}-small")
    from evaluation.work import quiet, versions  # noqa: PLC0415 (what takes long to import comes after --help)

    with quiet(study, study.evaluation.models):
        smaller, holds, pooled = _made(study, options)
    from evaluation.build.smaller import files  # noqa: PLC0415

    about = {
        "answer": answer(holds),
        "task": options.task,
        "whole": smaller.whole,
        "smaller": smaller.left,
        "how": [*smaller.how],
        "pooled_by": pooled,
        "rho": vars(holds.rho),
        "tau": vars(holds.tau),
        "rests_on": {"data set": smaller.dataset.revision},
        "seed": options.seed,
        "versions": versions(),
    }
    files.write(out, smaller, holds, about)
    print(text(smaller, holds))
    print(f"-> {out}: {', '.join(sorted(path.name for path in out.iterdir()))}")
    return 0


def _made(study: Study, options: argparse.Namespace) -> tuple[Smaller, Holding, list[str]]:
    import pandas as pd  # noqa: PLC0415
    from tqdm import tqdm  # noqa: PLC0415

    from evaluation.build.quality.contents import contents_of  # noqa: PLC0415
    from evaluation.build.quality.scored import known_scores  # noqa: PLC0415
    from evaluation.build.quality.study_tasks import original_of  # noqa: PLC0415
    from evaluation.build.smaller import draw  # noqa: PLC0415
    from evaluation.build.smaller.holding import holding  # noqa: PLC0415
    from evaluation.results import SCORES, read_scores  # noqa: PLC0415

    unit = original_of(study, options.task)
    draw.refuse_unfit(unit.dataset)
    for kind, names in _OF.items():
        if kind != unit.task and (named := [name for name in names if getattr(options, name)]):
            own = ", ".join(f"--{name}" for name in _OF[unit.task])
            raise StudyError(f"--{named[0]} is for {kind}, and {options.task!r} is {unit.task}: it has {own}")
    pooled: list[str] = []
    if unit.task == "clustering":
        number = options.documents or int(0.04 * len(contents_of(unit.dataset).scored[0].items))
        smaller = draw.draw_documents(
            unit.dataset, number, stratified=options.draw != "uniform", seed=options.seed,
            replacement=options.replacement,
        )  # fmt: skip
    else:
        smaller, pooled = _pooled(study, unit.dataset, options)
    scores = read_scores(study) if (study.folder / SCORES).exists() else pd.DataFrame()
    whole = known_scores(study, scores, unit)
    with tqdm(total=len(whole), desc="scoring", unit="model", delay=1, leave=False) as bar:
        return smaller, holding(study, smaller.dataset, whole, pooled, options.seed, bar.update), pooled


def _pooled(study: Study, dataset: Dataset, options: argparse.Namespace) -> tuple[Smaller, list[str]]:
    from tqdm import tqdm  # noqa: PLC0415

    from evaluation.build.smaller import draw, rankings  # noqa: PLC0415
    from evaluation.units import chosen_models  # noqa: PLC0415

    bm25 = rankings.BM25 in options.pool
    if bm25:
        rankings.refuse_without_bm25()
    names = [name for name in options.pool if name != rankings.BM25]
    specs = chosen_models(study, names) if names or not bm25 else []
    queries, depth = draw.draw_queries(dataset, options.queries or _QUERIES, options.seed), options.depth or _DEPTH
    asked = draw.with_queries(dataset, queries)
    found = {}
    with tqdm(total=len(specs) + bm25, desc="ranking", unit="model", delay=1, leave=False) as bar:
        for name, ranking in rankings.rankings(study, asked, specs, depth, bm25=bm25):
            found[name] = ranking
            bar.update()
    return draw.pool(dataset, queries, found, depth), list(found)


def answer(holds: Holding) -> str:
    """The one sentence that a user wants."""
    n = len(holds.scores)
    if math.isnan(holds.tau.value):
        why = holds.tau.reason if n else "no model of the study has a score on the whole data set; evaluate it first"
        return f"Whether it ranks models as the whole data set does is not known: {why}."
    return (
        f"How alike {n} models rank on it and on the whole data set: tau {_interval(holds.tau)}, rho"
        f" {_interval(holds.rho)}."
    )


def text(smaller: Smaller, holds: Holding) -> str:
    """What a terminal shows."""
    rows = [
        [str(name), f"{before:.4f}", f"{after:.4f}", "yes" if pooled else "no"]
        for name, before, after, pooled in holds.scores.itertuples(index=False)
    ]
    table = cli.columns(["model", "whole", "smaller", "made the pool"], rows, "no model has a score on both")
    return "\n".join([answer(holds), "", table, "", *(f"- {line}" for line in notes(smaller, holds))])


def notes(smaller: Smaller, holds: Holding) -> Sequence[str]:
    """What the numbers rest on."""
    found = list(smaller.how)
    for name, one in (("rho", holds.rho), ("tau", holds.tau)):
        if math.isnan(one.low) and one.reason:
            found.append(one.reason if one.reason.startswith(name) else f"{name}: {one.reason}")
    if len(holds.scores) and holds.scores["in_pool"].all():
        found.append("every model that is ranked made the pool too: of others nothing is known")
    return found


def _interval(one: Estimate) -> str:
    if math.isnan(one.value):
        return "not known"
    return f"{one.value:.3f}" if math.isnan(one.low) else f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"
