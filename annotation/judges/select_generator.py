"""The choice of a generator, from error rates to letters (HTEB, A.2 and A.3; PTEB, section 3.2.2).

`selection` and `effects` hold the computations; this module runs them for a study, lists the doubts about the choice,
and writes the output of `plumbline judge select`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from annotation.judges.check import INTERVAL, p_words, printed, text_of
from annotation.judges.effects import additive_fit, between_judges, length_ratios, length_slope
from annotation.judges.pool import FILE as JUDGED
from annotation.judges.pool import read_judged
from annotation.judges.prompts import Questionnaire
from annotation.judges.records import SelectedBy, SelectedFrom, SelectedPair, Selection, checked
from annotation.judges.run import JudgeProgress, questionnaires
from annotation.judges.selection import (
    CrossJudgements,
    by_language,
    compared,
    comparisons,
    cross_checked,
    crossed,
    lowest_error_rates,
    not_told_apart,
    ranking,
    self_preference,
    table_seven,
    table_six,
)
from generation import output_statistics
from generation.jobs import COMMAND as GENERATE
from generation.jobs import Plan
from generation.output_tables import RATES, error_rates, errors_measure
from plumbline.errors import StudyError, nearest
from plumbline.exhibits.table import Exhibit, as_markdown, csv_bytes, interval
from plumbline.identity import identity
from plumbline.manifest import study_hash, versions
from plumbline.records import Text, TransformedText
from plumbline.store import as_record, json_bytes, read_batches
from plumbline.study import Study, file_hash
from plumbline.words import count

JUDGE = "judge run"
PAUSE = 60.0  # seconds; a run without output for so long was stopped, or waited for its server


@dataclass(frozen=True)
class Missing:
    """Missing outputs or judgements."""

    description: str
    command: str  #: the command that produces them


_Frames = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]  # judgements, places, outputs


@dataclass(frozen=True)
class SelectionMaterial:
    """Error rates of all candidates, and the judgements of those with the fewest errors, by names of the generators."""

    generators: Mapping[str, Study]  #: all that have outputs, by that name: the study with its outputs
    errors: pd.DataFrame  #: a row per generator: error_rate (0 to 1), chosen, reason, ten types in %, output counts
    judgements: pd.DataFrame  #: as `annotation.judges.records` says, a row per output, question and judge
    places: pd.DataFrame  #: pair_id, sample, text_id: where each judged output stands, more than once for equal texts
    outputs: pd.DataFrame  #: pair_id, generator, original, transformed, seconds (of its generator, a text)
    questionnaires: tuple[Questionnaire, ...]  #: the study's judges
    same: Mapping[str, str]  #: a judge's name: the generator that is the same model
    recorded: tuple[str, ...]  #: judges and generators that are recordings
    missing: tuple[Missing, ...]
    study: Study  #: whose candidates they are

    def relatives(self, judges: Sequence[str], generators: Sequence[str]) -> list[str]:
        """Return doubts about judges that are a generator, or belong to its model family by name."""
        models = {questionnaire.spec.name: questionnaire.spec.model for questionnaire in self.questionnaires}
        selves = [name for name in judges if self.same.get(name) in generators]
        kin = {judge: [name for name in generators if family(name) == family(models[judge])] for judge in judges}
        near = {judge: [name for name in names if self.same.get(judge) != name] for judge, names in kin.items()}
        lines = [f"some judges rated their own outputs: {', '.join(selves)}"] if selves else []
        related = "; ".join(f"{judge} ({', '.join(names)})" for judge, names in near.items() if names)
        return [*lines, *([f"some judges share a generator's model family, by name: {related}"] if related else [])]

    def question(self, wanted: str) -> str:
        """Return the `wanted` question, else the first. Raises StudyError for one that no judge is asked."""
        names = [name for questionnaire in self.questionnaires for name in questionnaire.questions]
        questions = list(dict.fromkeys(names))
        if wanted and wanted not in questions:
            raise StudyError(f"{self.study.file}: no judge is asked {wanted!r}; {nearest(wanted, questions)}")
        return wanted or questions[0]

    def scale(self, question: str) -> list[int]:
        """Return a question's points. Raises StudyError if judges answer it on different scales."""
        of_question = [each for each in self.questionnaires if question in each.questions]
        ends = {(each.scale(question).lowest, each.scale(question).highest) for each in of_question}
        if len(ends) > 1:
            raise StudyError(
                f"{self.study.file}: judges answer {question!r} on different scales; give them all one prompt"
            )
        ((low, high),) = ends
        return list(range(math.ceil(low), math.floor(high) + 1))


