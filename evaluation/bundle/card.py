"""The data card of a folder of Parquet files: for the hub, the `datasets` library, and people."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import yaml

from evaluation.bundle import words
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.configurations import Configuration
from evaluation.bundle.manifest import Manifest

# The hub's own names of licences, of those that data are put under; anything else is `other` to it.
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
_CROWDS = ("mturk", "prolific")


def card(bundle: Bundle, configurations: Sequence[Configuration], archive: str) -> str:
    """README.md; `archive` is the bundle's file beside it."""
    front = yaml.safe_dump(_front(bundle, configurations), sort_keys=False, allow_unicode=True)
    said = bundle.manifest
    parts = [
        f"---\n{front}---\n\n# {_plain(said.study)}, edition {_plain(said.edition)}",
        *(f"**{line}**" for line in words.warnings(bundle)),
        f"Bundle {bundle.identity}.",
        *map(_plain, words.claims(bundle)),
        "Texts that a program transformed, ratings of a sample of them, and what followed: which transformations may be"
        " used in which languages.",
        '```python\nfrom datasets import load_dataset\n\nload_dataset("FOLDER", "outputs", split="test")\n```',
        f"`{archive}` has the same and all that it rests on, and can be checked: `plumbline bundle inspect {archive}`"
        " computes agreement and verdicts again from the ratings. These tables are a copy of it for reading.",
        "Evaluate on a transformation only where `verdicts` accepts it, for the language of the originals.",
        "## Where the texts are from",
        _table(
            ["data set", "task", "languages", "texts", "licence", "from"],
            [
                [s.name, s.task, ", ".join(s.languages), s.n_texts, s.licence, s.reference or s.revision]
                for s in said.datasets
            ],
        ),
        f"Outputs and ratings: {_plain(said.licence) or 'no licence is named; ask before you share them'}. Outputs are"
        " made of the originals: look at their licences too.",
        "## Verdicts",
        _table(
            ["transformation", "language", "decision", "pairs", "why"],
            [[v.transformation, v.language, v.decision, v.n_pairs, "; ".join(v.reasons)] for v in bundle.verdicts],
        ),
        "## Configurations",
        *(_section(one) for one in configurations),
    ]
    cited = [one for one in (said.citation, *(source.citation for source in said.datasets)) if one]
    if cited:
        parts += ["## Citation", *(f"```bibtex\n{one.replace('```', '')}\n```" for one in dict.fromkeys(cited))]
    return "\n\n".join(parts) + "\n"


def _front(bundle: Bundle, configurations: Sequence[Configuration]) -> dict[str, Any]:
    """What machines read: the hub's own keys and words."""
    said = bundle.manifest
    licences, other = _licences(said)
    tasks = dict.fromkeys(_TASKS[source.task] for source in said.datasets if source.task in _TASKS)
    size = next((name for name, limit in _SIZES if configurations[0].rows < limit), _LARGEST)
    return {
        "pretty_name": f"{said.study} {said.edition}",
        "license": licences[0] if len(licences) == 1 else licences,
        **({"license_name": other} if other else {}),
        "language": _languages(bundle),
        "tags": ["plumbline", "text-embeddings", "robustness", _rated(bundle)],
        "annotations_creators": [_creators(bundle)],
        "language_creators": ["found", "machine-generated"],
        "size_categories": [size],
        **({"task_categories": list(tasks)} if tasks else {}),
        **_sources(said),
        "configs": [
            {
                "config_name": one.name,
                **({"default": True} if one is configurations[0] else {}),
                "data_files": [{"split": split, "path": file} for split, file in one.splits.items()],
            }
            for one in configurations
        ],
    }


def _licences(said: Manifest) -> tuple[list[str], str]:
    """(in the hub's words, the name of the first that it does not know)."""
    told = [said.licence, *(source.licence for source in said.datasets)]
    other = [one for one in told if one and one.lower() not in _KNOWN]
    named = [(one.lower() if one.lower() in _KNOWN else "other") if one else "unknown" for one in told]
    return list(dict.fromkeys(named)), "-".join(other[0].lower().split()) if other else ""


def _languages(bundle: Bundle) -> list[str]:
    """Codes without scripts and regions, as the hub has them."""
    found = {code for source in bundle.manifest.datasets for code in source.languages}
    found |= {code for verdict in bundle.verdicts for code in verdict.output_languages}
    return sorted({code.partition("-")[0] for code in found})


def _rated(bundle: Bundle) -> str:
    return "simulated-ratings" if bundle.manifest.simulated else "human-ratings"


def _creators(bundle: Bundle) -> str:
    if bundle.manifest.simulated:
        return "machine-generated"
    sources = set(bundle.evidence.collected.plain_ratings["source"])
    return "crowdsourced" if sources & set(_CROWDS) else "other"


def _sources(said: Manifest) -> dict[str, list[str]]:
    """The hub's data sets that texts are of."""
    found = [source.revision.partition("@")[0] for source in said.datasets if source.kind == "mteb"]
    return {"source_datasets": found} if found else {}


def _section(one: Configuration) -> str:
    columns = _table(["column", "type", "meaning"], [[f.name, _type(f.type), one.meanings[f.name]] for f in one.schema])
    files = ", ".join(f"`{file}` ({split})" for split, file in one.splits.items())
    key = f" A row is named by {', '.join(one.key)}." if one.key else ""
    what = _plain(one.what[0].upper() + one.what[1:])
    return f"### {one.name}\n\n{what}. {one.rows:,} rows in {files}.{key}\n\n{columns}"


def _type(kind: pa.DataType) -> str:
    return f"list of {kind.value_type}" if pa.types.is_list(kind) else str(kind)


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *([_plain(str(cell)) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """Words that others wrote as one line that Markdown shows as it is."""
    return "".join(
        f"\\{mark}" if mark in "\\`*_[]|#" else mark for mark in html.escape(" ".join(text.split()), quote=False)
    )
