"""Sheets say what records and the study file say, leave the rest open, and import into HEDS's form."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from jinja2 import UndefinedError
from langcodes.data_dicts import LANGUAGE_ALPHA3

from annotation.campaign.records import CampaignRecords
from annotation.crowd.summary import CrowdSummary
from annotation.questions.label import SingleLabelQuestion
from annotation.questions.question import Question
from annotation.questions.ranking import RankingQuestion
from annotation.questions.rating import RatingQuestion, SliderQuestion
from annotation.report.material import CampaignMaterial
from annotation.report.sheets.facts import NOBODY, answered, answers_of, self_agreement, without_repeats
from annotation.report.sheets.writing import HedsAnswers, form, heds_answers, heds_json, write_sheets
from annotation.verdicts.acceptance import accept
from annotation.verdicts.tables import SIMULATED
from plumbline.errors import StudyError
from plumbline.exhibits.table import as_markdown
from plumbline.manifest import Manifest
from plumbline.records import Pair, Rating
from plumbline.scales import Continuous
from plumbline.study import ROOT, Study, load_study
from tests.annotation.judgements import START, pair, ratings
from tests.annotation.ratings.test_review import rate
from tests.annotation.report.test_methods import material, small
from tests.conftest import DEMO
from tests.shared import generate_once

PEOPLE = {
    "committee": "The board of the department, number 12.",
    "personal_data": "no",
    "special_category": "No, none occurs.",
    "impact": "no impact assessment carried out",
    "consent": "In writing; answers are published under pseudonyms.",
    "recruitment": "By a call in a lecture.",
    "payment": "yes, 15 euros an hour, above the minimum wage",
    "experts": "n/a: no domain",
    "acquainted": "yes",
    "researchers": "no",
    "characteristics": "Three students in Germany.",
    "conditions": "own place",
}


def text(study: Study, name: str) -> str:
    return (study.folder / "sheet" / name).read_text(encoding="utf-8")


def stored(study: Study) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(text(study, "heds.json"))
    return content


@pytest.fixture(scope="module")
def rated_once(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = load_study(DEMO, tmp_path_factory.mktemp("rated"))
    generate_once(study)
    rate(study)
    accept(study)
    write_sheets(study)
    return study


@pytest.fixture
def rated(rated_once: Study, tmp_path: Path) -> Callable[..., Study]:
    """A copy of the sample study as people rated it, with other parts in its file."""

    def with_parts(**parts: object) -> Study:
        shutil.copytree(rated_once.folder, tmp_path / "exports" / rated_once.name)
        study = load_study(DEMO, tmp_path / "exports")
        changed = study.model_copy(update=parts)
        changed._file, changed._exports, changed._options = study._file, study._exports, study._options
        return changed

    return with_parts


GOLDEN = Path(__file__).parent / "golden"
CHANGING = [  # what differs between machines and runs
    (r"\b[0-9a-f]{8}\b", "<hash>"),
    (r"fixed on [\d-]+ at [\d:]+ UTC", "fixed on <time>"),
    (r"Yes: Plumbline.*", "Yes: <versions>"),
    (r"\(\\`plumbline review .*?\\`\)", "(<command>)"),
]


@pytest.mark.parametrize("name", ["heds.md", "arr_checklist.md", "datasheet.md"])
def test_a_sheet_of_the_sample_study_is_as_it_was(rated_once: Study, name: str) -> None:
    """Where a change is meant, replace the file in `golden/` by what the failure shows."""
    written = text(rated_once, name)
    for pattern, word in CHANGING:
        written = re.sub(pattern, word, written)
    assert written == (GOLDEN / name).read_text(encoding="utf-8")


def test_simulated_ratings_are_called_so_in_every_sheet_and_nobody_is_described(rated: Callable[..., Study]) -> None:
    study = rated()
    ratings = CampaignRecords(study).ratings.assign(simulated=True)
    Manifest.of(study).write_table("ratings.parquet", ratings, Rating)
    accept(study)
    lines = write_sheets(study)
    for name in ("heds.md", "arr_checklist.md", "datasheet.md"):
        assert SIMULATED in text(study, name), name
    content = stored(study)
    identification = "heds-paper_and_resources-paper-experiment_identification"
    assert content[identification]["data"][""].startswith(SIMULATED)
    evaluators = "heds-sample_evaluators_design-evaluators-"
    assert content[f"{evaluators}number_of_evaluators"]["data"] == {"": "N/A"}
    assert content[f"{evaluators}recruitment_method"]["data"] == {"": NOBODY}
    for name, option in (("expertise", 3), ("payment", 4), ("known_to_authors", 3), ("are_authors", 3)):
        assert content[f"{evaluators}evaluators-{name}-{option}"]["data"] == {"": True}
        assert content[f"{evaluators}evaluators-{name}-other_text"]["data"] == {"": NOBODY}
    assert "heds-ethics-review_body" not in content, "whether a board was asked no record says"
    assert lines[1].strip() == "heds.md: 66 of 83 answered (66 from records, 0 by people); 17 open"


def test_what_people_answer_once_stands_in_every_sheet(rated: Callable[..., Study]) -> None:
    study = rated(ethics=PEOPLE)
    lines = write_sheets(study)
    assert not any("would answer more" in line for line in lines)
    content = stored(study)
    evaluators = "heds-sample_evaluators_design-evaluators-evaluators-"
    chosen = {key for key, value in content.items() if value["data"].get("") is True}
    assert {
        f"{evaluators}{name}" for name in ("expertise-3", "payment-1", "known_to_authors-1", "are_authors-2")
    } <= chosen
    assert {"heds-ethics-personal_data-1", "heds-ethics-special_category_data-1"} <= chosen
    assert content[f"{evaluators}expertise-other_text"]["data"][""] == PEOPLE["experts"]
    assert "heds-sample_evaluators_design-experimental_design-experimental_conditions-1" in chosen
    assert content["heds-ethics-review_body"]["data"] == {"": PEOPLE["committee"]}
    checklist, datasheet = text(study, "arr_checklist.md"), text(study, "datasheet.md")
    for key in ("committee", "consent", "recruitment", "characteristics"):
        assert PEOPLE[key] in checklist, key
    assert "OPEN" not in checklist and PEOPLE["payment"] in datasheet
    assert "another meaning, or nothing of what was asked" in checklist, "D1 has the whole instructions"


def test_json_is_as_the_form_stores_it(rated: Callable[..., Study]) -> None:
    """Elements, values, and words of chosen options; the form's script reads no other (index.html, loadDict)."""
    study = rated(ethics=PEOPLE)
    write_sheets(study)
    content, (fields, many) = stored(study), form()
    criteria = content.pop(many)
    assert criteria == {"data": {}, "control": {"quality": True, "fluency": False}, "text": {}}
    by_element = {field.id: field for field in fields.values()}
    for element, value in content.items():
        field = by_element.get(element) or by_element[re.sub(r"-(\d+|other_text)$", "", element)]
        assert set(value["data"]) == ({"quality", "fluency"} if field.by_criterion else {""}) or (
            field.options and set(value["data"]) <= {"quality", "fluency"}
        ), element
        assert value["control"] == {} and value["number"] == field.number
        if element == field.id or element.endswith("-other_text"):
            assert bool(field.options) == element.endswith("-other_text") and "text" not in value
            assert all(isinstance(words, str) and words.strip() for words in value["data"].values()), element
        else:
            option = field.options[int(element.rsplit("-", 1)[1]) - 1]
            assert set(value["data"].values()) == {True}
            assert value["text"] == dict.fromkeys(value["data"], option)
            explained = f"{field.id}-other_text" in content
            assert explained or int(element.rsplit("-", 1)[1]) not in field.explain, f"{element} asks for words"
    assert content["heds-sample_evaluators_design-evaluators-number_of_evaluators"]["data"][""].isdigit()


