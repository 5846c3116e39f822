"""A board: models ranked over a benchmark's tasks as on mteb's leaderboard, its confidence limits, and its files."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from cyclopts import Parameter

from evaluation.benchmarks.scores import Scores, ScoreSource, benchmark, closed, read
from evaluation.display import board_columns, board_notes
from evaluation.score_frames import SUBSET
from evaluation.tables.comparisons import board, separation_table
from plumbline.cli import Named, Seed
from plumbline.errors import DataError
from plumbline.exhibits.charts import COLOURS, MOST_ROWS, Kinds, across_of, dots, figure, layered, rows
from plumbline.exhibits.page import Part, Section, write_page
from plumbline.exhibits.table import Exhibit, json_file, plain, printed, reasons, write_files
from plumbline.exhibits.templates import listed
from plumbline.study.places import output_folder
from plumbline.words import count

NAME, SUMMARY, PAGE = "board", "board.json", "index.html"
_CHANGES = {
    "InstructionReranking": "p-MRR, which ranges from -100 to 100 and is near 0",
    "InstructionRetrieval": "p-MRR, which ranges from -100 to 100 and is near 0",
}


#: mteb's names for what a leaderboard is sorted by, and the board's column.
_SORTED = {"Mean (Task)": "mean", "Mean (Subset)": "mean", "Mean (TaskType)": "category_mean"}


@dataclass(frozen=True)
class Rule:
    """mteb's display of a benchmark (`name`): sorted by its `order`; each subset counts once if `by_subset`."""

    name: str = ""
    order: str = "Rank (Borda)"
    by_subset: bool = False


def rule_of(name: str) -> Rule:
    """Return the rule of a benchmark of mteb's registry, or that of Borda ranks without one."""
    if not name:
        return Rule()
    from mteb.benchmarks.benchmark import BenchmarkAggregation  # noqa: PLC0415 (takes seconds)

    chosen = benchmark(name)
    by_subset = BenchmarkAggregation.MEAN_SUBSET in chosen.aggregations
    column = chosen.summary_sort_column or ("Mean (Subset)" if by_subset else "Rank (Borda)")
    return Rule(chosen.name, column if isinstance(column, str) else column[0], by_subset)


