"""The report's material: the records of an evaluated study, and of studies to compare with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from annotation.campaign_records import PAIRS
from annotation.judges.records import JudgedPair
from annotation.records import Verdict
from annotation.verdicts.rules import late_lines
from annotation.verdicts.tables import SIMULATED, display
from evaluation import tables
from evaluation.display import short_names
from evaluation.models.encoder import ModelHost
from evaluation.records import COMMAND, SCORES, EvaluationRecords
from evaluation.report.paper_tables import PaperResults
from generation.jobs import makers_of
from generation.output_statistics import incomparable, labels, tally
from generation.output_tables import length_table, lengths_measure
from plumbline.errors import DataError, StudyError
from plumbline.store import read_frame
from plumbline.study import Study
from plumbline.transformations import ORIGINAL

SAME_ITEMS = "Items whose outputs failed were dropped; differences are from the original texts of the same items."
_DECISIONS = ("rejected", "undecided", "accepted")  # the strictest first, as in the gate
_SETTINGS = ("protocol", "precision")
_OF_JUDGEMENTS = ["pair_id", "judge_hash", "prompt_hash", "question", "score"]
_OF_PAIRS = ["pair_id", "transformation", "seed", "original", "language", "output_language"]


@dataclass(frozen=True)
class StudyEvaluation:
    """A study with its verdicts, its scores (models by the report's names) and the notes below its tables."""

    study: Study
    verdicts: Sequence[Verdict]
    scores: pd.DataFrame
    notes: Sequence[str]


@dataclass(frozen=True)
class GeneratorComparison:
    """A study with another generator: its scores, both generators' names, its notes, and Table 23."""

    scores: pd.DataFrame
    labels: tuple[str, str]
    notes: tuple[str, ...]
    lengths: pd.DataFrame


@dataclass(frozen=True)
class PromptComparison:
    """Arguments of `tables.prompt_table`, from studies under several prompts (the report's first), and notes."""

    scores: Mapping[str, pd.DataFrame]
    lengths: pd.DataFrame
    judgements: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ReportMaterial:
    """The material of tables and figures, models by their short names.

    `rated` and `correlations` are the drift of rated pairs against `question` (on `scale`),
    `accepted` and `abstaining` the rows of `accepted_scores.parquet` and `abstention.parquet`.
    Frames are empty where there are no records.
    """

    results: PaperResults
    rated: pd.DataFrame
    correlations: pd.DataFrame
    question: str
    scale: tuple[float, float]
    accepted: pd.DataFrame
    abstaining: pd.DataFrame
    second: GeneratorComparison | None = None
    prompts: PromptComparison | None = None


def read_evaluation(records: EvaluationRecords) -> tuple[list[Verdict], pd.DataFrame, tuple[str, ...]]:
    """Return a study's (verdicts, scores, notes). Raises DataError if scores and verdicts do not match."""
    study, scores = records.study, records.scores
    unrated = (scores["status"] == "included_rejected").any() and not records.looks
    verdicts = [] if unrated else records.conclusion.verdicts
    if scores.empty:
        raise DataError(f"{records.path(SCORES)} has no scores; run `{study.command(COMMAND)}` again")
    refuse_outrun(study, scores, verdicts)
    return verdicts, scores, notes_of(scores, verdicts, ModelHost.of(study).labels, study.command(COMMAND))


def read_material(
    records: EvaluationRecords,
    compared: EvaluationRecords | None = None,
    prompts: Sequence[EvaluationRecords] = (),
) -> tuple[ReportMaterial, dict[str, str], list[Verdict]]:
    """Return (the report's material, models' short names by their names, the verdicts of all studies).

    Raises as `evaluation.report.page.write_report`.
    """
    verdicts, scores, notes = read_evaluation(records)
    beside = [(named.study, *read_evaluation(named)) for named in (*([compared] if compared else []), *prompts)]
    short = short_names(
        {name for frame in (scores, *(of_study[2] for of_study in beside)) for name in frame["model"].unique()}
    )
    shortened = scores.assign(model=scores["model"].map(short))
    results = PaperResults(shortened, verdicts, notes, records.study.sample.seed)
    material = _material(records, results, short)
    if beside:
        evaluation = StudyEvaluation(records.study, verdicts, results.scores, notes)
        others = [
            StudyEvaluation(study, reached, frame.assign(model=frame["model"].map(short)), lines)
            for study, reached, frame, lines in beside
        ]
        material = replace(
            material,
            second=other_generator(evaluation, others[0]) if compared else None,
            prompts=other_prompts(evaluation, others[-len(prompts) :]) if prompts else None,
        )
    every = [*verdicts, *(verdict for _, of_study, *_ in beside for verdict in of_study)]
    return material, {name: short[name] for name in scores["model"].unique()}, every


def _material(records: EvaluationRecords, results: PaperResults, short: Mapping[str, str]) -> ReportMaterial:
    """Return the material from the study's own records."""
    if results.verdicts:  # else there are no ratings yet
        records.need(PAIRS)
    pairs, rated = records.sample, records.collected.plain_ratings
    question, per_pair = next(iter(records.rubric.rating_names()), ""), records.design.per_pair

    def shortened(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(model=frame["model"].map(lambda name: short.get(name, name)))

    scale = records.rubric.scale_of(question) if question else (0, 0)  # without a question nothing is drawn
    frame = tables.drift_by_quality(pairs, rated, shortened(records.drift), per_pair=per_pair, question=question)
    return ReportMaterial(
        results,
        frame,
        tables.drift_correlations(frame, results.seed),
        question,
        (scale[0], scale[-1]),
        shortened(records.accepted_scores),
        shortened(records.abstention),
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
    all_datasets = set(scores["dataset"])
    for row in tables.left_out(scores).to_dict(orient="records"):
        where = "all data sets" if set(row["datasets"].split(", ")) == all_datasets else row["datasets"]
        name, status = display(row["transformation"], pooled=False), row["status"].replace("_", " ")
        notes.append(f"{name}, {status}: {row['reason']} ({where})")
    return tuple(notes)


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
    return [f"{row.model} failed: {row.reason}" for row in failed.itertuples()]


def refuse_outrun(study: Study, scores: pd.DataFrame, verdicts: Sequence[Verdict]) -> None:
    """Raise DataError if scores rest on verdicts or settings that have changed since."""
    settings = {"protocol": study.evaluation.protocol, "precision": study.evaluation.precision}
    makers = {name: maker.hash for name, maker in makers_of(study.generator, study.transforming).items()}
    if why := _other_settings(scores, settings, makers) or _other_verdicts(scores, verdicts):
        raise DataError(f"{study.folder / 'scores.parquet'}: {why}; run `{study.command(COMMAND)}` again")


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
        now = min(decisions, key=_DECISIONS.index, default="without a verdict")
        was = "accepted" if row["status"] == "evaluated" else row["reason"].split(":")[0]
        if row["transformation"] == ORIGINAL or was not in _DECISIONS or (was == "accepted") == (now == "accepted"):
            continue
        return f"{row['transformation']} ({row['language']}) was {was} when the file was written and is {now} now"
    return ""


def _other_settings(scores: pd.DataFrame, settings: Mapping[str, str], makers: Mapping[str, str]) -> str:
    """Return a clause on a protocol, precision or generator that changed since scoring; "" if none did.

    Scores of versions that did not record these pass.

    """
    noted: list[tuple[str, pd.Series[str], str]] = [(name, scores[name], value) for name, value in settings.items()]
    hashes = scores.groupby("transformation", sort=False)["generator_hash"]
    noted += [("generator", values, makers[str(name)]) for name, values in hashes if name in makers]
    for name, values, value in noted:
        if others := sorted(set(values) - {"", value}):
            return f"computed with {name} {others[0][:8]!r}, but the study now has {value[:8]!r}"
    return ""


def other_generator(evaluation: StudyEvaluation, compared: StudyEvaluation) -> GeneratorComparison:
    """Return the comparison with a study of another generator. Raises StudyError for scores of another protocol."""
    first, second = labels([evaluation.study, compared.study])
    notes = (*_notes(second, compared), *_different_settings(evaluation, compared, (first, second), "--compare"))
    lengths, different = _lengths([evaluation, compared])
    return GeneratorComparison(compared.scores, (first, second), (*notes, *filter(None, [different])), lengths)


def other_prompts(evaluation: StudyEvaluation, others: Sequence[StudyEvaluation]) -> PromptComparison:
    """Return the comparison of studies under several prompts. Raises StudyError if generators or protocols differ."""
    every = [evaluation, *others]
    names = _by_prompts([of_study.study for of_study in every])
    notes: list[str] = []
    for name, compared in zip(names[1:], others, strict=True):
        if compared.study.generator.identity() != evaluation.study.generator.identity():
            raise StudyError(
                f"--prompts: {compared.study.file} and {evaluation.study.file} have different generators"
                " or settings; name studies that differ only in `prompts`"
            )
        notes += [*_notes(name, compared), *_different_settings(evaluation, compared, (names[0], name), "--prompts")]
    lengths, different = _lengths(every)
    if len(lengths):
        generators = dict(zip(labels([of_study.study for of_study in every]), names, strict=True))
        lengths = lengths.assign(generator=lengths["generator"].map(generators))
    scores = {name: of_study.scores for name, of_study in zip(names, every, strict=True)}
    judged = {name: _judgements(of_study.study) for name, of_study in zip(names, every, strict=True)}
    return PromptComparison(scores, lengths, judged, (*notes, *filter(None, [different])))


def _by_prompts(studies: Sequence[Study]) -> list[str]:
    """Return a name for each study: its prompts' name, with the study's own where two are the same."""
    names = [study.prompts or "default" for study in studies]
    return [
        name if names.count(name) == 1 else f"{name} ({study.name})" for name, study in zip(names, studies, strict=True)
    ]


def _notes(name: str, evaluation: StudyEvaluation) -> list[str]:
    return [f"{name}: {note}" for note in evaluation.notes]


def _different_settings(
    evaluation: StudyEvaluation, compared: StudyEvaluation, names: tuple[str, str], option: str
) -> list[str]:
    """Return sentences on settings of evaluation that differ. Raises StudyError for different protocols."""
    first, second = names
    here, beside = evaluation.study.evaluation, compared.study.evaluation
    lines = {
        name: f"{second} was evaluated with `{name}: {getattr(beside, name)}`,"
        f" {first} with `{name}: {getattr(here, name)}`"
        for name in _SETTINGS
        if getattr(here, name) != getattr(beside, name)
    }
    if "protocol" in lines:
        raise StudyError(f"{option}: {lines['protocol']}; scores of two protocols cannot be compared")
    return list(lines.values())


def _lengths(evaluations: Sequence[StudyEvaluation]) -> tuple[pd.DataFrame, str]:
    """Return (Table 23, a sentence if the studies have different texts); nothing for studies without texts here."""
    studies = [evaluation.study for evaluation in evaluations]
    if not all((study.folder / "texts.parquet").exists() for study in studies):
        return pd.DataFrame(), ""
    return length_table(tally(studies, lengths_measure())), incomparable(studies)


def _judgements(study: Study) -> pd.DataFrame:
    """Return judgements of a study's outputs on the first question judged, with each output's original."""
    from annotation.judges.pool import COMMAND as JUDGE  # noqa: PLC0415 (few studies have judges)
    from annotation.judges.pool import FILE  # noqa: PLC0415
    from annotation.judges.run import read_judgements  # noqa: PLC0415

    if not study.judges or not (study.judgements / FILE).exists():
        return pd.DataFrame(columns=[*_OF_JUDGEMENTS, *_OF_PAIRS[1:]])
    judgements = read_judgements(study)
    first = judgements["question"].iloc[0] if len(judgements) else ""
    pairs = read_frame(study.judgements / FILE, JudgedPair, study.command(JUDGE))
    return judgements.loc[judgements["question"] == first, _OF_JUDGEMENTS].merge(pairs[_OF_PAIRS], on="pair_id")
