"""Study files of before are read and rewritten, and all identities of what they name stay (tests/recorded/studies)."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from annotation.human.tasks import settings_of
from annotation.judges.annotators import annotator_hash
from annotation.judges.run import judge_hash
from annotation.verdicts.preregistration import fixed_judges
from evaluation.bundle.export import _settings as portable_settings
from evaluation.models.encoder import ModelHost
from generation.jobs import generator_hash
from plumbline import study_files
from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.study import ROOT, Study, load_study
from plumbline.study.datasets import DatasetSpec
from plumbline.study.engines import EngineSpec
from plumbline.study.human import HumanSubject
from plumbline.study.upgrade import modern, upgraded

RECORDED = ROOT / "tests" / "recorded"
OF_BEFORE = sorted((RECORDED / "studies").rglob("*.yaml"))
IDENTITIES = json.loads((RECORDED / "identities.json").read_text(encoding="utf-8"))


def identities(study: Study) -> dict[str, Any]:
    """All that records of a study are known by: of generators, judges, annotators, rules, sample, data and models."""
    generators = (study.generator, *study.candidates)
    subject = study.subject
    tasks, annotators = (subject.tasks, subject.models) if isinstance(subject, HumanSubject) else ((), ())
    wholes = {
        "judges_as_fixed": fixed_judges(study),
        "rules": [part.model_dump(mode="json") for part in (study.acceptance, study.quality, study.raters)],
        "sample": study.sample.model_dump(mode="json"),
        "subject": subject.model_dump(mode="json", exclude={"models"}) if subject else None,
        "tasks": [settings_of(task, study.sample.seed) for task in tasks],
        "datasets": [spec.model_dump(mode="json") for spec in study.datasets],
        "kinds": {name: kind.model_dump(mode="json") for name, kind in study.kinds.items()},
        "portable": portable_settings(study, []),
    }
    return {
        "generators": [generator_hash(spec) for spec in generators],
        "outputs": [study.by(spec).outputs.relative_to(study.folder).as_posix() for spec in generators],
        "judges": [judge_hash(spec, "text", study.resolve) for spec in study.judges],
        "annotators": [annotator_hash(spec, study.resolve) for spec in annotators],
        "rule_id": identity("rule-v1", study.acceptance.model_dump(), study.raters.per_pair),
        "models": ModelHost.of(study).labels,
        **{part: identity(part, whole) for part, whole in wholes.items()},
    }


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample studies' folder, for files that name what is in it."""
    folder = tmp_path_factory.mktemp("before") / "studies"
    shutil.copytree(ROOT / "studies", folder)
    return folder


@pytest.mark.parametrize("file", OF_BEFORE, ids=lambda file: "-".join(file.parts[-2:]))
def test_old_file_and_upgraded_file_have_the_identities_of_before(file: Path, beside: Path) -> None:
    before, target = file.read_text(encoding="utf-8"), beside / f"copy_of_{file.name}"
    new = upgraded(before)
    for text in (before, new):
        target.write_text(text, encoding="utf-8")
        study = load_study(target, beside.parent / "exports")
        assert identities(study) == IDENTITIES[file.stem]
        assert bool(study.advice) == (text == before != new)
    assert upgraded(new) == new
    assert sorted(comments(new)) == sorted(comments(before))


@pytest.mark.parametrize("file", sorted((ROOT / "studies").glob("*.yaml")), ids=lambda file: file.stem)
def test_sample_studies_have_the_identities_of_before(file: Path, tmp_path: Path) -> None:
    study = load_study(file, tmp_path)  # not in exports/, where records of a demo may stand
    assert identities(study) == IDENTITIES[file.stem] and not study.advice


def test_keys_with_one_value_in_every_study_are_taken_out_and_stay_in_hashes(beside: Path) -> None:
    text = (ROOT / "studies" / "items.yaml").read_text(encoding="utf-8")
    before = text.replace("  min_pairs: 10\n", "  min_pairs: 10\n  min_ratings: 1\n")
    before += "quality:\n  failing: 0.1\n  within: 1 # as in the paper\n"
    new, file = upgraded(before), beside / "fixed.yaml"
    assert "failing" not in new and "min_ratings" not in new and "quality: {within: 1} # as in the paper" in new
    for written in (before, new):
        file.write_text(written, encoding="utf-8")
        study = load_study(file)
        assert bool(study.advice) == (written == before)
        assert study.quality.model_dump()["failing"] == 0.1 and study.acceptance.model_dump()["min_ratings"] == 1
        assert identities(study)["rules"] == IDENTITIES["items"]["rules"]


def comments(text: str) -> list[str]:
    return [line[line.index("#") :] for line in text.splitlines() if "#" in line]


def test_a_comment_stays_with_what_it_is_about() -> None:
    lines = upgraded((RECORDED / "studies" / "every_pair_key.yaml").read_text(encoding="utf-8")).splitlines()
    assert "    model: org/Model-A # with tools" in lines
    assert "generator: model-a # on the GPUs" in lines
    above = lines.index("  # as the generator, on one GPU")
    assert lines[above + 1].startswith("  model-a-2: {kind: vllm")