@dataclass(frozen=True)
class RankedModels:
    """A board (`evaluation.tables.comparisons.board`) of `scores`, and the types of its tasks in their order.

    `pairs` are how many of them are told apart (`separation_table`).
    """

    scores: Scores
    types: dict[str, str]
    seed: int
    table: pd.DataFrame
    pairs: pd.DataFrame
    rule: Rule = field(default_factory=Rule)

    @property
    def kinds(self) -> list[str]:
        """The types, each once."""
        return list(dict.fromkeys(self.types.values()))

    def exhibit(self) -> Exhibit:
        """Return the board as a table for people."""
        frame, n = self.scores.frame, len(self.types)
        points = bool(np.nanmax(np.abs(frame.to_numpy())) > 1)  # scores are already times 100
        marked = self.table.assign(
            model=self.table["model"].where(self.table["not_comparable"] == 0, self.table["model"] + " *")
        )
        columns = board_columns(marked, self.kinds, mean="Mean of types", times=1 if points else 100)
        counts = ", ".join(f"{kind} {list(self.types.values()).count(kind)}" for kind in self.kinds)
        counted = "subsets" if self.rule.by_subset else "tasks"
        lines = [*self.scores.remarks, f"{counted}: {counts}; Mean of types: the mean of the types' means"]
        lines += [
            f"{kind} uses {metric}, with the same weight in means as other types"
            for kind, metric in _CHANGES.items()
            if kind in self.kinds and len(self.kinds) > 1
        ]
        lines += ["models with a * have scores that are not comparable"] * bool(self.scores.marked)
        lines += board_notes(self.table, n, counted)
        if "rank_low" in self.table and self.table["rank_low"].notna().sum() > 1:
            near, every, first = self.pairs.to_dict(orient="records")
            lines.append(
                f"{near['n'] - near['alone']} of {near['n']} pairs of neighbours in rank are not told apart if each"
                f" pair is tested alone, {near['n'] - near['together']} if all pairs are tested at once;"
                f" {every['alone'] / every['n']:.1%} and {every['together'] / every['n']:.1%} of all {every['n']:,}"
                f" pairs are told apart; {first['n'] - first['alone']} and {first['n'] - first['together']} models are"
                f" not told apart from the first{self._of_complete()}"
            )
        if self.rule.order in _SORTED:
            lines.append(f"models are sorted as on mteb's board, by {self.rule.order}; Rank (Borda) is shown beside it")
        lines += self.scores.left_out(SUMMARY)
        lines += reasons(self.table["model"], self.table["reason"])
        caption = f"{len(self.table)} models ranked over {n} {counted}{'' if points else ', scores times 100'}"
        return Exhibit.of(NAME, caption, self.table, printed(marked, columns), lines)

    def _of_complete(self) -> str:
        """Return among which models `pairs` are counted, if some lack scores: the first of all may be one of these."""
        complete = int(self.table["rank_low"].notna().sum())
        return f" of the {complete} with all scores" if complete < len(self.table) else ""

    def answer(self) -> list[Part]:
        """Return which model is first and how many are not told apart from it, and a figure of ranks with limits."""
        table, column = self.table, _SORTED.get(self.rule.order, "borda")
        first = table.loc[table[column] == table[column].max(), "model"]  # none if every model lacks a score of a mean
        leads = f"{listed(first) or 'No model'} {'are' if len(first) > 1 else 'is'} first of"
        over = count(len(self.types), "subset" if self.rule.by_subset else "task")
        parts: list[Part] = [f"{leads} {count(len(table), 'model')} over {over}, by {self.rule.order}."]
        if "rank_low" in table and table["rank_low"].notna().sum() > 1:
            n, together = self.pairs.iloc[-1][["n", "together"]]
            alike = f"{count(n - together, 'model is', 'models are')} not told apart from the first by Borda rank"
            parts.append(f"{alike}{self._of_complete()}.")
            frame = table.assign(low=table["rank_low"], high=table["rank_high"], kind="")
            across = across_of("rank", "Rank (Borda)").scale(domainMin=1)
            kinds = Kinds("kind", {"": COLOURS["lexical_stylistic"]}, {"": "circle"})
            layers = dots(frame, across, rows("model", frame["model"]), kinds, intervals=True)
            chart = layered(layers, len(frame) if len(frame) <= MOST_ROWS else len(frame) * 3 // 5)
            parts.append(figure(chart, "Ranks with 95% limits that hold for all models at once"))
        return parts


def of_scores(scores: Scores, types: Mapping[str, str], seed: int, rule: Rule | None = None) -> RankedModels:
    """Return the board of scores; `types` has each column's task type."""
    rule, frame = rule or Rule(), scores.frame
    types = {str(name): types[str(name)] for name in frame}
    table = board(frame, types, seed=seed)
    if rule.by_subset:  # a type's mean is over tasks, whatever a rank is over
        task_types = {name.partition(SUBSET)[0]: kind for name, kind in types.items()}
        of_task = {task: [name for name in types if name.partition(SUBSET)[0] == task] for task in task_types}
        means = pd.DataFrame({task: frame[names].mean(axis=1, skipna=False) for task, names in of_task.items()})
        by_task = board(means, task_types).set_index("model")
        columns = ["category_mean", *dict.fromkeys(types.values())]
        table[columns] = by_task.loc[table["model"], columns].to_numpy()
    if rule.order in _SORTED:
        table = table.sort_values(_SORTED[rule.order], ascending=False, kind="stable").reset_index(drop=True)
    marks = Counter(itertools.chain.from_iterable(scores.marked.values()))
    table["not_comparable"] = [marks[name] for name in table["model"]]
    return RankedModels(scores, types, seed, table, separation_table(frame, seed=seed), rule)


def write(folder: Path, ranked: RankedModels, source: str) -> list[str]:
    """Write the table in its forms and its basis, each file atomically; return the files' names."""
    exhibit = ranked.exhibit()
    summary = {
        "from": source,
        "types": ranked.types,
        "notes": list(exhibit.notes),
        "not_comparable": ranked.scores.marked,
        "pairs_told_apart": ranked.pairs.to_dict(orient="records"),
        "models": [
            {str(name): plain(value) if isinstance(value, float) else value for name, value in row.items()}
            for row in ranked.table.to_dict(orient="records")
        ],
        **ranked.scores.basis(list(ranked.types), ranked.seed),
    }
    files = exhibit.files("") | {SUMMARY: json_file(summary)}
    write_files(folder, files)
    sections = [Section("In short", ranked.answer()), Section("Board", [exhibit.table(cut=True)])]
    write_page(folder / PAGE, f"Models ranked: {source}", "", sections)
    return [*files, PAGE]


def rank_models(
    *,
    source: ScoreSource,
    gaps: Literal["models", "tasks", "fewest", "keep"] = "models",
    seed: Seed = 1337,
    out: Annotated[Named | None, Parameter(metavar="FOLDER")] = None,
) -> None:
    """Rank models on a benchmark, with intervals.

    Models are ranked by Borda count over a benchmark's tasks, with means over tasks and over types, and 95% intervals
    that show which models differ (the form of MMTEB's Tables 2 and 18).

    Example: plumbline board --from "MTEB(eng, v2)"

    From a folder of mteb's result files, or from a table of scores:

        plumbline board --from results --benchmark "MTEB(eng, v2)"
        plumbline board --from scores.csv --out exports/mine/board

    Args:
        source: The scores.
        gaps: If scores are missing: leave out models (default), tasks, or whichever lacks most scores; or keep all and
            give no points for missing scores, as mteb does.
        seed: Random seed for resampling tasks (default: 1337).
        out: The folder for the files (default: board).
    """
    folder = output_folder(out, "board")
    rule = rule_of(source.benchmark_name)
    scores, facts, _ = read(source, by_subset=rule.by_subset)
    types = {str(name): str(kind) for name, kind in facts["type"].items()}
    if source.path.is_file():  # a table has no subsets
        rule = replace(rule, by_subset=False)
    complete = closed(scores, gaps)
    if not complete.frame.size:
        n_models, n_tasks = closed(scores, "keep").frame.shape
        if not n_models:
            raise DataError("no model has a score; nothing can be ranked")
        raise DataError(
            f"--gaps {gaps} leaves nothing to rank of {n_models} models and {n_tasks} tasks with gaps; --gaps fewest"
            " leaves out whichever lacks most scores; --gaps keep ranks as mteb does, without intervals for models with"
            " gaps"
        )
    ranked = of_scores(complete, types, seed, rule)
    files = write(folder, ranked, source.source)
    print(ranked.exhibit().text())
    print(f"-> {folder}: {', '.join(files)}")
