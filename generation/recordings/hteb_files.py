"""One file of outputs as HTEB's program (v1.1) saves it: its texts, and the languages that the program drew for them.

A file has two columns, `original` and `<transformation>_seed_<seed>`: records of one type, a row of the data set each,
the second with its texts transformed. A text that the program gave up on is empty there (its evaluation then takes the
original). No record says which language was drawn, but the draws are a rule of the program's: for `translation` by data
set and seed (by seed alone in older files, which their metadata tells), for the others by seed and the text's number in
the file. It gives Arabic for STS-B with seeds 1337 to 1339, as their outputs are. A file whose translations are in
other languages than the rule gives is of another version of the program; there the outputs tell.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from generation.identification import identify
from plumbline.errors import DataError
from plumbline.identity import canonical
from plumbline.store import BATCH, native_file
from plumbline.transformations import TRANSFORMATIONS

ORIGINAL = "original"
SAMPLE = 50  # outputs of a file that tell by which rule its languages were drawn: by another one in five agrees
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
    """Where a file is, and what its folder and metadata say about it."""

    path: Path
    dataset: str  # as the authors name it: draws depend on it
    transformation: str  # as we name it
    seed: int
    draws_by_dataset: bool
    transforms_passages: bool
    wants_passages: bool  # whether the study does


@dataclass(frozen=True)
class PublishedText:
    """A text of a file, its output (empty where there is none), and what its draw depends on."""

    text: str
    output: str
    number: int  # among the file's texts, in the program's order
    label: str  # of its language, as the record has it; empty without


def read_texts(file: PublishedFile) -> Iterator[PublishedText]:
    """The texts of a file that the study can want. Raises DataError for a file that is damaged or of another form."""
    number = 0
    try:
        with native_file(file.path) as opened, pq.ParquetFile(opened) as parquet:
            column = _column(parquet.schema_arrow, file)
            for side, fields in enumerate(_passes(_names(parquet.schema_arrow, file), file)):
                for record, changed in _records(parquet, column):
                    label = _label(record, file, side)
                    for field in fields(record):
                        wanted = file.wants_passages or not _is_passage(record, field)
                        for text, output in _texts(record.get(field), changed.get(field)):
                            if wanted:
                                yield PublishedText(text, output, number, label)
                            number += 1
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{file.path} is damaged ({error}); copy it again") from None


def recorded_language(file: PublishedFile, found: PublishedText, source: str, *, by_rule: bool) -> str:
    """The language that was drawn for a text: into which, or for backtranslation through which, it was translated.

    What the rule gives, if the file goes `by_rule` (see `follows_rule`), and in whatever language the output is: what a
    model got wrong stays what it was asked for. Otherwise the language that the output is in, if that could be drawn.
    `source` is the text's own language (a code), where its record has no label.
    """
    label = found.label or source
    seen = None if by_rule else identify(found.output)
    return seen if seen in _choices(file, label) else _drawn(file, found.number, label)


def follows_rule(file: PublishedFile, texts: Iterable[PublishedText], source: str) -> bool:
    """Whether a file's translations are in the languages that the rule gives: at least half of those that tell.

    Those in a language that cannot have been drawn went wrong and do not tell; backtranslations never do. `source` is
    the language of texts whose record has no label.
    """
    if not TRANSFORMATIONS[file.transformation].translates:
        return True
    votes = []
    for text in texts:
        label, seen = text.label or source, identify(text.output)
        if seen in _choices(file, label):
            votes.append(seen == _drawn(file, text.number, label))
    return 2 * sum(votes) >= len(votes)


def _choices(file: PublishedFile, label: str) -> list[str]:
    """What the program draws from: the pool without the languages of the label."""
    pool = TRANSFORMATIONS[file.transformation].languages
    own = {_CODES.get(part.strip().lower()) for part in re.split("[-_/]", label)}
    return [language for language in pool if language not in own] or list(pool)


def _drawn(file: PublishedFile, number: int, label: str) -> str:
    """What the program's rule gives."""
    choices = _choices(file, label)
    if file.draws_by_dataset:
        digest = hashlib.sha256(canonical({"dataset": file.dataset, "seed_transform": file.seed}).encode()).hexdigest()
        return choices[int(digest, 16) % len(choices)]
    shift = 0 if file.transformation == "translation" else number
    return random.Random(file.seed + shift).choice(choices)  # noqa: S311 (the program's own draw)


