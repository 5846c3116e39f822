"""Made-up data under the names and revisions of the papers' studies, served by a hub of our own and loaded by mteb.

What the environment says about the hub is read once, when the libraries are imported, so a process of its own loads all
(`python -m tests.mteb_site OUTPUT`) and the tests get mteb's objects from it.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from datasets import config as datasets_config
from huggingface_hub import constants

from generation.datasets.mteb_tasks import MtebTask, load_mteb
from plumbline.errors import PlumblineError
from plumbline.study import ROOT, load_study
from plumbline.study.datasets import DatasetSpec

from .hub import Files, Hub
from .shared import made_once

WHOLE = "whole.pickle"

Rows = list[dict[str, Any]]
FOLLOWED = ("fas", "rus", "zho")  # mFollowIR's languages; it loads all of them, whichever are asked for
STUDIES = ("hteb_english", "hteb_multilingual", "hteb_generators", "pteb", "pteb_multilingual")

PAIRS: Rows = [{"sentence1": f"one {i}", "sentence2": f"two {i}", "score": float(i % 6)} for i in range(12)]
ARABIC: Rows = [{"sentence1": f"first {i}", "sentence2": f"second {i}", "score": float(i % 6)} for i in range(5)]
SETS: Rows = [
    {"sentences": [f"title {i} of set {s}" for i in range(6 + s)], "labels": [i % 2 for i in range(6 + s)]}
    for s in range(2)
]
WORKS: Rows = [{"sentences": f"praca {i}", "labels": f"l{i % 2}"} for i in range(40)]
REQUESTS: Rows = [{"text": f"request {i}", "label": i % 3, "label_text": f"intent {i % 3}"} for i in range(18)]
CANDIDATES: Rows = [
    {"query": f"question {i}", "positive": [f"same {i}", f"also same {i}"], "negative": [f"other {i}"]}
    for i in range(4)
]
SUMMARIES: Rows = [
    {
        "text": f"a source that is never embedded {i}",
        "human_summaries": [f"human {i} {n}" for n in range(2)],
        "machine_summaries": [f"machine {i} {n}" for n in range(3)],
        "relevance": [1.0, 2.5, 4.0],
    }
    for i in range(3)
]
SIDES: Rows = [{"sentence1": f"satz {i}", "sentence2": f"sentence {i % 4} of {i}"} for i in range(6)]
PARALLEL: Rows = [
    {"hin_Deva": f"hindi {i}", "eng_Latn": f"english {i}", "tam_Taml": f"tamil {i}", "ben_Beng": f"bangla {i}"}
    for i in range(5)
]
EMOTIONS: Rows = [{"text": f"joy{i % 2} fear{i % 3} {i}", "label": [i % 2, 2 + i % 3]} for i in range(24)]
SPRINT = {"sent1": ["how is a", "how is b", "how is c"], "sent2": ["why a", "why b", "why c"], "labels": [1, 0, 1]}


def search_tables(numbers: int) -> dict[str, Rows]:
    """A corpus with and without titles, queries, and judgements: query i is answered by passage i."""
    return {
        "corpus": [
            {"_id": f"d{i}", "title": f"T{i}" if i % 2 else "", "text": f"passage {i}"} for i in range(numbers + 2)
        ],
        "queries": [{"_id": f"q{i}", "text": f"asked {i}"} for i in range(numbers)],
        "default": [{"query-id": f"q{i}", "corpus-id": f"d{i}", "score": 1} for i in range(numbers)],
    }


def instruction_tables() -> dict[str, dict[str, Rows]]:
    """Two queries that are asked twice over four passages, configuration by configuration with its split."""
    queries = [f"q{i}-{version}" for i in range(2) for version in ("og", "changed")]
    passages = [f"d{i}" for i in range(4)]
    relevant = {"q0-og": ["d0", "d1"], "q0-changed": ["d1"], "q1-og": ["d1", "d2"], "q1-changed": ["d2"]}
    return {
        "corpus": {"corpus": [{"_id": name, "title": "", "text": f"told {name} {name * 2}"} for name in passages]},
        "queries": {"queries": [{"_id": name, "text": f"asked {name}"} for name in queries]},
        "instruction": {
            "instruction": [{"query-id": name, "instruction": f"told {relevant[name][0]}"} for name in queries]
        },
        "default": {
            "test": [
                {"query-id": name, "corpus-id": one, "score": int(one in relevant[name])}
                for name in queries
                for one in passages
            ]
        },
        "top_ranked": {"top_ranked": [{"query-id": name, "corpus-ids": passages} for name in queries]},
        "qrel_diff": {
            "qrel_diff": [{"query-id": "q0", "corpus-ids": ["d0"]}, {"query-id": "q1", "corpus-ids": ["d1", "d3"]}]
        },
    }


def relatedness(language: str) -> Rows:
    return [{"sentence1": f"{language} a{i}", "sentence2": f"{language} b{i}", "label": i / 4} for i in range(5)]


def repository(**configs: dict[str, Rows]) -> Files:
    """A data set's repository: tables by configuration and split, and the card that names them."""
    files: Files = {}
    card = []
    for config, splits in configs.items():
        names = []
        for split, rows in splits.items():
            buffer = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(rows), buffer)
            files[f"{config}/{split}-00000-of-00001.parquet"] = buffer.getvalue()
            names.append({"split": split, "path": f"{config}/{split}-*"})
        card.append({"config_name": config, "data_files": names})
    files["README.md"] = f"---\n{yaml.safe_dump({'configs': card})}---\nMade up for tests.\n".encode()
    return files