def read_material(study: Study, best: int) -> SelectionMaterial:
    """Read a selection's material. Raises DataError if no candidate has outputs, StudyError if there are no judges."""
    of_judges = questionnaires(study)
    candidates = output_statistics.by_generator([study])
    names = dict(zip(output_statistics.labels(candidates), candidates, strict=True))
    wanted = [study.by(spec) for spec in (study.generator, *study.candidates)]
    errors, missing = _errors(wanted, names, best)
    chosen = {name: names[name] for name in errors.loc[errors["chosen"], "generator"]}
    parts: list[_Frames] = []
    with tqdm(chosen.items(), unit="generator", desc="reading judgements", leave=False) as bar:
        for name, by in bar:
            judged, lacks = _judgements_of(name, by)
            missing += lacks
            parts += [judged] if judged else []
    judgements, places, outputs = (
        pd.concat(list(frames), ignore_index=True) if frames else pd.DataFrame()
        for frames in (zip(*parts, strict=True) if parts else [(), (), ()])
    )
    specs = [questionnaire.spec for questionnaire in of_judges]
    recorded = [name for name, by in chosen.items() if by.generator.recordings]
    recorded += [spec.name for spec in specs if spec.engine.recordings]
    same = dict[str, str]()
    for spec, (name, by) in itertools.product(specs, chosen.items()):
        revisions = set(filter(None, (spec.revision, by.generator.revision)))
        if spec.model == by.generator.model and len(revisions) < 2:  # the same revision, if both name theirs
            same[spec.name] = name
    return SelectionMaterial(
        names, errors, judgements, places, outputs, tuple(of_judges), same, tuple(recorded), tuple(missing), study
    )


def _errors(wanted: Sequence[Study], names: Mapping[str, Study], best: int) -> tuple[pd.DataFrame, list[Missing]]:
    """Return HTEB's Table 5 with the chosen candidates, lowest rate first, and the missing outputs."""
    studies = list(names.values())
    measure = errors_measure(output_statistics.kinds_of(studies), after_retries=False)
    rates = error_rates(output_statistics.tally(studies, measure)).set_index("generator")
    totals = {str(name): float(rate) for name, rate in (rates["total"] / 100).items()}
    rated = sum(not np.isnan(rate) for rate in totals.values())
    chosen = lowest_error_rates(totals, min(best, max(rated, 1)))
    table = chosen.merge(rates.rename(columns={"total": "total_percent"}), left_on="generator", right_index=True)
    folders = {by.outputs for by in studies}
    missing = [
        Missing(f"{by.generator.model}: no outputs", by.command(GENERATE))
        for folder, by in {by.outputs: by for by in wanted}.items()
        if folder not in folders
    ]
    for name, by in names.items():
        unanswered = int(rates["unanswered"][name])
        lack = f"{name}: {count(unanswered, 'output has', 'outputs have')} no answer yet"
        missing += [Missing(lack, by.command(GENERATE))] if unanswered else []
    columns = ["generator", "error_rate", "chosen", "reason", *RATES[:-1], "n", "failed", "unanswered"]
    return table[columns].reset_index(drop=True), missing