def test_the_form_has_its_41_questions_its_21_of_a_criterion_and_every_language_of_iso_639_1() -> None:
    fields, _ = form()
    assert sum(not field.by_criterion for field in fields.values()) == 41  # what the form counts as blank when it opens
    assert sum(field.by_criterion for field in fields.values()) == 21
    for field in fields.values():
        numbers = [int(option.partition(". ")[0]) for option in field.options]
        if "languages" not in field.id:
            assert numbers == list(range(1, len(numbers) + 1)), field.number
        else:
            assert numbers == [185, *range(1, 185)]
    withdrawn = {"bh", "in", "iw", "ji", "jw", "mo", "sh"}
    codes = {code for code in LANGUAGE_ALPHA3 if len(code) == 2} - withdrawn
    assert len(codes) == len(fields["2.4"].options) - 2


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({"comittee": "none"}, "ethics: unknown key 'comittee'; did you mean 'committee'"),
        ({"experts": "some"}, "ethics: experts: begin with `yes`, `no` or `n/a`, then add the details"),
        ({"committee": " "}, "ethics.committee: is empty; give it a value, or leave the key out"),
    ],
)
def test_an_answer_that_cannot_be_one_is_refused(
    variant: Callable[..., Study], answers: dict[str, str], says: str
) -> None:
    with pytest.raises(StudyError) as error:
        variant(name="demo", ethics=answers)
    assert says in str(error.value)


