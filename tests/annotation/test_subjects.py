"""Texts of a file as what raters judge: what is drawn, what they read of it, and what is refused in one line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from annotation.campaign_records import CampaignRecords
from annotation.comparison import comparison_text
from annotation.offering import begin_offering, refuse_other_prompts
from annotation.planning import Pricing
from annotation.preview import preview_html
from annotation.records import Member
from annotation.rubric import load_rubric
from annotation.sampling.sample import draw_sample, extend_sample
from annotation.statistics.summaries import Design
from annotation.status.status import read_status
from annotation.status.text import next_step
from annotation.verdicts.evidence import Evidence
from evaluation.scoring import evaluate
from generation.production import generate
from plumbline.commands import as_named
from plumbline.errors import DataError, PlumblineError, StudyError
from plumbline.fields import fields_of
from plumbline.records import Pair
from plumbline.store import read_frame, write_json
from plumbline.study import ROOT, Study, load_study
from tests.annotation.previews import words
from tests.annotation.subjects import CHAT, ask, rows, rubric, texts
from tests.commands import here


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """A study of texts, with `asked` for what is otherwise in the rubric."""

    def made(name: str = "mine", *, asked: dict[str, Any] | None = None, **changes: Any) -> Any:
        ask(monkeypatch, tmp_path, rubric(**(asked or {})))
        return texts(tmp_path, name, **changes)

    return made


def test_a_sample_has_each_text_once_in_a_queue_that_all_groups_share(make: Callable[..., Any]) -> None:
    study = make()
    pairs = draw_sample(study)
    assert draw_sample(study) == pairs == CampaignRecords.open(study).pairs
    assert [(one.name, one.kind) for one in fields_of(pairs[0])] == [("text", "text"), ("talk", "chat")]
    assert {(one.axis, one.pool, one.queue, one.dataset) for one in pairs} == {
        ("texts", "human", "texts", "mine"),
        ("texts", "machine", "texts", "mine"),
    }
    assert {one.original for one in pairs} == {""} and not any(one.expected for one in pairs)
    drawn = {fields_of(one)[0].text for one in pairs}
    assert drawn == {row["prompt"] for row in rows() if "right" not in row}
    # 18 pairs are two batches in English and one in German: a known item for each that English has, repeats for all.
    assert Counter(one.control for one in CampaignRecords.open(study).controls) == {"known": 2, "repeat": 3}


def test_what_stands_beside_a_text_makes_it_another_item(make: Callable[..., Any]) -> None:
    other = [{"role": "user", "content": "Something else"}]
    own = [
        {"prompt": "Find the river", "talk": talk, "from": group, "language": "en"}
        for group in ("human", "machine")
        for talk in (CHAT, CHAT, other)
    ]
    study = make(own=[*own, {"prompt": "find the River!", "talk": CHAT, "from": "human"}], subject={"expected": {}})
    assert Counter(one.transformation for one in draw_sample(study)) == {"human": 2, "machine": 2}


def test_a_sample_is_extended_and_known_items_are_not_shown_again(make: Callable[..., Any]) -> None:
    study = make(sample={"pairs": 3, "batch": 9})
    first = draw_sample(study)
    before = {one.pair_id for one in CampaignRecords.open(study).controls if one.control == "known"}
    begin_offering(CampaignRecords.open(study), "argilla", load_rubric(study))
    larger = make(sample={"pairs": 6, "batch": 9})
    assert extend_sample(larger, "more").pairs == 6
    pairs = CampaignRecords.open(larger).pairs
    assert pairs[:6] == first and Counter(one.transformation for one in pairs) == {"human": 6, "machine": 6}
    known = [one.pair_id for one in CampaignRecords.open(larger).controls if one.control == "known"]
    assert len(known) == len(set(known)) == 2 and before < set(known)


def test_a_known_text_is_never_in_the_sample(make: Callable[..., Any]) -> None:
    """Rows 0 and 1 are known items too, one in other capitals; in another language, or beside another talk, none is."""
    again = [{**rows()[0], "right": "acceptable"}, {**rows()[1], "from": "machine", "right": "acceptable"}]
    again[0]["prompt"] = str(again[0]["prompt"]).upper()
    apart = [{**rows()[2], "language": "de"}, {**rows()[4], "talk": CHAT[:1]}]
    own = [*rows(), *again, *({**one, "right": "acceptable"} for one in apart)]
    study = make(own=own)
    pairs = draw_sample(study)
    assert {fields_of(one)[0].text for one in pairs} == {one["prompt"] for one in rows()[2:] if "right" not in one}
    assert [(one.transformation, one.language, one.known) for one in CampaignRecords.open(study).drawn_from] == [
        ("human", "de", 0), ("human", "en", 1), ("machine", "en", 1)
    ]  # fmt: skip
    said = here("annotation", "sample", "--study", str(study.file), "--exports", str(study.folder.parent)).stdout
    assert "human, en: 1 text is also a known item, and is not in the sample" in said
    machines = [{**one, "right": "acceptable"} for one in rows() if one["from"] == "machine"]
    with pytest.raises(DataError, match="every text of machine is also a known item; add others, or remove machine"):
        draw_sample(make("none", own=[*rows(), *machines]))


def test_a_text_that_was_drawn_is_no_known_item_later(make: Callable[..., Any]) -> None:
    study = make(sample={"pairs": 3, "batch": 9})
    first = draw_sample(study)
    begin_offering(CampaignRecords.open(study), "argilla", load_rubric(study))
    texts_of_first = {fields_of(one)[0].text for one in first}
    later = [{**one, "right": "acceptable"} for one in rows() if one["prompt"] in texts_of_first]
    larger = make(own=[*later, *rows()], sample={"pairs": 6, "batch": 9, "controls": {"known": 9}})
    extend_sample(larger, "more")
    known = [one for one in CampaignRecords.open(larger).controls if one.control == "known"]
    assert len(known) == 4 and texts_of_first.isdisjoint(fields_of(one)[0].text for one in known)


def test_a_plan_counts_what_a_queue_of_all_groups_is_asked(make: Callable[..., Any]) -> None:
    """18 texts in two batches of 9, with a repeat each; a known item each where there are some; nothing of pairs."""
    for changes, shown in (({}, 18 + 4), ({"subject": {"expected": {}}}, 18 + 2)):
        study = make(**changes)
        asked = load_rubric(study)
        assert Pricing.of(study, asked, Design.of(study, asked)).price(9, 2).pairs == shown


def test_labels_are_not_compared_and_the_refusal_says_what_is_there(make: Callable[..., Any]) -> None:
    study = make()
    draw_sample(study)
    with pytest.raises(StudyError, match=r"orders and agreement \(`plumbline .*report --study"):
        comparison_text(study)


def test_a_sample_whose_texts_are_gone_is_refused(make: Callable[..., Any], tmp_path: Path) -> None:
    study = make()
    pairs = draw_sample(study)
    refuse_other_prompts(CampaignRecords.open(study), [*pairs, *CampaignRecords.open(study).controls])
    lines = (tmp_path / "mine.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "mine.jsonl").write_text("".join([*lines[1:], json.dumps({**rows()[0], "prompt": "New"}) + "\n"]))
    with pytest.raises(DataError, match=r"no longer has 1 text of the sample, such as 'Find the amber"):
        refuse_other_prompts(CampaignRecords.open(study), pairs)


def test_nothing_is_transformed_or_scored(make: Callable[..., Any]) -> None:
    study = make()
    with pytest.raises(StudyError, match="a study with the subject texts transforms nothing; run `plumbline sample"):
        generate(study)
    with pytest.raises(StudyError, match="studies with the subject texts score no models; their results are the"):
        evaluate(study)


def test_a_preview_shows_the_fields_in_the_language_of_the_texts(make: Callable[..., Any]) -> None:
    study = make()
    draw_sample(study)
    html = words(preview_html(CampaignRecords.open(study), 1))
    assert "Wo ist مرحبا?" in html and "Gespräch" in html and "<b>Hier</b>" in html
    assert not any(word in html for word in ("human", "machine"))


def test_status_knows_who_is_asked_what_in_a_queue_that_groups_share(make: Callable[..., Any]) -> None:
    study = make()
    draw_sample(study)
    asked = [Member(rater_id=name, dataset="mine-texts-EN", simulated=False) for name in ("rater-1", "rater-2")]
    write_json(study.folder / "members.json", asked)
    raters = read_status(Evidence.open(study), datetime.now(UTC)).raters.set_index("rater_id")
    english = sum(
        one.language == "en" for one in [*CampaignRecords.open(study).pairs, *CampaignRecords.open(study).controls]
    )
    assert raters["open"].to_dict() == {"rater-1": english, "rater-2": english}


def test_a_question_for_all_texts_is_asked_of_each_group(make: Callable[..., Any]) -> None:
    content = rubric()
    content["questions"][0]["pools"] = ["texts"]
    study = make(asked={"questions": content["questions"]})
    assert Design.of(study, load_rubric(study)).needed("human") == ("label",)


def test_status_says_what_comes_first(tmp_path: Path) -> None:
    for name, step in (("texts", "annotation sample"), ("instructions", "generation.instructions")):
        study = load_study(ROOT / "studies" / f"{name}.yaml", tmp_path)
        assert next_step(read_status(Evidence.open(study), datetime.now(UTC)), "--study S") == as_named(
            f"python -m {step} --study S"
        )


def test_the_sample_study_of_texts_is_drawn(tmp_path: Path) -> None:
    study = load_study(ROOT / "studies" / "texts.yaml", tmp_path)
    assert Counter(one.transformation for one in draw_sample(study)) == {"brief": 12, "described": 12}


FIRST = rows()[0]
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("a column that is not there", {"subject": {"context": {"talk": "chat"}}}, "no column 'chat'; "),
    ("a group's name", {"subject": {"groups": ["A B"]}}, "subject.groups.0: must be a lower-case letter"),
    ("no list of groups", {"subject": {"groups": "human"}}, "subject.groups: is not a list; write one, such as [a, b]"),
    ("a group twice", {"subject": {"groups": ["human", "human"]}}, "subject: group 'human' appears twice"),
    ("a group of no row", {"subject": {"groups": ["human", "machine", "third"]}}, "has no text of the group 'third'"),
    ("a row of no group", {"own": [*rows(), {**FIRST, "from": "robot"}]}, "row 23, field 'from': no group is called"),
    ("several groups, no column", {"subject": {"group": ""}}, "subject: has several groups; name the column"),
    ("the text twice", {"subject": {"context": {"text": "talk"}}}, "context: 'text' is the field of the text itself"),
    ("a column twice", {"subject": {"context": {"talk": "prompt"}}}, "subject: column 'prompt' appears twice"),
    ("an unknown language", {"subject": {"language": "klingon"}}, "subject.language: "),
    ("a row's language", {"own": [*rows(), {**FIRST, "language": "xx"}]}, "row 23, field 'language': "),
    ("a field that no item has", {"asked": {"fields": [*rubric()["fields"], {"name": "note", "title": {"en": "N"}}]}},
     "shows a field 'note' that the subject does not have"),
    ("a field that is not shown", {"asked": {"fields": rubric()["fields"][:1]}}, "does not show the field 'talk'"),
    ("a field twice", {"asked": {"fields": rubric()["fields"][:1] * 2}}, "fields: field 'text' appears twice"),
    ("no text", {"own": [*rows(), {**FIRST, "prompt": "  "}]}, "row 23, field 'prompt' has no text"),
    ("a number", {"own": [*rows(), {**FIRST, "prompt": 3}]}, "row 23, field 'prompt' has no text"),
    ("no chat", {"own": [*rows(), {**FIRST, "talk": ["Hello"]}]}, "row 23, field 'talk' message 1 is not an object"),
    ("no JSON", {"own": [*rows(), {**FIRST, "talk": "Hello"}]}, "row 23, field 'talk' is not a chat; give a"),
    ("an empty file", {"own": []}, "has no rows"),
    ("transformations", {"transformations": ["expansion"]}, "transformations: does not apply to subject texts"),
    ("a generator", {"generator": {"kind": "none"}}, "generator: does not apply to subject texts"),
    ("error types", {"sample": {"pairs": 9, "without": ["empty"]}}, "sample.without: only outputs of transformations"),
    ("data sets", {"datasets": [{"name": "a", "task": "sts", "path": "a.csv", "language": "en"}]}, "datasets: does"),
    ("another kind", {"subject": {"kind": "poems"}}, "subject: "),
    ("answers to no question", {"subject": {"expected": {"labl": "right"}}}, "has no question 'labl', which subject"),
    ("no such answer", {"own": [*rows(), {**FIRST, "right": "good"}]}, "row 23, field 'right': the question has no"),
    ("number answer", {"own": [*rows(), {**FIRST, "right": 1.5}]}, "row 23, field 'right': the question has no"),
    ("two right answers", {"own": [*rows(), {**FIRST, "right": "acceptable"}, {**FIRST, "right": "unnatural"}]},
     "row 24: the same text has other right answers in an earlier row"),
    ("a rubric of pairs", {"rubric": "hteb", "acceptance": {"min_pairs": 3}}, "does not define the pool 'texts'"),
    ("a field for some groups", {"asked": {"fields": [{**one, "pools": ["human"]} for one in rubric()["fields"]]}},
     "raters must not learn the groups"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "changes", "said"), BAD, ids=[one[0] for one in BAD])
def test_bad_input_is_refused_in_one_line(make: Callable[..., Any], what: str, changes: Any, said: str) -> None:
    with pytest.raises(PlumblineError) as refused:
        draw_sample(make(**changes))
    assert said in str(refused.value) and "\n" not in str(refused.value) and "more)" not in str(refused.value)


def test_a_rubric_of_texts_is_refused_for_pairs(make: Callable[..., Any], tmp_path: Path) -> None:
    make()
    study = load_study(ROOT / "studies" / "demo.yaml", tmp_path).model_copy(update={"rubric": "instructions"})
    with pytest.raises(StudyError, match="lists another subject's fields, but the study judges pairs"):
        load_rubric(study)


def items(folder: Path, **changes: Any) -> Study:
    """The sample study of items with changes, beside the sample study's data."""
    content = yaml.safe_load((ROOT / "studies" / "items.yaml").read_text(encoding="utf-8")) | changes
    for one in content["datasets"]:
        one["path"] = str(ROOT / "studies" / one["path"])
    file = folder / "items.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return load_study(file, folder / "exports")


