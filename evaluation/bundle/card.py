"""A bundle's `README.md` and `croissant.json`: for people, the hub, the `datasets` library, and search engines."""

from __future__ import annotations

import hashlib
import itertools
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mteb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from mteb.types import Licenses

from annotation.records import PairMean
from evaluation.bundle import records
from evaluation.bundle.mteb_tasks import TaskDraft, module_name
from evaluation.bundle.records import BundleFacts
from evaluation.tasks.kinds import KINDS
from plumbline.exhibits.table import Exhibit, as_markdown
from plumbline.records import Pair, Rating, Record, Score, Text
from plumbline.store import json_bytes

_LICENCES = frozenset(typing.get_args(Licenses))  # the hub's names; it calls any other `other`
_TABLES: tuple[tuple[str, str, type[Record], str], ...] = (
    ("outputs", "outputs/*/*.parquet", records.BundledOutput, "the output of each text, by transformation and seed"),
    ("texts", "texts/*.parquet", Text, "all texts that were transformed, with their positions in the data sets"),
    ("pairs", records.PAIRS, Pair, "the rated pairs: a sample of outputs, with their originals"),
    ("ratings", records.RATINGS, Rating, "one answer of one rater, named by a pseudonym, to one question on one pair"),
    ("pair_means", records.MEANS, PairMean, "each pair's means, and whether they reach the threshold"),
    ("controls", records.CONTROLS, Pair, "pairs that check raters; they do not count in verdicts"),
    ("control_ratings", records.CONTROL_RATINGS, Rating, "the ratings of controls"),
    ("scores", records.SCORES, Score, "the scores of the maker's embedding models"),
)  # fmt: skip


@dataclass(frozen=True)
class Configuration:
    """A table of one kind of rows, in one or more files."""

    name: str
    description: str  #: one line
    splits: Mapping[str, Sequence[str]]  #: the files of each split, from the folder
    schema: pa.Schema
    rows: int
    record: type[Record] | None = None

    def meaning(self, column: str) -> str:
        """Return a column's meaning; empty for columns of the maker's files."""
        return (self.record.model_fields[column].description or "") if self.record else ""


def write_cards(facts: BundleFacts, folder: Path, tasks: Sequence[TaskDraft], left_out: Sequence[str]) -> list[str]:
    """Write both files for the tables and tasks in a folder; return what Croissant lacks, a line each."""
    configurations = [*_configurations(folder)]
    (folder / records.CARD).write_text(_card(facts, configurations, tasks, left_out), encoding="utf-8")
    metadata, missing = croissant(facts, configurations, folder)
    (folder / records.CROISSANT).write_bytes(json_bytes(metadata))
    return [f"{records.CROISSANT} lacks {name}: set {key} in the study" for name, key in missing]


def _configurations(folder: Path) -> list[Configuration]:
    """Return the tables in a folder, outputs first."""

    def configuration(
        name: str, description: str, splits: Mapping[str, Sequence[Path]], record: type[Record] | None
    ) -> None:
        files = [pq.ParquetFile(path) for path in itertools.chain(*splits.values())]
        names = {split: [path.relative_to(folder).as_posix() for path in paths] for split, paths in splits.items()}
        rows = sum(file.metadata.num_rows for file in files)
        if rows:  # the library fails on empty ones
            configurations.append(Configuration(name, description, names, files[0].schema_arrow, rows, record))

    configurations = list[Configuration]()
    for name, pattern, record, description in _TABLES:
        configuration(name, description, {"test": sorted(folder.glob(pattern))}, record)
    for dataset in sorted(folder.glob("data/*")):
        parts = {path.stem: [path] for path in sorted(dataset.iterdir())}
        rows = {part: files for part, files in parts.items() if part in ("train", "test")}
        for suffix, splits in [("", rows), *((f"-{part}", {"test": parts[part]}) for part in parts.keys() - rows)]:
            description = f"{suffix[1:] or 'rows'} of the data set {dataset.name}, untransformed"
            configuration(f"data-{dataset.name}{suffix}", description, splits, None)
    return configurations


