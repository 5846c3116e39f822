"""What Argilla or raters cannot hold apart is refused before anybody is asked, and old answers leave with old items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annotation.human.records import ANSWERS, MODEL_ANSWERS
from annotation.human.tasks import read_tasks
from annotation.sampling.sample import draw_sample
from plumbline.errors import StudyError
from tests.annotation.human.studies import CLASSES, PAIRS, SUMMARIES, study_of
from tests.evaluation.human.rehearsed import write_rehearsed

SEVERAL = [
    {"text": f"Text {i}.", "label": [f"label {i}"], "split": split} for i in range(499) for split in ("test", "train")
]
ALIKE = [{**row, "label": {"tea": "Bee", "sea": "bee "}.get(str(row["label"]), row["label"])} for row in CLASSES]
LIMITS: list[tuple[str, dict[str, Any], list[Any], str]] = [
    ("several", {}, SEVERAL, "499 labels are more than the 498 that Argilla shows"),  # and none, and cannot tell
    ("groups", {"items": 500}, [{"text": f"Text {i}.", "label": i} for i in range(500)], "500 clusters are more than"),
    ("classes", {"balance": "label"}, ALIKE, "raters cannot tell the labels 'Bee' and 'bee' apart; write other words"),
    ("alike", {}, [{**row, "score": 2} for row in PAIRS], "all 6 drawn items have the gold 2"),
    ("summaries", {}, [{**row, "relevance": [3, 3, 3]} for row in SUMMARIES], "all 6 drawn items have the gold 3"),
]


@pytest.mark.parametrize(("name", "more", "rows", "said"), LIMITS, ids=[one[0] for one in LIMITS])
def test_what_cannot_be_held_apart_is_refused(
    name: str, more: dict[str, Any], rows: list[Any], said: str, tmp_path: Path
) -> None:
    study = study_of(tmp_path, {"data": name, "items": 6, **more}, data={name: rows})
    with pytest.raises(StudyError) as caught:
        draw_sample(study)
    assert said in str(caught.value) and str(caught.value).startswith(f"human.tasks: {name!r}")
    assert not (study.folder / "human").exists()


def test_texts_that_are_alike_where_they_are_cut_are_one(tmp_path: Path) -> None:
    rows = [{**row, "text": f"{'ab'[i % 2]}{row['text']}"} for i, row in enumerate(CLASSES)]
    study = study_of(tmp_path, {"data": "classes", "items": 6, "cut": 1}, data={"classes": rows})
    assert len(draw_sample(study)) == 2
    assert read_tasks(study)[0].left_out == {"with the texts of another": 30}  # of 32 rows that are scored


def test_a_key_of_a_task_is_named_where_it_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"human\.tasks\.0\.items: Input should be"):
        study_of(tmp_path, {"data": "classes", "items": 1})


def test_answers_to_items_that_are_drawn_no_more_go_with_them(tmp_path: Path) -> None:
    """Items are called by their rows, so that answers to others would pass for answers to these."""
    study = study_of(tmp_path, {"data": "alike", "items": 6})
    draw_sample(study)
    write_rehearsed(study)
    (study.folder / MODEL_ANSWERS).write_bytes((study.folder / ANSWERS).read_bytes())
    draw_sample(study)
    assert (study.folder / ANSWERS).exists() and (study.folder / MODEL_ANSWERS).exists()
    rows = [{**row, "sentence1": f"Other {i}."} for i, row in enumerate(PAIRS)]
    draw_sample(study_of(tmp_path, {"data": "alike", "items": 6}, data={"alike": rows}))
    assert not (study.folder / ANSWERS).exists() and not (study.folder / MODEL_ANSWERS).exists()
