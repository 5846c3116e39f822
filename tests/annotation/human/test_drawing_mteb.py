"""Tasks of mteb as tasks for people: what is drawn can be found again in mteb's own data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from annotation.campaign.subjects import shown_items
from annotation.human.tasks import InstructionFiles, prepare
from annotation.human.types import TASK_KINDS, TaskSource
from evaluation.human.sampled import sampled
from generation.datasets.scored import label_words, scored_items
from plumbline.study.datasets import DatasetSpec
from plumbline.study.human import HumanTaskSpec
from plumbline.study.subject import VerdictUnit
from tests.annotation.human.studies import study_of
from tests.mteb_site import REQUESTS, site

TASKS = [
    *("STSBenchmark", "Banking77Classification", "SprintDuplicateQuestions", "BiorxivClusteringS2S", "SciDocsRR"),
    *("AskUbuntuDupQuestions", "ArguAna", "SummEval", "PlscClusteringS2S.v2", "STS17", "SemRel2024", "BUCC.v2"),
    *("CEDRClassification",),
]
MORE: dict[str, dict[str, Any]] = {
    "Banking77Classification": {"balance": "label"},
    "BiorxivClusteringS2S": {"balance": "label"},
    "PlscClusteringS2S.v2": {"balance": "label"},
    "SprintDuplicateQuestions": {"balance": "label"},
    "SummEval": {"scale": [0, 5]},
    "CEDRClassification": {"labels": {str(number): f"feeling {number}" for number in range(5)}},
}


@pytest.mark.parametrize("name", TASKS)
def test_a_task_of_mtebs_is_drawn_and_found_again(name: str, tmp_path: Path) -> None:
    dataset = site().tasks[name]
    searched = "candidates" in TASK_KINDS[dataset.task].keys
    some = {"candidates": 3} if searched else {}
    spec = HumanTaskSpec.model_validate({"dataset": name, "items": 4, **some, **MORE.get(name, {})})
    study = study_of(tmp_path, {"dataset": "classes"})
    files = InstructionFiles.of(study)
    made = prepare(spec, TaskSource(DatasetSpec(mteb=name), dataset, files.general), files, study.sample.seed)
    items = [item for item, _ in shown_items(made, VerdictUnit(name=spec.name, axis="human"))]
    assert items and made.task.revision == dataset.revision
    texts = {(text.item, text.text) for text in dataset.texts() if text.split == "test"}
    drawn = {
        (item.scored.item, text)
        for item in made.drawn.items
        for field, text in item.scored.fields.items()
        if isinstance(text, str)
    }
    assert drawn <= texts
    found = sampled(dataset, made.task, items)
    assert sum(len(one.items) + sum(one.left_out.values()) for one in found) == len(items)
    if searched:
        assert all(set(item.candidates) & item.scored.relevant for item in made.drawn.items)


def test_labels_that_are_numbers_have_the_words_of_the_data() -> None:
    dataset = site().tasks["Banking77Classification"]
    words, labels = label_words(dataset), Counter(one.labels[0] for one in scored_items(dataset))
    assert set(labels) <= set(words) or not all(label.isdigit() for label in labels)
    assert len(labels) == len({row["label"] for row in REQUESTS[12:]})
