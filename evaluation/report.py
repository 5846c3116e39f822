"""`python -m evaluation.report`: the papers' tables and figures of an evaluated study.

Into `<study.folder>/report_evaluation/`: `index.html`, each table as CSV (all digits), Markdown and LaTeX in `tables/`,
each figure as SVG and PNG in `figures/`. Nothing is computed here; what the records cannot carry is refused or said.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from annotation.ratings import read_all_ratings
from annotation.records import Verdict
from annotation.rubric import load_rubric
from annotation.tables import SIMULATED, display
from annotation.verdicts import read_verdicts, refuse_stale
from evaluation import charts, paper_tables, tables
from evaluation.display import short_names
from evaluation.paper_tables import Results
from evaluation.run import COMMAND, read_drift, read_scores
from evaluation.units import label
from generation import command
from generation.exceptions import DataError, StudyError
from generation.exhibits import Exhibit
from generation.manifest import stage
from generation.page import Figure, Section, png, svg, write_page
from generation.parts import nearest
from generation.records import Pair
from generation.spreadsheet import csv_bytes
from generation.store import atomic, read_frame
from generation.study import Study
from generation.transformations import ORIGINAL

FOLDER = "report_evaluation"
Drawn = alt.LayerChart | alt.ConcatChart | alt.FacetChart
_PADDING = {"left": 30, "right": 40, "top": 5, "bottom": 15}
_DECISIONS = ("rejected", "undecided", "accepted")  # the strictest first, as the gate takes it


@dataclass(frozen=True)
class Choices:
    """What the command line chooses: the baseline (default: the first model), and Table 16's sides and models."""

    baseline: str = ""
    translation: tuple[str, str] | None = None
    multilingual: tuple[str, ...] = ()


def write_report(study: Study, choices: Choices = Choices()) -> Path:
    """Write the report; returns its page.

    Raises DataError before there are scores and verdicts and where one has outrun the other, StudyError for a choice
    that the study does not have.
    """
    verdicts, scores = read_verdicts(study), read_scores(study)
    refuse_stale(study, verdicts)
    if scores.empty:
        raise DataError(f"{study.folder / 'scores.parquet'} has no scores; run `{COMMAND}` again")
    refuse_outrun(study, scores, verdicts)
    short = short_names(set(scores["model"]))
    notes = notes_of(study, scores, verdicts)
    scores = scores.assign(model=scores["model"].map(short))
    results = Results(scores, verdicts, notes, study.sample.seed)
    frame, correlations = _drift(study, short)
    exhibits = all_exhibits(results, correlations, _known(choices, scores, short))
    figures = all_figures(study, results, frame, correlations)
    folder = study.folder / FOLDER
    _write_files(folder / "tables", {name: content for one in exhibits.values() for name, content in _forms(one)})
    _write_files(folder / "figures", {name: content for key in figures for name, content in _drawn(key, figures[key])})
    simulated = any(verdict.simulated for verdict in verdicts)
    title = f"Robustness of embedding models: study {study.name}"
    write_page(folder / "index.html", title, SIMULATED if simulated else "", sections(study, exhibits, figures))
    return folder / "index.html"


def refuse_outrun(study: Study, scores: pd.DataFrame, verdicts: Sequence[Verdict]) -> None:
    """Raise DataError where scores were let through, or left out, by verdicts that are others now."""
    keys = ["transformation", "language", "task_type", "status", "reason"]
    for row in scores[keys].drop_duplicates().to_dict(orient="records"):
        found = [
            verdict.decision
            for verdict in verdicts
            if verdict.transformation == row["transformation"]
            and verdict.language in row["language"].split(", ")
            and verdict.task_type in ("", row["task_type"])
        ]
        now = min(found, key=_DECISIONS.index, default="without a verdict")
        was = "accepted" if row["status"] == "evaluated" else row["reason"].split(":")[0]
        if row["transformation"] == ORIGINAL or was not in _DECISIONS or (was == "accepted") == (now == "accepted"):
            continue
        file = study.folder / "scores.parquet"
        line = f"{file}: {row['transformation']} ({row['language']}) was {was} when it was written and is {now} now"
        raise DataError(f"{line}; run `{COMMAND}` again")


