"""A folder written as the program of HTEB's authors (v1.1) writes it, and what a study takes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from generation.generators import RecordedOutputs
from generation.hteb import PublishedFile, PublishedText, recorded_language
from generation.jobs import Job, Plan
from plumbline.models.chat import Attempt
from plumbline.study import Study
from plumbline.study.engines import Sampling
from tests.generation.helpers import small_study
from tests.generation.helpers import text as a_text

MODEL = "cyankiwi/gemma-4-31B-it-AWQ-4bit"
FOLDER = "cyankiwi~2Fgemma-4-31B-it-AWQ-4bit"
GENERATOR = {"kind": "recorded", "model": MODEL, "path": FOLDER}
THEIR_LANGUAGES = GENERATOR | {"settings": {"languages": "recorded"}}
ENGLISH = "Where can I find my new bank card, please?"
SPANISH = "¿Dónde puedo encontrar mi nueva tarjeta del banco, por favor?"
ARABIC = "أين يمكنني أن أجد بطاقتي المصرفية الجديدة من فضلك؟"

# Of this data set it is known that the program translates it into Arabic with seeds 1337 to 1339.
STSB = {"dataset": "stsbenchmark-sts", "transformation": "translation"}
RUN = {"transformation": "translation", "draws_by_dataset": True}

Records = Sequence[dict[str, Any]]


def publish(
    folder: Path,
    originals: Records,
    changed: Records,
    *,
    dataset: str = "words",
    transformation: str = "paraphrasing",
    seed: int = 1,
    name: str = "0" * 64,
    **metadata: Any,
) -> Path:
    """Write one file and its metadata; returns the file."""
    place = folder / FOLDER / dataset / transformation / str(seed)
    place.mkdir(parents=True, exist_ok=True)
    kind = pa.array([*originals, *changed]).type
    columns = [pa.array(originals, kind), pa.array(changed, kind)]
    path = place / f"data_{name}.parquet"
    pq.write_table(pa.Table.from_arrays(columns, ["original", f"{transformation}_seed_{seed}"]), path)
    known = {
        "generator_model": MODEL,
        "transformation": transformation,
        "dataset": dataset,
        "seed_transform": seed,
        "generation_datetime": "2026-09-15T11:32:54Z",
        "max_retries": 3,
    }
    (place / f"metadata_{name}.JSON").write_text(json.dumps(known | metadata))
    return path


def rows(*texts: str, language: str = "eng") -> list[dict[str, Any]]:
    return [{"text": text, "label": 1, "language": language, "_hteb_split": "test"} for text in texts]


def a_study(folder: Path, **changes: Any) -> Study:
    return small_study(folder, **({"texts": ("apple", "bread"), "generator": GENERATOR} | changes))


def served(study: Study, text: str, transformation: str = "paraphrasing", seed: int = 1, **changes: Any) -> str:
    """The output that a job gets."""
    job = {"key": "", "text_id": "", "source_language": "en", "language": None, "languages": (), **changes}
    wanted = Job(text=text, transformation=transformation, seed=seed, **job)
    generator = RecordedOutputs.of(study)
    return asyncio.run(generator.transform(wanted, Attempt(1, wanted.seed, Sampling()))).output


def a_file(**changes: Any) -> PublishedFile:
    default = {
        "path": Path("file"),
        "dataset": "words",
        "transformation": "cross_translation",
        "seed": 1,
        "draws_by_dataset": False,
        "transforms_passages": True,
        "wants_passages": True,
    }
    return PublishedFile(**(default | changes))


def drawn(number: int = 0, label: str = "eng", output: str = "", *, by_rule: bool = True, **changes: Any) -> str:
    found = PublishedText("text", output, number, label)
    return recorded_language(a_file(**changes), found, "en", by_rule=by_rule)


def taken(study: Study, text: str, transformation: str, *, seed: int = 1, **changes: Any) -> str | None:
    """The language that a text gets in any command."""
    return Plan(study).job(a_text(text, **changes), transformation, seed).language
