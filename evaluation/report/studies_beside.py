"""Other studies beside the one that a report is of: another generator's, or the same one's under other prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.judges.records import JudgedPair
from annotation.records import Verdict
from generation.compare import length_table, lengths_measure
from generation.output_statistics import incomparable, labels, tally
from plumbline.errors import StudyError
from plumbline.store import read_frame
from plumbline.study import Study

_SETTINGS = ("protocol", "precision", "failed")
_OF_JUDGEMENTS = ["pair_id", "judge_hash", "prompt_hash", "order", "question", "score"]
_OF_PAIRS = ["pair_id", "transformation", "seed", "original", "language", "output_language"]


@dataclass(frozen=True)
class Other:
    """A study with another generator: its scores, both generators' names, what is left out there, and Table 23."""

    scores: pd.DataFrame
    labels: tuple[str, str]
    notes: tuple[str, ...]
    lengths: pd.DataFrame


@dataclass(frozen=True)
class Prompts:
    """What `tables.prompt_table` takes of studies under several prompts, the report's first, and what is said below."""

    scores: Mapping[str, pd.DataFrame]
    lengths: pd.DataFrame
    judgements: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class StudyEvaluation:
    """A study with its verdicts, its scores (models by the report's names) and what stands below its tables."""

    study: Study
    verdicts: Sequence[Verdict]
    scores: pd.DataFrame
    notes: Sequence[str]


def other_generator(study: Study, compared: StudyEvaluation) -> Other:
    """The study to compare with. Raises StudyError for scores of another protocol."""
    first, second = labels([study, compared.study])
    notes = (*_told(second, compared), *_settings(study, compared.study, (first, second), "--compare"))
    lengths, different = _lengths([study, compared.study])
    return Other(compared.scores, (first, second), (*notes, *filter(None, [different])), lengths)


def other_prompts(study: StudyEvaluation, others: Sequence[StudyEvaluation]) -> Prompts:
    """Studies of one generator under several prompts. Raises StudyError for other generators and protocols."""
    every = [study, *others]
    names = _by_prompts([evaluation.study for evaluation in every])
    notes: list[str] = []
    for name, evaluation in zip(names[1:], others, strict=True):
        if evaluation.study.generator.identity() != study.study.generator.identity():
            raise StudyError(
                f"--prompts: {evaluation.study.file} has another generator than {study.study.file}, or other settings"
                " of it; name studies alike but for `prompts`"
            )
        notes += [*_told(name, evaluation), *_settings(study.study, evaluation.study, (names[0], name), "--prompts")]
    lengths, different = _lengths([evaluation.study for evaluation in every])
    if len(lengths):
        made_by = dict(zip(labels([evaluation.study for evaluation in every]), names, strict=True))
        lengths = lengths.assign(generator=lengths["generator"].map(made_by))
    scores = {name: evaluation.scores for name, evaluation in zip(names, every, strict=True)}
    judged = {name: _judgements(evaluation.study) for name, evaluation in zip(names, every, strict=True)}
    return Prompts(scores, lengths, judged, (*notes, *filter(None, [different])))


def _by_prompts(studies: Sequence[Study]) -> list[str]:
    """A name for each study: its prompts', and where two have the same its own too."""
    names = [study.prompts or "default" for study in studies]
    return [
        name if names.count(name) == 1 else f"{name} ({study.name})" for name, study in zip(names, studies, strict=True)
    ]


def _told(name: str, evaluation: StudyEvaluation) -> list[str]:
    return [f"{name}: {note}" for note in evaluation.notes]


def _settings(study: Study, compared: Study, names: tuple[str, str], option: str) -> list[str]:
    """How the two were evaluated otherwise."""
    first, second = names
    lines = {
        name: f"{second}: evaluated with `{name}: {setting}`, {first} with `{name}: {here}`"
        for name in _SETTINGS
        if (here := getattr(study.evaluation, name)) != (setting := getattr(compared.evaluation, name))
    }
    if "protocol" in lines:
        raise StudyError(f"{option}: {lines['protocol']}; scores of two protocols cannot be compared")
    return list(lines.values())


def _lengths(studies: Sequence[Study]) -> tuple[pd.DataFrame, str]:
    """(Table 23, a line if the studies hold other texts); of studies without texts here nothing."""
    if not all((study.folder / "texts.parquet").exists() for study in studies):
        return pd.DataFrame(), ""
    return length_table(tally(studies, lengths_measure())), incomparable(studies)


def _judgements(study: Study) -> pd.DataFrame:
    """What judges said of a study's outputs on the first question that they were asked, with the original of each."""
    from annotation.judges.pool import COMMAND, judged_file  # noqa: PLC0415 (few studies have judges)
    from annotation.judges.run import read_judgements  # noqa: PLC0415

    if not study.judges or not judged_file(study).exists():
        return pd.DataFrame(columns=[*_OF_JUDGEMENTS, *_OF_PAIRS[1:]])
    judgements = read_judgements(study)
    judgements = judgements.loc[
        judgements["question"] == (judgements["question"].iloc[0] if len(judgements) else ""), _OF_JUDGEMENTS
    ]
    pairs = read_frame(judged_file(study), JudgedPair, study.command(COMMAND))
    return judgements.merge(pairs[_OF_PAIRS], on="pair_id")
