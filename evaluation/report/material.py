"""The report's material: the records of an evaluated study, and of studies to compare with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from annotation.campaign.records import PAIRS
from annotation.judges.pool import COMMAND as JUDGE
from annotation.judges.pool import FILE
from annotation.judges.records import JudgedPair
from annotation.judges.run import read_judgements
from annotation.records import Verdict
from annotation.verdicts.rules import late_lines
from annotation.verdicts.tables import SIMULATED
from evaluation.display import short_names
from evaluation.models.encoder import ModelHost
from evaluation.records import COMMAND, SCORES, EvaluationRecords
from evaluation.report import sensitivity_tables
from evaluation.report.paper_tables import PaperResults, left_out_lines
from evaluation.tables.datasets import drift_by_quality, drift_correlations
from generation.jobs import maker_of
from generation.output_statistics import incomparable, labels, tally
from generation.output_tables import length_table, lengths_measure
from plumbline.errors import DataError, StudyError
from plumbline.exhibits.table import Exhibit
from plumbline.store import read_frame
from plumbline.study import Study
from plumbline.study.subject import ORIGINAL

SAME_ITEMS = "Items whose outputs failed were dropped; differences are from the original texts of the same items."
_DECISIONS = ("rejected", "undecided", "accepted")  # the strictest first, as in the gate
_SETTINGS = ("protocol", "precision")
_OF_JUDGEMENTS = ["pair_id", "judge_hash", "prompt_hash", "question", "score"]
_OF_PAIRS = ["pair_id", "transformation", "seed", "original", "language", "output_language"]


@dataclass(frozen=True)
class StudyEvaluation:
    """A study with its verdicts, its scores and the notes below its tables."""

    study: Study
    verdicts: Sequence[Verdict]
    scores: pd.DataFrame
    notes: tuple[str, ...]

    def with_names(self, names: Mapping[str, str]) -> StudyEvaluation:
        """Return it with models by the report's names."""
        return replace(self, scores=self.scores.assign(model=self.scores["model"].map(names)))


@dataclass(frozen=True)
class ReportMaterial:
    """The material of tables and figures, models by their short names (`models` has these by names).

    `warnings` are about the verdicts of all studies.

    `rated` and `correlations` are the drift of rated pairs against `question` (on `scale`),
    `accepted` and `abstaining` the rows of `accepted_scores.parquet` and `abstention.parquet`.
    Frames are empty where there are no records. `comparisons` are the tables on other generators and prompts.
    """

    results: PaperResults
    models: Mapping[str, str]
    warnings: Sequence[str]
    rated: pd.DataFrame
    correlations: pd.DataFrame
    question: str
    scale: tuple[float, float]
    accepted: pd.DataFrame
    abstaining: pd.DataFrame
    comparisons: Sequence[Exhibit]


def read_evaluation(records: EvaluationRecords) -> StudyEvaluation:
    """Return an evaluated study. Raises DataError if scores and verdicts do not match."""
    study, scores = records.study, records.scores
    unrated = (scores["status"] == "included_rejected").any() and not records.looks
    verdicts = [] if unrated else records.conclusion.verdicts
    if scores.empty:
        raise DataError(f"{records.path(SCORES)} has no scores; run `{study.command(COMMAND)}` again")
    refuse_outrun(study, scores, verdicts)
    notes = notes_of(scores, verdicts, ModelHost.of(study).labels, study.command(COMMAND))
    return StudyEvaluation(study, verdicts, scores, notes)