def notes_of(study: Study, scores: pd.DataFrame, verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """What stands below every table: simulated ratings, models without scores, and what was left out and why."""
    notes = [SIMULATED] if any(verdict.simulated for verdict in verdicts) else []
    absent = [name for spec in study.evaluation.models if (name := label(study, spec)) not in set(scores["model"])]
    if absent:
        notes.append(f"Without scores, as they failed or were not run: {', '.join(absent)}.")
    counts = scores.groupby("model", sort=False).size()
    fewer = [f"{model} ({counts.max() - count})" for model, count in counts.items() if count < counts.max()]
    if fewer:
        notes.append(f"Scores not made yet: {', '.join(fewer)}; run `{COMMAND}` again.")
    known = set(scores["dataset"])
    for row in tables.left_out(scores).to_dict(orient="records"):
        where = "all data sets" if set(row["datasets"].split(", ")) == known else row["datasets"]
        name, status = display(row["transformation"], pooled=False), row["status"].replace("_", " ")
        notes.append(f"{name}, {status}: {row['reason']} ({where})")
    return tuple(notes)


def all_exhibits(results: Results, correlations: pd.DataFrame, choices: Choices) -> dict[str, Exhibit]:
    """The tables by name, in the page's order; those that have no rows are left away."""
    made = [
        paper_tables.left_out(results),
        paper_tables.axes(results),
        paper_tables.transformations(results),
        paper_tables.shifts(results),
        paper_tables.drift(results, correlations),
        paper_tables.kendall(results),
        paper_tables.split_half(results),
        paper_tables.ranking(results, transformed=False),
        paper_tables.ranking(results, transformed=True),
        paper_tables.against_baseline(results, choices.baseline, pooled=True),
        paper_tables.against_baseline(results, choices.baseline, pooled=False),
        paper_tables.sizes(results),
        *paper_tables.datasets(results),
    ]
    if (results.scores["status"] == "included_rejected").any():
        made.append(paper_tables.axes(results, include_rejected=True))
        made.append(paper_tables.transformations(results, include_rejected=True))
    if choices.translation:
        others = tuple(m for m in results.scores["model"].unique() if m not in choices.multilingual)
        groups = (
            {"English-only": others, "Multilingual": choices.multilingual} if choices.multilingual else {"": others}
        )
        made.append(paper_tables.translated(results, *choices.translation, groups))
    return {one.name: one for one in made if len(one.frame)}


def all_figures(study: Study, results: Results, frame: pd.DataFrame, correlations: pd.DataFrame) -> dict[str, Figure]:
    """The figures by name, in the page's order; those that would show nothing are left away."""
    found: dict[str, Figure] = {}
    for refused in (False, True) if (results.scores["status"] == "included_rejected").any() else (False,):
        end, says = ("_with_refused", "; WITH WHAT NO VERDICT ACCEPTS") if refused else ("", "")
        axes = tables.axis_table(results.scores, results.verdicts, include_rejected=refused)
        moved = tables.transformation_table(results.scores, include_rejected=refused)
        if moved.empty:
            continue
        found[f"axes{end}"] = _figure(charts.axis_shifts(axes), f"Scores of each model by axis (HTEB, Figure 4){says}")
        found[f"transformations{end}"] = _figure(
            charts.delta_map(moved), f"Mean difference from the original in points (HTEB, Figure 6; *: refused){says}"
        )
        for number, (model, part) in enumerate(moved.groupby("model", sort=False), 1):
            chart = charts.score_shifts(part).properties(width=420)
            found[f"model_{number}{end}"] = _figure(chart, f"{model}: original and transformed scores{says}")
    shifts = tables.shift_table(results.scores)
    if shifts["shift"].notna().any():
        found["shifts"] = _figure(
            charts.shift_intervals(shifts), "Hodges-Lehmann shifts; grey: p of at least .05 by Holm (HTEB, Figure 7)"
        )
    rubric = load_rubric(study)
    question, scale = rubric.question_names()[0], rubric.scale
    for number, (model, part) in enumerate(frame.groupby("model", sort=False), 1):
        own = correlations[correlations["model"] == model]
        panels = charts.drift_figure(part, own, question=question, scale=(scale[0], scale[-1]))
        says = "; SIMULATED ratings" if bool(part["simulated"].any()) else ""
        found[f"drift_{number}"] = _figure(panels, f"{model}: drift against mean {question} (HTEB, Figure 3){says}")
    sizes = tables.size_table(results.scores)
    if len(sizes):
        found["sizes"] = _figure(charts.size_lines(sizes), "Scores by size of model (HTEB, Figure 5)")
    return found


def sections(study: Study, exhibits: Mapping[str, Exhibit], figures: Mapping[str, Figure]) -> list[Section]:
    """What the page says, in order: each figure under the heading of its tables."""
    about = [
        study.description,
        f"Protocol {study.evaluation.protocol!r}. Seeds are averaged first; an axis is the mean over its"
        " transformations, the total the mean of the three axes. Only what people accepted counts. Each table is a file"
        " in tables/ (CSV with all digits, Markdown, LaTeX), each figure one in figures/ (SVG, PNG).",
    ]
    outline = {
        "Left out": ("left_out",),
        "Scores by axis": ("axes",),
        "Scores by transformation": ("transformations", "model"),
        "Shifts": ("shifts",),
        "Drift against ratings": ("drift",),
        "Rankings": ("kendall", "split_half", "ranking"),
        "Models against a baseline": ("baseline",),
        "Size of models": ("sizes",),
        "Data sets": ("datasets", "translation"),
    }
    made = [Section("This report", [part for part in about if part])]
    for heading, beginnings in outline.items():
        drawn = [figure for name, figure in figures.items() if name.startswith(beginnings)]
        shown = [part for name, one in exhibits.items() if name.startswith(beginnings) for part in one.parts()]
        if drawn or shown:
            made.append(Section(heading, [*drawn, *shown]))
    return made


def _figure(chart: Drawn, caption: str) -> Figure:
    """A chart with room at its sides: a browser's letters may be wider than those that it was laid out with."""
    return Figure(chart.properties(padding=_PADDING), caption, f"{caption}; the numbers stand in the tables")


def _drift(study: Study, short: Mapping[str, str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rated pairs' drift and its correlations, as `evaluation.run` prints them."""
    pairs = read_frame(study.folder / "pairs.parquet", Pair, "python -m annotation sample --study ...")
    drift, question = read_drift(study), load_rubric(study).question_names()[0]
    drift = drift.assign(model=drift["model"].map(lambda name: short.get(name, name)))
    rated = read_all_ratings(study)
    frame = tables.drift_by_quality(pairs, rated, drift, per_pair=study.raters.per_pair, question=question)
    return frame, tables.drift_correlations(frame, np.random.default_rng(study.sample.seed))


def _known(choices: Choices, scores: pd.DataFrame, short: Mapping[str, str]) -> Choices:
    """The choices with models by their names in the tables. Raises StudyError for what the scores do not have."""
    models, datasets = list(short.values()), list(scores["dataset"].unique())

    def model(name: str) -> str:
        if short.get(name, name) not in models:
            raise StudyError(f"no model {name!r} has scores; {nearest(name, models)}")
        return short.get(name, name)

    for name in choices.translation or ():
        if name not in datasets:
            raise StudyError(f"--translation: no data set {name!r} has scores; {nearest(name, datasets)}")
    baseline = model(choices.baseline) if choices.baseline else scores["model"].iloc[0]
    return Choices(baseline, choices.translation, tuple(map(model, choices.multilingual)))


def _forms(one: Exhibit) -> list[tuple[str, bytes]]:
    """A table's files."""
    made = (("csv", csv_bytes(one.frame)), ("md", one.markdown().encode()), ("tex", one.latex().encode()))
    return [(f"{one.name}.{end}", content) for end, content in made]


def _drawn(name: str, figure: Figure) -> list[tuple[str, bytes]]:
    """A figure's files."""
    return [(f"{name}.svg", svg(figure.chart).encode()), (f"{name}.png", png(figure.chart))]


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files atomically; what an earlier report left in the folder goes."""
    for name, content in files.items():
        with atomic(folder / name) as file:
            file.write(content)
    for path in folder.iterdir() if folder.exists() else ():
        if path.name not in files:
            path.unlink()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.report",
        description="Write an evaluated study's tables (CSV, Markdown, LaTeX), figures (SVG, PNG) and one HTML page.",
        epilog="example: python -m evaluation.report --study studies/demo.yaml",
    )
    command.add_study_options(parser)
    parser.add_argument("--baseline", metavar="MODEL", default="", help="compare with it (default: the first model)")
    parser.add_argument(
        "--translation", nargs=2, metavar="NAME", help="a data set and its translation (HTEB, Table 16)"
    )
    parser.add_argument(
        "--multilingual", nargs="+", metavar="MODEL", default=[], help="models of the second group of that table"
    )
    options = parser.parse_args()
    study = command.study_of(options)
    pair = tuple(options.translation) if options.translation else None
    names = ("scores.parquet", "drift.parquet", "verdicts.json", "pairs.parquet", "ratings.parquet")
    with stage(study, "evaluation report", [study.folder / name for name in names], [study.folder / FOLDER]):
        page = write_report(study, Choices(options.baseline, pair, tuple(options.multilingual)))
    print(f"{study.name}: tables and figures -> {page}")
    return 0


if __name__ == "__main__":
    command.run(main)
