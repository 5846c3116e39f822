"""Statistics that the reports on generators share: which outputs count, and their sums for each generator.

An output counts once for each occurrence of its text in the data sets, as in the papers: a text in two data sets is
generated once and counts in both. Outputs that the study no longer wants (of another prompt, say) do not count. A
unit's journal counts with its table, so that a running generation can be inspected.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc
from tqdm import tqdm

from generation.jobs import COMMAND, Plan, journal_files, refuse_other_outputs
from plumbline.errors import DataError, StudyError
from plumbline.hashes import Packed, packed
from plumbline.journal import Journal
from plumbline.records import Text, TransformedText
from plumbline.store import BATCH, as_record, read_batches
from plumbline.study import Study
from plumbline.study.transformations import Transformation

GROUP = ["generator", "transformation", "seed", "dataset", "language"]
_STATUSES = ("ok", "failed", "unanswered")
NAMED = 0.02  # larger shares are listed
DOUBTFUL = 0.1  # larger shares get a warning
_COLUMNS = ("source_language", "status", "flags", "generator_hash", "prompt_hash")


@dataclass(frozen=True)
class OutputMeasure:
    """Some numbers of one output, which are summed.

    `of` computes them from the output's row, which has `columns` of TransformedText; `names` are the sums' columns.
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]
    of: Callable[[dict[str, Any]], tuple[float, ...]]


def by_generator(studies: Sequence[Study]) -> list[Study]:
    """Return a study for each generator and candidate that has outputs, in the studies' order.

    Raises StudyError for a study that is named twice, DataError if there is no output at all.
    """
    for first, second in itertools.combinations(studies, 2):
        if first.folder == second.folder:
            raise StudyError(f"{second.file}: study {second.name!r} is named twice; name each once")
    if without := next((study for study in studies if not _units(study.transforming, study.seeds)), None):
        raise StudyError(
            f"{without.file}: the study's generator makes none of the study's transformations (all come from functions"
            " or files); leave this study out"
        )
    by_study = []
    for study in studies:
        for spec in dict.fromkeys((study.generator, *study.candidates)):
            by = study.by(spec)
            units = _units(by.transforming, by.seeds)
            if any(by.transformation_file(*unit).exists() or journal_files(by.journal_file(*unit)) for unit in units):
                by_study.append(by)
    if not by_study:
        commands = ", then ".join(f"`{study.command(COMMAND)}`" for study in studies)
        raise DataError(f"no outputs in {', '.join(str(study.folder) for study in studies)}; run {commands} first")
    return by_study


def labels(studies: Sequence[Study]) -> list[str]:
    """Return a distinct name for each generator: its model, and if needed its revision, study and folder."""
    models = [study.generator.model for study in studies]
    revised = ["@".join(filter(None, [study.generator.model, study.generator.revision])) for study in studies]
    forms = (
        models,
        revised,
        [f"{model} ({study.name})" for model, study in zip(models, studies, strict=True)],
        [f"{model} ({study.name})" for model, study in zip(revised, studies, strict=True)],
        [f"{model} ({study.name}/{study.outputs.name})" for model, study in zip(revised, studies, strict=True)],
    )
    return next(names for names in forms if len(set(names)) == len(studies))


def tally(studies: Sequence[Study], measure: OutputMeasure) -> pd.DataFrame:
    """Return the sums of a measure: a row for each generator (`labels`), transformation, seed, data set, language.

    Columns: GROUP; `texts` (occurrences); `ok`, `failed` and `unanswered` outputs, which add up to `texts` (outputs not
    asked for yet are `unanswered`); and the measure's names. Reads in pieces, with only the keys and numbers of a unit
    in memory. Raises DataError for damaged files.
    """
    names = labels(studies)
    units = [
        (study, name, t, seed)
        for study, name in zip(studies, names, strict=True)
        for t, seed in _units(study.transforming, study.seeds)
    ]
    texts = {study.name: (study.folder / "texts.parquet", Text, study.command(COMMAND)) for study in studies}
    counts = {name: sum(batch.num_rows for batch in read_batches(*table, ["split"])) for name, table in texts.items()}
    frames = []
    total = sum(counts[study.name] for study, *_ in units)
    with tqdm(total=total, unit="text", desc="counting", unit_scale=True, leave=False) as bar:
        for study, unit_group in itertools.groupby(units, key=lambda unit: unit[0]):
            plan = Plan(study)
            for _, name, transformation, seed in unit_group:
                start = bar.n
                unit = _tally_unit(plan, transformation, seed, measure, bar)
                bar.update(start + counts[study.name] - bar.n)
                frames.append(unit.assign(generator=name, transformation=transformation, seed=seed))
    columns = [*GROUP, "texts", *_STATUSES, *measure.names]
    return pd.concat(frames, ignore_index=True)[columns]


