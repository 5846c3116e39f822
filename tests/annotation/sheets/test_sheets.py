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

from annotation.campaign.records import CampaignRecords
from annotation.crowd.summary import CrowdSummary
from annotation.report.material import CampaignMaterial
from annotation.report.sheets.facts import NOBODY, answers_of, self_agreement, without_repeats
from annotation.report.sheets.writing import HedsAnswers, form, heds_answers, write_sheets
from annotation.verdicts.acceptance import accept
from annotation.verdicts.tables import SIMULATED
from plumbline.exhibits.table import as_markdown
from plumbline.manifest import Manifest
from plumbline.records import Pair, Rating
from plumbline.study import Study, load_study
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


def heds_of(material: CampaignMaterial) -> HedsAnswers:
    return heds_answers(material, answers_of(material))


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


def test_what_a_study_says_is_text_in_every_sheet(rated: Callable[..., Study]) -> None:
    attack = "<script>alert(1)</script> 50% of $x_1$ & more {{ 7 * 7 }} {% raw %} `a` [b](c)"
    study = rated(description=attack, ethics={"committee": attack})
    write_sheets(study)
    assert stored(study)["heds-ethics-review_body"]["data"][""] == attack
    for name in ("heds.md", "arr_checklist.md", "datasheet.md"):
        assert as_markdown(attack) in text(study, name) and "<" not in text(study, name), name
