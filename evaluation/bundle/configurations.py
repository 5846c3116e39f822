"""What of a bundle stands in a folder of Parquet files: one configuration a kind of row, its columns with meanings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from annotation.records import Group, PairMean, Summary, Verdict
from annotation.verdicts.tables import COEFFICIENTS
from evaluation.bundle import tables
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.tables import BundledJudged, BundledJudgement, BundledOutput
from plumbline.records import Pair, Rating, Record, Score, Text

_COPIED: dict[str, tuple[str, type[Record], str]] = {
    "pairs": (tables.PAIRS, Pair, "what people rated: a sample of the outputs beside their originals"),
    "ratings": (tables.RATINGS, Rating, "one answer of one rater to one question on one pair, under pseudonyms"),
    "pair_means": (tables.MEANS, PairMean, "each pair's own mean, and whether it reaches the threshold"),
    "controls": (tables.CONTROLS, Pair, "pairs that check raters; no verdict counts them"),
    "control_ratings": (tables.CONTROL_RATINGS, Rating, "the answers to these"),
    "judged": (tables.JUDGED, BundledJudged, "the outputs that judges rate, who decide with people"),
    "judgements": (tables.JUDGEMENTS, BundledJudgement, "one answer of one judge to one question on one output"),
    "scores": (tables.SCORES, Score, "what the maker's own embedding models scored"),
}
_OF_OUTPUTS = {
    "transformation": "its name",
    "seed": "transformation seed",
    "text": "the original; empty where it may not be handed on",
}
_OF_SUMMARIES = ("n_pairs", "n_raters", "n_ratings", "mean", "sd", "low", "high", "probability")
_OF_VERDICTS = ("transformation", "axis", "pool", "language", "output_languages", "task_type", "scope", "decision",
                "reasons", "threshold", "rule", "failed_share", "n_excluded", "n_withdrawn", "simulated",
                "rules_fixed")  # fmt: skip
_OF_GROUPS = ("level", "name", "axis", "transformations", "simulated")
_OF_DATA = {
    "text": "the text",
    "label": "its class",
    "labels": "its classes",
    "sentence1": "the first text",
    "sentence2": "the second text",
    "score": "how alike people found them",
    "id": "its id",
    "language": "its language; empty where it is the data set's",
    "query": "the query's id, or the query",
    "passage": "the passage's id",
    "relevance": "how relevant the passage is to the query; of summaries how good people found them",
    "positive": "passages that answer the query",
    "negative": "passages that do not",
    "human_summaries": "people's summaries of one text",
    "machine_summaries": "models' summaries of it",
    "instruction": "what of the passages is asked for",
    "changed_instruction": "the same, changed so that other passages answer it",
    "changed": "passages that answer the query no longer",
}
_AS_FILED = "as in the maker's file of this data set"


@dataclass(frozen=True)
class Configuration:
    """Rows of one kind."""

    name: str
    what: str  #: one line
    splits: Mapping[str, str]  #: the file of each split, from the folder
    schema: pa.Schema
    meanings: Mapping[str, str]  #: by column
    rows: int
    key: tuple[str, ...] = ()  #: columns that name a row


def write(bundle: Bundle, folder: Path, step: Callable[[], object] = lambda: None) -> list[Configuration]:
    """Write a bundle's tables below a folder; a unit of outputs is in memory at a time, `step` is called for each."""
    made = [_outputs(bundle, folder, step), _verdicts(bundle, folder), _agreement(bundle, folder)]
    for name, (member, record, what) in _COPIED.items():
        if bundle.has(member):
            made.append(_records(folder, name, [bundle.table(member, record)], record, what))
    texts = (bundle.texts(one.name) for one in bundle.manifest.datasets)
    made.append(
        _records(folder, "texts", texts, Text, "the places of all texts in the data sets that were transformed")
    )
    return [*made, *_data(bundle, folder)]