def search_repository(numbers: int, ranked: bool) -> Files:
    tables = search_tables(numbers)
    passages = [row["_id"] for row in tables["corpus"]]
    if ranked:
        tables["top_ranked"] = [{"query-id": row["_id"], "corpus-ids": passages} for row in tables["queries"]]
    return repository(**{name: {"test": rows} for name, rows in tables.items()})


def spec(study: str, name: str) -> DatasetSpec:
    """A data set as one of the papers' studies names it."""
    found = {item.name: item for item in load_study(ROOT / "studies" / f"{study}.yaml").datasets}[name]
    assert found.mteb
    return found


@functools.cache
def _repositories() -> dict[str, dict[str, Files]]:
    english, several = functools.partial(spec, "hteb_english"), functools.partial(spec, "hteb_multilingual")
    lines = "".join(json.dumps(row) + "\n" for row in CANDIDATES).encode()
    by_language = [{**row, "lang": "en-de"} for row in PAIRS] + [{**row, "lang": "ar-ar"} for row in ARABIC]
    return {
        "mteb/stsbenchmark-sts": {
            english("STSBenchmark").revision: repository(default={"test": PAIRS, "train": PAIRS[:2]})
        },
        "mteb/sts17-crosslingual-sts": {
            several("STS17").revision: repository(**{"en-de": {"test": PAIRS}, "ar-ar": {"test": ARABIC}}),
            spec("pteb_multilingual", "STS17").revision: repository(default={"test": by_language}),
        },
        "SemRel/SemRel2024": {
            several("SemRel2024").revision: repository(**{name: {"test": relatedness(name)} for name in ("arq", "esp")})
        },
        "mteb/banking77": {
            english("Banking77Classification").revision: repository(
                default={"train": REQUESTS[:12], "test": REQUESTS[12:]}
            )
        },
        "mteb/sprintduplicatequestions-pairclassification": {
            english("SprintDuplicateQuestions").revision: repository(default={"test": [SPRINT]})
        },
        "mteb/biorxiv-clustering-s2s": {english("BiorxivClusteringS2S").revision: repository(default={"test": SETS})},
        "mteb/PlscClusteringS2S.v2": {
            several("PlscClusteringS2S.v2").revision: repository(
                default={"test": [{name: [row[name] for row in WORKS] for name in WORKS[0]}]}
            )
        },
        "PL-MTEB/plsc-clustering-s2s": {
            "39bcadbac6b1eddad7c1a0a176119ce58060289a": repository(default={"test": WORKS})
        },
        "mteb/askubuntudupquestions-reranking": {
            english("AskUbuntuDupQuestions").revision: {"test.jsonl": lines, "README.md": b"An old layout.\n"}
        },
        "mteb/SciDocsRR": {english("SciDocsRR").revision: search_repository(3, ranked=True)},
        "mteb/arguana": {english("ArguAna").revision: search_repository(4, ranked=False)},
        "mteb/bucc-bitext-mining": {
            "1739dc11ffe9b7bfccd7f3d585aeb4c544fc6677": repository(
                default={"test": [{**row, "lang": lang} for lang in ("de-en", "fr-en") for row in SIDES]}
            )
        },
        "mteb/BUCC": {
            "414572247440f0ccacf7eb0bb70a31533a0e5443": repository(
                **{"de-en": {"test": [{"sentence1": ["a"], "sentence2": ["b", "c"], "gold": [[1, 2]]}]}}
            )
        },
        "mteb/IN22GenBitextMining": {
            "aed6ff7eed647cd6eead02f70efa23a4e67329dc": repository(default={"test": PARALLEL})
        },
        "mteb/CEDRClassification": {
            "d872ceae33d049f0ef50e8abb9229b569ebfcf7d": repository(
                default={"train": EMOTIONS[:16], "test": EMOTIONS[16:]}
            )
        },
        "mteb/Core17InstructionRetrieval": {
            "67d8733dd0691f08f34ed9dda5941578cba8d91c": repository(**instruction_tables())
        },
        "jhu-clsp/mFollowIR-parquet-mteb": {
            "09eecbe45c54b4a6dfb8e68e345cae77337768e2": repository(
                **{f"{name}-{code}": part for name, part in instruction_tables().items() for code in FOLLOWED}
            )
        },
        "mteb/summeval": {english("SummEval").revision: repository(default={"test": SUMMARIES})},
    }


