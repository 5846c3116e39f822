"""Sheets say what records and the study file say, leave the rest open, and import into HEDS's form."""

from __future__ import annotations

import ast
import json
import math
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pandas as pd
import pytest
from langcodes.data_dicts import LANGUAGE_ALPHA3

import annotation.report
from annotation.crowd.summary import CrowdSummary
from annotation.questions import Question
from annotation.report.material import CampaignMaterial
from annotation.rubric import load_rubric
from annotation.sheets.documents import checklist_answers
from annotation.sheets.facts import NOBODY, SheetAnswer, facts_of, repeated, self_agreement
from annotation.sheets.heds import FieldAnswer, form, heds_answers, heds_json, instrument
from annotation.sheets.latex import citations, methods_latex
from annotation.sheets.writing import write_sheets
from annotation.verdicts.acceptance import accept
from annotation.verdicts.tables import SIMULATED
from generation.production import generate
from plumbline.__main__ import run
from plumbline.errors import StudyError
from plumbline.study import ROOT, Study, load_study
from plumbline.study.ethics import QUESTIONS
from tests.annotation.ratings.test_review import rate
from tests.annotation.report.test_methods import small
from tests.conftest import DEMO
from tests.finished import finished_study

SCRIPT = "<script>alert(1)</script> 50% of $x_1$ & more"
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


@pytest.fixture
def recorded(tmp_path: Path) -> Study:
    """A study whose raters are simulated."""
    return finished_study(tmp_path)


