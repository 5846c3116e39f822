"""Recorded outputs in our own files: JSONL, one object a line.

Keys: text, transformation, language (the drawn one, or null), intermediate (the first call's output, or null), output;
and, for rehearsals, the author's own rating of the output: quality and fluency. `generation.hteb` reads the folders
that HTEB's authors publish.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from generation.datasets.loading import iter_datasets, refuse_missing_files
from generation.datasets.tables import read_frame, row_of, unpacked_list
from generation.hteb import published_outputs
from plumbline.errors import DataError, StudyError, read_each
from plumbline.journal import record_lines
from plumbline.records import Record, Text, nfc
from plumbline.study import Study
from plumbline.study.transformations import Transformation
from plumbline.words import count

Place = tuple[str, str | None, str]  # transformation, drawn language, text


class Recording(Record):
    """One recorded output."""

    text: str = Field(min_length=1)
    transformation: str
    language: str | None
    intermediate: str | None
    output: str
    quality: int | None = Field(default=None, ge=1, le=5, description="the author's own rating; not a measurement")
    fluency: int | None = Field(default=None, ge=1, le=5, description="the author's own rating; not a measurement")


def load_recordings(path: Path) -> dict[Place, Recording]:
    """Return all recordings of a file, or of a folder's `.jsonl` files. Raises DataError with file and line."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise DataError(f"no recorded outputs at {path}; correct generator.path in the study")
    recordings: dict[Place, Recording] = {}

    def read(line: tuple[Path, int, Recording]) -> None:
        file, number, recording = line
        key = (recording.transformation, recording.language, nfc(recording.text))
        if recordings.setdefault(key, recording) is not recording:
            raise DataError(f"{file}: line {number}: a second output for {key}; keep only one")

    read_each(((file, *line) for file in files for line in record_lines(file, Recording)), read)
    return recordings


def recorded_languages(study: Study) -> Callable[[Text, str, int], str | None]:
    """Return a function of text, transformation and seed to the recording's language.

    The function returns None without a recording, and if its language is the text's own. Published recordings are read
    a unit at a time, on demand. Raises DataError for files that cannot be used, StudyError for files of ours that have
    several languages for a text.
    """
    path = recordings_path(study)
    if published := published_outputs(path, study):
        unit = functools.cache(published.read)
        return lambda text, transformation, seed: unit(transformation, seed).language(text)
    languages: dict[tuple[str, str], str | None] = {}
    for transformation, language, text in load_recordings(path):
        first = languages.setdefault((transformation, text), language)
        if first != language:
            raise StudyError(
                f"{study.file}: the generator's settings.languages cannot be 'recorded': {path} has outputs of"
                f" {transformation} for one text with two languages, {first!r} and {language!r}; remove one of these"
                " outputs, or write 'drawn'"
            )

    def language_of(text: Text, transformation: str, _seed: int) -> str | None:
        language = languages.get((transformation, text.text))
        return None if language == text.language else language

    return language_of


def recordings_path(study: Study) -> Path:
    """Return the path of a study's recordings. Raises StudyError if its generator is of another kind."""
    if not study.generator.recordings:
        raise StudyError(f"{study.file}: generator.kind is not 'recorded'; only recordings carry authors' ratings")
    return study.resolve(study.generator.recordings[0])


def outputs_path(kind: Transformation) -> Path:
    """Return the path of a transformation's outputs. Raises DataError if there is no file."""
    path = kind.base / (kind.outputs.path if kind.outputs else "")
    if not path.is_file():
        raise DataError(f"transformation {kind.name!r}: no file {path}; correct `outputs.path`")
    return path


def load_outputs(kind: Transformation) -> dict[str, str]:
    """Return each text (in NFC) with its output: the numbered one of several, or empty without one.

    Raises DataError for a missing column, a cell that holds no text, two outputs for a text, and lists of outputs.
    """
    path, file = outputs_path(kind), kind.outputs
    columns, number = ([file.text, file.output], file.number) if file else ([], None)
    way = "choose one by `number` under `outputs` in the study (1: the first of each text)"
    frame = read_frame(path, file.sheet if file else "")
    if missing := [column for column in columns if column not in frame.columns]:
        names = ", ".join(map(str, frame.columns)) or "none"
        raise DataError(
            f"{path}: no column {missing[0]!r} among {names}; name your column under `outputs` in the study"
        )
    cells = frame[columns].astype(object)
    cells = cells.where(cells.notna(), "")
    several: dict[str, dict[str, None]] = {}  # the distinct outputs of each text, in order

    def read(row: tuple[Any, Any, Any]) -> None:
        index, text, output = row
        unpacked = unpacked_list(output) if number else output
        texts = unpacked if isinstance(unpacked, list) else [output]
        location = row_of(path, index)
        if invalid := [cell for cell in (text, *texts) if not isinstance(cell, str)]:
            raise DataError(f"{location} holds {invalid[0]!r:.60}, which is not text; correct it")
        of_text = several.setdefault(nfc(text), {})
        of_text.update(dict.fromkeys(texts))
        if len(of_text) > 1 and not number:
            raise DataError(f"{location} has a second output for {text[:60]!r}; keep only one, or {way}")

    read_each(cells.itertuples(name=None), read)
    position = number - 1 if number else 0
    outputs = {text: [*of_text, ""][min(position, len(of_text))] for text, of_text in several.items()}
    _refuse_lists(outputs, f"{path}: column {columns[1]!r}", way)
    return outputs


def refuse_unreadable(study: Study) -> None:
    """Raise DataError with all faults of the study's local data sets, and of its transformations' files of outputs.

    Data sets of mteb are not loaded.
    """
    local = [spec for spec in study.datasets if not spec.mteb and study.resolve(spec.path).exists()]
    recorded = [kind for kind in study.transforming.values()
                if kind.outputs and (kind.file or (kind.base / kind.outputs.path).exists())]  # fmt: skip
    faults = list[str]()
    for read in (
        lambda: refuse_missing_files(study),
        lambda: collections.deque(iter_datasets(study.model_copy(update={"datasets": tuple(local)})), maxlen=0),
        lambda: read_each(recorded, load_outputs),
    ):
        try:
            read()
        except DataError as error:
            faults += error.args
    if faults:
        raise DataError(*faults)


def _refuse_lists(outputs: Mapping[str, str], column: str, way: str) -> None:
    lists = [text for text, output in outputs.items() if _is_list(output) and not _is_list(text)]
    if 2 * len(lists) > len(outputs):
        example, texts = f"{outputs[lists[0]]!r:.60}", count(len(outputs), "text")
        raise DataError(f"{column} holds lists, such as {example}, for {len(lists)} of {texts}; {way}")


def _is_list(cell: str) -> bool:
    return cell.lstrip().startswith("[") and cell.rstrip().endswith("]")
