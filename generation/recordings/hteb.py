"""Outputs as HTEB's authors publish them: `<generator>/<dataset>/<transformation>/<seed>/data_<hash>.parquet`.

The study's `generator.path` names the folder of one generator. An output is served for the text that it was made of,
the transformation and the seed; where a language is drawn, only for the language that was drawn for it
(`generation.recordings.hteb_files`): HTEB's program draws others than we do, and its translation into Arabic
must not pass for one into Turkish. What is not there is a text without an answer, with that reason.

With `generator.languages: recorded` a study takes their languages in place of our draws, so that all outputs are served
for what they are. As the language is part of an output's key, every command of such a study reads the folder. Our draw
stands for a text that has no recording, and where theirs is the text's own language: they translate dialects of Arabic
into Arabic.

Their metadata name neither prompts nor sampling, so the records carry those of the study. A passage of title and text
was transformed in two parts, and is served as such.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from pydantic import BaseModel, ValidationError

from generation.recordings.hteb_files import (
    SAMPLE,
    PublishedFile,
    PublishedText,
    follows_rule,
    read_texts,
    recorded_language,
)
from plumbline.errors import DataError, TextUnansweredError
from plumbline.reading import read_bytes
from plumbline.records import Text, nfc
from plumbline.study import Study
from plumbline.study.base import first_complaint
from plumbline.study.datasets import DatasetSpec, MtebDataset
from plumbline.study.transformations import Transformation
from plumbline.transformations import TRANSFORMATIONS

_FILES = "data*.parquet"
# What the hub's names have at their end, and the tasks' names may lack.
_TASKS = ("crosslingualsts", "pairclassification", "classification", "clustering", "reranking", "retrieval", "sts")


class Metadata(BaseModel):
    """What is used of the `metadata_<hash>.JSON` beside a file."""

    generator_model: str = ""
    dataset: str = ""
    generation_datetime: str | None = None
    transform_corpus: bool = True
    translation_language_selection: str | None = None


class Published:
    """The outputs of one generator, a transformation and seed at a time."""

    def __init__(self, folder: Path, study: Study) -> None:
        self._folder, self._study = folder, study

    def read(self, transformation: str, seed: int) -> Recordings:
        """All that is there of a transformation and seed. Raises DataError for files that cannot be used."""
        known = transformation in TRANSFORMATIONS  # of others the authors publish nothing
        files = {spec.name: self._file(spec, transformation, seed) if known else None for spec in self._study.datasets}
        return Recordings(TRANSFORMATIONS.get(transformation) or self._study.transforming[transformation], seed, files)

    def _file(self, spec: DatasetSpec, transformation: str, seed: int) -> PublishedFile | None:
        """The newest file of a data set's transformation and seed, if there is one."""
        dataset = _find(self._folder, [spec.name, *([spec.mteb] if isinstance(spec, MtebDataset) else [])])
        folder = _find(dataset, [transformation]) if dataset else None
        files = sorted((folder / str(seed)).glob(_FILES)) if folder else []
        if dataset is None or not files:
            return None
        dated = [(metadata.generation_datetime or "", file, metadata) for file in files for metadata in [_read(file)]]
        date, path, metadata = max(dated, key=lambda one: one[0])
        if [one[0] for one in dated].count(date) > 1:
            raise DataError(f"{path.parent} holds several files of the same date; keep one")
        if metadata.generator_model not in ("", self._study.generator.model):
            raise DataError(
                f"{path} is of generator {metadata.generator_model!r}; write this in the study's generator.model,"
                f" where {self._study.generator.model!r} stands"
            )
        return PublishedFile(
            path=path,
            dataset=metadata.dataset or dataset.name,
            transformation=transformation,
            seed=seed,
            draws_by_dataset=metadata.translation_language_selection is not None,
            transforms_passages=metadata.transform_corpus,
            wants_passages=spec.passages,
        )


