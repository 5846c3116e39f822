"""What Argilla or raters cannot hold apart is refused before anybody is asked, and old answers leave with old items."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from annotation.campaign.records import CampaignRecords
from annotation.human.records import ANSWERS, MODEL_ANSWERS, HumanAnswer
from annotation.human.tasks import read_tasks
from annotation.sampling.sample import draw_sample, sample_settings
from annotation.status.progress import stages_of
from plumbline.errors import DataError, StudyError
from plumbline.manifest import Manifest, stage
from plumbline.records import Pair
from plumbline.store import write_table
from plumbline.study import load_study
from tests.annotation.human.studies import PAIRS, study_of
from tests.evaluation.human.rehearsed import write_rehearsed


def test_models_answers_to_items_that_stay_stay(tmp_path: Path) -> None:
    """More items, or another task's, leave those that are there; another scale makes them others."""
    kept = []
    for task in ({"items": 6}, {"items": 9}, {"items": 9, "scale": [0, 10]}):
        study = study_of(tmp_path, {"dataset": "alike", **task})
        if kept:
            draw_sample(study)
            there = (study.folder / MODEL_ANSWERS).exists()
            kept += [Manifest.of(study).frame(MODEL_ANSWERS, HumanAnswer, "x")] if there else []
            continue
        draw_sample(study)
        write_rehearsed(study)
        answers = Manifest.of(study).frame(ANSWERS, HumanAnswer, "x")
        Manifest.of(study).write_table(MODEL_ANSWERS, answers, HumanAnswer)
        kept.append(answers)
    assert len(kept[0]) == 6 * 2 and len(kept) == 2 and kept[1].equals(kept[0])


def test_a_model_that_is_named_later_leaves_the_sample_as_it_was_drawn(tmp_path: Path) -> None:
    study = study_of(tmp_path, {"dataset": "alike", "items": 6})
    with stage(study, "sample", settings=sample_settings(study.sample, study.judging)):
        draw_sample(study)
    (tmp_path / "said.jsonl").write_text("")
    model = {"name": "rule", "engine": {"kind": "recorded", "model": "none", "path": "said.jsonl"}}
    content = yaml.safe_load(study.file.read_text())
    content["judges"] = [model]
    study.file.write_text(yaml.safe_dump(content))
    later = load_study(study.file, study.folder.parent)
    records = CampaignRecords(later)
    assert stages_of(records, records.manifest, "")["sample"].state == "done"
    read_tasks(later)


def test_what_raters_see_is_sealed(tmp_path: Path) -> None:
    study = study_of(tmp_path, {"dataset": "alike", "items": 6})
    pairs = draw_sample(study)
    changed = [pair.model_copy(update={"fields": pair.fields.replace("One", "1")}) for pair in pairs]
    write_table(study.folder / "pairs.parquet", changed, Pair)
    with pytest.raises(DataError, match=r"pairs.parquet differs from what was written"):
        assert CampaignRecords(study).pairs


def test_people_are_asked_on_another_scale_than_gold_where_the_data_set_says_its_own(tmp_path: Path) -> None:
    """Ranks do not care. A simulated rater who never errs says gold on people's scale: .25 of 0 to 1 is 2 of 1 to 5."""
    rows = [{**row, "score": k % 5 / 4} for k, row in enumerate(PAIRS)]
    task = {"dataset": "alike", "items": 12, "scale": [1, 5]}
    with pytest.raises(StudyError, match=r"people answer from 1 to 5; write .* `gold_scale` of 'alike' under"):
        draw_sample(study_of(tmp_path, task, data={"alike": rows}))
    hundreds = [{**row, "score": 25 * k} for k, row in enumerate(PAIRS)]
    with pytest.raises(StudyError, match=r"from 1 to 5; declare the gold's scale"):  # no scale has 276 points
        draw_sample(study_of(tmp_path, task, data={"alike": hundreds}))
    study = study_of(tmp_path, task, data={"alike": rows})
    content = yaml.safe_load(study.file.read_text())
    content["datasets"][0]["gold_scale"] = [0, 1]
    content["raters"]["simulated"] = [{"name": "ada", "noise": 0.0, "bias": 0.0}]
    study.file.write_text(yaml.safe_dump(content))
    study = load_study(study.file, study.folder.parent)
    draw_sample(study)
    (drawn,) = read_tasks(study)
    assert (drawn.scale, drawn.gold_scale) == ((1, 2, 3, 4, 5), (0.0, 1.0))
    write_rehearsed(study)
    answers = Manifest.of(study).frame(ANSWERS, HumanAnswer, "x")
    assert [value - 1 for value in answers["value"]] == [4 * rows[int(item)]["score"] for item in answers["item"]]
    content["datasets"][0]["gold_scale"] = [0, 0.5]
    study.file.write_text(yaml.safe_dump(content))
    with pytest.raises(StudyError, match="gold_scale is 0 to 0.5; correct gold_scale"):
        draw_sample(load_study(study.file, study.folder.parent))
