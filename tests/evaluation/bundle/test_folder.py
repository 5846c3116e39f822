"""A bundle as a folder of Parquet files: read by the `datasets` library, described for the hub and in Croissant."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest
import yaml

from evaluation.bundle.bundle import Bundle
from evaluation.bundle.folder import export_folder
from plumbline.errors import StudyError
from plumbline.records import Rating
from tests.commands import here
from tests.evaluation.bundle.samples import REFERENCE, RIGHTS, recorded_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study of which one data set may not be handed on, beside the study's own."""
    place = tmp_path_factory.mktemp("folder")
    said = {"creators": ["A group"], "published": "2026-03-01", "reference": "https://example.org/set"}
    rights = {"sample_sts": REFERENCE | {"licence": "research only"}, "sample_intents": RIGHTS}
    export_folder(recorded_study(place, datasets=rights, citation="@misc{set}", **said), place / "out")
    return place / "out"


def front(folder: Path) -> Any:
    return yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])


def test_every_configuration_is_read_by_the_datasets_library(folder: Path, tmp_path: Path) -> None:
    names = datasets.get_dataset_config_names(str(folder))
    found = {name: datasets.load_dataset(str(folder), name, cache_dir=str(tmp_path)) for name in names}
    bundle = Bundle.open(folder / "recorded.plumb")
    rows = {name: {split: len(part) for split, part in one.items()} for name, one in found.items()}
    assert rows == {
        "outputs": {"test": 168},  # 84 texts in two transformations
        "verdicts": {"test": 4},  # two, with two questions each
        "agreement": {"test": 2 * len(bundle.groups)},
        "pairs": {"test": 24},
        "ratings": {"test": len(bundle.table("ratings.parquet", Rating))},
        "pair_means": {"test": len(bundle.means)},
        "controls": {"test": 7},
        "control_ratings": {"test": 42},
        "texts": {"test": 84},
        "scores": {"test": len(bundle.scores)},
        "data-sample_intents": {"train": 24, "test": 12},
    }
    verdicts, outputs = found["verdicts"]["test"].to_pandas(), found["outputs"]["test"].to_pandas()
    due = [(v.transformation, v.decision, q.question, q.mean, q.ac2.low) for v in bundle.verdicts for q in v.questions]
    columns = ["transformation", "decision", "question", "mean", "ac2_low"]
    assert list(verdicts[columns].itertuples(index=False, name=None)) == due
    own = bundle.outputs("translation", 1337).to_pylist()
    made = outputs[outputs["transformation"] == "translation"]
    assert [row["output"] for row in own] == list(made["output"])
    told = [("sample_intents" in row["datasets"], bool(text)) for row, text in zip(own, made["text"], strict=True)]
    assert set(told) == {(True, True), (False, False)}  # those that may not be handed on are empty


def test_the_card_says_what_the_hub_asks_and_what_people_must_know(folder: Path) -> None:
    said, words = front(folder), (folder / "README.md").read_text(encoding="utf-8")
    assert (said["license"], said["license_name"]) == (["cc-by-4.0", "other", "apache-2.0"], "research-only")
    assert (said["language"], said["size_categories"]) == (["en", "es", "fr"], ["n<1K"])
    assert said["task_categories"] == ["sentence-similarity", "text-classification"]
    assert "simulated-ratings" in said["tags"] and said["annotations_creators"] == ["machine-generated"]
    assert "**Its ratings are SIMULATED" in words and Bundle.open(folder / "recorded.plumb").identity in words
    for one in said["configs"]:
        for file in one["data_files"]:
            columns = pq.read_schema(folder / file["path"]).names
            assert not [name for name in columns if f"| {name.replace('_', chr(92) + '_')} |" not in words]


def test_croissant_says_what_its_specification_asks_for(folder: Path) -> None:
    said = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    asked = {"@context", "@type", "conformsTo", "description", "license", "name", "url", "creator", "datePublished"}
    assert asked | {"distribution", "recordSet"} <= set(said) and "SIMULATED" in said["description"]
    assert (said["conformsTo"], said["version"]) == ("http://mlcommons.org/croissant/1.0", "1.0.0")
    assert said["license"][0] == "https://spdx.org/licenses/CC-BY-4.0"
    files = {one["@id"]: one for one in said["distribution"]}
    assert set(files) == {str(one.relative_to(folder)) for one in folder.rglob("*.*")} - {"README.md", "croissant.json"}
    for name, one in files.items():
        assert one["sha256"] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    for rows in said["recordSet"]:
        sources = [field["source"] for field in rows["field"]]
        (file,) = {source["fileObject"]["@id"] for source in sources}
        assert [source["extract"]["column"] for source in sources] == pq.read_schema(folder / file).names
        assert {one["@id"] for one in rows.get("key", [])} <= {field["@id"] for field in rows["field"]}
    ids = [one["@id"] for part in (said["distribution"], said["recordSet"]) for one in part]
    assert len(ids) == len(set(ids)) > 20
    if importlib.util.find_spec("mlcroissant"):  # its validator, where somebody has installed it
        found = importlib.import_module("mlcroissant").Dataset(jsonld=str(folder / "croissant.json"))
        assert not found.metadata.ctx.issues.errors and not found.metadata.ctx.issues.warnings


def test_a_folder_is_whole_or_not_there(folder: Path, tmp_path: Path) -> None:
    study = recorded_study(tmp_path)
    child = os.fork()
    if not child:
        export_folder(study, tmp_path / "out", step=lambda: os.kill(os.getpid(), 9))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    assert not (tmp_path / "out").exists() and list(tmp_path.glob(".out.*.tmp"))
    command = ("export", "--study", str(study.file), "--exports", str(tmp_path / "exports"), "--format", "parquet")
    done = here("bundle", *command, "--out", str(tmp_path / "out"))
    assert done.returncode == 0 and "nothing was uploaded" in done.stdout, done.stderr
    assert "lacks creator, datePublished, url" in done.stdout and "bundle.creators, bundle.published" in done.stdout
    assert not list(tmp_path.glob(".out.*.tmp"))
    with pytest.raises(StudyError, match="the path exists and is not an empty folder"):
        export_folder(study, folder)