def _card(
    facts: BundleFacts, configurations: Sequence[Configuration], tasks: Sequence[TaskDraft], left_out: Sequence[str]
) -> str:
    manifest = facts.manifest
    front = yaml.safe_dump(_front(facts, configurations), sort_keys=False, allow_unicode=True)
    citations = dict.fromkeys(
        citation for citation in (manifest.citation, *(s.citation for s in manifest.datasets.values())) if citation
    )
    parts = [
        f"---\n{front}---\n\n# {as_markdown(facts.title)}",
        *(f"**{as_markdown(line)}**" for line in facts.warnings),
        *map(as_markdown, facts.claims[1:]),
        "This data set has texts that a program transformed, ratings of a sample of them, and verdicts on which"
        " transformations may be used in which languages.",
        '```python\nfrom datasets import load_dataset\n\nload_dataset("FOLDER", "outputs", split="test")\n```',
        "`sha256sum -c SHA256SUMS` checks the files. `plumbline bundle inspect FILE` also computes the verdicts again"
        " from the ratings, and `plumbline bundle evaluate FILE --model NAME` scores models as the study does.",
        "Evaluate on a transformation only where a verdict accepts it, for the language of the originals.",
        "## Sources of the texts",
        facts.sources.markdown(captioned=False),
        f"Outputs and ratings: {as_markdown(manifest.licence) or 'no licence is named; ask before you share them'}."
        " They derive from the originals, so check the originals' licences too.",
        "## Verdicts",
        facts.decisions.markdown(captioned=False),
        *_of_tasks(facts.study, tasks, left_out),
        "## Configurations",
        *(_section(configuration) for configuration in configurations),
        *(["## Citation"] if citations else []),
        *(f"```bibtex\n{citation.replace('```', '')}\n```" for citation in citations),
    ]
    return "\n\n".join(parts) + "\n"


_HOW = """`{module}.py` has tasks for mteb {version}, with their data in `tasks`; using them does not need Plumbline.
All tasks of a data set have the same items. Scores follow mteb's protocol; the study's may cover more items and seeds.

```python
import mteb, {module}

mteb.evaluate(mteb.get_model("intfloat/multilingual-e5-small"), {module}.TASKS)
```

To contribute a task to mteb, upload its folder of `tasks` (`hf upload --repo-type dataset ORGANISATION/TASK
tasks/TASK`), set `path` and `revision` in the module to the repository and its commit, and copy the class to
`mteb/tasks`. mteb's check list also requires a `reference` for each data set, its descriptive statistics, and results
of two models."""


def _of_tasks(study: str, tasks: Sequence[TaskDraft], left_out: Sequence[str]) -> list[str]:
    """Return the part on the tasks for mteb; none without tasks."""
    if not tasks:
        return []
    rows = [
        {"Task": task.metadata.name, "Data set": task.dataset, "Transformation": task.transformation}
        | {"Items": f"{task.n_items:,}", "Verdict": task.verdict}
        for task in tasks
    ]
    return [
        "## Tasks for mteb",
        _HOW.format(module=module_name(study), version=mteb.__version__),
        _table(rows),
        *(["Left out:\n\n" + "\n".join(f"- {as_markdown(line)}" for line in left_out)] if left_out else []),
    ]


def _front(facts: BundleFacts, configurations: Sequence[Configuration]) -> dict[str, Any]:
    """Return the metadata for machines: the hub's keys and words."""
    sources = facts.manifest.datasets.values()
    hubs = {str(kind.name): kind.hub for kind in KINDS.values()}
    tasks = list(dict.fromkeys(filter(None, (hubs.get(source.task) for source in sources))))
    names = [facts.manifest.licence, *(source.licence for source in sources)]
    licences = list(dict.fromkeys(map(_licence_of_hub, names)))
    unknown = ["-".join(name.lower().split()) for name in names if _licence_of_hub(name) == "other"]
    languages = [source.languages for source in sources] + [verdict.output_languages for verdict in facts.verdicts]
    return {
        "pretty_name": facts.title,
        "license": licences[0] if len(licences) == 1 else licences,
        **({"license_name": unknown[0]} if unknown else {}),
        "language": sorted({code.partition("-")[0] for code in itertools.chain(*languages)}),
        "tags": ["plumbline", "text-embeddings", "mteb", "simulated-ratings" if facts.simulated else "human-ratings"],
        **({"task_categories": tasks} if tasks else {}),
        "configs": [
            {"config_name": configuration.name}
            | ({"default": True} if configuration is configurations[0] else {})
            | {"data_files": [{"split": split, "path": files} for split, files in configuration.splits.items()]}
            for configuration in configurations
        ],
    }


