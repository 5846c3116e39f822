"""Read outputs as HTEB's authors publish them: `<generator>/<dataset>/<transformation>/<seed>/data_<hash>.parquet`.

The study's `generator.path` names the folder of one generator. An output is served for its text, transformation and
seed, and, if languages are drawn, only for the language drawn for it: HTEB's program draws other languages than we do,
and its translation into Arabic must not pass for one into Turkish. A text without an output stays unanswered, with the
reason.

With its engine's `settings: {languages: recorded}` a study uses the recorded languages instead of our draws, so that
every output can be served. As the language is part of an output's key, every command of such a study reads the folder.
Our draw applies to a text without a recording, and to one whose recorded language is its own: HTEB translates dialects
of Arabic into Arabic.

The published metadata name neither prompts nor sampling, so the records carry those of the study. The title and text
of a passage were transformed apart, and are served as two texts.
"""

from __future__ import annotations

import hashlib
import random
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from generation.flags import identify
from plumbline.errors import DataError, TextUnansweredError
from plumbline.identity import canonical
from plumbline.reading import read_bytes
from plumbline.records import Text, nfc
from plumbline.store import BATCH, native_file
from plumbline.study import Study
from plumbline.study.base import first_complaint
from plumbline.study.datasets import DatasetSpec
from plumbline.study.places import files_in
from plumbline.study.transformations import EIGHT, Transformation

ORIGINAL = "original"
SAMPLE = 50  # outputs by which a file's rule of drawing languages is told; under another rule one in five agrees
_LEFT = ("sentence1", "sent1", "sentence_1", "text_1")
_RIGHT = ("sentence2", "sent2", "sentence_2", "text_2")
_SUMMARIES = (("human_summaries", "human"), ("machine_summaries", "machine"))
_TEXT = ("sentences", "text", "sentence", "input", "title")
_CANDIDATES = ("positive", "negative")
_LANGUAGE = ("language", "lang", "languages")
# The labels of source languages that the program takes for one of its pools'; it has other names for arb, arq and ary.
_CODES = {
    **dict.fromkeys(("ar", "ara"), "ar"),
    **dict.fromkeys(("de", "deu"), "de"),
    **dict.fromkeys(("en", "eng"), "en"),
    **dict.fromkeys(("es", "esp", "spa"), "es"),
    **dict.fromkeys(("fr", "fra"), "fr"),
    **dict.fromkeys(("tr", "tur"), "tr"),
}

Record = dict[str, Any]
Fields = Callable[[Record], list[str]]


@dataclass(frozen=True)
class PublishedFile:
    """A published file, with the facts from its folder and metadata."""

    path: Path
    dataset: str  # the authors' name; draws depend on it
    transformation: str  # our name
    seed: int
    draws_by_dataset: bool
    transforms_passages: bool
    wants_passages: bool  # whether the study transforms passages


@dataclass(frozen=True)
class PublishedText:
    """A text of a file, its output (empty without one), and what its draw depends on."""

    text: str
    output: str
    number: int  # among the file's texts, in the program's order
    label: str  # the record's label of its language; empty without one


def read_texts(file: PublishedFile) -> Iterator[PublishedText]:
    """Yield the file's texts that the study can want. Raises DataError for a damaged or malformed file."""
    number = 0
    try:
        with native_file(file.path) as opened, pq.ParquetFile(opened) as parquet:
            column, names = _columns(parquet.schema_arrow, file)
            for side, fields in enumerate(_passes(names, file)):
                for record, changed in _records(parquet, column):
                    label = _label(record, file, side)
                    for field in fields(record):
                        wanted = file.wants_passages or not (field in _CANDIDATES or _part(record) == "corpus")
                        for text, output in _texts(record.get(field), changed.get(field)):
                            if wanted:
                                yield PublishedText(text, output, number, label)
                            number += 1
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{file.path} is damaged ({error}); copy it again") from None


def recorded_language(file: PublishedFile, published: PublishedText, source: str, *, by_rule: bool) -> str:
    """Return the language drawn for a text: the target of a translation, or a backtranslation's middle one.

    If the file goes `by_rule` (see `follows_rule`), the rule's language, whatever language the output is in: a model's
    mistake does not change what was asked for. Otherwise the output's language, if it could be drawn, or else the
    rule's. `source` is the text's language (a code), for records without a label.
    """
    label = published.label or source
    identified = None if by_rule else identify(published.output)
    return identified if identified in _choices(file, label) else _drawn(file, published.number, label)