STS = {"name": "sample_sts", "task": "sts", "path": "demo/pairs.csv", "language": "en"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"datasets": [{**STS, "name": "STS12"}]}, "datasets: 'STS12': if the subject is items, a data set's name"),
        (
            {"datasets": [{**STS, "task": "clustering", "path": "demo/requests.csv", "columns": {"label": "intent"}}]},
            "does not define the pool 'items', which the study's subject needs",
        ),
        (
            {"datasets": [{**STS, "name": "sts", "task": "classification", "path": "demo/requests.csv",
                           "columns": {"label": "intent"}}]},
            "shows the field 'sentence1' (text), but items of 'sts' have text (text)",
        ),
        ({"subject": {"kind": "items", "candidates": 1}}, "subject.candidates: Input should be greater than"),
        ({"datasets": []}, "datasets: Tuple should have at least 1 item"),
    ],
)  # fmt: skip
def test_items_that_cannot_be_shown_are_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PlumblineError) as refused:
        draw_sample(items(tmp_path, **changes))
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_gold_is_in_no_record_of_items(tmp_path: Path) -> None:
    study = items(tmp_path)
    draw_sample(study)
    frame = read_frame(study.folder / "pairs.parquet", Pair, "")
    assert {name for row in frame["fields"] for name in json.loads(row)} == {
        "sentence1", "sentence2", "query", "candidates",
    }  # fmt: skip
    assert (frame["expected"] == "").all() and (frame["generator_hash"] != "").all()