def incomparable(studies: Sequence[Study]) -> str:
    """Return a line that says that the studies' texts, transformations or seeds differ; empty if they do not."""
    bases = list({study.folder: study for study in studies}.values())
    parts = []
    for study in bases if len(bases) > 1 else ():
        path = study.folder / "texts.parquet"
        batches = read_batches(path, Text, study.command(COMMAND), ["text_id"])
        packs = (packed(batch["text_id"].to_pylist(), str(path)) for batch in batches)
        ids = np.sort(np.concatenate([np.empty(0, "S16"), *packs]))  # the order and data sets of texts do not matter
        texts = hashlib.sha256(ids.tobytes()).hexdigest()
        parts.append((texts, frozenset(study.transformations), frozenset(study.seeds)))
    if len(set(parts)) < 2:
        return ""
    names = ", ".join(study.name for study in bases)
    return f"Not comparable: the studies {names} differ in their texts, transformations or seeds."


def kinds_of(studies: Sequence[Study]) -> dict[str, Transformation]:
    """Return the studies' transformations by name."""
    return {name: kind for study in studies for name, kind in study.transforming.items()}


def _units(kinds: Mapping[str, Transformation], seeds: Sequence[int]) -> list[tuple[str, int]]:
    names = [name for name, kind in kinds.items() if kind.made_by == "generator"]
    return [(transformation, seed) for transformation in names for seed in seeds]


def _tally_unit(
    plan: Plan, transformation: str, seed: int, measure: OutputMeasure, bar: tqdm[NoReturn]
) -> pd.DataFrame:
    """Return the sums of one unit: a row for each data set and language."""
    places, groups, names = _places(plan, transformation, seed, bar)
    keys, numbers = _outputs(plan, transformation, seed, measure, np.unique(places))
    at = np.searchsorted(keys, places, side="right") - 1  # the last of equal keys
    present = at >= 0
    present[present] = keys[at[present]] == places[present]
    frame = pd.DataFrame(names, columns=["dataset", "language"])
    frame["texts"] = np.bincount(groups, minlength=len(names))
    for column, name in enumerate([*_STATUSES, *measure.names]):
        frame[name] = np.bincount(groups[present], numbers[at[present], column], len(names))
    frame["unanswered"] += frame["texts"] - np.bincount(groups[present], minlength=len(names))
    return frame.astype(dict.fromkeys(_STATUSES, int))


def _places(
    plan: Plan, transformation: str, seed: int, bar: tqdm[NoReturn]
) -> tuple[Packed, npt.NDArray[np.int32], list[tuple[str, str]]]:
    """Return the output key and group of each text, in order, and each group's data set and language."""
    numbers: dict[tuple[str, str], int] = {}
    keys, groups = [np.empty(0, "S16")], [np.empty(0, np.int32)]
    path = plan.study.folder / "texts.parquet"
    for table in read_batches(path, Text, plan.study.command(COMMAND)):
        rows = table.to_pylist()
        keys.append(packed([plan.job(as_record(row, Text), transformation, seed).key for row in rows], str(path)))
        places = (numbers.setdefault((row["dataset"], row["language"]), len(numbers)) for row in rows)
        groups.append(np.fromiter(places, np.int32, len(rows)))
        bar.update(len(rows))
    return np.concatenate(keys), np.concatenate(groups), list(numbers)