def follows_rule(file: PublishedFile, texts: Iterable[PublishedText], source: str) -> bool:
    """Return whether at least half of a file's telling translations are in the languages that the rule draws.

    A translation into a language that cannot have been drawn is a failure and does not count; backtranslations never
    count, and follow the rule. `source` is the language of texts whose record has no label.
    """
    if not EIGHT[file.transformation].translates:
        return True
    votes = []
    for text in texts:
        label, identified = text.label or source, identify(text.output)
        if identified in _choices(file, label):
            votes.append(identified == _drawn(file, text.number, label))
    return 2 * sum(votes) >= len(votes)


def _choices(file: PublishedFile, label: str) -> list[str]:
    """Return the languages that the program draws from: the pool without the label's languages."""
    pool = EIGHT[file.transformation].languages
    codes = {_CODES.get(part.strip().lower()) for part in re.split("[-_/]", label)}
    return [language for language in pool if language not in codes] or list(pool)


def _drawn(file: PublishedFile, number: int, label: str) -> str:
    """Return the language that the program's rule draws."""
    choices = _choices(file, label)
    if file.draws_by_dataset:
        digest = hashlib.sha256(canonical({"dataset": file.dataset, "seed_transform": file.seed}).encode()).hexdigest()
        return choices[int(digest, 16) % len(choices)]
    shift = 0 if file.transformation == "translation" else number
    return random.Random(file.seed + shift).choice(choices)  # noqa: S311 (the program's own draw)


def _columns(schema: pa.Schema, file: PublishedFile) -> tuple[str, list[str]]:
    """Return the column of outputs, and the fields of records; plain texts are records with a field `text`."""
    columns: list[str] = [name for name in schema.names if name != ORIGINAL]
    if ORIGINAL not in schema.names or len(columns) != 1 or not columns[0].endswith(f"_seed_{file.seed}"):
        raise DataError(
            f"{file.path} has the columns {', '.join(schema.names)}; HTEB's files have {ORIGINAL!r} and one that"
            f" ends in '_seed_{file.seed}'"
        )
    kind = schema.field(ORIGINAL).type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return columns[0], ["text"]
    if pa.types.is_struct(kind):
        return columns[0], [field.name for field in kind]
    raise DataError(f"{file.path}: column {ORIGINAL!r} holds {kind}, not records")


def _passes(names: Collection[str], file: PublishedFile) -> list[Fields]:
    """Return the text fields of a record, in the program's order: all first sentences come before all second ones."""
    if {"_hteb_part", "part"} & set(names):
        return [lambda record: _retrieval_fields(record, transforms_passages=file.transforms_passages)]
    if {"query", *_CANDIDATES} <= set(names):
        fields = ["query", *(_CANDIDATES if file.transforms_passages else ())]
        return [lambda _: fields]
    second, right = _first(_LEFT, names), _first(_RIGHT, names)
    if second and right:
        return [lambda _: [second], lambda _: [right]]
    summaries = [name for aliases in _SUMMARIES if (name := _first(aliases, names))]
    if len(summaries) == len(_SUMMARIES):
        return [lambda _: summaries]
    if text := _first(_TEXT, names):
        return [lambda _: [text]]
    raise DataError(f"{file.path}: its records have no known text field; they have {', '.join(names)}")


def _retrieval_fields(record: Record, *, transforms_passages: bool) -> list[str]:
    if _part(record) == "queries":
        return ["text" if record.get("query") is None else "query"]
    if _part(record) != "corpus" or not transforms_passages:
        return []
    if record.get("document") is not None:
        return ["document"]
    return [name for name in ("title", "text") if record.get(name) is not None]


def _part(record: Record) -> str:
    return str(record.get("_hteb_part") or record.get("part") or "")


def _label(record: Record, file: PublishedFile, side: int) -> str:
    """Return the label of a text's language; for a pair (`en-de`) that of its side, but both for a translated pair."""
    label = next((value for name in _LANGUAGE if isinstance(value := record.get(name), str) and value.strip()), "")
    parts = [part for part in re.split("[-_/]", label) if part]
    is_pair = _first(_LEFT, record) is not None
    return parts[side] if is_pair and len(parts) == 2 and file.transformation != "translation" else label


def _first(aliases: Collection[str], names: Collection[str]) -> str | None:
    return next((name for name in aliases if name in names), None)