def _column(schema: pa.Schema, file: PublishedFile) -> str:
    """The name of the column of outputs."""
    others: list[str] = [name for name in schema.names if name != ORIGINAL]
    if ORIGINAL not in schema.names or len(others) != 1 or not others[0].endswith(f"_seed_{file.seed}"):
        raise DataError(
            f"{file.path} has the columns {', '.join(schema.names)}; HTEB's program saves {ORIGINAL!r} and one that"
            f" ends in '_seed_{file.seed}'"
        )
    return others[0]


def _names(schema: pa.Schema, file: PublishedFile) -> list[str]:
    """The fields of the file's records; plain texts are records of a text."""
    kind = schema.field(ORIGINAL).type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return ["text"]
    if pa.types.is_struct(kind):
        return [field.name for field in kind]
    raise DataError(f"{file.path}: column {ORIGINAL!r} holds {kind}, not records")


def _passes(names: Collection[str], file: PublishedFile) -> list[Fields]:
    """Which fields of a record are texts, in the program's order: it numbers all first sentences before all second."""
    if {"_hteb_part", "part"} & set(names):
        return [lambda record: _retrieval_fields(record, transforms_passages=file.transforms_passages)]
    if {"query", *_CANDIDATES} <= set(names):
        fields = ["query", *(_CANDIDATES if file.transforms_passages else ())]
        return [lambda _: fields]
    left, right = _first(_LEFT, names), _first(_RIGHT, names)
    if left and right:
        return [lambda _: [left], lambda _: [right]]
    summaries = [name for aliases in _SUMMARIES if (name := _first(aliases, names))]
    if len(summaries) == len(_SUMMARIES):
        return [lambda _: summaries]
    if text := _first(_TEXT, names):
        return [lambda _: [text]]
    raise DataError(f"{file.path}: no text is known among the fields of its records: {', '.join(names)}")


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


def _is_passage(record: Record, field: str) -> bool:
    return field in _CANDIDATES or _part(record) == "corpus"


def _label(record: Record, file: PublishedFile, side: int) -> str:
    """The label of a text's language: of a pair's (`en-de`) its side, but both for a translation of the pair as one."""
    label = next((value for name in _LANGUAGE if isinstance(value := record.get(name), str) and value.strip()), "")
    parts = [part for part in re.split("[-_/]", label) if part]
    is_pair = _first(_LEFT, record) is not None
    return parts[side] if is_pair and len(parts) == 2 and file.transformation != "translation" else label


def _first(aliases: Collection[str], names: Collection[str]) -> str | None:
    return next((name for name in aliases if name in names), None)


def _records(parquet: pq.ParquetFile, column: str) -> Iterator[tuple[Record, Record]]:
    """Each original with what became of it."""
    for batch in parquet.iter_batches(BATCH, columns=[ORIGINAL, column]):
        for original, changed in zip(batch[ORIGINAL].to_pylist(), batch[column].to_pylist(), strict=True):
            yield _as_record(original), _as_record(changed)


def _as_record(value: Any) -> Record:
    return value if isinstance(value, dict) else {"text": value}


def _texts(original: Any, changed: Any) -> Iterator[tuple[str, str]]:
    """Each text of a field, which may be a list of texts, with what stands in the same place of the other record."""
    if isinstance(original, str):
        if original.strip():
            yield original, changed if isinstance(changed, str) else ""
    elif isinstance(original, list):
        same = isinstance(changed, list) and len(changed) == len(original)
        for place, item in enumerate(original):
            yield from _texts(item, changed[place] if same else None)
