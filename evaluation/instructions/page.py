"""The report on wordings: one page that opens with the answer, with tables and figures as files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, cast

import numpy as np
import pandas as pd
from cyclopts import Group, Parameter
from cyclopts.validators import LimitedChoice
from tqdm import tqdm

from evaluation.display import hundred, points, span
from evaluation.instructions.analysis import DEFAULTS as DEFAULTS_OF
from evaluation.instructions.analysis import (
    RULE,
    SIMULATED,
    Analysis,
    Settings,
    analyse,
    best_worst_table,
    compared_default,
)
from evaluation.instructions.boards import AGAINST_DEFAULTS, AGAINST_WORST, DEFAULTS, HOLES
from evaluation.instructions.charts import all_figures
from evaluation.instructions.grid import reasons as aside_reasons
from evaluation.instructions.spread import N_RESAMPLES, above_median
from evaluation.report.paper_tables import p_cell
from evaluation.score_frames import SCORES, of_folder, read_scores, study_scores
from plumbline.cli import Local, Named, Seed
from plumbline.errors import StudyError
from plumbline.exhibits.page import PageWords, write_outlined
from plumbline.exhibits.table import Cell, Exhibit, cell, estimates, interval, number, numbers, printed, reasons, word
from plumbline.manifest import StudyRecords, stage
from plumbline.study import load_study
from plumbline.study.places import output_folder, place
from plumbline.words import count

_SCENARIOS = {
    DEFAULTS: "All with their defaults",
    AGAINST_DEFAULTS: "{} with its best wordings, others with defaults",
    AGAINST_WORST: "{} with its best wordings, others with their worst",
}
percent = partial(number, digits=1, times=100, unit="%")
_OWN_TABLES = (
    "The best and worst wordings are chosen and scored on the same items, so noise alone would make them differ"
)
_SHARED = "Intervals over tasks treat tasks as independent, although tasks of one type may share wordings"


def all_exhibits(analysis: Analysis) -> dict[str, Exhibit]:
    """Return the tables by name, in the page's order, without empty ones."""
    tables = (
        recommended, inflation, distribution, variation, boards, best_worst, origins, gate, aside
    )  # fmt: skip
    exhibits = (table(analysis) for table in tables)
    return {exhibit.name: exhibit for exhibit in exhibits if len(exhibit.frame)}


def recommended(analysis: Analysis) -> Exhibit:
    """Return the board by means over wordings, with the defaults' means and ranks."""
    frame = analysis.recommended
    columns: dict[str, Cell] = {
        "Model": "model", "Rank": "rank",
        "Rank 95%": span("rank"),
        "Mean over wordings [95%]": estimates("wordings_mean", "wordings_low", "wordings_high", hundred),
        "Default": cell("default_mean", hundred), "Default's rank": numbers("default_rank", 0),
    }  # fmt: skip
    notes = [
        f"Recommended: the mean over {_counting(analysis)}, then over tasks. Its interval reflects the choice of"
        " wordings, with tasks fixed (Student's t, Satterthwaite's degrees of freedom; none if no wordings differ);"
        " rank limits reflect the choice of tasks",
        f"Kendall's tau-b with the defaults' board: {number(frame.attrs['tau'])}",
        f"Some defaults are missing; for the defaults' ranks {HOLES[analysis.settings.holes]}"
        if np.isnan(analysis.grid.default).any()
        else "",
        _SHARED,
    ]
    caption = f"Models ranked by the mean over {_counting(analysis)}, beside their defaults, scores times 100"
    return _exhibit(analysis, "recommended", caption, frame, columns, notes)


def inflation(analysis: Analysis) -> Exhibit:
    """Return how often defaults are above the median wording."""
    frame = analysis.inflation
    columns: dict[str, Cell] = {
        "Model": "model", "Tasks": "n_tasks",
        "Default above median [95%]": estimates("share", "share_low", "share_high", percent),
        "Default's median percentile [95%]": estimates("figure5", "figure5_low", "figure5_high", percent),
        "Points above median": cell("points", points), "In SDs": cell("in_sds", points),
        "Above all wordings": "above_all",
    }  # fmt: skip
    notes = [
        "Default above median: the share of tasks on which the default scores more than the median wording. Default's"
        " median percentile: the median over tasks of the share of wordings, the default counted as one, that score at"
        " most as much as the default; the paper's Figure 5 calls it P(reported > median)",
        "Intervals are percentile bootstraps over tasks (10,000 resamples). Points are means over tasks, SDs medians",
        *reasons(frame["model"], frame["reason"]),
    ]
    caption = "Position of defaults among wordings, in percent of tasks"
    return _exhibit(analysis, "inflation", caption, frame, columns, notes)