def test_the_command_rewrites_a_file_and_keeps_the_old_one(
    beside: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = beside / "mine.yaml"
    shutil.copy(RECORDED / "studies" / "demo.yaml", file)
    monkeypatch.setattr(sys, "argv", ["plumbline.study_files", "upgrade", str(file)])
    assert not study_files.main()
    assert capsys.readouterr().out == f"-> {file} (earlier file: {file}.old)\n"
    assert (beside / "mine.yaml.old").read_bytes() == (RECORDED / "studies" / "demo.yaml").read_bytes()
    assert not study_files.main()
    assert "nothing to do" in capsys.readouterr().out


def test_the_schema_has_every_key_and_takes_names_of_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study.schema.json"
    monkeypatch.setattr(sys, "argv", ["plumbline.study_files", "schema", "--out", str(out)])
    assert not study_files.main() and str(out) in capsys.readouterr().out
    schema = json.loads(out.read_text(encoding="utf-8"))
    assert list(schema["properties"]) == list(Study.model_fields)
    assert {"type": "string"} in schema["properties"]["generator"]["anyOf"]
    assert {"type": "string"} in schema["properties"]["crowd"]["anyOf"]
    models = (schema, *schema["$defs"].values())
    assert sum(len(model.get("properties", {})) for model in models) <= 223


def test_an_argument_that_only_vllm_knows_is_part_of_what_made_an_output() -> None:
    engine = {"kind": "vllm", "model": "org/Model-A"}
    plain, faster, other = (
        EngineSpec.model_validate({**engine, "settings": settings})
        for settings in ({}, {"max_num_seqs": 8}, {"hf_overrides": {"rope_theta": 1}})
    )
    assert generator_hash(plain) == generator_hash(faster) != generator_hash(other)


def test_a_data_set_is_recorded_as_before_its_two_kinds_were_one() -> None:
    file = {"name": "a", "task": "sts", "path": "a.csv", "language": "en"}
    recorded = {**file, "rows": "all", "columns": {}, "passages": False}
    for key in ("rows", "split"):
        spec = DatasetSpec.model_validate({**file, key: "all"})
        assert spec.model_dump(mode="json") == recorded
    assert DatasetSpec.model_validate(recorded) == spec
    plain = DatasetSpec.model_validate({**file, "split": "test", "gold_scale": [1, 5]})
    assert plain.model_dump(mode="json", exclude_defaults=True) == {**file, "gold_scale": [1.0, 5.0]}
    of_mteb = DatasetSpec.model_validate({"mteb": "STS17", "split": "test"}).model_dump(mode="json")
    unset = {"path": "", "revision": "", "task": None, "language": "", "languages": {}, "subsets": [], "columns": {}}
    assert of_mteb == {"mteb": "STS17", "name": "STS17", "split": "test", "passages": False, **unset}


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
def test_what_a_file_lacks_or_cannot_have_is_said(beside: Path, changes: dict[str, Any], says: str) -> None:
    dataset = {"name": "a", "task": "sts", "path": "a.csv", "language": "en", **changes}
    dataset = {key: value for key, value in dataset.items() if value is not None}
    file = beside / "wrong.yaml"
    file.write_text(json.dumps({"name": "a", "datasets": [dataset], "transformations": []}), encoding="utf-8")
    with pytest.raises(StudyError) as error:
        load_study(file)
    assert f"datasets.0: {says}" in str(error.value)


def test_human_beside_a_subject_is_refused() -> None:
    with pytest.raises(StudyError, match="`human` is the earlier form of `subject`"):
        modern({"human": {"tasks": []}, "subject": {"kind": "items"}})


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
            {"engines": {"a": {"kind": "openai", "model": "m", "base_url": "http://a/v1", "settings": {"retry": 1}}}},
            "engines.a.settings: unknown key 'retry'; did you mean 'retries'",
        ),
        (
            {"judges": [{"name": "j", "engine": {"kind": "vllm", "model": "m"}, "retry": {"flags": ["empty"]}}]},
            "judges.0.retry: flags: applies to a generator's outputs alone; take it out",
        ),
        ({"crowd": "crowd.yaml"}, "crowd: no file "),
    ],
)
def test_what_is_wrong_with_engines_and_parts_in_files_is_said(
    beside: Path, changes: dict[str, Any], says: str
) -> None:
    content = {"name": "a", "datasets": [{"mteb": "STS17"}], **changes}
    file = beside / "wrong.yaml"
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(StudyError) as error:
        load_study(file)
    assert says in str(error.value)


def test_crowd_and_bundle_may_stand_in_files_of_their_own(beside: Path) -> None:
    (beside / "crowd.yaml").write_text("pay: {hourly: 30}\n", encoding="utf-8")
    (beside / "bundle.yaml").write_text("licence: cc-by-4.0\n", encoding="utf-8")
    text = (ROOT / "studies" / "demo.yaml").read_text(encoding="utf-8").partition("bundle:")[0]
    file = beside / "parts.yaml"
    file.write_text(f"{text}\ncrowd: crowd.yaml\nbundle: bundle.yaml\n", encoding="utf-8")
    study = load_study(file)
    assert study.crowd is not None and (study.crowd.pay.hourly, study.bundle.licence) == (30, "cc-by-4.0")
    (beside / "crowd.yaml").write_text("pay: {hourly: 3}\n", encoding="utf-8")
    with pytest.raises(StudyError, match=r"crowd\.pay: hourly 3 is below 24"):
        load_study(file)
