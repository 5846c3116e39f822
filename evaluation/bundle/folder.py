"""`bundle export --format parquet`: write a folder for the `datasets` library and the hub; nothing is uploaded."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from annotation.records import Group, PairMean, Summary, Verdict
from annotation.verdicts.tables import COEFFICIENTS
from evaluation.bundle import records
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.card import Configuration, card, croissant
from evaluation.bundle.check import open_checked
from evaluation.bundle.export import export
from evaluation.bundle.records import BundledJudged, BundledJudgement, BundledOutput
from plumbline.errors import StudyError
from plumbline.file_hashes import sha256_of
from plumbline.records import Pair, Rating, Record, Score, Text
from plumbline.store import clear_left, json_bytes, make_folder
from plumbline.study import Study

CARD, CROISSANT = "README.md", "croissant.json"


def export_folder(
    study: Study, out: Path, *, comments: bool = False, step: Callable[[], object] = lambda: None
) -> tuple[Bundle, list[str]]:
    """Write a study's bundle and its tables as a folder; return (the bundle, the fields that Croissant lacks).

    The folder appears complete. Raises StudyError if it is not empty, and as `export`.
    """
    archive = f"{study.name}.plumb"
    with new_folder(out) as temporary:
        export(study, temporary / archive, comments=comments, check=open_checked)
        bundle = open_checked(temporary / archive)
        written = write_tables(bundle, temporary, step)
        (temporary / CARD).write_text(card(bundle, written, archive), encoding="utf-8")
        names = [archive, *(file for configuration in written for file in configuration.splits.values())]
        files = {name: (sha256_of(temporary / name), (temporary / name).stat().st_size) for name in names}
        metadata, lacking = croissant(bundle, written, files)
        (temporary / CROISSANT).write_bytes(json_bytes(metadata))
        bundle.archive.close()
    return Bundle.open(out / archive), lacking


@contextlib.contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Make a folder to write to, which becomes `out` when it is complete. Raises StudyError if `out` is not empty."""
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise StudyError(f"--out {out}: the path exists and is not an empty folder; name a new or empty folder")
    make_folder(out.parent)
    clear_left(out)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    temporary.mkdir(exist_ok=True)  # readable by others, as its files are
    try:
        yield temporary
        temporary.replace(out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


_COPIED: dict[str, tuple[str, type[Record], str]] = {
    "pairs": (records.PAIRS, Pair, "the rated pairs: a sample of outputs, with their originals"),
    "ratings": (records.RATINGS, Rating, "one answer of one rater, named by a pseudonym, to one question on one pair"),
    "pair_means": (records.MEANS, PairMean, "each pair's means, and whether they reach the threshold"),
    "controls": (records.CONTROLS, Pair, "pairs that check raters; they do not count in verdicts"),
    "control_ratings": (records.CONTROL_RATINGS, Rating, "the ratings of controls"),
    "judged": (records.JUDGED, BundledJudged, "the outputs rated by judges that decide with people"),
    "judgements": (records.JUDGEMENTS, BundledJudgement, "one answer of one judge to one question on one output"),
    "scores": (records.SCORES, Score, "the scores of the maker's embedding models"),
}
_OF_OUTPUTS = {
    "transformation": "name of the transformation",
    "seed": "transformation seed",
    "text": "the original; empty if it may not be shared",
}
_OF_SUMMARIES = ("n_pairs", "n_raters", "n_ratings", "mean", "sd", "low", "high", "probability")
_OF_VERDICTS = ("transformation", "axis", "pool", "language", "output_languages", "task_type", "scope", "decision",
                "reasons", "threshold", "rule", "failed_share", "n_excluded", "n_withdrawn", "simulated",
                "rules_fixed")  # fmt: skip
_OF_GROUPS = ("level", "name", "axis", "transformations", "simulated")
_OF_DATA = {
    "text": "the text",
    "label": "the text's class",
    "labels": "the text's classes",
    "sentence1": "the first text",
    "sentence2": "the second text",
    "score": "people's similarity score",
    "id": "the text's id",
    "language": "the text's language; empty if it is the data set's",
    "query": "the query's id, or the query",
    "passage": "the passage's id",
    "relevance": "relevance of the passage to the query; for summaries, people's score",
    "positive": "passages that answer the query",
    "negative": "passages that do not answer it",
    "human_summaries": "people's summaries of one text",
    "machine_summaries": "models' summaries of the same text",
    "instruction": "description of the wanted passages",
    "changed_instruction": "the instruction, changed so that other passages are wanted",
    "changed": "passages that no longer answer the query",
}
_AS_FILED = "column of the maker's file, unchanged"


def lacking_line(lacking: Sequence[str], file: Path) -> list[str]:
    """Return a line on the settings that Croissant lacks; none if nothing is lacking."""
    keys = {"creator": "creators", "datePublished": "published", "license": "licence", "url": "reference"}
    named = ", ".join(f"bundle.{keys[name]}" for name in lacking)
    what = f"{CROISSANT} lacks {', '.join(lacking)}, which its specification requires: set {named} in {file}"
    return [what] if lacking else []


def write_tables(bundle: Bundle, folder: Path, step: Callable[[], object] = lambda: None) -> list[Configuration]:
    """Write a bundle's tables below a folder, with one unit of outputs in memory; call `step` for each."""
    written = [_outputs(bundle, folder, step), _verdicts(bundle, folder), _agreement(bundle, folder)]
    for name, (member, record, what) in _COPIED.items():
        if bundle.has(member):
            written.append(_records(folder, name, [bundle.table(member, record)], record, what))
    texts = (bundle.texts(dataset.name) for dataset in bundle.manifest.datasets)
    written.append(
        _records(folder, "texts", texts, Text, "all texts that were transformed, with their positions in the data sets")
    )
    return [*written, *_data(bundle, folder)]


def _outputs(bundle: Bundle, folder: Path, step: Callable[[], object]) -> Configuration:
    study, words = bundle.evidence.study, dict[str, str]()
    for source in bundle.manifest.datasets:
        table = bundle.texts(source.name)
        words |= dict(zip(table["text_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    ids, texts = pa.array(words, pa.string()), pa.array(words.values(), pa.string())

    def units() -> Iterator[pa.Table]:
        for name in study.transformations:
            for seed in study.seeds:
                outputs = bundle.outputs(name, seed)
                text = texts.take(pc.index_in(outputs["text_id"].combine_chunks(), value_set=ids))
                first_columns = {
                    "transformation": pa.repeat(name, len(outputs)),
                    "seed": pa.repeat(seed, len(outputs)),
                    "text": text,
                }
                yield pa.table({**first_columns, **{column: outputs[column] for column in outputs.column_names}})
                step()

    meanings = _OF_OUTPUTS | _described(BundledOutput)
    what = "the output of each text, for every transformation and seed"
    return _written(folder, "outputs", units(), meanings, what, ("key",))


def _verdicts(bundle: Bundle, folder: Path) -> Configuration:
    what = (
        "the decision on each transformation in each language, one row per question; only accepted transformations"
        " are evaluated"
    )
    rows = [
        _named(verdict, _OF_VERDICTS) | numbers
        for verdict in bundle.verdicts
        for numbers in map(_numbers, verdict.questions)
    ]
    return _flat(folder, "verdicts", rows, Verdict, _OF_VERDICTS, what)


def _agreement(bundle: Bundle, folder: Path) -> Configuration:
    what = "means and agreement by pool, axis, language and overall, one row per question"
    rows = [
        _named(group, _OF_GROUPS) | numbers for group in bundle.groups for numbers in map(_numbers, group.questions)
    ]
    return _flat(folder, "agreement", rows, Group, _OF_GROUPS, what)


def _named(record: Record, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _numbers(summary: Summary) -> dict[str, Any]:
    numbers = {"question": summary.question, **_named(summary, _OF_SUMMARIES)}
    for name in COEFFICIENTS:
        estimate = getattr(summary, name)
        numbers |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return numbers


def _flat(
    folder: Path, name: str, rows: list[dict[str, Any]], record: type[Record], names: Iterable[str], what: str
) -> Configuration:
    of_summary = _described(Summary)
    meanings = {column: _described(record)[column] for column in names} | {"question": of_summary["question"]}
    meanings |= {column: of_summary[column] for column in _OF_SUMMARIES}
    for coefficient in COEFFICIENTS:
        meanings |= {
            coefficient: of_summary[coefficient],
            f"{coefficient}_low": "lower end of its 95% interval",
            f"{coefficient}_high": "upper end of its 95% interval",
        }
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
    """Yield the rows of local data sets, with labels and judgements, by data set and part."""
    for source in bundle.manifest.datasets:
        groups: dict[str, dict[str, pa.Table]] = {}
        for part, table in bundle.dataset_tables(source.name).items():
            groups.setdefault("" if part in ("train", "test") else f"-{part}", {})[part] = table
            _write(folder / records.rows_of(source.name, part), [table])
        for suffix, parts in groups.items():
            schema = next(iter(parts.values())).schema
            splits = {"test" if suffix else part: records.rows_of(source.name, part) for part in parts}
            meanings = {column: _OF_DATA.get(column, _AS_FILED) for column in schema.names}
            what = f"{suffix[1:] or 'rows'} of the data set {source.name} ({source.task}), untransformed"
            rows = sum(map(len, parts.values()))
            yield Configuration(f"data-{source.name}{suffix}", what, splits, schema, meanings, rows)


def _records(folder: Path, name: str, pieces: Iterable[pa.Table], record: type[Record], what: str) -> Configuration:
    return _written(folder, name, pieces, _described(record), what, record.KEY)


def _written(
    folder: Path, name: str, pieces: Iterable[pa.Table], meanings: Mapping[str, str], what: str, key: Iterable[str] = ()
) -> Configuration:
    file = f"{name}.parquet"
    schema, rows = _write(folder / file, pieces)
    return Configuration(
        name, what, {"test": file}, schema, {column: meanings[column] for column in schema.names}, rows, tuple(key)
    )


def _write(path: Path, pieces: Iterable[pa.Table]) -> tuple[pa.Schema, int]:
    """Write a table piece by piece; return its schema and number of rows."""
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