def test_tasks_that_people_do_have_a_report_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="sheets describe ratings"):
        write_sheets(load_study(ROOT / "studies" / "human.yaml", tmp_path))


def heds_of(material: CampaignMaterial) -> HedsAnswers:
    return heds_answers(material, answers_of(material))


def test_languages_tick_their_boxes_and_those_without_one_are_named(demo: Study) -> None:
    material = small(demo)
    pairs = [pair.model_copy(update={"language": "de", "output_language": "pcm"}) for pair in material.pairs]
    content = heds_json(heds_of(dataclasses.replace(material, pairs=pairs)))
    assert content["heds-system-input_languages-56"]["text"] == {"": "55. German"}
    assert content["heds-system-output_languages-185"]["text"] == {"": "184. Other (please describe)"}
    assert content["heds-system-output_languages-other_text"]["data"] == {"": "Nigerian Pidgin"}


def test_intra_annotator_agreement_is_that_of_repeats_that_came_late_enough(demo: Study) -> None:
    """Of nine answers, two lie between the first two of one text, and three between the others."""
    pairs = [pair(number) for number in range(7)]
    shown_again = [(place, {"control": "repeat", "repeats": pairs[place].pair_id}) for place in (0, 4)]
    repeats = [pairs[place].model_copy(update={"pair_id": f"again-{place}", **again}) for place, again in shown_again]
    times = {pairs[0].pair_id: 0, "again-0": 3, pairs[4].pair_id: 5, "again-4": 9}
    times |= {one.pair_id: place for one, place in zip([*pairs[1:4], *pairs[5:]], (1, 2, 6, 7, 8), strict=True)}

    def read(rows: list[Pair], quality: list[int]) -> pd.DataFrame:
        frame = ratings(rows, quality, [4] * len(rows), raters=1)
        return frame.assign(submitted_at=[START + timedelta(minutes=times[one]) for one in frame["pair_id"]])

    def found(again: list[int], **changed: object) -> str:
        parts = {"controls": repeats, "control_ratings": read(repeats, again)} | changed
        campaign = material(demo, pairs, read(pairs, [3, 3, 3, 3, 5, 3, 3]), **parts)
        return self_agreement(campaign, "quality") or without_repeats(campaign, "quality")

    same = found([1, 5])
    assert same.startswith("share of equal answers 1.00") and same.endswith("of 1 repeated answer")
    assert found([3, 1]).startswith("share of equal answers 0.00")
    together = read(pairs, [3] * 7).assign(submitted_at=START)
    late = found([3, 3], ratings=together, control_ratings=read(repeats, [3, 3]).assign(submitted_at=START))
    assert late.startswith("2 repeated answers, but less than a third")
    turns = dict.fromkeys([pairs[0].pair_id, pairs[4].pair_id], 0) | dict.fromkeys(["again-0", "again-4"], 2)
    bulks = [
        frame.assign(submitted_at=[START + timedelta(minutes=turns.get(one, 1)) for one in frame["pair_id"]])
        for frame in (together, read(repeats, [3, 1]))
    ]
    in_bulks = found([3, 1], ratings=bulks[0], control_ratings=bulks[1])
    assert in_bulks.endswith("of 2 repeated answers")
    batch = {"ratings": together.assign(batch="b"), "control_ratings": read(repeats, [3, 1]).assign(batch="b")}
    assert found([3, 1], **batch).endswith("of 2 repeated answers")
    assert found([3, 3], control_ratings=together.iloc[:0]) == "nobody answered a pair twice"
    assert found([3, 3], controls=[]).startswith("the queues are too short")


def test_ratings_of_files_leave_open_how_they_were_collected(demo: Study) -> None:
    material = small(demo)
    rated = material.counting.assign(source="ours.csv")
    from_file = dataclasses.replace(material, ratings=rated, counting=rated)
    answers = answers_of(from_file)
    assert {answers[name].by for name in ("interface", "shown", "training", "freedom", "feedback", "medium")} == {
        "open"
    }
    heds = heds_of(from_file)
    assert heds["4.3.5"]["quality"].by == "open" and heds["4.3.7"]["quality"].by == "records"
    imported = dataclasses.replace(from_file, imported=True)
    heds = heds_of(imported)
    for number in ("3.1.2", "3.1.3.1", "3.3.2", "4.1.1", "4.3.2", "4.3.7", "4.3.8"):
        assert {answer.by for answer in heds[number].values()} == {"open"}, number
    assert answers_of(imported)["instructions_read"].by == "open"