@pytest.fixture(scope="module")
def rated_once(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = load_study(DEMO, tmp_path_factory.mktemp("rated"))
    generate(study)
    rate(study)
    accept(study)
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


def answers_of(material: CampaignMaterial) -> Mapping[str, list[FieldAnswer]]:
    return heds_answers(material, facts_of(material))


def test_simulated_ratings_are_called_so_in_every_sheet_and_nobody_is_described(recorded: Study) -> None:
    lines = write_sheets(recorded)
    for name in ("heds.md", "arr_checklist.md", "datasheet.md", "methods.tex"):
        assert SIMULATED in text(recorded, name), name
    content = stored(recorded)
    identification = "heds-paper_and_resources-paper-experiment_identification"
    assert content[identification]["data"][""].startswith(SIMULATED)
    evaluators = "heds-sample_evaluators_design-evaluators-"
    assert content[f"{evaluators}number_of_evaluators"]["data"] == {"": "N/A"}
    assert content[f"{evaluators}recruitment_method"]["data"] == {"": NOBODY}
    for name, option in (("expertise", 3), ("payment", 4), ("known_to_authors", 3), ("are_authors", 3)):
        assert content[f"{evaluators}evaluators-{name}-{option}"]["data"] == {"": True}
        assert content[f"{evaluators}evaluators-{name}-other_text"]["data"] == {"": NOBODY}
    assert "heds-ethics-review_body" not in content, "whether a board was asked no record says"
    assert lines[1].strip() == "heds.json: 66 of 83 answered (66 from records, 0 by people); 17 open"


def test_of_people_most_is_answered_from_records_and_what_only_they_know_is_open(rated: Callable[..., Study]) -> None:
    study = rated()
    _, heds, *_, ethics = write_sheets(study)
    answered, every = map(int, re.findall(r"\d+", heds)[:2])
    assert every == 41 + 2 * 21 and answered / every >= 0.7, heds
    assert "0 by people" in heds and SIMULATED not in text(study, "heds.md")
    assert set(ethics.rpartition(": ")[2].split(", ")) == {*QUESTIONS}
    document = text(study, "heds.md")
    assert document.count("**OPEN.**") == every - answered == int(re.findall(r"\d+", heds)[-1])
    for key in QUESTIONS:
        assert f"`{key}`: " in document + text(study, "arr_checklist.md")
    assert "3.2.1 Number of evaluators\n\n3\n" in document
    content = stored(study)
    for element in ("review_body", "personal_data-1", "personal_data-2", "impact_assessments"):
        assert f"heds-ethics-{element}" not in content


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


def test_languages_tick_their_boxes_and_those_without_one_are_named(demo: Study) -> None:
    material = small(demo)
    pairs = [pair.model_copy(update={"language": "de", "output_language": "pcm"}) for pair in material.pairs]
    changed = CampaignMaterial(**{**vars(material), "pairs": pairs})
    content = heds_json(answers_of(changed))
    assert content["heds-system-input_languages-56"]["text"] == {"": "55. German"}
    assert content["heds-system-output_languages-185"]["text"] == {"": "184. Other (please describe)"}
    assert content["heds-system-output_languages-other_text"]["data"] == {"": "Nigerian Pidgin"}


def test_intra_annotator_agreement_is_that_of_repeats(recorded: Study) -> None:
    write_sheets(recorded)
    ratings = pd.read_parquet(recorded.folder / "ratings.parquet").set_index(["pair_id", "rater_id", "question"])
    controls = pd.read_parquet(recorded.folder / "controls.parquet")
    first = controls[controls["control"] == "repeat"].set_index("pair_id")["repeats"]
    again = pd.read_parquet(recorded.folder / "control_ratings.parquet")
    again = again[again["pair_id"].isin(first.index) & (again["question"] == "quality")]
    same = [
        row.value == ratings.loc[(first[row.pair_id], row.rater_id, "quality"), "value"]
        for row in again.itertuples(index=False)
    ]
    said = stored(recorded)[
        "heds-criteria-criterion-response_elicitation-intra_annotator-intra_annotator_agreement_score"
    ]
    assert f"share of equal answers {sum(same) / len(same):.2f} [" in said["data"]["quality"]
    assert f"of {len(same)} repeated answers" in said["data"]["quality"]


def test_without_repeats_intra_annotator_agreement_was_not_assessed(demo: Study) -> None:
    material = small(demo)
    assert repeated(material).empty
    assert self_agreement(material, "quality") == SheetAnswer("IntraAA not assessed")


def test_power_is_what_a_normal_mean_has(recorded: Study) -> None:
    """The study's rule compares means: P(mean >= 3) at a true 3.5, here by the normal distribution."""
    write_sheets(recorded)
    said = stored(recorded)["heds-sample_evaluators_design-sample-statistical_power-value"]["data"][""]
    lines = re.findall(
        r"(\w+): ([\d.]+) at a true mean of 3.5 \(limit 3; (\d+) pairs .*?, (\d) raters .*?items ([\d.]+),"
        r" raters ([\d.]+), noise ([\d.]+)\)",
        said,
    )
    assert [line[0] for line in lines] == ["quality", "fluency"]
    for _, power, *numbers in lines:
        pairs, raters, spread, bias, noise = map(float, numbers)
        error = math.sqrt(spread**2 / pairs + bias**2 / raters + noise**2 / (pairs * raters))
        assert float(power) == pytest.approx(NormalDist().cdf(0.5 / error), abs=0.015)


def test_ratings_of_files_leave_open_how_they_were_collected(demo: Study) -> None:
    material = small(demo)
    rated = material.counting.assign(source="ours.csv")
    changed = CampaignMaterial(**{**vars(material), "ratings": rated, "counting": rated})
    facts = facts_of(changed)
    for name in ("interface", "shown", "training", "freedom", "feedback", "medium"):
        assert facts[name].by == "open", name
    answers = answers_of(changed)
    assert {entry.answer.by for entry in answers["4.3.5"]} == {"open"}, "on what page the scale stood"
    assert {entry.answer.by for entry in answers["4.3.7"]} == {"records"}, "the study's own wording was asked"
    imported = CampaignMaterial(**{**vars(changed), "imported": True})
    answers = answers_of(imported)
    for number in ("3.1.2", "3.1.3.1", "3.3.2", "4.1.1", "4.3.2", "4.3.7", "4.3.8"):
        assert {entry.answer.by for entry in answers[number]} == {"open"}, number
    assert checklist_answers(imported, facts_of(imported))["D1"].by == "open"


def crowd_summary(platform: Any, mode: Any) -> CrowdSummary:
    return CrowdSummary(
        platform=platform, mode=mode, batches=2, pilots=0, posted=2, places=6, states={"approved": 6}, unread=0,
        planned=900, spent=900, rewards=600, bonuses=0, unsettled=0, hourly=24.5, minutes=12.0, decisions=(),
    )  # fmt: skip


def test_pay_recruitment_and_consent_of_a_live_crowd_are_on_record(variant: Callable[..., Study]) -> None:
    study = variant(name="demo", crowd={"contact": "team@example.org", "consent": "You may stop at any time."})
    material = small(study)
    rated = material.counting.assign(source="prolific")
    live = {**vars(material), "ratings": rated, "counting": rated, "crowd": [crowd_summary("prolific", "live")]}
    facts = facts_of(CampaignMaterial(**live))
    assert facts["payment"].by == "records" and "was paid $24.50 an hour" in facts["payment"].text
    assert "By Prolific, among workers with more than 95% of their tasks approved" in facts["recruitment"].text
    assert facts["consent"].text.endswith("You may stop at any time.")
    chosen = answers_of(CampaignMaterial(**live))
    assert (
        chosen["3.2.2.2"][0].chosen == (1,)
        and chosen["3.3.5"][0].chosen == (3,)
        and chosen["3.3.6"][0].chosen == (2, 4)
    )
    by_link = {**live, "crowd": [crowd_summary("link", "live")]}
    assert facts_of(CampaignMaterial(**by_link))["recruitment"].by == "open", "another platform let them in"
    rehearsed = {**live, "crowd": [crowd_summary("prolific", "sandbox")]}
    assert facts_of(CampaignMaterial(**rehearsed))["payment"].by == "open"


def test_each_kind_of_question_has_its_instrument(tmp_path: Path) -> None:
    rubric = load_rubric(load_study(ROOT / "studies" / "items.yaml", tmp_path))
    questions = {
        asked.name: (question, asked) for question, asked in zip(rubric.questions, rubric.asked(), strict=True)
    }

    def instrument_of(name: str) -> list[str | tuple[int, ...]]:
        return [entry.answer.text or entry.chosen for entry in instrument(*questions[name]).values()]

    assert instrument_of("similarity") == ["6", "0, 1, 2, 3, 4, 5", (1,), "N/A", (2,)]
    assert instrument_of("best") == ["6", "1; 2; 3; 4; 5; None of them", (1,), "N/A", (7,)]
    labels = {name: {"en": name.capitalize()} for name in ("b", "a")}
    order = Question.model_validate({"name": "order", "title": {"en": "Order"}, "kind": "ranking", "labels": labels})
    assert [entry.answer.text or entry.chosen for entry in instrument(order, order.asked(())).values()] == [
        *("N/A", "N/A", (4,), "To order B; A; the order is recorded", (3,))
    ]


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
    answers = answers_of(CampaignMaterial(**{**vars(material), "rubric": rubric}))
    assert [entry.answer.by for entry in answers["4.1.1"]] == ["open", "open"]
    assert [(entry.answer.by, entry.answer.text) for entry in answers["4.3.1.1"]] == [
        ("open", "Note: is it clear?"),
        ("records", "no name given"),
    ]


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


def test_no_more_than_twelve_questions_are_asked() -> None:
    assert len(QUESTIONS) <= 12


def test_what_a_study_says_is_text_in_every_sheet(rated: Callable[..., Study]) -> None:
    study = rated(description=SCRIPT, ethics={"committee": SCRIPT})
    write_sheets(study)
    assert stored(study)["heds-ethics-review_body"]["data"][""] == SCRIPT
    for name in ("heds.md", "arr_checklist.md", "datasheet.md"):
        assert "<script>" not in text(study, name) and r"\<script\>" in text(study, name), name
    section, _ = methods_latex([SCRIPT])
    assert r"\textless{}script\textgreater{}" in section and r"50\% of \$x\_1\$ \& more" in section


def test_every_work_that_the_methods_section_names_is_cited() -> None:
    """Whatever a report's module names with a year and a volume, or with an edition, has an entry."""
    folder = Path(str(annotation.report.__file__)).parent
    named = re.compile(r"[A-Z][\w'’ -]*(?: et al\.| and [A-Z][\w ]*|, [A-Z]\w+ and [A-Z]\w+)? (?:19|20)\d\d, [^();]*\d")
    works = set()
    for module in ("methods", "wording"):
        tree = ast.parse((folder / f"{module}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                works |= set(re.findall(r"\(([^()]*(?:19|20)\d\d, [^()]*)\)", node.value))
    cited = {work["phrase"] for work in citations().values()}
    parts = {part.strip() for work in works for part in work.split(";")}
    assert len(parts) > 10
    unknown = [part for part in parts if named.search(part) and not any(phrase in part for phrase in cited)]
    assert not unknown


def test_citations_take_the_place_of_names_and_the_bibliography_has_those_alone(recorded: Study) -> None:
    write_sheets(recorded)
    section, works = text(recorded, "methods.tex"), text(recorded, "methods.bib")
    keys = set(re.findall(r"\\cite\w*(?:\[[^\]]*\])?\{(\w+)\}", section))
    assert keys == set(re.findall(r"@\w+\{(\w+),", works)) >= {"gwet2008", "krippendorff2019", "light1971"}
    assert "Br. J. Math. Stat. Psychol." not in section and section.count("{") == section.count("}")
    for key, work in citations().items():
        assert work["entry"].count("{") == work["entry"].count("}") and f"{{{key}," in work["entry"]


def test_the_command_says_how_much_is_answered_and_what_would_answer_more(
    recorded: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--study", str(recorded.file), "--exports", str(recorded.folder.parent)]
    assert not run(["sheet", *options])
    said = capsys.readouterr().out
    assert f"finished: sheets -> {recorded.folder / 'sheet'}" in said and "more questions: conditions" in said
    assert {file.name for file in (recorded.folder / "sheet").iterdir()} == {
        *("heds.json", "heds.md", "arr_checklist.md", "datasheet.md", "methods.tex", "methods.bib", "preview.html"),
        "files.json",
    }


def test_tasks_that_people_do_have_a_report_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="sheets describe ratings"):
        write_sheets(load_study(ROOT / "studies" / "human.yaml", tmp_path))