def _judgements_of(name: str, by: Study) -> tuple[_Frames | None, list[Missing]]:
    """Return judgements, places and texts of a generator's outputs, if any, and the judgements still missing."""
    command = by.command(JUDGE)
    if not (by.judgements / JUDGED).exists():
        return None, [Missing(f"{name}: no judge has been asked", command)]
    judged = read_judged(by)
    pairs = pd.DataFrame([pair.model_dump(include=_OF_PAIR) for pair in judged])
    places = pairs[["pair_id", "key"]].merge(_places(by), on="key")
    frames, missing = [], []
    if n_removed := int((~pairs["pair_id"].isin(places["pair_id"])).sum()):
        removed = count(n_removed, "judged output is", "judged outputs are")
        missing.append(Missing(f"{name}: {removed} no longer in the study", command))
    for questionnaire in questionnaires(by):
        progress = JudgeProgress(by, questionnaire, judged, by.judgements)
        frame = progress.frame() if progress.path.exists() else None
        answered = 0 if frame is None else int((frame["status"] != "unanswered").sum())
        if answered < progress.wanted:
            judge = questionnaire.spec.name
            line = f"{progress.wanted - answered:,} of {progress.wanted:,} judgements by {judge} are missing"
            missing.append(Missing(f"{name}: {line}", f"{command} --judge {judge}"))
        frames += [] if frame is None else [frame[frame["pair_id"].isin(places["pair_id"])]]
    if not frames or not sum(map(len, frames)):
        return None, missing
    outputs = pairs.drop(columns="key").assign(generator=name, seconds=_seconds(by))
    judgements = pd.concat(frames, ignore_index=True).assign(generator=name)
    return (judgements, places.drop(columns="key"), outputs), missing


_OF_PAIR = {"pair_id", "key", "original", "transformed"}


def _places(by: Study) -> pd.DataFrame:
    """Return each output's place: key, sample (an item of a data set), text_id (its place within the sample)."""
    plan = Plan(by)
    names = [name for name, kind in plan.kinds.items() if kind.made_by == "generator"]
    rows = []
    batches = read_batches(by.folder / "texts.parquet", Text, by.command(GENERATE))
    for text in (as_record(row, Text) for table in batches for row in table.to_pylist()):
        inner = re.fullmatch(rf"(.*)/{re.escape(text.field)}/\d+", text.item)
        sample = f"{text.dataset}/{text.split}/{inner[1] if inner else text.item}"
        for name, seed in itertools.product(names, by.seeds):
            rows.append((plan.job(text, name, seed).key, sample, f"{text.item}/{text.field}/{seed}"))
    return pd.DataFrame(rows, columns=["key", "sample", "text_id"])


def _seconds(by: Study) -> float:
    """Return the mean seconds from one output to the next, without pauses; NaN for recordings and single outputs."""
    gaps: list[np.ndarray] = []
    for name, kind in by.transforming.items():
        for seed in by.seeds if kind.made_by == "generator" and not by.generator.recordings else ():
            path = by.transformation_file(name, seed)
            if path.exists():
                batches = read_batches(path, TransformedText, by.command(GENERATE), ["finished_at"])
                times = np.sort(np.concatenate([batch["finished_at"].to_numpy() for batch in batches]))
                gaps.append(np.diff(times).astype("timedelta64[us]").astype(np.float64) / 1e6)
    every = np.concatenate(gaps) if gaps else np.empty(0)
    every = every[every < PAUSE]
    return float(every.mean()) if len(every) else float("nan")


FOLDER = "judge_select"  # folder of the files that `judge select` writes


def family(model: str) -> str:
    """Return the family with which a model's name begins: qwen of Qwen/Qwen3-8B-AWQ. Other names may hide relatives.

    >>> family("Qwen/Qwen3-8B-AWQ"), family("gaunernst/gemma-3-27b-it-int4-awq")
    ('qwen', 'gemma')
    """
    name = model.rsplit("/", 1)[-1].lower()
    start = re.match(r"[^\W\d_]+", name)
    return start[0] if start else name