def _records(parquet: pq.ParquetFile, column: str) -> Iterator[tuple[Record, Record]]:
    for batch in parquet.iter_batches(BATCH, columns=[ORIGINAL, column]):
        for original, changed in zip(batch[ORIGINAL].to_pylist(), batch[column].to_pylist(), strict=True):
            yield _as_record(original), _as_record(changed)


def _as_record(value: Any) -> Record:
    return value if isinstance(value, dict) else {"text": value}


def _texts(original: Any, changed: Any) -> Iterator[tuple[str, str]]:
    """Yield each text of a field, or of its list, with the text at the same position of the other record."""
    if isinstance(original, str):
        if original.strip():
            yield original, changed if isinstance(changed, str) else ""
    elif isinstance(original, list):
        same = isinstance(changed, list) and len(changed) == len(original)
        for index, item in enumerate(original):
            yield from _texts(item, changed[index] if same else None)


_FILES = "data*.parquet"
# Endings of names on the hub that the tasks' names may lack.
_TASKS = ("crosslingualsts", "pairclassification", "classification", "clustering", "reranking", "retrieval", "sts")


class Metadata(BaseModel):
    """The fields used of the `metadata_<hash>.JSON` beside a file."""

    generator_model: str = ""
    dataset: str = ""
    generation_datetime: str | None = None
    transform_corpus: bool = True
    translation_language_selection: str | None = None


