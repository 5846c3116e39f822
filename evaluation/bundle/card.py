"""The data card of a folder of Parquet files, for the hub, the `datasets` library, and people."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import yaml

from evaluation.bundle import report
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.records import BundleManifest

# The hub's names of licences for data; it calls any other `other`.
_LICENCES = """
afl-3.0 agpl-3.0 apache-2.0 bsd-3-clause cc cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-nc-2.0 cc-by-nc-3.0
cc-by-nc-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0
cc-by-sa-3.0 cc-by-sa-4.0 cc0-1.0 cdla-permissive-1.0 cdla-permissive-2.0 cdla-sharing-1.0 etalab-2.0 eupl-1.1
eupl-1.2 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 mit mpl-2.0 odbl odc-by openrail pddl unlicense
"""
_KNOWN = frozenset(_LICENCES.split())
_TASKS = {
    "sts": "sentence-similarity",
    "str": "sentence-similarity",
    "pair_classification": "text-classification",
    "classification": "text-classification",
    "multilabel_classification": "text-classification",
    "reranking": "text-ranking",
    "instruction_reranking": "text-ranking",
    "retrieval": "text-retrieval",
    "summarisation": "summarization",
    "bitext_mining": "translation",
}
_SIZES = (("n<1K", 1_000), ("1K<n<10K", 10_000), ("10K<n<100K", 100_000), ("100K<n<1M", 1_000_000))
_LARGEST = "1M<n<10M"
_CROWDS = ("mturk", "prolific", "link")


@dataclass(frozen=True)
class Configuration:
    """A table of one kind of rows."""

    name: str
    what: str  #: one line
    splits: Mapping[str, str]  #: the file of each split, from the folder
    schema: pa.Schema
    meanings: Mapping[str, str]  #: by column
    rows: int
    key: tuple[str, ...] = ()  #: columns that name a row


def card(bundle: Bundle, configurations: Sequence[Configuration], archive: str) -> str:
    """Return README.md; `archive` is the bundle's file beside it."""
    front = yaml.safe_dump(_front(bundle, configurations), sort_keys=False, allow_unicode=True)
    manifest = bundle.manifest
    parts = [
        f"---\n{front}---\n\n# {plain(manifest.study)}, edition {plain(manifest.edition)}",
        *(f"**{line}**" for line in report.warnings(bundle)),
        f"Bundle {bundle.identity}.",
        *map(plain, report.claims(bundle)),
        "This data set has texts that a program transformed, ratings of a sample of them, and verdicts on which"
        " transformations may be used in which languages.",
        '```python\nfrom datasets import load_dataset\n\nload_dataset("FOLDER", "outputs", split="test")\n```',
        f"`{archive}` has the same data with all the evidence, and can be checked: `plumbline bundle inspect {archive}`"
        " computes agreement and verdicts again from the ratings. These tables are a copy for reading.",
        "Evaluate on a transformation only where `verdicts` accepts it, for the language of the originals.",
        "## Sources of the texts",
        table(
            ["data set", "task", "languages", "texts", "licence", "source"],
            [
                [s.name, s.task, ", ".join(s.languages), s.n_texts, s.licence, s.reference or s.revision]
                for s in manifest.datasets
            ],
        ),
        f"Outputs and ratings: {plain(manifest.licence) or 'no licence is named; ask before you share them'}. They"
        " derive from the originals, so check the originals' licences too.",
        "## Verdicts",
        table(
            ["transformation", "language", "decision", "pairs", "reasons"],
            [[v.transformation, v.language, v.decision, v.n_pairs, "; ".join(v.reasons)] for v in bundle.verdicts],
        ),
        "## Configurations",
        *(_section(configuration) for configuration in configurations),
    ]
    cited = [
        citation for citation in (manifest.citation, *(source.citation for source in manifest.datasets)) if citation
    ]
    if cited:
        parts += [
            "## Citation",
            *(f"```bibtex\n{citation.replace('```', '')}\n```" for citation in dict.fromkeys(cited)),
        ]
    return "\n\n".join(parts) + "\n"


def _front(bundle: Bundle, configurations: Sequence[Configuration]) -> dict[str, Any]:
    """Return the metadata for machines: the hub's keys and words."""
    manifest = bundle.manifest
    licences, unknown = _licences(manifest)
    tasks = dict.fromkeys(_TASKS[source.task] for source in manifest.datasets if source.task in _TASKS)
    size = next((name for name, limit in _SIZES if configurations[0].rows < limit), _LARGEST)
    return {
        "pretty_name": f"{manifest.study} {manifest.edition}",
        "license": licences[0] if len(licences) == 1 else licences,
        **({"license_name": unknown} if unknown else {}),
        "language": _languages(bundle),
        "tags": ["plumbline", "text-embeddings", "robustness", _rated(bundle)],
        "annotations_creators": [_creators(bundle)],
        "language_creators": ["found", "machine-generated"],
        "size_categories": [size],
        **({"task_categories": list(tasks)} if tasks else {}),
        **_sources(manifest),
        "configs": [
            {
                "config_name": configuration.name,
                **({"default": True} if configuration is configurations[0] else {}),
                "data_files": [{"split": split, "path": file} for split, file in configuration.splits.items()],
            }
            for configuration in configurations
        ],
    }


