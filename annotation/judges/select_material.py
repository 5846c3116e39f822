"""What a generator is chosen by: the candidates' error rates, and what judges have said of those that err least.

Nothing is made here: what is missing is named, with the command that makes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from tqdm import tqdm

from annotation.judges.kept import Kept
from annotation.judges.pool import judged_file, read_judged
from annotation.judges.prompts import Questionnaire
from annotation.judges.run import questionnaires
from annotation.judges.selection import lowest_error_rates
from generation import tally
from generation.errors import RATES, error_rates, errors_measure
from generation.jobs import Plan
from generation.unit import COMMAND as GENERATE
from plumbline.records import Text, TransformedText
from plumbline.store import as_record, read_batches
from plumbline.study import Study

JUDGE = "annotation judge run"
FIRST = 5  # candidates that are judged, as in HTEB
PAUSE = 60.0  # seconds; a run that says nothing for so long was stopped, or waited for its server


@dataclass(frozen=True)
class Missing:
    """Something that the choice has to do without."""

    what: str
    command: str  #: what makes it


@dataclass(frozen=True)
class Material:
    """Error rates of all candidates; of those that err least what judges said, by a name of the generator's own."""

    generators: Mapping[str, Study]  #: all that have outputs, by that name: the study with its outputs
    errors: pd.DataFrame  #: a row a generator: error_rate (0 to 1), chosen, reason, ten types in %, numbers of outputs
    judgements: pd.DataFrame  #: as `annotation.judges.judgements` says, a row an output, question, judge and order
    places: pd.DataFrame  #: pair_id, sample, text_id: where each judged output stands, more than once for equal texts
    outputs: pd.DataFrame  #: pair_id, generator, original, transformed, seconds (of its generator, a text)
    asked: tuple[Questionnaire, ...]  #: the study's judges
    same: Mapping[str, str]  #: a judge's name: the generator that is the same model
    recorded: tuple[str, ...]  #: judges and generators that are recordings
    missing: tuple[Missing, ...]


def read_material(study: Study, best: int) -> Material:
    """Read all of it. Raises DataError where no candidate has outputs, StudyError for a study without judges."""
    asked = questionnaires(study)
    made = tally.by_generator([study])
    names = dict(zip(tally.labels(made), made, strict=True))
    errors, missing = _errors(study, names, best)
    chosen = {name: names[name] for name in errors.loc[errors["chosen"], "generator"]}
    parts: list[tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]] = []
    with tqdm(chosen.items(), unit="generator", desc="reading judgements", leave=False) as bar:
        for name, by in bar:
            said, lacks = _said(name, by)
            missing += lacks
            parts += [said] if said else []
    judgements, places, outputs = (
        pd.concat(list(frames), ignore_index=True) if frames else pd.DataFrame()
        for frames in (zip(*parts, strict=True) if parts else [(), (), ()])
    )
    recorded = [name for name, by in chosen.items() if by.generator.kind == "recorded"]
    recorded += [one.spec.name for one in asked if one.spec.kind == "recorded"]
    same = {one.spec.name: name for one in asked for name, by in chosen.items() if _is(one, by)}
    return Material(names, errors, judgements, places, outputs, tuple(asked), same, tuple(recorded), tuple(missing))


def _errors(study: Study, names: Mapping[str, Study], best: int) -> tuple[pd.DataFrame, list[Missing]]:
    """HTEB's Table 5 with the candidates that are chosen, the lowest rate first; and which have no or few outputs."""
    made = list(names.values())
    measure = errors_measure(tally.kinds_of(made), after_retries=False)
    rates = error_rates(tally.tally(made, measure)).set_index("generator")
    totals = {str(name): float(rate) for name, rate in (rates["total"] / 100).items()}
    known = sum(not np.isnan(rate) for rate in totals.values())
    chosen = lowest_error_rates(totals, min(best, max(known, 1)))
    table = chosen.merge(rates.rename(columns={"total": "total_percent"}), left_on="generator", right_index=True)
    wanted = {study.by(spec).outputs: study.by(spec) for spec in (study.generator, *study.candidates)}
    there = {by.outputs for by in made}
    missing = [
        Missing(f"{by.generator.model}: no outputs", by.command(GENERATE))
        for folder, by in wanted.items()
        if folder not in there
    ]
    for name, by in names.items():
        left = int(rates["unanswered"][name])
        missing += [Missing(f"{name}: {left:,} outputs are to come", by.command(GENERATE))] if left else []
    columns = ["generator", "error_rate", "chosen", "reason", *RATES[:-1], "n", "failed", "unanswered"]
    return table[columns].reset_index(drop=True), missing


