"""The papers' tables and figures of an evaluated study, as files and as one page that opens with the answer.

Into `<study.folder>/report_evaluation/`: `index.html`, each table as CSV (all digits), Markdown and LaTeX in `tables/`,
each figure as SVG and PNG in `figures/`. Nothing is computed here; what the records cannot carry is refused or said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from annotation.ratings.exclusions import withdrawn_pairs
from annotation.ratings.ratings import counting_ratings, dealt_with, read_all_ratings
from annotation.records import Verdict
from annotation.rubric import load_rubric
from annotation.sampling.sample import COMMAND as SAMPLE
from annotation.status.status import Status, read_status
from annotation.status.text import in_short, next_step
from annotation.verdicts.counted import basis
from annotation.verdicts.evidence import design_of
from annotation.verdicts.marks import late_lines
from annotation.verdicts.preregistration import first_rating, read_rules
from annotation.verdicts.tables import SIMULATED, count, display
from annotation.verdicts.verdicts import accepted_pairs, pair_means, read_verdicts, refuse_stale
from annotation.verdicts.verification import refuse_edited
from evaluation import tables
from evaluation.display import points, short_names
from evaluation.measures.abstention import read_abstention
from evaluation.measures.accepted_pairs import read_accepted_scores, read_text_drift
from evaluation.measures.rows import COMMAND
from evaluation.report.contents import Choices, ReportMaterial, all_exhibits, all_figures, sections
from evaluation.report.folder import write_exhibits
from evaluation.report.paper_tables import PaperResults
from evaluation.report.staleness import refuse_outrun
from evaluation.report.studies_beside import StudyEvaluation, other_generator, other_prompts
from evaluation.results import read_drift, read_scores
from evaluation.tables.resampling import resampled_acceptance
from evaluation.units import label
from plumbline.commands import as_called
from plumbline.errors import DataError, StudyError, nearest
from plumbline.exhibits.page import Section, write_page
from plumbline.records import Pair
from plumbline.store import read_frame
from plumbline.study import Study
from plumbline.transformations import in_order

SIGNIFICANT = 0.05
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


def failed_models(scores: pd.DataFrame) -> list[str]:
    """Models that failed, each with its reason."""
    failed = scores[scores["status"] == "failed"].drop_duplicates(["model", "reason"])
    return [f"{row.model} failed: {row.reason}" for row in failed.itertuples()]


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


FOLDER = "report_evaluation"
SAME_ITEMS = "Items whose outputs failed were dropped; differences are from the original texts of the same items."
_DEFAULT = Choices()


def write_report(
    study: Study, choices: Choices = _DEFAULT, compared: Study | None = None, prompts: Sequence[Study] = ()
) -> Path:
    """Write the report; returns its page. `compared` is a study with another generator, for HTEB's Table 22.

    `prompts` are studies with the same generator under other prompts, for PTEB's Table 12.

    Raises DataError before there are scores and verdicts and where one has outrun the other (in either study),
    StudyError for a choice that the study does not have. What nobody rated yet needs no verdicts where its scores were
    included all the same: no table takes them for accepted.
    """
    verdicts, scores = _evaluated(study)
    beside = [(evaluated, *_evaluated(evaluated)) for evaluated in (*([compared] if compared else []), *prompts)]
    short = short_names(
        {*scores["model"], *(name for _, _, model_scores in beside for name in model_scores["model"].unique())}
    )
    notes = notes_of(study, scores, verdicts)
    named = scores.assign(model=scores["model"].map(short))
    material = _material(study, PaperResults(named, verdicts, notes, study.sample.seed), short)
    evaluations = [
        StudyEvaluation(
            evaluated,
            study_verdicts,
            model_scores.assign(model=model_scores["model"].map(short)),
            notes_of(evaluated, model_scores, study_verdicts),
        )
        for evaluated, study_verdicts, model_scores in beside
    ]
    if compared:
        material = replace(material, second=other_generator(study, evaluations[0]))
    if prompts:
        first = StudyEvaluation(study, verdicts, named, notes)
        material = replace(material, prompts=other_prompts(first, evaluations[-len(prompts) :]))
    models = {name: short[name] for name in scores["model"].unique()}
    exhibits = all_exhibits(study, material, _known(choices, named, models))
    figures = all_figures(study, material, exhibits)
    folder = study.folder / FOLDER
    write_exhibits(folder, exhibits, figures)
    every = [*verdicts, *(verdict for evaluation in evaluations for verdict in evaluation.verdicts)]
    title = f"Robustness of embedding models: study {study.name}"
    missing = [*missing_scores(study, scores), *failed_models(named)]
    content = [*_opening(study, material.results, missing), *sections(study, exhibits, figures)]
    write_page(folder / "index.html", title, " ".join(warnings(every)), content)
    return folder / "index.html"


def _opening(study: Study, results: PaperResults, missing: Sequence[str]) -> list[Section]:
    """The answer, and all that is doubtful about it."""
    status = read_status(study, datetime.now(UTC))
    doubts = doubts_of(results, missing, status.doubts)
    sentences = [*map(as_called, headline(results, status, doubts, missing))]
    doubtful = "\n".join(f"– {as_called(line)}." for line in doubts) if doubts else "Nothing that was looked at."
    return [Section("In short", sentences), Section("What is doubtful", [doubtful])]


def warnings(verdicts: Sequence[Verdict]) -> list[str]:
    """What stands above all that rests on these verdicts: simulated ratings, and rules that were fixed late."""
    return [*([SIMULATED] if any(verdict.simulated for verdict in verdicts) else []), *late_lines(verdicts)]


def notes_of(study: Study, scores: pd.DataFrame, verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """What stands below every table: simulated ratings, models without scores, and what was left out and why."""
    notes = warnings(verdicts)
    notes += missing_scores(study, scores)
    if ((scores["n_failed"] > 0) & (scores["failed_policy"] == "drop") & scores["score"].notna()).any():
        notes.append(SAME_ITEMS)
    all_datasets = set(scores["dataset"])
    for row in tables.left_out(scores).to_dict(orient="records"):
        where = "all data sets" if set(row["datasets"].split(", ")) == all_datasets else row["datasets"]
        name, status = display(row["transformation"], pooled=False), row["status"].replace("_", " ")
        notes.append(f"{name}, {status}: {row['reason']} ({where})")
    return tuple(notes)


def missing_scores(study: Study, scores: pd.DataFrame) -> list[str]:
    """Which models have no scores, or fewer than others."""
    absent = [name for spec in study.evaluation.models if (name := label(study, spec)) not in set(scores["model"])]
    lines = [f"Without scores, as they failed or were not run: {', '.join(absent)}."] if absent else []
    counts = scores.groupby("model", sort=False).size()
    fewer = [f"{model} ({counts.max() - count})" for model, count in counts.items() if count < counts.max()]
    if fewer:
        lines.append(f"Scores not made yet: {', '.join(fewer)}; run `{study.command(COMMAND)}` again.")
    return lines


def _evaluated(study: Study) -> tuple[list[Verdict], pd.DataFrame]:
    """The verdicts and scores of a study, refused where one has outrun the other; what is included needs none."""
    scores = read_scores(study)
    unrated = (scores["status"] == "included_rejected").any() and not (study.folder / "verdicts.json").exists()
    verdicts = [] if unrated else read_verdicts(study)
    refuse_stale(study, verdicts)
    refuse_edited(study, verdicts)
    if scores.empty:
        raise DataError(f"{study.folder / 'scores.parquet'} has no scores; run `{study.command(COMMAND)}` again")
    refuse_outrun(study, scores, verdicts)
    return verdicts, scores


def _material(study: Study, results: PaperResults, short: Mapping[str, str]) -> ReportMaterial:
    """All that the report is made of, models by their short names."""
    rubric, drawn = load_rubric(study), study.folder / "pairs.parquet"
    none = not results.verdicts and not drawn.exists()  # nobody rated anything yet
    pairs = pd.DataFrame(columns=list(Pair.model_fields)) if none else read_frame(drawn, Pair, study.command(SAMPLE))
    question, rated = next(iter(rubric.rating_names()), ""), read_all_ratings(study)

    def shortened(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(model=frame["model"].map(lambda name: short.get(name, name)))

    scale = rubric.scale_of(question) if question else (0, 0)  # without a question nothing is drawn on it
    frame = tables.drift_by_quality(
        pairs, rated, shortened(read_drift(study)), per_pair=study.raters.per_pair, question=question
    )
    correlations = tables.drift_correlations(frame, study.sample.seed)
    counting = counting_ratings(rated[rated["pair_id"].isin(pairs["pair_id"])], study.raters.per_pair)
    design = design_of(study, rubric, read_rules(study), first_rating(rated))
    resampled = pd.DataFrame()
    good = accepted_pairs(pair_means(counting, design), design.questions)
    frame["accepted"] = frame["pair_id"].isin(good)
    if len(counting) and not study.acceptance.rules:
        rests_on = basis(pairs, counting, design, dealt_with(rated, withdrawn_pairs(study))).ratings
        resampled = resampled_acceptance(pairs, rests_on, results.verdicts, design, seed=results.seed)
    return ReportMaterial(
        results,
        frame,
        correlations,
        question,
        (scale[0], scale[-1]),
        resampled,
        shortened(read_accepted_scores(study)),
        shortened(read_text_drift(study)),
        shortened(read_abstention(study)),
    )


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