MOST = 1000  # units of a Hodges-Lehmann centre: with these its bootstrap takes 8 s for each judge
SEEN = 0.005  # points; less is printed as 0.00
OFTEN = 0.05  # share of judgements that may be left out before that is a doubt about the choice


@dataclass(frozen=True)
class GeneratorSelection:
    """The tables of a selection by name; without a choice only those on error rates."""

    question: str
    tables: Mapping[str, pd.DataFrame]
    doubts: tuple[str, ...] = ()  #: what makes the choice doubtful
    missing: tuple[Missing, ...] = ()
    why_none: str = ""  #: why no generator is chosen; empty if one is
    compared: int = 0  #: judgements of each generator in the means: those that all of them have
    left_out: int = 0  #: judgements left out because a generator lacks them


def choose(material: SelectionMaterial, question: str = "") -> GeneratorSelection:
    """Choose among a study's generator and candidates by its judges' scores (`read_material`).

    `question` is one of those that judges answered; the first of them unless named. Raises StudyError for a question
    that no judge answered, or that judges answer on different scales.
    """
    chosen_question = material.question(question)
    chosen_by = GeneratorSelection(chosen_question, {}, missing=material.missing)
    tables = {"error_rates": material.errors}
    judgements = material.judgements
    judgements = judgements[judgements["question"] == chosen_question] if len(judgements) else judgements
    generators = sorted(set(judgements["generator"])) if len(judgements) else []
    chosen = int(material.errors["chosen"].sum())
    if len(generators) < 2:
        of = f"{chosen} generators with the lowest error rates" if chosen > 1 else "two generators that a choice needs"
        reason = f"judges have rated the outputs of {len(generators) or 'none'} of the {of}"
        return replace(chosen_by, tables=tables, why_none=reason)
    try:
        common = crossed(_at_each_place(judgements, material.places), chosen_question)
    except ValueError as error:
        reason = f"{error}; have judges rate more outputs of every generator (`judge run --outputs N`)"
        return replace(chosen_by, tables=tables, why_none=reason)
    tables |= tables_of(replace(material, judgements=judgements), common, material.scale(chosen_question))
    doubts = tuple(_doubts(material, common, tables))
    return replace(chosen_by, tables=tables, doubts=doubts, compared=len(common.cells), left_out=common.left_out)


def tables_of(material: SelectionMaterial, common: CrossJudgements, scale: Sequence[float]) -> dict[str, pd.DataFrame]:
    """Return all tables on one question, of judgements that two generators or more have in common."""
    judgements, seed = material.judgements, material.study.sample.seed
    question = str(judgements["question"].iloc[0])
    everywhere = _at_each_place(judgements, material.places)
    differences = comparisons(common.observations, seed)
    ranked = ranking(common.observations, differences, seed)
    best = everywhere[everywhere["generator"] == ranked["generator"].iloc[0]]
    units = {"output": "pair_id", "sample": "sample", "data set": "dataset"}  # larger ones, if these are too many
    unit = next((name for name, column in units.items() if best[column].nunique() <= MOST), "data set")
    tables = {
        "ranking": ranked,
        "comparisons": differences,
        "table_6": table_six(common, ranked),
        "table_7": table_seven(common),
        "by_language": by_language(everywhere, question),
        **_effects(common, material.same, seed),
        "length": _length(judgements, material.outputs),
        "table_4": compared(judgements, material.outputs),
        "table_5": cross_checked(best, seed, unit=(units[unit],)).assign(unit=unit),
    }
    if judgements["judge"].nunique() > 1:
        tables["between"] = between_judges(judgements, scale)
    return tables


def _at_each_place(judgements: pd.DataFrame, places: pd.DataFrame) -> pd.DataFrame:
    """Repeat the judgements for each place of the output's text, as error rates count them."""
    frame = judgements.merge(places, on="pair_id")
    return frame.assign(pair_id=frame["pair_id"] + "/" + frame["sample"] + "/" + frame["text_id"])