def distribution(analysis: Analysis) -> Exhibit:
    """Return the scores of each model and task."""
    frame = analysis.distribution
    columns: dict[str, Cell] = {
        "Model": "model", "Task": "task", "n": "n", "Median": cell("median", hundred), "Min": cell("min", hundred),
        "Max": cell("max", hundred), "SD": cell("sd", hundred), "CV": cell("cv", percent),
        "Default": cell("default", hundred),
        **({"No prompt": cell("none", hundred)} if frame["none"].notna().any() else {}),
        "ECDF": lambda row: f"{percent(row['ecdf'])} ({percent(row['ecdf_with_default'])})",
        "Points": cell("difference", points), "SDs": cell("in_sds", points), "Verdict": cell("verdict", word),
    }  # fmt: skip
    notes = [
        f"Verdict: {RULE}. ECDF: the share of wordings that score no more than the default; in brackets, the default"
        " also counts as a wording. Points, SDs: default minus median",
        *reasons(frame["model"] + ", " + frame["task"], frame["reason"]),
    ]
    return _exhibit(analysis, "distribution", "Scores times 100 over distinct wordings", frame, columns, notes)


def variation(analysis: Analysis) -> Exhibit:
    """Return coefficients of variation by model."""
    frame = analysis.variation
    columns: dict[str, Cell] = {
        "Model": "model", "Tasks": "n_tasks", "Median CV": cell("cv_median", percent),
        "Largest CV": cell("cv_max", percent), "On": cell("task", word), "Median SD": numbers("sd_median"),
        "Median range": numbers("range_median"),
    }  # fmt: skip
    notes = [
        "CV: the population standard deviation over wordings as a share of their mean, without the default. The CV"
        " depends on the metric's zero; SD and range (in points) do not",
        *reasons(frame["model"], frame["reason"]),
    ]
    return _exhibit(
        analysis,
        "variation",
        "Variation of scores with the wording (arXiv 2605.22544, Figure 3)",
        frame,
        columns,
        notes,
    )


def boards(analysis: Analysis) -> Exhibit:
    """Return ranks on each board."""
    rows = []
    for (scenario, chosen), board in analysis.boards.groupby(["scenario", "chosen"], sort=False):
        ranks = dict(zip(board["model"], map(str, board["rank"]), strict=True))
        rows.append(
            {"Board": _SCENARIOS[str(scenario)].format(chosen), **{name: ranks[name] for name in analysis.grid.models}}
        )
    notes = [
        f"Borda ranks (1 is the best); {HOLES[analysis.settings.holes]}",
        "A default counts as one of its model's wordings",
        _OWN_TABLES,
    ]
    caption = "Ranks when one model chooses its wordings (arXiv 2605.22544, Figure 4)"
    return _exhibit(analysis, "boards", caption, analysis.boards, pd.DataFrame(rows), notes)


def best_worst(analysis: Analysis) -> Exhibit:
    """Return the best and worst wordings."""
    columns: dict[str, Cell] = {
        "Task": "task", "Model": "model", "Best": numbers("best", 3),
        "Best wording": lambda row: row["best_text"] or row["best_prompt"], "Worst": numbers("worst", 3),
        "Worst wording": lambda row: row["worst_text"] or row["worst_prompt"], "Gap": numbers("gap", 1),
    }  # fmt: skip
    caption = "Best and worst wordings (arXiv 2605.22544, Tables 5 to 15)"
    return _exhibit(analysis, "best_worst", caption, best_worst_table(analysis.grid), columns, [_OWN_TABLES])


def origins(analysis: Analysis) -> Exhibit:
    """Return people's wordings against machines'."""
    frame = analysis.origins
    columns: dict[str, Cell] = {
        "Model": "model", "Task": "task", "Human": cell("human", hundred), "Machine": cell("machine", hundred),
        "n": lambda row: f"{row['n_human']}, {row['n_machine']}", "Difference": cell("difference", points),
        "p": cell("p", p_cell), "p (Holm)": cell("p_holm", p_cell),
    }  # fmt: skip
    notes = [
        "Permutation test of the difference of medians, two-sided: exact up to 40 wordings, otherwise"
        f" {N_RESAMPLES:,} resamples; Holm's correction over all rows",
        *reasons(frame["model"] + ", " + frame["task"], frame["reason"]),
    ]
    caption = (
        "Wordings by people and machines: medians times 100, difference in points (arXiv 2605.22544, Figures 7 and 8)"
    )
    return _exhibit(analysis, "sources", caption, frame, columns, notes)