def test_pay_recruitment_and_consent_of_a_live_crowd_are_on_record(variant: Callable[..., Study]) -> None:
    study = variant(name="demo", raters={"contact": "team@example.org"}, crowd={"consent": "You may stop at any time."})

    def live(platform: Any, mode: Any) -> CampaignMaterial:
        summary = CrowdSummary(
            platform=platform, mode=mode, batches=2, pilots=0, posted=2, posted_pilots=0, places=6,
            states={"approved": 6}, pilot_states={}, unreadable=0, planned=900, fees=300, spent=900,
            spent_on={"post": 900}, bonuses_to_come=0, places_to_come=0, rewards=600, bonuses=0, unsettled=0,
            hourly=26.0, hourly_in_all=24.5, minutes=12.0, off_rules=0,
        )  # fmt: skip
        rated = small(study).counting.assign(source=platform)
        return dataclasses.replace(small(study), ratings=rated, counting=rated, crowd=[summary])

    answers = answers_of(live("prolific", "live"))
    assert answers["payment"].by == "records" and "paid $24.50 an hour" in answers["payment"].text
    assert "By Prolific, among workers with more than 95% of their tasks approved" in answers["recruitment"].text
    assert answers["consent"].text.endswith("You may stop at any time.")
    heds = heds_of(live("prolific", "live"))
    assert [heds[number][""].chosen for number in ("3.2.2.2", "3.3.5", "3.3.6")] == [(1,), (3,), (2, 4)]
    assert answers_of(live("link", "live"))["recruitment"].by == "open", "another platform let them in"
    assert answers_of(live("prolific", "sandbox"))["payment"].by == "open"


@pytest.mark.parametrize(
    ("question", "instrument"),
    [
        (RatingQuestion("similarity", (0, 1, 2)), ["3", "0, 1, 2", "N/A", 1, 2]),
        (SliderQuestion("similarity", Continuous((0, 100))), ["continuous", "0 to 100", "N/A", 3, 2]),
        (SingleLabelQuestion("best", labels=("b", "a")), ["2", "B; A", "N/A", 1, 7]),
        (RankingQuestion("order", labels=("b", "a")), ["N/A", "N/A", "To order B; A; the order is recorded", 4, 3]),
    ],
)
def test_each_kind_of_question_has_its_instrument(question: Question, instrument: list[Any]) -> None:
    assert [*question.instrument([label.capitalize() for label in question.labels]).values()] == instrument


def test_a_criterion_of_another_rubric_is_neither_named_nor_classified_for_its_author(
    variant: Callable[..., Study],
) -> None:
    material = small(variant(name="demo"))
    titles = ("Note: is it clear?", "Is it clear?")
    questions = [
        question.model_copy(update={"title": {"en": title}})
        for question, title in zip(material.rubric.questions, titles, strict=True)
    ]
    rubric = material.rubric.model_copy(update={"questions": tuple(questions)})
    heds = heds_of(dataclasses.replace(material, rubric=rubric))
    assert [answer.by for answer in heds["4.1.1"].values()] == ["open", "open"]
    assert [(answer.by, answer.text) for answer in heds["4.3.1.1"].values()] == [
        ("open", "Note: is it clear?"),
        ("records", "no name given"),
    ]


def test_what_a_study_says_is_text_in_every_sheet(rated: Callable[..., Study]) -> None:
    attack = "<script>alert(1)</script> 50% of $x_1$ & more {{ 7 * 7 }} {% raw %} `a` [b](c)"
    study = rated(description=attack, ethics={"committee": attack})
    write_sheets(study)
    assert stored(study)["heds-ethics-review_body"]["data"][""] == attack
    for name in ("heds.md", "arr_checklist.md", "datasheet.md"):
        assert as_markdown(attack) in text(study, name) and "<" not in text(study, name), name


def test_a_fact_without_a_value_is_an_error() -> None:
    for entry in ("{{ missing }}", "{% if missing %}yes{% endif %}", {"choose": "[missing]"}):
        with pytest.raises(UndefinedError):
            answered(entry, {})
