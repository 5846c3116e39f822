"""Language models at people's tasks: what they are asked, how answers are read, and that nothing is asked twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation.campaign.records import CampaignRecords
from annotation.human.forms import form_of
from annotation.human.records import MODEL_ANSWERS, HumanAnswer
from annotation.human.simulated import read_items
from annotation.judges.annotator_messages import (
    AnnotatorMessage,
    AnswerForm,
    EachForm,
    GroupsForm,
    OrderForm,
    SeveralForm,
    read_answer,
    spellings,
)
from annotation.judges.annotators import annotate, annotators, lines_of
from annotation.judges.commands import run_judges
from annotation.sampling.sample import draw_sample
from plumbline.cli import StudyOptions
from plumbline.errors import ServiceError
from plumbline.manifest import Manifest
from plumbline.models.chat import Completion
from plumbline.study import ROOT, Study, load_study
from tests.annotation.human import recorded_rule
from tests.annotation.human.studies import study_of
from tests.annotation.human.test_simulated import task_of
from tests.annotation.judgements import pair
from tests.stubs import Asked, ChatStub, Reply, says

WORDS = {"l1": "Tea", "l2": "the sea", "none": "None of them", "cannot_tell": "I cannot tell"}
POINTS = {"g0": "Of no use", "g1": "●", "g2": "●● Some", "g3": "Just it", "cannot_tell": "I cannot tell"}
GROUPS = {"c1": "Group 1", "c2": "Group 2", "cannot_tell": "I cannot tell"}


def asking(form: type[AnswerForm], how: str, labels: dict[str, str], n: int = 1, **more: Any) -> AnnotatorMessage:
    task = task_of(how, **more)
    number = n if how == "cluster" else 1
    pairs = tuple(pair(k).model_copy(update={"pair_id": f"p{k}"}) for k in range(number))
    names = tuple(map(str, range(number)))
    return AnnotatorMessage(task, pairs, names, (), form(spellings(form_of(task), labels), n), "", lambda: "")


ONE = asking(AnswerForm, "label", WORDS)
SEVERAL = asking(SeveralForm, "labels", WORDS)
EACH = asking(EachForm, "graded", POINTS, 3, candidates=3)
ORDER = asking(OrderForm, "ranked", {"cannot_tell": "I cannot tell"}, 3, candidates=3)
CLUSTERS = asking(GroupsForm, "cluster", GROUPS, 2, clusters_told=2)
CHOICE = asking(AnswerForm, "choice", {"d1": "Number 1", "d2": "Number 2", "none": "None of them"})


@pytest.mark.parametrize(
    ("what", "text", "said"),
    [
        (ONE, '{"answer": "the sea"}', {"t": "l2"}),
        (ONE, "```json\n{\"answer\": \"The  Sea.\"}\n```", {"t": "l2"}),
        (ONE, "<think>Tea?</think> Tea", {"t": "l1"}),
        (ONE, "I cannot tell", {"t": "cannot_tell"}),
        (SEVERAL, '{"answer": ["the sea", "Tea", "Tea"]}', {"t": "l1, l2"}),
        (SEVERAL, '["None of them"]', {"t": "none"}),
        (EACH, '{"answer": {"1": 3, "2": "Of no use", "3": "2 = Some"}}', {"t": "g3", "t-2": "g0", "t-3": "g2"}),
        (EACH, "[1, 0.0, 3]", {"t": "g1", "t-2": "g0", "t-3": "g3"}),
        (EACH, '{"answer": "I cannot tell"}', dict.fromkeys(("t", "t-2", "t-3"), "cannot_tell")),
        (ORDER, '{"answer": [3, [1, 2]]}', {"t": "yes", "t-order": "d3 > d1 = d2"}),
        (ORDER, "I cannot tell", {"t": "cannot_tell"}),
        (CHOICE, "2", {"t": "d2"}),
        (CHOICE, "None of them", {"t": "none"}),
    ],
)  # fmt: skip
def test_an_answer_is_read_as_a_raters(what: AnnotatorMessage, text: str, said: dict[str, str]) -> None:
    assert read_answer(Completion(text), what) == ({"p0": said}, "")


def test_an_answer_about_groups_is_one_for_each_text() -> None:
    found, _ = read_answer(Completion('{"answer": {"1": 2, "2": "Group 1"}}'), CLUSTERS)
    assert found == {"p0": {"t": "c2"}, "p1": {"t": "c1"}}


@pytest.mark.parametrize(
    ("what", "text", "why"),
    [
        (ONE, "It is about tea.", "not among the answers: 'It is about tea.'"),
        (ONE, '{"answer": "Tea"} because of the cup', "not among the answers"),
        (ONE, '{"answer": "Tea", "sure": 0.3}', "expected one answer"),
        (ONE, "", "an empty answer"),
        (SEVERAL, "[]", "an empty list"),
        (SEVERAL, '["None of them", "Tea"]', "none together with labels"),
        (EACH, "[3, 0]", "no answer for number '3'"),
        (EACH, "[3, 0, 1, 2]", "an answer for unknown number '4'"),
        (EACH, "[3, 0, 1.5]", "not among the answers: '1.5'"),  # never rounded
        (EACH, "2", "expected 3 answers, found '2'"),
        (ORDER, '{"answer": [3, 1, 1]}', "not an order of the numbers 1 to 3"),
    ],
)
def test_what_is_no_answer_says_why(what: AnnotatorMessage, text: str, why: str) -> None:
    found, reason = read_answer(Completion(text), what)
    assert found == {} and reason.startswith(why)


def test_words_that_mean_two_answers_are_none() -> None:
    found = spellings(form_of(task_of("score")), {"p1": "2", "p2": "Much"})
    assert found == {"1": "p1", "1 = 2": "p1", "Much": "p2", "2 = Much": "p2"}  # "2" is words of one, number of another


def model(url: str, called: str = "m", **more: Any) -> dict[str, Any]:
    engine = {"kind": "openai", "model": called, "base_url": url}
    return {"name": "one", "engine": engine, **more}


def asked_study(folder: Path, *models: dict[str, Any], relevance: str = "binary") -> Study:
    tasks = [
        {"dataset": "classes", "items": 4, "raters": 2},
        {"dataset": "groups", "items": 8, "raters": 2},
        {"dataset": "search", "items": 3, "raters": 2, "candidates": 4, "relevance": relevance},
    ]
    study = study_of(folder, *tasks, judges=list(models))
    draw_sample(study)
    return study


def reply(asked: Asked) -> Reply:
    """Groups and labels by the last word, a label not at once; orders as they are shown."""
    message = asked.body["messages"][-1]["content"]
    words = re.findall(r"Number \d+ is about (\w+)\.", message)
    if not words:
        return says('{"answer": [1, 2, 3, 4]}')
    if len(words) > 1:
        numbers = {word: n for n, word in enumerate(dict.fromkeys(words), 1)}
        return says(json.dumps({"answer": {str(n): numbers[word] for n, word in enumerate(words, 1)}}))
    unwilling = asked.body["model"] == "unwilling" or asked.body["temperature"] < 0.5
    return says("I would say tea." if unwilling else words[0])


def test_models_do_what_people_do_and_are_asked_once(tmp_path: Path) -> None:
    with ChatStub(reply) as stub:
        unwilling = model(stub.url, "unwilling", name="short", questions=["classes"])
        study = asked_study(tmp_path, model(stub.url), unwilling, relevance="ranked")
        first, second = annotate(study)
        number = len(stub.asked)
        again = annotate(study)
        assert len(stub.asked) == number  # nothing is left
        annotate(study, ["short"], again=True)
        assert len(stub.asked) > number
    assert first.counts == {"ok": 8, "reused": 0}  # 4 texts at the second attempt, all groups at once, 3 orders
    assert second.counts == {"failed": 4, "reused": 0}  # and no guess
    assert [one.counts for one in again] == [{"reused": 8}, {"reused": 4}]
    answers = Manifest.of(study).frame(MODEL_ANSWERS, HumanAnswer, "judge run")
    assert set(answers["rater_id"]) == {"one"}
    assert answers.groupby("task").size().to_dict() == {"classes": 4, "groups": 8, "search": 12}
    pairs = {pair.pair_id: pair for pair in CampaignRecords(study).pairs}
    words = {(item.task, item.item): pairs[item.pair_id].fields for item in read_items(study)}
    for row in answers[answers["task"] == "classes"].itertuples():
        assert f"about {row.label}." in words["classes", str(row.item)]
    groups: dict[str, set[str]] = {}
    for row in answers[answers["task"] == "groups"].itertuples():
        groups.setdefault(str(row.label), set()).add(words["groups", str(row.item)].rsplit(" ", 1)[-1])
    assert len(groups) > 1 and all(len(last) == 1 for last in groups.values())
    orders = answers[answers["task"] == "search"].sort_values(["item", "place"])
    assert orders["value"].tolist() == [4.0, 3.0, 2.0, 1.0] * 3  # the first is worth most
    one, short = annotators(study)
    assert list(lines_of(one, read_items(study))) == []
    (line,) = lines_of(short, read_items(study))
    assert line == "classes (label): no usable answer 4 times (not among the answers: 'I would say tea.')"


def test_a_run_without_any_usable_answer_fails(tmp_path: Path) -> None:
    with ChatStub(reply) as stub:
        asked_study(tmp_path, model(stub.url, "unwilling", questions=["classes"]))
        with pytest.raises(ServiceError, match=r"^none of 4 answers is usable; the reasons are above$"):
            run_judges(options=StudyOptions(str(tmp_path / "people.yaml"), str(tmp_path / "exports")))


def test_a_model_reads_what_people_read_and_never_what_is_right(tmp_path: Path) -> None:
    study = asked_study(tmp_path, model("http://127.0.0.1:9/v1"))
    (one,) = annotators(study)
    asked = list(one.jobs())
    assert len(asked) == one.wanted == 4 + 1 + 3
    for each in asked:
        assert each.message.startswith("You do a task as the people of a study do it.")
        for shown in each.pairs:
            for value in json.loads(shown.fields).values():
                for text in [value] if isinstance(value, str) else value:
                    assert text in each.message
    (groups,) = (each for each in asked if each.task.task == "groups")
    # Data sets may have their labels in order: texts stand in that of a hash.
    assert [pair.pair_id for pair in groups.pairs] == sorted(pair.pair_id for pair in groups.pairs)
    hashes = {each.task.task: each.prompt_hash for each in asked}
    assert len(set(hashes.values())) == 3
    (search,) = {each.form.n for each in asked if each.task.task == "search"}
    assert search == 4


def test_the_sample_studys_model_is_a_recording_of_its_rule(tmp_path: Path) -> None:
    study = load_study(ROOT / "studies" / "human.yaml", tmp_path)
    draw_sample(study)
    recording = (ROOT / "studies" / "demo" / "annotators" / "rule.jsonl").read_text(encoding="utf-8")
    assert recording.splitlines() == list(recorded_rule.lines(study))
    (done,) = annotate(study)
    assert "57 answers, 0 failed, 0 unanswered, 0 already stored; recorded" in done.line("answers")
    answers = Manifest.of(study).frame(MODEL_ANSWERS, HumanAnswer, "judge run")
    assert set(answers["rater_id"]) == {"rule (recorded)"}
    assert answers.groupby("task")["item"].nunique().to_dict() == Counter(item.task for item in read_items(study))
    assert not answers["abstained"].any() and pd.isna(answers["seconds"]).all()