def read_material(
    records: EvaluationRecords, compared: EvaluationRecords | None = None, prompts: Sequence[EvaluationRecords] = ()
) -> ReportMaterial:
    """Return the material of a study's report. Raises as `evaluation.report.page.write_report`."""
    every = [read_evaluation(named) for named in (records, *([compared] if compared else []), *prompts)]
    short = short_names({name for part in every for name in part.scores["model"].unique()})
    names = {name: short[name] for name in every[0].scores["model"].unique()}
    evaluation, *studies = (part.with_names(short) for part in every)
    results = PaperResults(evaluation.scores, evaluation.verdicts, evaluation.notes, records.study.sample.seed)
    if results.verdicts:  # else there are no ratings yet
        records.need(PAIRS)

    def shortened(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(model=frame["model"].map({name: short.get(name, name) for name in frame["model"].unique()}))

    question = next(iter(records.rubric.rating_names()), "")
    scale = records.rubric.scale_of(question) if question else (0, 0)  # without a question nothing is drawn
    rated = drift_by_quality(
        records.sample,
        records.collected.plain_ratings,
        shortened(records.drift),
        per_pair=records.design.per_pair,
        question=question,
    )
    return ReportMaterial(
        results,
        names,
        warnings([verdict for part in every for verdict in part.verdicts]),
        rated,
        drift_correlations(rated, results.seed),
        question,
        (scale[0], scale[-1]),
        shortened(records.accepted_scores),
        shortened(records.abstention),
        [
            *(other_generator(results, evaluation, studies[0]) if compared else ()),
            *([other_prompts(evaluation, studies[-len(prompts) :])] if prompts else ()),
        ],
    )


def warnings(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the warnings about these verdicts: simulated ratings, and rules fixed late."""
    return [*([SIMULATED] if any(verdict.simulated for verdict in verdicts) else []), *late_lines(verdicts)]


def notes_of(scores: pd.DataFrame, verdicts: Sequence[Verdict], models: Sequence[str], command: str) -> tuple[str, ...]:
    """Return the notes below every table: simulated ratings, models without scores, what was left out and why.

    `models` are the labels of all models to score; `command` scores them.

    """
    notes = [*warnings(verdicts), *missing_scores(scores, models, command)]
    if ((scores["n_failed"] > 0) & scores["score"].notna()).any():
        notes.append(SAME_ITEMS)
    return (*notes, *left_out_lines(scores))


def missing_scores(scores: pd.DataFrame, models: Iterable[str], command: str) -> list[str]:
    """Return sentences on models without scores, or with fewer than others; `command` scores them."""
    scored = set(scores["model"].unique())
    absent = [name for name in models if name not in scored]
    lines = [f"Without scores (failed or not run): {', '.join(absent)}."] if absent else []
    counts = scores.groupby("model", sort=False).size()
    fewer = [f"{model} ({counts.max() - count})" for model, count in counts.items() if count < counts.max()]
    if fewer:
        lines.append(f"Scores still missing: {', '.join(fewer)}; run `{command}` again.")
    return lines


def failed_models(scores: pd.DataFrame) -> list[str]:
    """Return a sentence on each model that failed, with its reason."""
    failed = scores[scores["status"] == "failed"].drop_duplicates(["model", "reason"])
    return [f"model {row.model} failed: {row.reason}" for row in failed.itertuples()]


def refuse_outrun(study: Study, scores: pd.DataFrame, verdicts: Sequence[Verdict]) -> None:
    """Raise DataError if scores rest on verdicts or settings that have changed since."""
    settings = {"protocol": study.evaluation.protocol, "precision": study.evaluation.precision}
    makers = {name: maker_of(study.generator, kind).hash for name, kind in study.transforming.items()}
    if change := _other_settings(scores, settings, makers) or _other_verdicts(scores, verdicts):
        raise DataError(f"{study.folder / 'scores.parquet'}: {change}; run `{study.command(COMMAND)}` again")


def _other_verdicts(scores: pd.DataFrame, verdicts: Sequence[Verdict]) -> str:
    """Return a clause on a transformation whose verdict changed since it was scored; "" if there is none."""
    keys = ["transformation", "language", "task_type", "status", "reason"]
    for row in scores[keys].drop_duplicates().to_dict(orient="records"):
        decisions = [
            verdict.decision
            for verdict in verdicts
            if verdict.transformation == row["transformation"]
            and verdict.language in row["language"].split(", ")
            and verdict.task_type in ("", row["task_type"])
        ]
        decision = min(decisions, key=_DECISIONS.index, default="without a verdict")
        was = "accepted" if row["status"] == "evaluated" else row["reason"].split(":")[0]
        if (
            row["transformation"] == ORIGINAL
            or was not in _DECISIONS
            or (was == "accepted") == (decision == "accepted")
        ):
            continue
        return f"{row['transformation']} ({row['language']}) was {was} when the file was written and is {decision} now"
    return ""


def _other_settings(scores: pd.DataFrame, settings: Mapping[str, str], makers: Mapping[str, str]) -> str:
    """Return a clause on a protocol, precision or generator that changed since scoring; "" if none did.

    Scores of versions that did not record these pass.

    """
    noted: list[tuple[str, pd.Series[str], str]] = [(name, scores[name], value) for name, value in settings.items()]
    hashes = scores.groupby("transformation", sort=False)["generator_hash"]
    noted += [("generator", values, makers[str(name)]) for name, values in hashes if name in makers]
    for name, values, value in noted:
        if outdated := sorted(set(values) - {"", value}):
            return f"computed with {name} {outdated[0][:8]!r}, but the study now has {value[:8]!r}"
    return ""


def other_generator(
    results: PaperResults, evaluation: StudyEvaluation, compared: StudyEvaluation
) -> tuple[Exhibit, Exhibit]:
    """Return the tables beside a study of another generator. Raises StudyError for scores of another protocol."""
    first, second = labels([evaluation.study, compared.study])
    notes = _notes(evaluation, compared, (first, second), "--compare")  # refused before texts are counted
    lengths, different = _lengths([evaluation, compared])
    table = sensitivity_tables.generators(results, compared.scores, (first, second), (*notes, *different))
    return table, sensitivity_tables.lengths(lengths)


def other_prompts(evaluation: StudyEvaluation, studies: Sequence[StudyEvaluation]) -> Exhibit:
    """Return the table of studies under several prompts. Raises StudyError if generators or protocols differ."""
    every = [evaluation, *studies]
    prompts = [of_study.study.prompts or "default" for of_study in every]
    names = [  # with the study's own name where two have the same prompts
        name if prompts.count(name) == 1 else f"{name} ({of_study.study.name})"
        for name, of_study in zip(prompts, every, strict=True)
    ]
    notes: list[str] = []
    for name, compared in zip(names[1:], studies, strict=True):
        if compared.study.generator.identity() != evaluation.study.generator.identity():
            raise StudyError(
                f"--prompts: {compared.study.file} and {evaluation.study.file} have different generators"
                " or settings; name studies that differ only in `prompts`"
            )
        notes += _notes(evaluation, compared, (names[0], name), "--prompts")
    lengths, different = _lengths(every)
    if len(lengths):
        generators = dict(zip(labels([of_study.study for of_study in every]), names, strict=True))
        lengths = lengths.assign(generator=lengths["generator"].map(generators))
    scores = {name: of_study.scores for name, of_study in zip(names, every, strict=True)}
    judged = {name: _judgements(of_study.study) for name, of_study in zip(names, every, strict=True)}
    return sensitivity_tables.prompts(scores, lengths, judged, (*notes, *different))


def _notes(evaluation: StudyEvaluation, compared: StudyEvaluation, names: tuple[str, str], option: str) -> list[str]:
    """Return the other study's notes, and the settings that differ. Raises StudyError for different protocols."""
    first, second = names
    settings, of_compared = evaluation.study.evaluation, compared.study.evaluation
    lines = {
        name: f"{second} was evaluated with `{name}: {getattr(of_compared, name)}`,"
        f" {first} with `{name}: {getattr(settings, name)}`"
        for name in _SETTINGS
        if getattr(settings, name) != getattr(of_compared, name)
    }
    if "protocol" in lines:
        raise StudyError(f"{option}: {lines['protocol']}; scores of two protocols cannot be compared")
    return [*(f"{second}: {note}" for note in compared.notes), *lines.values()]


def _lengths(evaluations: Sequence[StudyEvaluation]) -> tuple[pd.DataFrame, list[str]]:
    """Return (Table 23, a sentence if the studies have different texts); nothing for studies without texts here."""
    studies = [evaluation.study for evaluation in evaluations]
    if not all((study.folder / "texts.parquet").exists() for study in studies):
        return pd.DataFrame(), []
    return length_table(tally(studies, lengths_measure())), [*filter(None, [incomparable(studies)])]


def _judgements(study: Study) -> pd.DataFrame:
    """Return judgements of a study's outputs on the first question judged, with each output's original."""
    if not study.judges or not (study.judgements / FILE).exists():
        return pd.DataFrame(columns=[*_OF_JUDGEMENTS, *_OF_PAIRS[1:]])
    judgements = read_judgements(study)
    first = judgements["question"].iloc[0] if len(judgements) else ""
    pairs = read_frame(study.judgements / FILE, JudgedPair, study.command(JUDGE))
    return judgements.loc[judgements["question"] == first, _OF_JUDGEMENTS].merge(pairs[_OF_PAIRS], on="pair_id")