class Recordings:
    """The outputs of one transformation and seed, in a temporary database: files may hold millions.

    `files` has each data set of the study with its file; None where the folder has none.
    """

    def __init__(self, kind: Transformation, seed: int, files: Mapping[str, PublishedFile | None]) -> None:
        self.of = (kind.name, seed)
        self._kind = kind
        self._files = [(name, file) for name, file in files.items() if file]
        self._missing = [name for name, file in files.items() if not file]
        self._rules: dict[tuple[int, str], bool] = {}
        self._texts = sqlite3.connect("", check_same_thread=False)  # a temporary file, gone with the process
        self._texts.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE texts (id BLOB, file INTEGER, number INTEGER, label TEXT, output TEXT)"
        )
        for place, (_, file) in enumerate(self._files):
            rows = ((_id(found.text), place, found.number, found.label, found.output) for found in read_texts(file))
            self._texts.executemany("INSERT INTO texts VALUES (?, ?, ?, ?, ?)", rows)
        self._texts.execute("CREATE INDEX by_id ON texts (id)")

    def output(self, text: str, source: str, language: str | None) -> str:
        """The output recorded for a text (in NFC) in a drawn language, as it stands there; empty where they gave up.

        Of equal texts the first that has one. Raises TextUnansweredError where nothing was recorded.
        """
        name, seed = self.of
        found = self._find(text, source)
        if not found:
            without = f" (the folder has none of data set {', '.join(self._missing)})" if self._missing else ""
            raise TextUnansweredError(f"nothing recorded for {name} with seed {seed}{without}")
        outputs = [output for _, drawn, output in found if drawn == language]
        if not outputs:
            way = "into" if self._kind.translates else "through"
            others = dict.fromkeys(repr(drawn) for _, drawn, _ in found)
            raise TextUnansweredError(
                f"nothing recorded for {name} {way} {language!r} with seed {seed}, but {way}"
                f" {', '.join(others)}: HTEB's program draws its own languages (see generator.languages)"
            )
        return next(filter(str.strip, outputs), "")

    def language(self, text: Text) -> str | None:
        """The language recorded for a text, other than its own; None where there is none.

        Of equal texts that of the first with an output, or else of the first. What is drawn for a run is taken from the
        text's own data set alone: a run has one language.
        """
        found = [
            (language, output)
            for dataset, language, output in self._find(text.text, text.language)
            if language != text.language and (self._kind.draw == "text" or dataset == text.dataset)
        ]
        return next((language for language, output in found if output.strip()), found[0][0] if found else None)

    def _find(self, text: str, source: str) -> list[tuple[str, str | None, str]]:
        """Data set, drawn language and output of every text that equals this one, in the files' order."""
        query = "SELECT file, number, label, output FROM texts WHERE id = ? ORDER BY file, number"
        found = []
        for place, number, label, output in self._texts.execute(query, (_id(text),)).fetchall():
            name, file = self._files[place]
            one = PublishedText(text, output, number, label)
            drawn = self._kind.draw != "none"
            language = recorded_language(file, one, source, by_rule=self._by_rule(place, source)) if drawn else None
            found.append((name, language, output))
        return found

    def _by_rule(self, place: int, source: str) -> bool:
        """Whether a file's languages are what the program's rule gives."""
        if (place, source) not in self._rules:
            query = "SELECT output, number, label FROM texts WHERE file = ? AND output != '' ORDER BY rowid LIMIT ?"
            texts = (PublishedText("", *row) for row in self._texts.execute(query, (place, SAMPLE)))
            self._rules[place, source] = follows_rule(self._files[place][1], texts, source)
        return self._rules[place, source]


def is_published(folder: Path) -> bool:
    """Whether a folder is one generator's of the authors' layout. Raises DataError for the folder above it."""
    if any(folder.glob(f"*/*/*/{_FILES}")):
        return True
    generators = sorted({file.parents[3].name for file in folder.glob(f"*/*/*/*/{_FILES}")})
    if generators:
        raise DataError(f"{folder} holds generators' folders; name one in generator.path: {', '.join(generators)}")
    return False


def _read(file: Path) -> Metadata:
    """What stands beside a file of outputs."""
    path = file.with_name(f"metadata{file.stem.removeprefix('data')}.JSON")
    try:
        return Metadata.model_validate_json(read_bytes(path))
    except FileNotFoundError:
        raise DataError(f"{file} has no {path.name} beside it; copy both") from None
    except ValidationError as error:
        raise DataError(f"{path} is damaged ({first_complaint(error)}); copy it again") from None


def _find(folder: Path, names: Collection[str]) -> Path | None:
    """The folder in another that has one of these names, as it stands or in the authors' spelling."""
    children = [child for child in sorted(folder.iterdir()) if child.is_dir()]
    matches: tuple[Callable[[str, str], bool], ...] = (
        str.__eq__,
        lambda one, other: _plain(one) == _plain(other),
        lambda one, other: _plain(one) == _stem(other) or _stem(one) == _plain(other),
    )
    for same in matches:
        found = [child for child in children if any(same(child.name, name) for name in names)]
        if len(found) > 1:
            raise DataError(f"{folder}: {' and '.join(child.name for child in found)} could both be {min(names)!r}")
        if found:
            return found[0]
    return None


def _plain(name: str) -> str:
    """A name without case, marks, centuries and American spelling: `Summarized-Expansion` is `summarised_expansion`."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower()).replace("summariz", "summaris")
    plain = re.sub(r"20(\d\d)", r"\1", plain)  # mteb's SemRel24STS is the hub's SemRel2024
    return "summarisation" if plain == "summarise" else plain


def _stem(name: str) -> str:
    """A name without the task at its end."""
    plain = _plain(name)
    return plain.removesuffix(next((task for task in _TASKS if plain.endswith(task)), ""))


def _id(text: str) -> bytes:
    """Equal for equal texts, in whatever Unicode form and with whatever white space around them."""
    return hashlib.blake2b(nfc(text).strip().encode(), digest_size=16).digest()