def _outputs(bundle: Bundle, folder: Path, step: Callable[[], object]) -> Configuration:
    study, words = bundle.evidence.study, dict[str, str]()
    for source in bundle.manifest.datasets:
        table = bundle.texts(source.name)
        words |= dict(zip(table["text_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    ids, texts = pa.array(words, pa.string()), pa.array(words.values(), pa.string())

    def units() -> Iterator[pa.Table]:
        for name in study.transformations:
            for seed in study.seeds:
                own = bundle.outputs(name, seed)
                text = texts.take(pc.index_in(own["text_id"].combine_chunks(), value_set=ids))
                made = {"transformation": pa.repeat(name, len(own)), "seed": pa.repeat(seed, len(own)), "text": text}
                yield pa.table({**made, **{one: own[one] for one in own.column_names}})
                step()

    meanings = _OF_OUTPUTS | _described(BundledOutput)
    what = "what stands in each text's place, for every transformation and seed"
    return _written(folder, "outputs", units(), meanings, what, ("key",))


def _verdicts(bundle: Bundle, folder: Path) -> Configuration:
    what = "whether a transformation may be used in a language, a row a question; only accepted ones are evaluated"
    rows = [_named(one, _OF_VERDICTS) | numbers for one in bundle.verdicts for numbers in map(_numbers, one.questions)]
    return _flat(folder, "verdicts", rows, Verdict, _OF_VERDICTS, what)


def _agreement(bundle: Bundle, folder: Path) -> Configuration:
    what = "means and agreement of pools, axes, languages and all, a row a question"
    rows = [_named(one, _OF_GROUPS) | numbers for one in bundle.groups for numbers in map(_numbers, one.questions)]
    return _flat(folder, "agreement", rows, Group, _OF_GROUPS, what)


def _named(one: Record, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(one, name) for name in names}


def _numbers(one: Summary) -> dict[str, Any]:
    found = {"question": one.question, **_named(one, _OF_SUMMARIES)}
    for name in COEFFICIENTS:
        estimate = getattr(one, name)
        found |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return found


def _flat(
    folder: Path, name: str, rows: list[dict[str, Any]], record: type[Record], names: Iterable[str], what: str
) -> Configuration:
    own = _described(Summary)
    meanings = {one: _described(record)[one] for one in names} | {"question": own["question"]}
    meanings |= {one: own[one] for one in _OF_SUMMARIES}
    for one in COEFFICIENTS:
        meanings |= {one: own[one], f"{one}_low": "lower end of its 95% interval", f"{one}_high": "upper end"}
    schema = pa.schema([(column, _kind(column)) for column in meanings])
    return _written(folder, name, [pa.Table.from_pylist(rows, schema=schema)], meanings, what)


def _kind(column: str) -> pa.DataType:
    if column in ("output_languages", "reasons", "transformations"):
        return pa.list_(pa.string())
    if column == "simulated":
        return pa.bool_()
    if column.startswith("n_"):
        return pa.int64()
    words = {*_OF_VERDICTS, *_OF_GROUPS, "question"} - {"threshold", "failed_share"}
    return pa.string() if column in words else pa.float64()


def _data(bundle: Bundle, folder: Path) -> Iterator[Configuration]:
    """The rows of local data sets, with labels and judgements: the splits of each, and what else it has."""
    for source in bundle.manifest.datasets:
        start = f"data/{source.name}/"
        there = [name for name in bundle.manifest.members if name.startswith(start)]
        groups: dict[str, list[str]] = {}
        for member in there:
            part = PurePosixPath(member).stem
            groups.setdefault("" if part in ("train", "test") else f"-{part}", []).append(member)
        for suffix, own in groups.items():
            found = {
                PurePosixPath(one).stem: tables.from_parquet(
                    bundle.archive.read(one), folder / one, bundle.archive.charge
                )
                for one in own
            }
            for member, table in zip(own, found.values(), strict=True):
                _write(folder / member, [table])
            schema = next(iter(found.values())).schema
            splits = {split if not suffix else "test": member for split, member in zip(found, own, strict=True)}
            meanings = {column: _OF_DATA.get(column, _AS_FILED) for column in schema.names}
            what = f"{suffix[1:] or 'rows'} of the data set {source.name} ({source.task}), untransformed"
            yield Configuration(
                f"data-{source.name}{suffix}", what, splits, schema, meanings, sum(map(len, found.values()))
            )


def _records(folder: Path, name: str, pieces: Iterable[pa.Table], record: type[Record], what: str) -> Configuration:
    return _written(folder, name, pieces, _described(record), what, record.KEY)


def _written(
    folder: Path, name: str, pieces: Iterable[pa.Table], meanings: Mapping[str, str], what: str, key: Iterable[str] = ()
) -> Configuration:
    file = f"{name}.parquet"
    schema, rows = _write(folder / file, pieces)
    return Configuration(
        name, what, {"test": file}, schema, {one: meanings[one] for one in schema.names}, rows, tuple(key)
    )


def _write(path: Path, pieces: Iterable[pa.Table]) -> tuple[pa.Schema, int]:
    """Write a table piece by piece; its schema and rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rest, rows = iter(pieces), 0
    first = next(rest)
    schema = first.schema.remove_metadata()
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in itertools.chain([first], rest):
            writer.write_table(table.cast(schema))
            rows += len(table)
    return schema, rows


def _described(record: type[Record]) -> dict[str, str]:
    return {name: field.description or "" for name, field in record.model_fields.items()}
