"""The papers' tables and figures of an evaluated study, as files and as one page that opens with the answer.

Into `<study.folder>/report_evaluation/`: `index.html`, each table as CSV (all digits), Markdown and LaTeX in `tables/`,
each figure as SVG and PNG in `figures/`. Nothing is computed here; what the records cannot carry is refused or said.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from annotation.campaign_records import PAIRS, RATINGS, VERDICTS
from annotation.status.status import Status, read_status
from annotation.status.text import in_short, next_step
from annotation.verdicts.rules import late_lines
from annotation.verdicts.tables import count, display
from evaluation import tables
from evaluation.display import points
from evaluation.models.encoder import ModelHost
from evaluation.records import ABSTENTION, ACCEPTED_SCORES, COMMAND, DRIFT, SCORES, TEXT_DRIFT, EvaluationRecords
from evaluation.report.contents import Choices, all_exhibits, all_figures, sections
from evaluation.report.material import failed_models, missing_scores, read_material, warnings
from evaluation.report.paper_tables import SIGNIFICANT, PaperResults
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError, nearest
from plumbline.exhibits.page import Section, write_exhibits, write_page
from plumbline.manifest import stage
from plumbline.study import Study, load_study
from plumbline.study.judged import VerdictUnit
from plumbline.transformations import AXES, in_order, total_axes

FOLDER = "report_evaluation"
_INPUTS = (SCORES, DRIFT, ACCEPTED_SCORES, TEXT_DRIFT, ABSTENTION, VERDICTS, PAIRS, RATINGS)
_DEFAULT = Choices()
_RANKED = 3  # models, from which the order that they keep is told
_NOTHING = "Nothing that people accepted has a score: there is no change to speak of"


def headline(results: PaperResults, status: Status, doubts: Sequence[str], missing: Sequence[str]) -> tuple[str, ...]:
    """Three sentences on scores that hold. `missing` says which scores are not there, which come first then."""
    study = status.study
    step = f"{study.command(COMMAND)}, for the scores that are missing" if missing else ""
    return in_short(f"{answer(results)}.", doubts, step or next_step(status, study.arguments))


def answer(results: PaperResults) -> str:
    """How far scores change on what people accepted: over all models, of which most and least, by which axis most.

    Each mean is over the models that have the total's difference, or, where none has, a difference on the axis.
    """
    frame, axes = tables.axis_table(results.scores, results.verdicts), results.axes
    scored = frame[frame[f"{axes.total}_difference"].notna()]
    if scored.empty:
        axis_changes = [_of_axis(frame, axis) for axis in axes.shown]
        return f"There is no total; {', '.join(filter(None, axis_changes))}" if any(axis_changes) else _NOTHING
    change = scored.set_index("model")[f"{axes.total}_difference"].sort_values(kind="stable")
    by_axis = {axis: float(scored[f"{axis}_difference"].mean()) for axis in axes.of_total}
    most = max(by_axis, key=lambda axis: abs(by_axis[axis]))
    whose = f"{len(change)} models'" if len(change) > 1 else f"{change.index[0]}'s"
    ends = f" in the mean, from {_of(change, 0)} to {_of(change, -1)}" if len(change) > 1 else ""
    sentence = f"On accepted transformations {whose} scores change by {points(change.mean())} points{ends}"
    if len(by_axis) > 1:
        sentence += f"; most by {display(most)}, {points(by_axis[most])}"
    return sentence + _order(results)


def doubts_of(results: PaperResults, missing: Sequence[str], campaign: Sequence[str]) -> tuple[str, ...]:
    """A line for each thing that is doubtful about the numbers; `campaign` are the doubts about the verdicts."""
    simulated = any(verdict.simulated for verdict in results.verdicts)
    return (
        *(["the ratings that decided what counts are SIMULATED: these numbers measure nothing"] if simulated else []),
        *(line.rstrip(".") for line in (*late_lines(results.verdicts), *missing)),
        *_left_out(results.scores),
        *_chance(results),
        *campaign,
    )


def _left_out(scores: pd.DataFrame) -> list[str]:
    """Transformations that no verdict accepts, of all data sets or of some."""
    refused = scores[scores["status"].isin(("left_out", "included_rejected"))]
    lines = []
    for name in in_order(refused["transformation"].unique()):
        n_refused, all_of_it = (
            frame.loc[frame["transformation"] == name, "dataset"].nunique() for frame in (refused, scores)
        )
        where = "" if n_refused == all_of_it else f" on {n_refused} of {count(all_of_it, 'data set')}"
        lines.append(f"{display(name, pooled=False)}{where}")
    return [f"left out of all totals, as no verdict accepts it: {', '.join(lines)}"] if lines else []


def _chance(results: PaperResults) -> list[str]:
    """The transformations whose shift is not told from chance."""
    frame = tables.shift_table(results.scores)
    shifts = frame[frame["shift"].notna()]
    lines = []
    for n, part in shifts[~(shifts["p_holm"] < SIGNIFICANT)].groupby("n", sort=False):
        names = [display(name, pooled=False) for name in part["name"]]
        whose = f"all {len(names)} transformations" if len(names) == len(shifts) > 1 else ", ".join(names)
        over = count(int(str(n)), "data set")
        lines.append(f"over {over} the shift by {whose} may be chance (Wilcoxon, p of at least .05 by Holm)")
    return lines


def _order(results: PaperResults) -> str:
    """How far models keep their order, where there are enough of them."""
    frame = tables.kendall_table(results.scores)
    row = frame[frame["name"] == results.axes.total].iloc[0]
    if row["n_models"] < _RANKED or pd.isna(row["tau"]):
        return ""
    return f"; their order stays with Kendall's tau {row['tau']:.2f} (1: the same order)"


def _of_axis(frame: pd.DataFrame, axis: str) -> str:
    differences = frame[f"{axis}_difference"].dropna()
    return (
        f"{display(axis)} {points(float(differences.mean()))} points ({count(len(differences), 'model')})"
        if len(differences)
        else ""
    )


def _of(change: pd.Series[float], position: int) -> str:
    return f"{points(float(change.iloc[position]))} ({change.index[position]})"


def write_report(
    study: Study, choices: Choices = _DEFAULT, compared: Study | None = None, prompts: Sequence[Study] = ()
) -> Path:
    """Write the report; returns its page. `compared` is a study with another generator, for HTEB's Table 22.

    `prompts` are studies with the same generator under other prompts, for PTEB's Table 12.

    Raises DataError before there are scores and verdicts and where one has outrun the other (in either study),
    StudyError for a choice that the study does not have. What nobody rated yet needs no verdicts where its scores were
    included all the same: no table takes them for accepted.
    """
    records, beside = EvaluationRecords.open(study), EvaluationRecords.open(compared) if compared else None
    material, models, verdicts = read_material(records, beside, [*map(EvaluationRecords.open, prompts)])
    results = material.results
    exhibits = all_exhibits(material, study.acceptance, _known(choices, results.scores, models))
    figures = all_figures(material, study.acceptance.threshold, exhibits)
    folder = study.folder / FOLDER
    write_exhibits(folder, exhibits.values(), figures)
    title = f"Robustness of embedding models: study {study.name}"
    by_name = results.scores.assign(model=results.scores["model"].map({short: name for name, short in models.items()}))
    wanted = ModelHost.of(study).labels
    missing = [*missing_scores(by_name, wanted, study.command(COMMAND)), *failed_models(results.scores)]
    status = read_status(records, datetime.now(UTC))
    content = [*_opening(status, results, missing), *sections(about(study), exhibits, figures)]
    write_page(folder / "index.html", title, " ".join(warnings(verdicts)), content)
    return folder / "index.html"


def _opening(status: Status, results: PaperResults, missing: Sequence[str]) -> list[Section]:
    """The answer, and all that is doubtful about it."""
    doubts = doubts_of(results, missing, status.doubts)
    sentences = [*map(as_called, headline(results, status, doubts, missing))]
    doubtful = "\n".join(f"– {as_called(line)}." for line in doubts) if doubts else "Nothing that was looked at."
    return [Section("In short", sentences), Section("What is doubtful", [doubtful])]


def about(study: Study) -> list[str]:
    """What the report is of, and what its numbers rest on."""
    lines = [
        study.description,
        f"Protocol {study.evaluation.protocol!r}. Seeds are averaged first; an axis is the mean over its"
        f" transformations, the total the mean of {axes_of_total(study.kinds)}. Only what people accepted counts. Each"
        " table is a file in tables/ (CSV with all digits, Markdown, LaTeX), each figure one in figures/ (SVG, PNG).",
    ]
    if study.acceptance.rules:
        lines.append(
            "The study has rules of its own (acceptance.rules). What another threshold, or other ratings and raters,"
            " would make of verdicts is told of one threshold alone, and is left out."
        )
    return [line for line in lines if line]


def axes_of_total(kinds: Mapping[str, VerdictUnit]) -> str:
    """The axes of these transformations whose mean is the total, in words, and those that stand beside it."""
    axes = total_axes(kinds, (kind.axis for kind in kinds.values()))
    others = [kind.axis for kind in kinds.values() if kind.axis not in axes]
    beside = f", beside which stands {' and '.join(dict.fromkeys(others))}" if others else ""
    return f"{'the three axes' if axes == AXES else ', '.join(axes)}{beside}"


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
    scored = scores[scores["score"].notna()]["model"]
    baseline = model(choices.baseline) if choices.baseline else (*scored, *scores["model"])[0]
    return Choices(baseline, choices.translation, tuple(map(model, choices.multilingual)))


def report_study(options: argparse.Namespace) -> int:
    """`evaluation.report`, whose options these are."""
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
    inputs = [named.folder / file.name for named in (study, compared, *prompts) if named for file in _INPUTS]
    with stage(study, "evaluation report", inputs, [study.folder / FOLDER]):
        page = write_report(study, Choices(options.baseline, pair, tuple(options.multilingual)), compared, prompts)
    print(f"{study.name}: tables and figures -> {page}")
    return 0