def specs() -> dict[str, DatasetSpec]:
    """What is loaded, by the name that tests use."""
    english, several = functools.partial(spec, "hteb_english"), functools.partial(spec, "hteb_multilingual")
    names = ["STSBenchmark", "Banking77Classification", "SprintDuplicateQuestions", "BiorxivClusteringS2S"]
    names += ["AskUbuntuDupQuestions", "SciDocsRR", "ArguAna", "SummEval"]
    return {
        **{name: english(name) for name in names},
        "PlscClusteringS2S.v2": DatasetSpec.model_validate({"mteb": "PlscClusteringS2S.v2"}),
        "PlscClusteringS2S.v2 in sets": several("PlscClusteringS2S.v2"),
        "STS17": several("STS17").model_copy(update={"subsets": ("en-de", "ar-ar")}),
        "STS17 by column": spec("pteb_multilingual", "STS17").model_copy(update={"subsets": ("en-de", "ar-ar")}),
        "SemRel2024": several("SemRel2024").model_copy(update={"subsets": ("arq", "esp"), "language": {"esp": "es"}}),
        "BUCC.v2": DatasetSpec.model_validate({"mteb": "BUCC.v2", "subsets": ["de-en"]}),
        "IN22GenBitextMining": DatasetSpec.model_validate(
            {"mteb": "IN22GenBitextMining", "subsets": ["hin_Deva-eng_Latn", "ben_Beng-tam_Taml"]}
        ),
        "CEDRClassification": DatasetSpec.model_validate({"mteb": "CEDRClassification"}),
        "Core17InstructionRetrieval": DatasetSpec.model_validate({"mteb": "Core17InstructionRetrieval"}),
        "mFollowIR with passages": DatasetSpec.model_validate(
            {"mteb": "mFollowIR", "subsets": ["rus"], "passages": True}
        ),
        "ArguAna with passages": english("ArguAna").model_copy(update={"passages": True}),
        "SciDocsRR with passages": english("SciDocsRR").model_copy(update={"passages": True, "language": "en-de"}),
    }


