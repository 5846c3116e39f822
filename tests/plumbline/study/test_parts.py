"""Faults of engines, data sets and parts in files of their own; the schema of study files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from generation.jobs import generator_hash
from plumbline.__main__ import run
from plumbline.errors import StudyError
from plumbline.study import ROOT, Study, load_study
from plumbline.study.engines import EngineSpec


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample studies' folder, for files that name what is in it."""
    folder = tmp_path_factory.mktemp("samples") / "studies"
    shutil.copytree(ROOT / "studies", folder)
    return folder


def test_the_schema_has_every_key_and_takes_names_of_engines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study.schema.json"
    assert not run(["schema", "--out", str(out)]) and str(out) in capsys.readouterr().out
    schema = json.loads(out.read_text(encoding="utf-8"))
    assert list(schema["properties"]) == list(Study.model_fields)
    assert {"type": "string"} in schema["properties"]["generator"]["anyOf"]
    assert {"type": "string"} in schema["properties"]["crowd"]["anyOf"]


def test_an_argument_that_only_vllm_knows_is_part_of_what_made_an_output() -> None:
    engine = {"kind": "vllm", "model": "org/Model-A"}
    plain, faster, other = (
        EngineSpec.model_validate({**engine, "settings": settings})
        for settings in ({}, {"max_num_seqs": 8}, {"hf_overrides": {"rope_theta": 1}})
    )
    assert generator_hash(plain) == generator_hash(faster) != generator_hash(other)


def test_crowd_and_bundle_may_stand_in_files_of_their_own(samples: Path) -> None:
    (samples / "crowd.yaml").write_text("pay: {hourly: 30}\n", encoding="utf-8")
    (samples / "bundle.yaml").write_text("licence: cc-by-4.0\n", encoding="utf-8")
    text = (ROOT / "studies" / "demo.yaml").read_text(encoding="utf-8").partition("bundle:")[0]
    file = samples / "parts.yaml"
    file.write_text(f"{text}\ncrowd: crowd.yaml\nbundle: bundle.yaml\n", encoding="utf-8")
    study = load_study(file)
    assert study.crowd is not None and (study.crowd.pay.hourly, study.bundle.licence) == (30, "cc-by-4.0")
    (samples / "crowd.yaml").write_text("pay: {hourly: 0}\n", encoding="utf-8")
    with pytest.raises(StudyError, match=r"crowd\.pay\.hourly: Input should be greater than 0"):
        load_study(file)