class HtebOutputs:
    """The outputs of one generator, read for one transformation and seed at a time."""

    def __init__(self, folder: Path, study: Study) -> None:
        self._folder, self._model = folder, study.generator.model
        self._datasets, self._kinds = study.datasets, study.transforming

    def read(self, transformation: str, seed: int) -> Recordings:
        """Return all outputs of a transformation and seed. Raises DataError for files that cannot be used."""
        published = transformation in EIGHT  # the authors publish no others
        files = {spec.name: self._file(spec, transformation, seed) if published else None for spec in self._datasets}
        return Recordings(EIGHT.get(transformation) or self._kinds[transformation], seed, files)

    def _file(self, spec: DatasetSpec, transformation: str, seed: int) -> PublishedFile | None:
        """Return the newest file of a data set's transformation and seed, or None."""
        dataset = _find(self._folder, [spec.name, *filter(None, [spec.mteb])])
        folder = _find(dataset, [transformation]) if dataset else None
        files = sorted((folder / str(seed)).glob(_FILES)) if folder else []
        if dataset is None or not files:
            return None
        dated = [(metadata.generation_datetime or "", file, metadata) for file in files for metadata in [_read(file)]]
        date, path, metadata = max(dated, key=lambda row: row[0])
        if [dated_file[0] for dated_file in dated].count(date) > 1:
            raise DataError(f"{path.parent} holds several files with the same date; keep one")
        if metadata.generator_model not in ("", self._model):
            raise DataError(
                f"{path} is by generator {metadata.generator_model!r}; write this name as the study's generator.model"
                f" instead of {self._model!r}"
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

    `files` has the file of each data set of the study, or None.
    """

    def __init__(self, kind: Transformation, seed: int, files: Mapping[str, PublishedFile | None]) -> None:
        self.of = (kind.name, seed)
        self._kind = kind
        self._files = [(name, file) for name, file in files.items() if file]
        self._missing = [name for name, file in files.items() if not file]
        self._rules: dict[tuple[int, str], bool] = {}
        self._texts = sqlite3.connect("", check_same_thread=False)  # a temporary file that ends with the process
        self._texts.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE texts (id BLOB, file INTEGER, number INTEGER, label TEXT, output TEXT)"
        )
        for index, (_, file) in enumerate(self._files):
            rows = ((_id(text.text), index, text.number, text.label, text.output) for text in read_texts(file))
            self._texts.executemany("INSERT INTO texts VALUES (?, ?, ?, ?, ?)", rows)
        self._texts.execute("CREATE INDEX by_id ON texts (id)")

    def output(self, text: str, source: str, language: str | None) -> str:
        """Return a text's recorded output (text in NFC) in a drawn language; empty if the program gave up.

        The first output counts if equal texts have several. Raises TextUnansweredError without a recording.
        """
        name, seed = self.of
        recorded = self._find(text, source)
        if not recorded:
            without = f" (the folder has no file of data set {', '.join(self._missing)})" if self._missing else ""
            raise TextUnansweredError(f"no recording for {name} with seed {seed}{without}")
        outputs = [output for _, drawn, output in recorded if drawn == language]
        if not outputs:
            way = "into" if self._kind.translates else "through"
            languages = dict.fromkeys(repr(drawn) for _, drawn, _ in recorded)
            raise TextUnansweredError(
                f"no recording for {name} {way} {language!r} with seed {seed}, only {way}"
                f" {', '.join(languages)}: HTEB's program draws its own languages (see settings.languages)"
            )
        return next(filter(str.strip, outputs), "")

    def language(self, text: Text) -> str | None:
        """Return the language recorded for a text, if it is not the text's own; else None.

        The first text with an output counts if equal texts have several, or else the first. A language drawn for a
        whole run comes from the text's own data set alone, as a run has one language.
        """
        languages = [
            (language, output)
            for dataset, language, output in self._find(text.text, text.language)
            if language != text.language and (self._kind.draw == "text" or dataset == text.dataset)
        ]
        return next(
            (language for language, output in languages if output.strip()), languages[0][0] if languages else None
        )

    def _find(self, text: str, source: str) -> list[tuple[str, str | None, str]]:
        """Return data set, drawn language and output of every text equal to this one, in the files' order."""
        query = "SELECT file, number, label, output FROM texts WHERE id = ? ORDER BY file, number"
        recorded = []
        for index, number, label, output in self._texts.execute(query, (_id(text),)).fetchall():
            name, file = self._files[index]
            published = PublishedText(text, output, number, label)
            drawn = self._kind.draw != "none"
            language = (
                recorded_language(file, published, source, by_rule=self._by_rule(index, source)) if drawn else None
            )
            recorded.append((name, language, output))
        return recorded

    def _by_rule(self, index: int, source: str) -> bool:
        """Return whether a file's languages follow the program's rule."""
        if (index, source) not in self._rules:
            query = "SELECT output, number, label FROM texts WHERE file = ? AND output != '' ORDER BY rowid LIMIT ?"
            texts = (PublishedText("", *row) for row in self._texts.execute(query, (index, SAMPLE)))
            self._rules[index, source] = follows_rule(self._files[index][1], texts, source)
        return self._rules[index, source]


def published_outputs(folder: Path, study: Study) -> HtebOutputs | None:
    """Return the outputs of a folder, if it is one generator's in the authors' layout.

    Raises DataError for the folder above, and for one that is too large to be searched.
    """
    files_in(folder)
    if any(folder.glob(f"*/*/*/{_FILES}")):
        return HtebOutputs(folder, study)
    if generators := sorted({file.parents[3].name for file in folder.glob(f"*/*/*/*/{_FILES}")}):
        raise DataError(f"{folder} holds several generators; name one in generator.path: {', '.join(generators)}")
    return None


def _read(file: Path) -> Metadata:
    path = file.with_name(f"metadata{file.stem.removeprefix('data')}.JSON")
    try:
        return Metadata.model_validate_json(read_bytes(path))
    except FileNotFoundError:
        raise DataError(f"{file} has no {path.name} beside it; copy both files") from None
    except ValidationError as error:
        raise DataError(f"{path} is damaged ({first_complaint(error)}); copy it again") from None


def _find(folder: Path, names: Collection[str]) -> Path | None:
    """Return the folder inside another that has one of these names, as it is or in the authors' spelling; or None."""
    children = [child for child in sorted(folder.iterdir()) if child.is_dir()]
    matches: tuple[Callable[[str, str], bool], ...] = (
        str.__eq__,
        lambda name, child: _plain(name) == _plain(child),
        lambda name, child: _plain(name) == _stem(child) or _stem(name) == _plain(child),
    )
    for same in matches:
        matching = [child for child in children if any(same(child.name, name) for name in names)]
        if len(matching) > 1:
            raise DataError(f"{folder}: {' and '.join(child.name for child in matching)} could both be {min(names)!r}")
        if matching:
            return matching[0]
    return None


def _plain(name: str) -> str:
    """Return a name without case, marks, centuries and American spelling: `summarisedexpansion`."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower()).replace("summariz", "summaris")
    plain = re.sub(r"20(\d\d)", r"\1", plain)  # mteb's SemRel24STS is the hub's SemRel2024
    return "summarisation" if plain == "summarise" else plain


def _stem(name: str) -> str:
    plain = _plain(name)
    return plain.removesuffix(next((task for task in _TASKS if plain.endswith(task)), ""))


def _id(text: str) -> bytes:
    """Return a hash that is equal for equal texts, in any Unicode form and with any white space around them."""
    return hashlib.blake2b(nfc(text).strip().encode(), digest_size=16).digest()