def _licences(manifest: BundleManifest) -> tuple[list[str], str]:
    """Return (the licences in the hub's words, the name of the first that it does not know)."""
    names = [manifest.licence, *(source.licence for source in manifest.datasets)]
    unknown = [name for name in names if name and name.lower() not in _KNOWN]
    named = [(name.lower() if name.lower() in _KNOWN else "other") if name else "unknown" for name in names]
    return list(dict.fromkeys(named)), "-".join(unknown[0].lower().split()) if unknown else ""


def _languages(bundle: Bundle) -> list[str]:
    """Return language codes without scripts and regions, as the hub writes them."""
    codes = {code for source in bundle.manifest.datasets for code in source.languages}
    codes |= {code for verdict in bundle.verdicts for code in verdict.output_languages}
    return sorted({code.partition("-")[0] for code in codes})


def _rated(bundle: Bundle) -> str:
    return "simulated-ratings" if bundle.manifest.simulated else "human-ratings"


def _creators(bundle: Bundle) -> str:
    if bundle.manifest.simulated:
        return "machine-generated"
    sources = set(bundle.evidence.collected.plain_ratings["source"])
    return "crowdsourced" if sources & set(_CROWDS) else "other"


def _sources(manifest: BundleManifest) -> dict[str, list[str]]:
    """Return the hub's data sets from which texts come."""
    repositories = [source.revision.partition("@")[0] for source in manifest.datasets if source.kind == "mteb"]
    return {"source_datasets": repositories} if repositories else {}


def _section(configuration: Configuration) -> str:
    columns = table(
        ["column", "type", "meaning"],
        [[f.name, _type(f.type), configuration.meanings[f.name]] for f in configuration.schema],
    )
    files = ", ".join(f"`{file}` ({split})" for split, file in configuration.splits.items())
    key = f" Key: {', '.join(configuration.key)}." if configuration.key else ""
    what = plain(configuration.what[0].upper() + configuration.what[1:])
    return f"### {configuration.name}\n\n{what}. {configuration.rows:,} rows in {files}.{key}\n\n{columns}"


def _type(kind: pa.DataType) -> str:
    return f"list of {kind.value_type}" if pa.types.is_list(kind) else str(kind)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown; cells are text by others, escaped."""
    lines = [head, ["---"] * len(head), *([plain(str(cell)) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plain(text: str) -> str:
    """Return text by others as one line that Markdown shows as it is."""
    return "".join(
        f"\\{mark}" if mark in "\\`*_[]|#" else mark for mark in html.escape(" ".join(text.split()), quote=False)
    )


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
_FORMATS = {".parquet": "application/x-parquet", ".plumb": "application/zip", ".md": "text/markdown"}
_SPDX = {"apache-2.0": "Apache-2.0", "mit": "MIT", "odc-by": "ODC-By-1.0", "odbl": "ODbL-1.0"}


def croissant(
    bundle: Bundle, configurations: Sequence[Configuration], files: Mapping[str, tuple[str, int]]
) -> tuple[dict[str, Any], list[str]]:
    """Return (the metadata, the fields that Croissant requires and the study lacks); `files` have hash and bytes."""
    manifest = bundle.manifest
    facts = {
        "creator": [{"@type": "sc:Organization", "name": creator} for creator in manifest.creators],
        "datePublished": manifest.published,
        "license": [
            _licence(name)
            for name in dict.fromkeys([manifest.licence, *(s.licence for s in manifest.datasets)])
            if name
        ],
        "url": manifest.reference,
    }
    warnings = "".join(f"{line} " for line in report.warnings(bundle))
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": SPECIFICATION,
        "name": manifest.study,
        "description": f"{warnings}{manifest.description or manifest.study} (bundle {bundle.identity})",
        **{name: value for name, value in facts.items() if value},
        "version": _version(manifest.edition),
        **({"citeAs": manifest.citation} if manifest.citation else {}),
        "inLanguage": sorted({code for source in manifest.datasets for code in source.languages}),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "contentSize": f"{size} B",
                "encodingFormat": _FORMATS[PurePosixPath(name).suffix],
                "sha256": digest,
            }
            for name, (digest, size) in files.items()
        ],
        "recordSet": [
            _rows(configuration, split, file)
            for configuration in configurations
            for split, file in configuration.splits.items()
        ],
    }, [name for name, value in facts.items() if not value]


def _rows(configuration: Configuration, split: str, file: str) -> dict[str, Any]:
    name = configuration.name if len(configuration.splits) == 1 else f"{configuration.name}/{split}"
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": configuration.what,
        **({"key": [{"@id": f"{name}/{column}"} for column in configuration.key]} if configuration.key else {}),
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column.name}",
                "name": column.name,
                "description": configuration.meanings[column.name],
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


def _version(edition: str) -> str:
    """Return the edition as a version of three numbers if it has one or two."""
    return ".".join([*edition.split("."), "0", "0"][:3]) if re.fullmatch(r"\d+(\.\d+)?", edition) else edition