def gate(analysis: Analysis) -> Exhibit:
    """Return results with accepted wordings, and with all."""

    def both(name: str, form: Callable[[float], str]) -> Cell:
        return lambda row: f"{form(row[name])} ({form(row[f'all_{name}'])})"

    columns: dict[str, Cell] = {
        "Model": "model", "Wordings": lambda row: f"{row['wordings']} of {row['all_wordings']}",
        "Mean": both("mean", hundred), "Best wordings": both("best", hundred),
        "Median CV": both("cv_median", percent), "Default above median": both("share", percent),
    }  # fmt: skip
    caption = "Results with accepted wordings only, and in brackets with all wordings, scores times 100"
    return _exhibit(analysis, "gate", caption, analysis.gate, columns, [])


def aside(analysis: Analysis) -> Exhibit:
    """Return the rows that do not count, by reason; the file has each of them."""
    columns: dict[str, Cell] = {"Reason": "reason", "Scores": "n", "Example": "example"}
    rows = printed(aside_reasons(analysis.marked), columns)
    frame = analysis.marked[analysis.marked["why"] != ""].drop(columns=["text", "effective"])
    return _exhibit(
        analysis, "aside", "Scores that do not count, with reasons (the file lists each score)", frame, rows, []
    )


def _exhibit(
    analysis: Analysis, name: str, caption: str, frame: pd.DataFrame, columns: Mapping[str, Cell] | pd.DataFrame,
    notes: Iterable[str],
) -> Exhibit:  # fmt: skip
    simulated = [SIMULATED] if analysis.simulated else []
    return Exhibit.of(name, caption, frame, columns, (*simulated, *notes))


_FEW_WORDINGS, _FEW_TASKS = 10, 5


def headline(analysis: Analysis) -> tuple[str, ...]:
    """Return sentences on the variation of scores, the defaults' positions, and the ranks."""
    return _moves(analysis), _defaults(analysis), _ranks(analysis)


def _moves(analysis: Analysis) -> str:
    grid, table = analysis.grid, analysis.distribution
    n = table.loc[table["n"] > 0, "n"]
    each = f"{n.min()} to {n.max()} wordings" if n.min() < n.max() else count(n.min(), "wording")
    of = f"{count(len(grid.models), 'model')} on {count(len(grid.tasks), 'task')}"
    cells = table[table["cv"].notna()]
    if cells.empty:
        return f"The coefficient of variation is undefined for {of}, with {each} a task."
    most = cells.iloc[int(cells["range"].argmax())]
    cv, sd = (100 * float(cells[name].median()) for name in ("cv", "sd"))
    return (
        f"Over {each} a task, the scores of {of} vary by {cv:.1f}% (median coefficient of variation;"
        f" standard deviation {sd:.1f} points),"
        f" and by up to {100 * most['range']:.1f} points ({most['model']} on {most['task']})."
    )


def _defaults(analysis: Analysis) -> str:
    compared = analysis.distribution[analysis.distribution["difference"].notna() & (analysis.distribution["n"] > 1)]
    defaults = DEFAULTS_OF[analysis.settings.defaults]
    if compared.empty:
        return f"The defaults' positions are unknown: {defaults.unknown}."
    above = int(np.nansum(above_median(analysis.grid.scores, compared_default(analysis.grid))))
    counts = compared["verdict"].value_counts()
    counted = ", ".join(f"{counts[name]} {name}" for name in ("inflated", "typical", "deflated") if name in counts)
    return (
        f"The {defaults.called} scores above the median wording in {above} of {len(compared)} cases (a model on a"
        f" task). Over all cases it is {points(float(compared['difference'].mean()))} points from the median on"
        f" average: {counted}."
    )


def _counting(analysis: Analysis) -> str:
    return "accepted wordings" if analysis.all_wordings.gated else "all wordings"


def _ranks(analysis: Analysis) -> str:
    board = analysis.recommended
    best = board.iloc[0]
    mean = interval(best["wordings_mean"], best["wordings_low"], best["wordings_high"], hundred)
    sentence = f"By the recommended score, the mean over {_counting(analysis)}, {best['model']} has {mean}"
    if len(board) < 2:
        return f"{sentence}. A single model has no rank."
    of_model = analysis.boards[
        (analysis.boards["scenario"] == AGAINST_WORST) & (analysis.boards["chosen"] == analysis.boards["model"])
    ]
    first = int((of_model["rank"] == 1).sum())
    level = int((board["rank"] == best["rank"]).sum()) - 1
    shared = f", together with {count(level, 'other model')}" if level else ""
    ranked = board[board["default_rank"].notna()]
    moved = int((ranked["rank"] != ranked["default_rank"]).sum())
    verb, each = "differs" if moved == 1 else "differ", "it" if first == 1 else "each"
    differ = f" {moved} of {len(ranked)} ranks {verb} from the ranks by defaults." if len(ranked) else ""
    return (
        f"{sentence} and is first of {len(board)}{shared}.{differ} {count(first, 'model')} can be first if {each} takes"
        " its best wordings and all other models their worst."
    )