def _said(name: str, by: Study) -> tuple[tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame] | None, list[Missing]]:
    """Judgements, places and texts of a generator's outputs, if there are any; and what judges have yet to say."""
    command = by.command(JUDGE)
    if not judged_file(by).exists():
        return None, [Missing(f"{name}: no judge has been asked", command)]
    judged = read_judged(by)
    pairs = pd.DataFrame([one.model_dump(include=_OF_PAIR) for one in judged])
    places = pairs[["pair_id", "key"]].merge(_places(by), on="key")
    frames, missing = [], []
    if lost := int((~pairs["pair_id"].isin(places["pair_id"])).sum()):
        missing.append(Missing(f"{name}: {lost:,} judged outputs are none that the study wants now", command))
    for one in questionnaires(by):
        kept = Kept(by, one, judged, by.judgements)
        frame = kept.frame() if kept.path.exists() else None
        there = 0 if frame is None else int((frame["status"] != "unanswered").sum())
        if there < kept.wanted:
            left = f"{kept.wanted - there:,} of {kept.wanted:,} judgements by {one.spec.name} are to come"
            missing.append(Missing(f"{name}: {left}", f"{command} --judge {one.spec.name}"))
        frames += [] if frame is None else [frame[frame["pair_id"].isin(places["pair_id"])]]
    if not frames or not sum(map(len, frames)):
        return None, missing
    outputs = pairs.drop(columns="key").assign(generator=name, seconds=_seconds(by))
    said = pd.concat(frames, ignore_index=True).assign(generator=name)
    return (said, places.drop(columns="key"), outputs), missing


_OF_PAIR = {"pair_id", "key", "original", "transformed"}


def _places(by: Study) -> pd.DataFrame:
    """Where each output of a generator stands: key, sample (an item of a data set), text_id (a place within it)."""
    plan = Plan(by)
    made = [name for name, kind in plan.kinds.items() if kind.made_by == "generator"]
    rows = []
    for text in _texts(by):
        inner = re.fullmatch(rf"(.*)/{re.escape(text.field)}/\d+", text.item)
        sample = f"{text.dataset}/{text.split}/{inner[1] if inner else text.item}"
        for name in made:
            for seed in by.seeds:
                rows.append((plan.job(text, name, seed).key, sample, f"{text.item}/{text.field}/{seed}"))
    return pd.DataFrame(rows, columns=["key", "sample", "text_id"])


def _texts(by: Study) -> Iterator[Text]:
    for table in read_batches(by.folder / "texts.parquet", Text, by.command(GENERATE)):
        yield from (as_record(row, Text) for row in table.to_pylist())


def _seconds(by: Study) -> float:
    """Seconds from one output to the next, as they came; pauses are left out. NaN for recordings, and a single one."""
    gaps: list[np.ndarray] = []
    for name, kind in by.transforming.items():
        for seed in by.seeds if kind.made_by == "generator" and by.generator.kind != "recorded" else ():
            path = by.transformation_file(name, seed)
            if path.exists():
                batches = read_batches(path, TransformedText, by.command(GENERATE), ["finished_at"])
                times = np.sort(np.concatenate([batch["finished_at"].to_numpy() for batch in batches]))
                gaps.append(np.diff(times).astype("timedelta64[us]").astype(np.float64) / 1e6)
    every = np.concatenate(gaps) if gaps else np.empty(0)
    every = every[every < PAUSE]
    return float(every.mean()) if len(every) else float("nan")


def _is(one: Questionnaire, by: Study) -> bool:
    """Whether a judge is the model that generated: of the same revision, where both say theirs."""
    spec, generator = one.spec, by.generator
    revisions: Sequence[str] = [revision for revision in (spec.revision, generator.revision) if revision]
    return spec.model == generator.model and len(set(revisions)) < 2
