"""Which items people do, of files and of mteb, and that nothing of what is right comes before them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from annotation.argilla.dataset import record_of
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import LIMIT, load_rubric
from annotation.campaign.subjects import shown_items
from annotation.human.records import ANSWERS, MODEL_ANSWERS, HumanAnswer
from annotation.human.simulated import read_items
from annotation.human.tasks import InstructionFiles, prepare, read_tasks, task_lines
from annotation.human.types import METRICS, TASK_KINDS, TaskSource
from annotation.questions.wordings import addressed_lines
from annotation.sampling.sample import draw_sample, sample_settings
from annotation.status.progress import stages_of
from evaluation.human.sampled import sampled
from evaluation.tasks import protocols
from generation.datasets.scored import ScoredItem, label_words, scored_items
from plumbline.errors import DataError, PlumblineError, StudyError
from plumbline.fields import fields_of
from plumbline.manifest import Manifest, stage
from plumbline.records import Pair
from plumbline.store import write_table
from plumbline.study import load_study
from plumbline.study.datasets import DatasetSpec
from plumbline.study.human import HumanSubject, HumanTaskSpec
from plumbline.study.subject import VerdictUnit
from tests.annotation.human.studies import CLASSES, PAIRS, SEARCH, WORDS, study_of
from tests.evaluation.human.rehearsed import write_rehearsed
from tests.mteb_site import REQUESTS, site

EVERY = [
    {"dataset": "classes", "items": 8, "balance": "label"},
    {"dataset": "alike", "items": 6},
    {"dataset": "near", "items": 6},
    {"dataset": "same", "items": 6},
    {"dataset": "groups", "items": 8, "balance": "label"},
    {"dataset": "search", "items": 4, "candidates": 5},
    {"dataset": "marks", "items": 4, "candidates": 3, "relevance": "binary"},
    {"dataset": "order", "items": 4, "candidates": 4, "relevance": "ranked"},
    {"dataset": "long", "items": 2, "candidates": 12},
    {"dataset": "several", "items": 6},
    {"dataset": "bitext", "items": 5, "candidates": 3},
    {"dataset": "summaries", "items": 7, "scale": [1, 5]},
]


def test_every_type_is_drawn_and_worded(tmp_path: Path) -> None:
    study = study_of(tmp_path, *EVERY)
    pairs, rubric = draw_sample(study), load_rubric(study)
    tasks = {one.task: one for one in read_tasks(study)}
    records = Counter(pair.transformation for pair in pairs)
    # Of summaries whole texts: two of three each, and a third would make nine.
    assert records == {str(task["dataset"]): task["items"] for task in EVERY} | {"long": 24, "summaries": 6}
    assert tasks["groups"].clusters_told == 4
    assert tasks["several"].labels == ("bee", "oak", "sea", "tea") and tasks["alike"].scale == (0, 1, 2, 3, 4, 5)
    for name in tasks:
        asked = rubric.asked(name)
        assert asked[0].name == name
        for question, _ in rubric.asked_questions(name):
            assert len(rubric.description(name, question, "en")) <= LIMIT
            for place, words in enumerate(question.labels.values(), 1):  # a button's number is its key
                assert not words["en"][0].isdigit() or words["en"].split()[0] == str(place), (name, words)
        shown = [one.name for one in rubric.fields.of(name)]
        own = [[field.name for field in fields_of(pair)] for pair in pairs if pair.pool == name]
        assert own == [shown] * records[name]
    assert {name: protocols.METRICS[name] for name in METRICS} == {**METRICS, "bitext_mining": "f1"}
    for one in read_items(study):
        task = tasks[one.task]
        assert len(one.shown) == task.candidates
        assert len(one.records) in (1, task.candidates)
    lines = task_lines(read_tasks(study), read_items(study))
    assert any("12 candidates each, always with a right one" in line for line in lines)


def test_a_balanced_draw_has_as_many_of_each_label_and_follows_its_seed(tmp_path: Path) -> None:
    gold = {str(row): one["label"] for row, one in enumerate(one for one in CLASSES if one["split"] == "test")}
    drawn = []
    for seed in (1, 1, 2):
        study = study_of(tmp_path, {"dataset": "classes", "items": 12, "balance": "label"}, sample={"seed": seed})
        draw_sample(study)
        drawn.append([one.item for one in read_items(study)])
        assert Counter(gold[item] for item in drawn[-1]) == dict.fromkeys(WORDS, 3)
    assert drawn[0] == drawn[1] != drawn[2]


def test_what_people_see_is_the_same_whatever_is_right(tmp_path: Path) -> None:
    """With every other label, score and mark the records are the same, byte by byte; the hash of the content is not."""
    other = {
        "classes": [{**row, "label": WORDS[(WORDS.index(str(row["label"])) + 1) % 4]} for row in CLASSES],
        "alike": [{**row, "score": 5 - int(str(row["score"]))} for row in PAIRS],
        "same": [{**row, "label": 1 - int(str(row["label"]))} for row in PAIRS],
        "search": [
            {**row, "positive": row["negative"][:1], "negative": [*row["positive"], *row["negative"][1:]]}
            for row in SEARCH
        ],
    }
    tasks = [{"dataset": name, "items": 4} for name in other]
    seen, hashes = [], []
    for data in (None, other):
        study = study_of(tmp_path, *tasks, data=data)
        draw_sample(study)
        pairs = sorted(CampaignRecords(study).pairs, key=lambda pair: pair.pair_id)
        seen.append([json.dumps(record_of(pair, {}), default=str) for pair in pairs])
        hashes.append([one.content_hash for one in read_tasks(study)])
    searches = [{one for one in own if "Where is" in one} for own in seen]
    assert [one for one in seen[0] if one not in searches[0]] == [one for one in seen[1] if one not in searches[1]]
    texts = [
        {frozenset(json.loads(one)["fields"]["candidates"].replace("\n", " ").split()) for one in own}
        for own in searches
    ]
    assert texts[0] == texts[1]  # the same passages; their ids are of their places in the file, and so is their order
    assert all(one != two for one, two in zip(*hashes, strict=True))


def test_places_of_candidates_tell_nothing() -> None:
    spec = HumanTaskSpec.model_validate({"dataset": "x", "items": 300, "candidates": 7})
    found = {"candidates": {f"{k}": f"text {k}" for k in range(9)}, "relevant": frozenset({"0"})}
    searches = [ScoredItem("", str(i), "en", "en", {"query": f"q{i}"}, **found) for i in range(300)]  # type: ignore[arg-type]
    items = TASK_KINDS["retrieval"].draw(spec, searches, seed=3).items
    places = np.array([item.shown.index("0") + 1 for item in items])
    assert len(places) == 300
    assert abs(places.mean() - 4) < 4 * 2 / np.sqrt(300)  # uniform on 1 to 7: mean 4, standard deviation 2


TEA = [{**one, "label": "tea"} for one in CLASSES]
MANY = [{**CLASSES[0], "text": f"t{i}", "label": f"l{i}", "split": s} for i in range(500) for s in ("test", "train")]
GERMAN = [{**row, "negative": row["negative"][:2], "language": "de"} for row in SEARCH]


@pytest.mark.parametrize(
    ("name", "settings", "rows", "said"),
    [
        ("classes", {"items": 2}, [*TEA[:10], CLASSES[14]], "all 2 drawn items have the label 'tea'"),
        ("classes", {}, MANY, "500 labels are more than the 499 that Argilla shows"),
        ("classes", {}, [{**one, "label": i % 2} for i, one in enumerate(CLASSES)], "the label '0' is a number, which"),
        ("classes", {"labels": {"coffee": "Coffee"}}, None, "no label 'coffee'; the labels are bee, oak, sea, tea"),
        ("alike", {"scale": [1, 4]}, None, "gold scores go from 0 to 5, but people answer from 1 to 4"),
        ("summaries", {"scale": [1, 12]}, None, "at most 11 points"),
        ("alike", {"labels": {"1": "one"}}, None, "labels has no effect on sts, only on classification, multilabel"),
        ("alike", {"balance": "label"}, None, "sts has no labels to balance"),
        ("search", {"relevance": "ranked", "candidates": 12}, None, "ranked allows at most 10 candidates"),
        ("classes", {"candidates": 7}, None, "candidates has no effect on classification, only on reranking, retr"),
        ("search", {}, [{**row, "positive": [" "]} for row in SEARCH], "positive"),
        ("search", {"candidates": 6}, [*SEARCH, *GERMAN], "some languages have 6 candidates for each item, others 3;"),
    ],
)
def test_bad_input_is_one_line(name: str, settings: dict[str, Any], rows: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(PlumblineError) as caught:
        draw_sample(study_of(tmp_path, {"dataset": name, **settings}, data={name: rows} if rows else None))
    assert all(said in line for line in str(caught.value).splitlines())


def test_every_task_is_asked_in_german_where_the_study_says_so(tmp_path: Path) -> None:
    study = study_of(tmp_path, *EVERY, wordings=["de"])
    rubric = load_rubric(study)
    for question in rubric.questions:
        assert "de" in question.title and "{" not in question.title["de"]
        for name, words in question.labels.items():  # labels are the data set's, and points are marks alone
            assert "de" in words or name[0] == "l" or not any(map(str.isalpha, words["en"]))
    for name, pool in rubric.pools.items():
        assert "de" in pool.title and "de" in pool.asked and "{" not in pool.asked["de"]
        assert len(rubric.guidelines_for(name, "de")) < 10_000
    assert addressed_lines(study, rubric, [("de", "de")])  # nobody has checked them yet, and that is said


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


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["1st"], "the name of data set '1st' must begin with a letter from a to z"),
        (["Items"], "'items' is a reserved name; give data set 'Items' another `name` under `datasets`"),
        (["My set", "My.set"], "'my_set' is the name of two tasks; give data set 'My set' another `name` under"),
    ],
)
def test_a_task_has_the_name_of_its_data_set(names: list[str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        HumanSubject.model_validate({"tasks": [{"dataset": name} for name in names]})


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


def test_labels_that_are_numbers_have_the_words_of_the_data() -> None:
    dataset = site().tasks["Banking77Classification"]
    words, labels = label_words(dataset), Counter(one.labels[0] for one in scored_items(dataset))
    assert set(labels) <= set(words) or not all(label.isdigit() for label in labels)
    assert len(labels) == len({row["label"] for row in REQUESTS[12:]})
