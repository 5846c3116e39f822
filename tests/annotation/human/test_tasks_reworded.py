"""Raters of a task read the instructions that it was drawn with, whatever a newer Plumbline brings."""

from __future__ import annotations

import functools
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from annotation.campaign_records import CampaignRecords
from annotation.human.records import TASKS, TaskInstructions
from annotation.human.tasks import read_tasks, reworded_lines
from annotation.judges.annotators import annotators
from annotation.offering import ARGILLA, begin_offering
from annotation.rubric import load_rubric
from annotation.sampling.sample import draw_sample
from annotation.status.status import read_status
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import fix_rules
from plumbline.errors import StudyError
from plumbline.manifest import Manifest
from plumbline.prompts import PROMPTS
from plumbline.study import Study
from tests.annotation.human.studies import study_of

TASK = {"data": "alike", "items": 6}
OTHERS = [{"data": "search", "items": 3, "candidates": 3}, {"data": "classes", "items": 4, "balance": "label"}]
ENGINE = {"kind": "recorded", "model": "none", "path": "said.jsonl"}
MODEL = {"name": "rule", "engine": ENGINE, "relevance": "ranked"}


@pytest.fixture
def prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plumbline's instructions, in a folder of the test's own."""
    folder = tmp_path / "prompts"
    shutil.copytree(PROMPTS / "human", folder / "human")
    monkeypatch.setattr("annotation.wordings.prompt_folders", lambda: (folder,))
    return folder / "human"


def reword(file: Path) -> None:
    file.write_text(file.read_text().replace("{en: ", "{en: New ").replace('{en: New "', '{en: "New '))


def newer_version(folder: Path) -> None:
    """Every text is another, and there is no German any more."""
    for file in folder.glob("*.yaml"):
        reword(file)
        shutil.rmtree(file.with_suffix(""), ignore_errors=True)


def asked_of_model(study: Study) -> list[tuple[str, str]]:
    (model,) = annotators(study)
    return [(model.key(asking), asking.message) for asking in model.jobs()]


def test_a_newer_versions_instructions_change_nothing_for_people_or_models(tmp_path: Path, prompts: Path) -> None:
    (tmp_path / "said.jsonl").write_text("")
    tasks = [TASK, *OTHERS]
    study = study_of(tmp_path, *tasks, judges=[MODEL], wordings=["de"])
    draw_sample(study)
    rubric, asked = load_rubric(study), asked_of_model(study)
    begin_offering(CampaignRecords.open(study), ARGILLA, rubric)
    fix_rules(CampaignRecords.open(study))
    assert reworded_lines(study) == []
    newer_version(prompts)
    assert load_rubric(study) == rubric and "de" in rubric.guidelines
    assert asked_of_model(study) == asked and not any("New" in message for _, message in asked)
    status = read_status(Evidence.open(study), datetime.now(UTC))
    assert (status.warnings, status.rules_changed) == ((), False)
    (line,) = [one for one in status.notes if "prompts/human/" in one]
    assert "have changed for alike, search, classes; people and models" in line
    assert line.endswith("that the tasks were drawn with")


def test_tasks_that_were_offered_stay_and_others_are_drawn_with_the_newer_instructions(
    tmp_path: Path, prompts: Path
) -> None:
    study = study_of(tmp_path, TASK)
    draw_sample(study)
    reword(prompts / "sts.yaml")
    (line,) = reworded_lines(study)
    assert line.endswith(f"; to use the new ones, run `{study.command('annotation sample')}` again")
    assert load_rubric(study).questions[0].title["en"] == "How close are the two texts in meaning?"
    pairs = draw_sample(study)
    assert load_rubric(study).questions[0].title["en"] == "New How close are the two texts in meaning?"
    begin_offering(CampaignRecords.open(study), ARGILLA, load_rubric(study))
    reword(prompts / "sts.yaml")
    assert draw_sample(study) == pairs
    assert load_rubric(study).questions[0].title["en"] == "New How close are the two texts in meaning?"
    with pytest.raises(StudyError, match="in their file, by `wordings`.*; people were asked already"):
        read_tasks(study_of(tmp_path, TASK, wordings=["de"]))


def test_a_studys_own_instructions_and_languages_stay(tmp_path: Path, prompts: Path) -> None:
    own = tmp_path / "own.yaml"
    shutil.copy(prompts / "sts.yaml", own)
    shutil.copytree(prompts / "sts", tmp_path / "own")
    made = functools.partial(study_of, tmp_path, {**TASK, "instructions": "own.yaml"})
    study = made(wordings=["de"])
    draw_sample(study)
    begin_offering(CampaignRecords.open(study), ARGILLA, rubric := load_rubric(study))
    with pytest.raises(StudyError, match="in their file, by `wordings`.*; people were asked already"):
        read_tasks(made())
    newer_version(prompts)
    assert load_rubric(made(wordings=["de"])) == rubric
    reword(own)
    for ask in (read_tasks, load_rubric):
        with pytest.raises(StudyError, match="in their file, by `wordings`.*; people were asked already"):
            ask(study)


def test_offered_tasks_are_not_drawn_again_with_other_instructions_of_the_study(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    shutil.copy(PROMPTS / "human" / "sts.yaml", own)
    study = study_of(tmp_path, {**TASK, "instructions": "own.yaml"})
    draw_sample(study)
    begin_offering(CampaignRecords.open(study), ARGILLA, load_rubric(study))
    reword(own)
    with pytest.raises(StudyError, match="offered to people, but its settings, instructions or gold have changed"):
        draw_sample(study)


def test_records_that_kept_a_hash_alone_go_on_with_the_same_instructions(tmp_path: Path, prompts: Path) -> None:
    study = study_of(tmp_path, TASK)
    draw_sample(study)
    rubric, tasks = load_rubric(study), read_tasks(study)
    Manifest.of(study).write_models(TASKS, [one.model_copy(update={"words": TaskInstructions()}) for one in tasks])
    assert load_rubric(study) == rubric and read_tasks(study) == tasks
    reword(prompts / "sts.yaml")
    assert reworded_lines(study) == []
    with pytest.raises(StudyError, match=r"or with Plumbline.s version if an early one drew the task\); run"):
        load_rubric(study)
