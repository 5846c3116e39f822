from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from plumbline.cli import StudyOptions
from plumbline.errors import StudyError
from plumbline.manifest import Manifest, stage, study_hash
from plumbline.study import ROOT, Study, load_study
from plumbline.study.base import PATTERNS, complaints
from plumbline.study.transformations import Transformation
from plumbline.study_files import checked
from tests.generation.helpers import study_data, write_study

RECORDED = study_data()["generator"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"transformations": ["translation"], "languages": ["sw"]}, "'translation' has no target among sw"),
        ({"transformations": ["paraphrasing"], "languages": ["de"]}, "no transformation of the study translates"),
        (
            {"generator": {**RECORDED, "settings": {"languages": "recorded"}}, "languages": ["de"]},
            "leave one of them out",
        ),
    ],
)
def test_languages_that_no_output_could_be_in_are_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    path = write_study(tmp_path, **changes)
    with pytest.raises(StudyError) as error:
        load_study(path)
    assert str(error.value).startswith(f"{path}: ") and says in str(error.value)


def test_all_faults_of_a_study_file_are_named_at_once_each_in_a_line(tmp_path: Path) -> None:
    data = study_data()
    data["datasets"][0]["task"] = "stss"
    data["engines"] = {
        "gemma": {"kind": "openai", "model": "m", "base_url": "http://h", "settings": {"concurrency": 0}}
    }
    data |= {"nmae": "x", "seeds": [True], "raters": {"per_pair": "two", "peple": []}, "generator": "gemma"}
    path = write_study(tmp_path, **data)
    with pytest.raises(StudyError) as error:
        load_study(path)
    lines = str(error.value).splitlines()
    assert [line.removeprefix(f"{path}: ").split(";")[0].split(":")[0] for line in lines] == [
        "unknown key 'nmae'",
        "seeds",
        "engines.gemma.settings.concurrency",
        "datasets.0.task",
        "raters",
        "raters.per_pair",
    ]


def test_faults_of_the_file_its_questions_and_its_data_are_named_at_once_each_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("text,label\nhello,a\n", encoding="utf-8")
    (tmp_path / "study.yaml").write_text(
        """\
name: mine
sampel: {}
datasets:
  - name: d
    task: clustering
    path: d.csv
    language: en
    columns: {text: Satz}
transformations: [paraphrasing]
sample: {pairs: 6, batch: 0}
acceptance:
  min_pairs: 20
  rules: [{question: qualty, at_least: 3}]
""",
        encoding="utf-8",
    )
    with pytest.raises(StudyError) as error:
        checked(StudyOptions(str(tmp_path / "study.yaml")))
    lines = str(error.value).splitlines()
    assert all(line.startswith(f"{tmp_path / 'study.yaml'}: ") for line in lines)
    places = [line.rpartition("(line ")[2].removesuffix(")") for line in lines]
    assert places == ["2", "10", "9", "12", "13", "8"]  # key, number, generator, too few pairs, question, column


def test_what_a_faulty_setting_would_change_is_not_said(tmp_path: Path) -> None:
    data = study_data() | {"sample": {"pairs": "six"}, "acceptance": {"min_pairs": 200}, "generator": "none"}
    with pytest.raises(StudyError) as error:
        checked(StudyOptions(str(write_study(tmp_path, **data))))
    assert len(str(error.value).splitlines()) == 2  # neither too few pairs nor a generator that is missing


@pytest.mark.parametrize(
    ("call", "faults"),
    [
        ({"txt": "x"}, ["calls.0: unknown key 'txt'; did you mean 'text'?", "calls.0.text: Field required"]),
        (5, ["calls.0: is not a mapping; write keys with their values below it, such as name: value"]),
    ],
)
def test_a_prompt_that_is_written_out_has_only_the_faults_of_that_form(call: object, faults: list[str]) -> None:
    with pytest.raises(ValidationError) as error:
        Transformation.model_validate({"name": "mine", "axis": "form", "calls": [call]})
    assert complaints(error.value) == faults


def test_each_fault_of_a_study_file_has_its_line_also_beside_files_that_are_missing(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("name: own\n\naxis: form\nfuncton: a:b\n", encoding="utf-8")
    written = """\
name: mine
sampel: {pairs: 3}
datasets:
  - name: d
    task: stss
    path: d.csv
    language: en
transformations:
  - {name: x, axis: form, outputs: {path: x.csv, outptu: y}}
  - own.yaml
crowd: no_such.yaml
raters:
  per_pair: two
"""
    path = tmp_path / "study.yaml"
    path.write_text(written, encoding="utf-8")
    with pytest.raises(StudyError) as error:
        load_study(path)
    said = [line.removeprefix(f"{path}: ") for line in str(error.value).splitlines()]
    assert [(line.split(": ")[0], line.rpartition(" (line ")[2]) for line in said] == [
        ("crowd", "11)"),
        ("transformations.0", "9)"),
        ("transformations.1", "4)"),  # of its own file
        ("unknown key 'sampel'; did you mean 'sample'? (line 2)", "2)"),
        ("datasets.0.task", "5)"),
        ("raters.per_pair", "13)"),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: a\nsample:\n  pairs: 3\n  pairs: 4\n", "line 4, column 3: key 'pairs' appears twice"),
        ("name: a\nsample: {pairs: 3\n", "line 3, column 1: did not find expected ',' or '}'"),
        ("name: a\nraters: *who\n", r"line 2: \*who has no complete anchor before it"),
        ("name: a\nraters: &who {per_pair: 0}\nsample: *who\n", r"raters.per_pair: .* \(line 2\)"),
    ],
)
def test_a_fault_of_yaml_has_line_and_column(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match=says):
        load_study(tmp_path / "study.yaml")