def _outputs(
    plan: Plan, transformation: str, seed: int, measure: OutputMeasure, wanted: Packed
) -> tuple[Packed, npt.NDArray[np.float32]]:
    """Return the wanted outputs' keys, sorted, and their numbers; of equal keys the one that counts is last.

    That is, as in `generation.unit`, an `ok` one, else the newest.
    """
    study, columns = plan.study, len(_STATUSES) + len(measure.names)
    keys, numbers = [np.empty(0, "S16")], [np.empty((0, columns), np.float32)]
    for path, rows in _rows(plan, transformation, seed, ["key", "status", *measure.columns]):
        batch_keys = packed([row["key"] for row in rows], str(study.transformation_file(transformation, seed)))
        at = np.minimum(np.searchsorted(wanted, batch_keys), max(len(wanted) - 1, 0))
        usable = np.flatnonzero(wanted[at] == batch_keys) if len(wanted) else np.empty(0, int)
        keys.append(batch_keys[usable])
        try:
            values = [(*(rows[i]["status"] == status for status in _STATUSES), *measure.of(rows[i])) for i in usable]
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        numbers.append(np.array(values, np.float32).reshape(-1, columns))
    every, found_of = np.concatenate(keys), np.concatenate(numbers)
    order = np.lexsort((found_of[:, _STATUSES.index("ok")], every))
    return every[order], found_of[order]


def _rows(
    plan: Plan, transformation: str, seed: int, columns: Sequence[str]
) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """Yield a unit's outputs in pieces, each with its file: first its table's, then its journals', which are newer."""
    study = plan.study
    path = study.transformation_file(transformation, seed)
    if path.exists():
        refuse_other_outputs(study, transformation, seed)
        for table in read_batches(path, TransformedText, study.command(COMMAND), columns):
            yield path, table.to_pylist()
    for journal in journal_files(study.journal_file(transformation, seed)):
        lines = (row for _, row in Journal(journal).lines(TransformedText))
        while rows := list(itertools.islice(lines, BATCH)):
            yield journal, rows


@dataclass(frozen=True)
class FlagCount:
    """The number of a transformation's usable outputs of originals in one language that have an error type."""

    transformation: str
    language: str
    flag: str
    n: int
    outputs: int  #: usable ones, with the error type or without
    kept_out: bool = False  #: whether the sample was drawn without them

    @property
    def share(self) -> float:
        """The share of the outputs that are flagged, from 0 to 1."""
        return self.n / self.outputs

    @property
    def doubtful(self) -> bool:
        """True if so many of the outputs shown to raters are flagged that somebody should read them first."""
        return self.share > DOUBTFUL and not self.kept_out

    def __str__(self) -> str:
        advice = f"; read some, or keep them from raters with `sample.without: [{self.flag}]`"
        line = f"{self.transformation}, {self.language}: {self.share:.1%} of the outputs are flagged {self.flag}"
        return f"{line} (docs/flags.md){advice if self.doubtful else ''}"


def flagged_outputs(study: Study) -> list[FlagCount]:
    """Return the flag counts among the usable outputs on disk of the study's generator, over all seeds."""
    plan, flagged, outputs = Plan(study), Counter[tuple[str, str, str]](), Counter[tuple[str, str]]()
    for name in study.transformations:
        made_by = plan.makers[name].hash, plan.prompt_hashes[name]
        for seed in study.seeds:
            path = study.transformation_file(name, seed)
            refuse_other_outputs(study, name, seed)
            for table in read_batches(path, TransformedText, study.command(COMMAND), _COLUMNS) if path.exists() else ():
                as_made = [pc.equal(table[column], value) for column, value in zip(_COLUMNS[3:], made_by, strict=True)]
                usable = table.filter(pc.and_(pc.equal(table["status"], "ok"), pc.and_(*as_made))).combine_chunks()
                languages, flags = usable["source_language"], pc.list_flatten(usable["flags"])
                of_flags = languages.take(pc.list_parent_indices(usable["flags"])).to_pylist()
                outputs.update((name, language) for language in languages.to_pylist())
                flagged.update((name, *row) for row in zip(of_flags, flags.to_pylist(), strict=True))
    return [FlagCount(*group, n, outputs[group[:2]]) for group, n in flagged.items()]


def flagged_lines(counts: Iterable[FlagCount]) -> list[str]:
    """Return a warning for each share above `DOUBTFUL`, then a line of all others above `NAMED`, largest first."""
    named = sorted((count for count in counts if count.share > NAMED), key=lambda count: -count.share)
    minor = [
        f"{count.share:.1%} of {count.transformation}, {count.language}, {count.flag}"
        f"{' (kept out)' if count.kept_out else ''}"
        for count in named
        if not count.doubtful
    ]
    line = f"outputs flagged with an error type (docs/flags.md): {'; '.join(minor)}"
    return [*(f"WARNING: {count}" for count in named if count.doubtful), *([line] if minor else [])]