def _licence_of_hub(name: str) -> str:
    return (name.lower() if name.lower() in _LICENCES else "other") if name else "unknown"


def _section(configuration: Configuration) -> str:
    columns = [
        {
            "Column": field.name,
            "Type": f"list of {field.type.value_type}" if pa.types.is_list(field.type) else str(field.type),
            "Meaning": configuration.meaning(field.name),
        }
        for field in configuration.schema
    ]
    description = as_markdown(configuration.description[0].upper() + configuration.description[1:])
    return f"### {configuration.name}\n\n{description}. {configuration.rows:,} rows.\n\n{_table(columns)}"


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    frame = pd.DataFrame(rows)
    return Exhibit("", "", frame, frame).markdown(captioned=False)


SPECIFICATION = "http://mlcommons.org/croissant/1.0"
_CR = ("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet", "format",
       "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
       "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform")  # fmt: skip
#: The context of the specification's appendix 1.
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{name: f"cr:{name}" for name in _CR},
}
_SPDX = {"apache-2.0": "Apache-2.0", "mit": "MIT", "odc-by": "ODC-By-1.0", "odbl": "ODbL-1.0"}


def croissant(
    facts: BundleFacts, configurations: Sequence[Configuration], folder: Path
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return (the metadata, the fields that Croissant requires and the study lacks, each with the study's key)."""
    manifest, metadata = facts.manifest, facts.manifest.metadata
    sources = manifest.datasets.values()
    licences = dict.fromkeys(filter(None, [manifest.licence, *(source.licence for source in sources)]))
    wanted = {
        "creator": [{"@type": "sc:Organization", "name": name} for name in filter(None, [metadata.get("creator")])],
        "datePublished": metadata.get("datePublished"),
        "license": list(map(_licence, licences)),
        "url": metadata.get("url"),
    }
    files = [(table, file) for table in configurations for file in itertools.chain(*table.splits.values())]
    about = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": SPECIFICATION,
        "name": facts.study,
        "description": " ".join([*facts.warnings, facts.description or facts.study]),
        **wanted,
        "version": manifest.version,
        "citeAs": manifest.citation,
        "inLanguage": sorted({code for source in sources for code in source.languages}),
        "distribution": [_file_object(folder, file) for _, file in files],
        "recordSet": [_record_set(table, file) for table, file in files],
    }
    missing = [name for name, value in wanted.items() if not value]
    keys = [(name, "bundle.licence" if name == "license" else f"bundle.metadata.{name}") for name in missing]
    return {name: value for name, value in about.items() if value}, keys


def _file_object(folder: Path, name: str) -> dict[str, str]:
    content = (folder / name).read_bytes()
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{len(content)} B",
        "encodingFormat": "application/x-parquet",
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _record_set(configuration: Configuration, file: str) -> dict[str, Any]:
    name = file.removesuffix(".parquet")
    key = configuration.record.KEY if configuration.record else ()
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": configuration.description,
        **({"key": [{"@id": f"{name}/{column}"} for column in key]} if key else {}),
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column.name}",
                "name": column.name,
                "description": configuration.meaning(column.name) or "column of the maker's file, unchanged",
                "dataType": _croissant_type(column.type),
                **({"repeated": True} if pa.types.is_list(column.type) else {}),
                "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
            }
            for column in configuration.schema
        ],
    }


def _croissant_type(kind: pa.DataType) -> str:
    kind = kind.value_type if pa.types.is_list(kind) else kind
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    if pa.types.is_floating(kind):
        return "sc:Float"
    return "sc:Date" if pa.types.is_timestamp(kind) else "sc:Text"


def _licence(name: str) -> str:
    """Return a licence's page at SPDX, or the name as given."""
    spdx = _SPDX.get(name.lower(), name.upper() if re.fullmatch(r"cc(0|-by[a-z-]*)-\d\.\d", name.lower()) else "")
    return f"https://spdx.org/licenses/{spdx}" if spdx else name
