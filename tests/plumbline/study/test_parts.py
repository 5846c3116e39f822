"""Faults of engines, data sets and parts in files of their own; the schema of study files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"task": None}, "task is missing; add it"),
        ({"path": None}, "path is missing; add it"),
        ({"revision": "0" * 40}, "revision: applies to a task of mteb"),
        ({"subsets": ["en-de"]}, "subsets: applies to a task of mteb"),
        ({"split": "validation"}, "split: must be `test` or `all` for a file, not 'validation'"),
        ({"language": "en-de", "task": "classification"}, "language 'en-de' is a pair"),
        ({"splits": "all"}, "unknown key 'splits'; did you mean 'split'"),
    ],
)
def test_what_a_file_lacks_or_cannot_have_is_said(samples: Path, changes: dict[str, Any], says: str) -> None:
    dataset = {"name": "a", "task": "sts", "path": "a.csv", "language": "en", **changes}
    dataset = {key: value for key, value in dataset.items() if value is not None}
    file = samples / "wrong.yaml"
    file.write_text(json.dumps({"name": "a", "datasets": [dataset], "transformations": []}), encoding="utf-8")
    with pytest.raises(StudyError) as error:
        load_study(file)
    assert f"datasets.0: {says}" in str(error.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"generator": "gemma"}, "generator: no engine 'gemma'; define it under `engines`"),
        ({"engines": {"a": {"kind": "openai", "model": "m"}}}, "engines.a.base_url: Field required"),
        (
            {"engines": {"gemma": {"kind": "vllm", "model": "m"}}, "generator": "gema"},
            "generator: no engine 'gema'; did you mean 'gemma'",
        ),
        (
            {"engines": {"a": {"kind": "vllm", "model": "m", "settings": {"max_num_seqs": 0}}}},
            "engines.a.settings.max_num_seqs: ",
        ),
        (
            {
                "engines": {
                    "a": {"kind": "openai", "model": "m", "base_url": "http://a/v1", "settings": {"key_env": "A"}}
                }
            },
            "engines.a.settings: unknown key 'key_env'; did you mean 'api_key_env'",
        ),
        ({"crowd": "crowd.yaml"}, "crowd: no file "),
    ],
)
def test_what_is_wrong_with_engines_and_parts_in_files_is_said(
    samples: Path, changes: dict[str, Any], says: str
) -> None:
    content = {"name": "a", "datasets": [{"mteb": "STS17"}], **changes}
    file = samples / "wrong.yaml"
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(StudyError) as error:
        load_study(file)
    assert says in str(error.value)


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
