"""Croissant metadata of a folder of Parquet files (MLCommons, Croissant Format Specification 1.0)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from evaluation.bundle import words
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.configurations import Configuration

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
    """(the metadata, what the specification asks for and the study does not say); `files` have hash and bytes."""
    said = bundle.manifest
    asked = {
        "creator": [{"@type": "sc:Organization", "name": one} for one in said.creators],
        "datePublished": said.published,
        "license": [_licence(one) for one in dict.fromkeys([said.licence, *(s.licence for s in said.datasets)]) if one],
        "url": said.reference,
    }
    warnings = "".join(f"{line} " for line in words.warnings(bundle))
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": SPECIFICATION,
        "name": said.study,
        "description": f"{warnings}{said.description or said.study} (bundle {bundle.identity})",
        **{name: value for name, value in asked.items() if value},
        "version": _version(said.edition),
        **({"citeAs": said.citation} if said.citation else {}),
        "inLanguage": sorted({code for source in said.datasets for code in source.languages}),
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
        "recordSet": [_rows(one, split, file) for one in configurations for split, file in one.splits.items()],
    }, [name for name, value in asked.items() if not value]


def _rows(one: Configuration, split: str, file: str) -> dict[str, Any]:
    name = one.name if len(one.splits) == 1 else f"{one.name}/{split}"
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": one.what,
        **({"key": [{"@id": f"{name}/{column}"} for column in one.key]} if one.key else {}),
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column.name}",
                "name": column.name,
                "description": one.meanings[column.name],
                "dataType": _type(column.type),
                **({"repeated": True} if pa.types.is_list(column.type) else {}),
                "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
            }
            for column in one.schema
        ],
    }


def _type(kind: pa.DataType) -> str:
    kind = kind.value_type if pa.types.is_list(kind) else kind
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    if pa.types.is_floating(kind):
        return "sc:Float"
    return "sc:Date" if pa.types.is_timestamp(kind) else "sc:Text"


def _licence(said: str) -> str:
    """A licence's page at SPDX, or as it was said."""
    known = _SPDX.get(said.lower(), said.upper() if re.fullmatch(r"cc(0|-by[a-z-]*)-\d\.\d", said.lower()) else "")
    return f"https://spdx.org/licenses/{known}" if known else said


def _version(edition: str) -> str:
    """The edition as a version of three numbers, where it is of one or two."""
    return ".".join([*edition.split("."), "0", "0"][:3]) if re.fullmatch(r"\d+(\.\d+)?", edition) else edition