def test_contradictions_are_named_at_once(tmp_path: Path) -> None:
    own = {"name": "no", "axis": "form", "meaning": "changed", "outputs": {"path": "x.csv"}}
    data = {"name": "mine", "datasets": study_data()["datasets"], "transformations": [own, "paraphrasing"]}
    data["raters"] = {"blocks": [50, 100]}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(StudyError) as error:
        load_study(tmp_path / "study.yaml")
    needs, changes, blocks = str(error.value).splitlines()
    assert "blocks are decided by an interval over pairs; set `rule: lower_bound`" in blocks
    assert "paraphrasing needs one" in needs and "'no' changes the meaning on purpose" in changes


def test_contradictions_are_named_beside_faults_of_other_settings_alone(tmp_path: Path) -> None:
    """Nothing is said of a setting with a fault: its default would contradict what nobody wrote."""
    rule = {"min_raters": 9, "min_ac2": 0.5, "min_pairs": 60}
    path = write_study(tmp_path, acceptance=rule, raters={"per_pair": 1, "blocks": [20, 40]}, sample={"pairs": "all"})
    with pytest.raises(StudyError) as error:
        load_study(path)
    found = str(error.value)
    assert len(found.splitlines()) == 5 and "sample.pairs" in found
    for words in ("blocks are decided", "more than the last of", "more than `raters.per_pair", "needs two ratings"):
        assert words in found
    path = write_study(tmp_path, acceptance=rule, raters={"per_pair": "many", "people": ["ada"]}, crowd="none.yaml")
    with pytest.raises(StudyError) as error:
        load_study(path)
    assert len(str(error.value).splitlines()) == 2  # per_pair, and the file
    data = study_data() | {"raters": {"people": ["ada"]}, "acceptance": {"min_raterz": 1}}
    path.write_text(yaml.safe_dump({**data, "generater": data.pop("generator")}), encoding="utf-8")
    with pytest.raises(StudyError) as error:
        load_study(path)
    assert len(str(error.value).splitlines()) == 2  # of what is meant by the unknown keys nothing is missing


def test_a_faulty_engine_is_named_once_and_no_fault_of_another_is_hidden(tmp_path: Path) -> None:
    faulty = {"kind": "openai", "base_url": "http://127.0.0.1/v1"}
    judges = [{"name": "a", "engine": "a"}]
    path = write_study(tmp_path, engines={"a": faulty}, generator="a", candidates=[faulty], judges=judges)
    with pytest.raises(StudyError) as error:
        load_study(path)
    places = [line.removeprefix(f"{path}: ").split(":")[0] for line in str(error.value).splitlines()]
    assert places == ["engines.a.model", "candidates.0.model"]


def test_defaults_are_the_papers() -> None:
    study = load_study(ROOT / "studies" / "demo.yaml")
    assert len(study.transformations) == 8
    assert (study.acceptance.threshold, study.generator.sampling.temperature) == (3.0, 0.0)


def test_paths_are_relative_to_the_study_file(tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path / "here"))
    assert study.resolve("words.csv") == (tmp_path / "here" / "words.csv").resolve()


def test_a_command_that_is_advised_can_be_pasted(tmp_path: Path) -> None:
    data = study_data()
    other = {**data["generator"], "model": "other model"}
    file = write_study(tmp_path / "my studies", candidates=[other])
    study = load_study(file, tmp_path / "records")
    options = ["--study", str(file), "--exports", str(tmp_path / "records")]
    assert shlex.split(study.command("accept")) == ["plumbline", "accept", *options]
    by = study.by(study.candidates[0])
    assert shlex.split(by.command("generate")) == [
        "plumbline", "generate", *options, "--generator", "other model",
    ]  # fmt: skip
    assert "--generator" not in by.command("accept")


def test_a_name_that_two_generators_have_names_neither(tmp_path: Path) -> None:
    other = {**study_data()["generator"], "revision": "other"}
    study = load_study(write_study(tmp_path, candidates=[other]))
    with pytest.raises(StudyError, match=f"2 generators are called {study.generator.model!r}; give each a study"):
        study.generator_called(study.generator.model)


def test_every_pattern_of_a_study_is_said_in_words() -> None:
    def patterns(node: Any) -> Iterator[str]:
        for key, part in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            yield from [part] if key == "pattern" and isinstance(part, str) else patterns(part)

    found = set(patterns(Study.model_json_schema()))
    assert len(found) > 3 and found <= set(PATTERNS)


def test_a_study_file_that_goes_during_a_stage_loses_nothing(variant: Callable[..., Study]) -> None:
    """The stage is noted with the file that it ran on; the next one is told in one line."""
    study = variant()
    was = study_hash(study.file)
    with stage(study, "long"):
        study.file.unlink()
    assert Manifest.of(study).read()["stages"]["long"]["study_sha256"] == was
    with pytest.raises(StudyError, match="was moved or deleted since it was read; restore it"), stage(study, "next"):
        raise AssertionError("no work is done that could not be noted")