def doubts(analysis: Analysis) -> list[str]:
    """Return a line for each reason to doubt the numbers."""
    lines = [SIMULATED.rstrip(".")] if analysis.simulated else []
    lines += list(analysis.notes)
    n = analysis.distribution["n"]
    if n[n > 0].min() < _FEW_WORDINGS:
        fewest = count(n[n > 0].min(), "wording")
        lines.append(f"some models have scores under only {fewest} of a task, so their spread is uncertain")
    if len(analysis.grid.tasks) < _FEW_TASKS:
        lines.append(
            f"with {count(len(analysis.grid.tasks), 'task')} intervals over tasks are unreliable; ranks have no"
            f" intervals with fewer than {_FEW_TASKS} tasks"
        )
    if not analysis.gate.empty:
        lines.append("unaccepted wordings count only in the table of results with accepted and with all wordings")
    return lines


FOLDER = "report_instructions"
#: Headings with the names of their figures and tables.
OUTLINE = {
    "The recommended score": ("recommended", "ranks"),
    "Defaults among wordings": ("inflation",),
    "Scores over wordings": ("distribution",),
    "Variation of scores": ("variation",),
    "Boards": ("boards",),
    "Best and worst wordings": ("best_worst",),
    "People against machines": ("sources",),
    "Accepted and all wordings": ("gate",),
    "Scores that do not count": ("aside",),
}
_ABOUT = (
    "This report shows how scores of instruction embedders depend on the wording of the instruction, after arXiv"
    " 2605.22544. A wording counts if people found it acceptable; scores are compared if run, revision, split, subset,"
    " data and mteb's version are the same."
)


def write_report(folder: Path, analysis: Analysis, title: str) -> Path:
    """Write the report into a folder, each file atomically; return its page. Deletes an earlier report."""
    words = PageWords(title, SIMULATED if analysis.simulated else "", headline(analysis), doubts(analysis), _ABOUT)
    return write_outlined(folder, words, OUTLINE, all_exhibits(analysis), all_figures(analysis))


_SOURCE = Group("One of these", validator=LimitedChoice(1))


def report_wordings(
    *,
    study: Annotated[Named | None, Parameter(group=_SOURCE, metavar="FILE")] = None,
    scores: Annotated[Local | None, Parameter(group=_SOURCE, metavar="WHAT")] = None,
    exports: Annotated[Named | None, Parameter(metavar="DIR")] = None,
    out: Annotated[Named | None, Parameter(metavar="FOLDER")] = None,
    settings: Settings = Settings(),
    seed: Seed | None = None,
) -> None:
    """Write the report on how wordings change scores and ranks.

    The report has distributions, inflation, boards and the recommended score.

    Example: plumbline sensitivity-report --study studies/instructions.yaml

    On published scores (a long table: model, task, prompt_id, score, ...; or a folder of mteb's results with
    experiments/), without running anything:

        plumbline sensitivity-report --scores scores.parquet --out report
        plumbline sensitivity-report --scores ~/.cache/mteb --part STS22.v2=test/en

    Args:
        study: An evaluated study.
        scores: A long table, or a folder of mteb's results.
        exports: With --study: the folder of its records (default: exports/).
        out: Folder for the report (default: the study's folder, or report_instructions).
        settings: What is analysed.
        seed: Random seed for resamples and draws (default: the study's, or 1337).
    """
    if scores:
        settings, notes = settings if seed is None else replace(settings, seed=seed), tuple[str, ...]()
        if scores.is_dir():
            with tqdm(desc="reading results", unit="file", delay=1, leave=False) as bar:
                frame, notes = of_folder(scores, bar.update)
        else:
            frame = read_scores(scores)
        folder = output_folder(out, FOLDER)
        _write(analyse(frame, settings, notes, scores), folder, f"Prompt sensitivity: {scores.name}")
        return
    loaded = load_study(cast("str", study), exports)  # there is one, or the scores
    settings = replace(settings, seed=loaded.sample.seed if seed is None else seed)
    folder = place(out, "--out") if out else loaded.folder / FOLDER
    with stage(loaded, "evaluation instructions report", [loaded.folder / SCORES], [folder]):
        analysis = analyse(study_scores(StudyRecords(loaded)), settings, location=loaded.folder / SCORES)
        _write(analysis, folder, f"Prompt sensitivity: study {loaded.name}")


def _write(analysis: Analysis, folder: Path, title: str) -> None:
    try:
        page = write_report(folder, analysis, title)
    except FileNotFoundError as error:
        raise StudyError(f"{folder}: cannot write files there ({error.filename}); name another folder") from None
    print("\n".join([*([SIMULATED] if analysis.simulated else []), *headline(analysis)]))
    print(f"-> {page}")
