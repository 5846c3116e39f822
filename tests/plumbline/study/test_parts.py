"""Engines, data sets, places and parts in files of their own; the schema of study files; the example of a kind."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from pathlib import Path

import pytest

from evaluation.models.encoder import ModelHost
from generation.jobs import generator_hash
from generation.production import generate, read_transformed
from plumbline.__main__ import run
from plumbline.errors import DataError, StudyError
from plumbline.study import ROOT, Study, load_study
from plumbline.study.engines import EngineSpec
from plumbline.study.evaluation import ModelSpec, SentenceTransformersSpec
from plumbline.study.places import file_hash
from tests.evaluation.conftest import write_study


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


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "BAAI/bge-m3", "org_x/model_1.5-b", "intfloat/e5-base"])
def test_names_of_models_pass(tmp_path: Path, name: str) -> None:
    assert SentenceTransformersSpec(name=name).location(tmp_path) == name


def test_the_whole_file_system_and_folders_without_end_are_not_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("/")
    for path in (Path("/"), tmp_path / "link"):
        with pytest.raises(DataError, match="is the root of the file system; correct the path"):
            file_hash(path)
    monkeypatch.setattr(Path, "rglob", lambda *_: itertools.repeat(tmp_path))
    with pytest.raises(DataError, match="contains more than 20,000 files"):
        file_hash(tmp_path)


def test_a_kind_is_one_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (ROOT / "docs" / "guides" / "maintainer.md").read_text(encoding="utf-8")
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "class Capitals" in block]
    assert len(example.splitlines()) <= 60
    (tmp_path / "kinds.py").write_text(example, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for family in (EngineSpec, ModelSpec):
        monkeypatch.setattr(family, "KINDS", dict(family.KINDS))
    __import__("kinds")
    own = {"models": [{"name": "mine", "kind": "letters"}]}
    generator = {"kind": "capitals", "model": "any", "mark": "!"}
    study = write_study(tmp_path, generator=generator, evaluation=own, transformations=["paraphrasing"])
    assert generate(study)["ok"]
    for row in read_transformed(study, "paraphrasing", 1337):
        assert row.output == f"{row.text.upper()}!"
    encoder = ModelHost.of(study).load(study.evaluation.models[0])
    assert encoder.embed(["a cat", "I see"]).tolist() == [[2, 0, 0, 0, 0], [0, 2, 0, 0, 0]]
    with pytest.raises(StudyError, match="mark: does not apply to an engine of kind none; take it out"):
        write_study(tmp_path, generator={"kind": "none", "mark": "!"})