def _effects(common: CrossJudgements, same: Mapping[str, str], seed: int) -> dict[str, pd.DataFrame]:
    """Return the additive fit: effects of judges and generators, and self-preference of models that are both."""
    by_model = CrossJudgements(common.cells.rename(index=dict(same), level="judge"), common.left_out, common.failed)
    fit = additive_fit(by_model.cells.groupby("judge").mean())
    rows = [("generator", name, part, fit.mean + part, fit.reason) for name, part in fit.generators.items()]
    rows += [("judge", name, part, fit.mean + part, fit.reason) for name, part in fit.judges.items()]
    tables = {"effects": pd.DataFrame(rows, columns=["role", "name", "effect", "adjusted_mean", "reason"])}
    if by_model.cells.index.unique("judge").isin(by_model.cells.columns).any():
        tables["self_preference"] = self_preference(by_model, seed)
    return tables


def _length(judgements: pd.DataFrame, outputs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each judge: the slope of its scores on the logarithm of the length ratio, over all outputs."""
    ratios, rows = length_ratios(outputs), []
    for judge, of_judge in checked(judgements).groupby("judge"):
        slope = length_slope(
            of_judge["score"].to_numpy(np.float64), ratios.reindex(of_judge["pair_id"]).to_numpy(np.float64)
        )
        rows.append((judge, slope.value, slope.low, slope.high, slope.reason))
    return pd.DataFrame(rows, columns=["judge", "slope", "low", "high", "reason"])


def _doubts(material: SelectionMaterial, common: CrossJudgements, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return the doubts about the choice, gravest first."""
    doubts = []
    if material.recorded:
        doubts.append(f"recorded answers stand in for models ({', '.join(material.recorded)})")
    if material.missing:
        doubts.append("outputs or judgements are missing (listed below)")
    best = str(tables["ranking"]["generator"].iloc[0])
    effects = tables["effects"]
    adjusted = effects[effects["role"] == "generator"].set_index("name")["adjusted_mean"]
    if adjusted.notna().all() and adjusted.idxmax() != best:
        doubts.append(f"without models' scores of their own outputs, {adjusted.idxmax()} is ahead (additive fit)")
    for row in tables["self_preference"].to_dict("records") if "self_preference" in tables else []:
        if row["low"] >= SEEN:
            points = interval(row["self_preference"], row["low"], row["high"])
            doubts.append(f"{row['model']} rates its own outputs {points} higher than the fit expects")
    judges = sorted(common.cells.index.unique("judge"))
    doubts += material.relatives(judges, list(common.cells.columns))
    share = common.left_out / (common.left_out + len(common.cells))
    if share > OFTEN:
        doubts.append(f"{share:.0%} of the judgements are left out because a generator lacks them")
    if len(judges) == 1:
        doubts.append(f"{judges[0]} is the only judge")
    return doubts


def selection_record(material: SelectionMaterial, selection: GeneratorSelection) -> Selection:
    """Return the record of a selection and its material."""
    pairs = selection.tables.get("comparisons")
    study = material.study
    ranked = selection.tables.get("ranking")
    names = list(SelectedPair.model_fields)
    rows: list[dict[str, Any]] = [] if pairs is None else pairs[names].to_dict("records")  # type: ignore[assignment]
    return Selection(
        question=selection.question,
        chosen="" if ranked is None else str(ranked["generator"].iloc[0]),
        why_none=selection.why_none,
        doubts=selection.doubts,
        missing=tuple(f"{lack.description}; run `{lack.command}`" for lack in material.missing),
        resamples=0 if pairs is None else int(pairs["resamples"].iloc[0]),
        compared=selection.compared,
        left_out=selection.left_out,
        generators=tuple(_generators(material, ranked)),
        judges=tuple(_judges(material, selection.question)),
        comparisons=tuple(SelectedPair.model_validate(row) for row in rows),
        study_sha256=study_hash(study.file),
        versions=versions(),
    )


def _generators(material: SelectionMaterial, ranked: pd.DataFrame | None) -> list[SelectedFrom]:
    of_means = {} if ranked is None else {str(row["generator"]): row for row in ranked.to_dict("records")}
    rates = material.errors.set_index("generator")
    outputs = material.outputs
    records = []
    for name, rate, judged in zip(rates.index, rates["error_rate"], rates["chosen"], strict=True):
        by = material.generators[str(name)]
        pair_ids = sorted(outputs.loc[outputs["generator"] == name, "pair_id"]) if len(outputs) else []
        records.append(
            SelectedFrom.model_validate(
                {
                    **of_means.get(str(name), {}), "generator": str(name), "model": by.generator.model,
                    "revision": by.generator.revision, "kind": by.generator.kind,
                    "outputs_sha256": file_hash(by.outputs), "error_rate": float(rate), "judged": bool(judged),
                    "judged_outputs": identity("selected-from-v1", pair_ids) if pair_ids else "",
                }
            )
        )  # fmt: skip
    return records


def _judges(material: SelectionMaterial, question: str) -> list[SelectedBy]:
    scored = material.judgements
    if len(scored):
        scored = scored[(scored["question"] == question) & (scored["status"] == "ok")]
    records = []
    for questionnaire in material.questionnaires:
        spec = questionnaire.spec
        of_judge = scored[scored["judge"] == spec.name] if len(scored) else scored
        content = sorted(zip(of_judge["key"], of_judge["score"].map(repr), strict=True)) if len(of_judge) else []
        records.append(
            SelectedBy(
                judge=spec.name, model=spec.model, kind=spec.engine.kind,
                judge_hash=questionnaire.hash, prompt_sha256=file_hash(questionnaire.prompt_file),
                n=len(content), judgements=identity("selected-by-v1", content) if content else "",
            )
        )  # fmt: skip
    return records


#: table: its caption, its columns with their headings (none: all of them)
_SHOWN: Mapping[str, tuple[str, dict[str, str]]] = {
    "error_rates": (
        "Error rates of first attempts, means over transformations (HTEB, Table 5)",
        {"generator": "Generator", "error_rate": "Errors", "chosen": "Judged", "n": "Outputs", "failed": "Failed",
         "unanswered": "Unanswered", "reason": ""},
    ),
    "ranking": (
        "Means with 95% intervals over source samples; generators that share a letter do not differ significantly",
        {"generator": "Generator", "mean": "Mean", **INTERVAL, "letters": "Letters", "n": "Samples"},
    ),
    "comparisons": (
        "Pairwise comparisons of generators: paired bootstrap with Holm's correction (HTEB, 2.3)",
        {"first": "Better", "second": "Than", "difference": "By", **INTERVAL, "p_holm": "Holm p",
         "resamples": "Resamples"},
    ),
    "table_6": ("Means by judge (rows) and generator (columns) (HTEB, Table 6)", {}),
    "table_7": ("Means over judges, by transformation (HTEB, Table 7)", {}),
    "by_language": ("Means by transformation and language of the output", {}),
    "effects": (
        "Additive fit without models' scores of their own outputs: each effect, and the adjusted mean",
        {"role": "Role", "name": "Name", "effect": "Effect", "adjusted_mean": "Mean", "reason": ""},
    ),
    "self_preference": (
        "How much better models rate their own outputs than the fit expects; part of it may be justified, as the"
        " outputs may be better",
        {"model": "Model", "self_preference": "Self-preference", **INTERVAL, "reason": ""},
    ),
    "length": (
        "Slope of scores on length: points per unit of the natural logarithm of the length ratio; part of the slope"
        " may be justified, as longer outputs may be better",
        {"judge": "Judge", "slope": "Slope", **INTERVAL, "reason": ""},
    ),
    "between": (
        "Agreement between judges",
        {"first": "Judge", "second": "Judge ", "n": "Outputs", "pearson": "Pearson", "spearman": "Spearman",
         "ac2": "AC2", "difference": "Difference"},
    ),
    "table_4": (
        "Mean score, share of words changed (0 to 1) and seconds per text (PTEB, Table 4)",
        {"judge": "Judge", "generator": "Generator", "n": "Outputs", "failed": "Failed", "similarity": "Score",
         "edit_distance": "Edits", "seconds": "Seconds"},
    ),
    "table_5": (
        "All judges on the chosen generator: mean, and Hodges-Lehmann centre with its 95% interval (PTEB, Table 5)",
        {"judge": "Judge", "unit": "Unit", "n": "Units", "mean": "Mean", "centre": "Centre", **INTERVAL, "reason": ""},
    ),
}  # fmt: skip


def headline(selection: GeneratorSelection) -> str:
    """Return one sentence: the chosen generator, how certain the choice is, and its doubts."""
    if selection.why_none:
        return f"No generator can be chosen by {selection.question} yet: {selection.why_none}."
    ranked, pairs = selection.tables["ranking"], selection.tables["comparisons"]
    best = ranked.iloc[0]
    tied = not_told_apart(ranked)
    best_pairs = pairs[(pairs["first"] == best["generator"]) | (pairs["second"] == best["generator"])]
    if tied:
        sure = f"not significantly better than {', '.join(tied)}"
    else:
        sure = f"significantly better than every other (Holm p {p_words(float(best_pairs['p_holm'].max()), 'up to ')})"
    mean = interval(best["mean"], best["low"], best["high"])
    doubtful = "; ".join([*selection.doubts, "no person has confirmed it"])
    chosen = f"Judges choose {best['generator']} by {selection.question}: {mean}"
    return f"{chosen}, {sure}; doubtful: {doubtful}."


def select_text(name: str, selection: GeneratorSelection) -> str:
    """Return the choice and all tables as text for a terminal."""
    parts = [f"Choice of a generator, study {name}", headline(selection)]
    parts += [f"Missing: {lack.description}; run `{lack.command}`" for lack in selection.missing]
    for exhibit in exhibits(selection):
        parts.append("\n".join([f"\n{exhibit.caption}\n\n{text_of(exhibit.printed)}", *exhibit.notes]))
    return "\n".join(parts)


def select_files(name: str, selection: GeneratorSelection, record: Selection) -> dict[str, bytes]:
    """Return every table as CSV in full precision, all tables as one Markdown page, and the record."""
    parts = [f"# Choice of a generator, study {as_markdown(name)}\n", f"{as_markdown(headline(selection))}\n"]
    lines = [f"- Missing: {as_markdown(lack.description)}; run `{lack.command}`\n" for lack in selection.missing]
    parts += ["".join(lines)] if lines else []
    parts += [exhibit.markdown() for exhibit in exhibits(selection)]
    files = {f"{table}.csv": csv_bytes(frame) for table, frame in selection.tables.items()}
    return {"selection.md": "\n".join(parts).encode(), "selection.json": json_bytes(record), **files}


def exhibits(selection: GeneratorSelection) -> list[Exhibit]:
    """Return the tables in reading order."""
    shown = []
    for name, (caption, headings) in _SHOWN.items():
        frame = selection.tables.get(name, pd.DataFrame())
        if len(frame):
            names = list(map(str, frame))
            short = [column.rsplit("/", 1)[-1] for column in names]  # without organisations, if these stay distinct
            all_columns = dict(zip(names, short if len(set(short)) == len(short) else names, strict=True))
            table = printed(frame, headings or all_columns)
            shown.append(Exhibit(f"{FOLDER}/{name}", caption, frame, table, _notes(name, frame)))
    return shown


def _notes(name: str, frame: pd.DataFrame) -> tuple[str, ...]:
    if name == "table_6":
        return (
            "The average is the plain mean over judgements, models' scores of their own outputs included (as in HTEB).",
        )
    if name != "table_4":
        return ()
    missing = "; –: the generator is recorded, or made a single output" if frame["seconds"].isna().any() else ""
    return (f"Seconds: the time from one output to the next{missing}.",)