REFUSED: dict[str, dict[str, Any]] = {
    "task": {"mteb": "STSBenchmrk"},
    "type": {"mteb": "InstructIR"},
    "sides": {"mteb": "BUCC", "subsets": ["de-en"]},
    "wrong task": {"mteb": "STSBenchmark", "task": "clustering"},
    "collection": {"mteb": "CQADupstackRetrieval"},
    "pair of languages": {"mteb": "Banking77Classification", "language": "en-de"},
    "subset": {"mteb": "STS17", "subsets": ["en-dee"]},
    "subset of the data": {
        "mteb": "STS17",
        "revision": spec("pteb_multilingual", "STS17").revision,
        "subsets": ["en-tr"],
    },
    "split": {"mteb": "STSBenchmark", "revision": spec("hteb_english", "STSBenchmark").revision, "split": "dev"},
    "split of retrieval": {"mteb": "ArguAna", "split": "dev"},
    "column": {
        "mteb": "STSBenchmark",
        "revision": spec("hteb_english", "STSBenchmark").revision,
        "columns": {"score": "gold"},
    },
    "revision": {"mteb": "STSBenchmark", "revision": "0" * 40},
    "repository": {"mteb": "STSBenchmark", "path": "mteb/none"},
    "layout": {"mteb": "STSBenchmark", "path": "mteb/arguana", "revision": spec("hteb_english", "ArguAna").revision},
    "languages of pairs": {"mteb": "PubChemWikiPairClassification", "subsets": ["de"]},
    "languages of queries and passages": {"mteb": "BelebeleRetrieval", "subsets": ["acm_Arab-eng_Latn"]},
}


@dataclass
class Site:
    """What the process made: data sets, what was said of those that cannot be, and what the hub was asked."""

    tasks: dict[str, MtebTask] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    offline: str = ""
    asked: list[str] = field(default_factory=list)


@functools.cache
def site() -> Site:
    """Everything that the process loads; mteb's objects map files of the folder into memory."""
    made: Site = pickle.loads((made_once("mteb", _make) / WHOLE).read_bytes())  # noqa: S301 (we wrote it)
    return made


def _make(home: Path) -> None:
    with Hub(_repositories()) as hub:
        made = _run(home, hub.url)
        made.asked = hub.asked
    (home / WHOLE).write_bytes(pickle.dumps(made))


def _run(home: Path, url: str) -> Site:
    output = home / "part.pickle"
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environment |= {"HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", "MTEB_CACHE": str(home)}
    command = [sys.executable, "-m", "tests.mteb_site", str(output)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr[-3000:]
    made: Site = pickle.loads(output.read_bytes())  # noqa: S301 (our own process wrote it)
    return made


def _load_all() -> Site:
    made = Site({name: load_mteb(item) for name, item in specs().items()})
    for name, changes in REFUSED.items():
        with contextlib.suppress(AssertionError):
            made.refused[name] = _refusal(DatasetSpec.model_validate(changes))
    constants.HF_HUB_OFFLINE = datasets_config.HF_HUB_OFFLINE = True  # type: ignore[assignment]
    there = specs()["STSBenchmark"]
    assert len(list(load_mteb(there).texts())) == 24
    made.offline = _refusal(there.model_copy(update={"revision": "1" * 40}))
    return made


def _refusal(item: DatasetSpec) -> str:
    try:
        load_mteb(item)
    except PlumblineError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("was not refused")


if __name__ == "__main__":
    from tests.mteb_site import _load_all as load_all

    Path(sys.argv[1]).write_bytes(pickle.dumps(load_all()))
