"""Known pairs as a study names them: what is read, what is right, what is refused."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from annotation.campaign_records import CampaignRecords
from annotation.crowd.page import examples_html, question_html
from annotation.crowd.prolific.workspaces import shown_first
from annotation.page import data_of
from annotation.preview import preview_html
from annotation.questions import ENGLISH, QuestionScale
from annotation.rubric import Rubric, load_rubric
from annotation.sampling.queues import Queue
from annotation.server.plugin.plumbline_argilla.crowd_html import entrance_body
from annotation.training import POOL, WORDS, folded, is_right, read_items, solution, training_rubric
from annotation.wordings import platform_words
from plumbline.errors import DataError, StudyError
from plumbline.fields import expected_of
from plumbline.study import ROOT, load_study
from tests.annotation.campaigns import Make, small
from tests.annotation.crowd.made_offers import make_offer
from tests.annotation.kinds import EFFORT, FAULTS, NATURAL, ORDER, RULES, ask, rubric
from tests.annotation.previews import pages

POOLS = {"en": "paraphrasing", "de": "translation"}

ROW: dict[str, Any] = {
    "transformation": "paraphrasing", "language": "en", "original": "One.", "transformed": "Two.",
    "right_quality": 1, "why_en": "Another number.",
}  # fmt: skip


def test_the_shipped_pairs_are_known_in_english_and_german() -> None:
    study = load_study(ROOT / "studies/demo.yaml")
    items = read_items(study, load_rubric(study))
    assert {item.pair.language for item in items} == {"en", "de"}
    assert all({"en", "de"} <= set(item.why) and item.pair.expected for item in items)
    assert len({item.pair.pair_id for item in items}) == len(items)


def test_what_is_right_stands_in_the_raters_language_with_the_words_of_the_pool() -> None:
    study = load_study(ROOT / "studies/demo.yaml")
    rubric = load_rubric(study)
    german = next(
        one for one in read_items(study, rubric) if one.pair.output_language == "de" and "kaum" in str(one.why)
    )
    found = solution(german, rubric)
    # What point 2 means for paraphrases alone
    assert found.answers[0][1] == "2: ein wichtiger Teil fehlt oder ist falsch, oder es wurde kaum ein Wort geändert"
    assert found.why.startswith("Was sonntags gilt") and found.words["why"] == "Warum"
    assert folded(found).startswith("<details><summary>Erst antworten")


def test_every_language_has_all_words() -> None:
    assert all(
        set(own) == set(platform_words(WORDS)[ENGLISH]) and all(own.values()) for own in platform_words(WORDS).values()
    )


def test_a_rating_is_right_within_the_studys_points_and_a_label_if_it_is_equal(variant: Make) -> None:
    study = variant(name="within")
    rating, label = (
        QuestionScale("quality", scale=(1, 2, 3, 4, 5)),
        QuestionScale("sound", "label", labels=("good", "odd")),
    )
    assert [is_right(rating, value, 3, study.quality.within) for value in (1, 2, 3, 4, 5)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert is_right(label, "odd", "odd", 0) and not is_right(label, "good", "odd", 0)


def test_the_preview_shows_known_pairs_with_what_is_right_folded(variant: Make, tmp_path: Path) -> None:
    file = tmp_path / "known.jsonl"
    file.write_text(json.dumps(ROW | {"original": "<b>One</b>"}), encoding="utf-8")
    study = small(variant, "seen", transformations=["paraphrasing"], training=str(file))
    html = preview_html(CampaignRecords.open(study), 1)
    assert html.index('<section id="seen-training-EN">') < html.index('<section id="seen-paraphrasing-EN">')
    shown = pages(html)[0]
    (item,) = shown["items"]
    assert item["texts"][0] == "<b>One</b>" and item["right"]["answers"] and item["asked"] != shown["task"]["asked"]
    assert shown["task"]["words"]["open"].startswith("Answer first")
    training_rubric(load_rubric(study), read_items(study, load_rubric(study)))


def test_questions_of_some_pools_are_asked_and_required_where_all_known_pairs_are_of_these(
    variant: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = ORDER | {"pools": ["paraphrasing"]}
    ask(monkeypatch, tmp_path, rubric(NATURAL, FAULTS, EFFORT, only))
    file = tmp_path / "known.jsonl"
    rows = [
        ROW | {"right_naturalness": "odd", "right_faults": "words, grammar", "right_order": "tone > form = sense"},
        ROW | {"transformation": "translation", "right_effort": 2},
    ]
    study = variant(
        name="kinds",
        rubric="kinds",
        transformations=["paraphrasing", "translation"],
        training=str(file),
        acceptance={"rules": RULES, "min_pairs": 3},
        quality={"within": 1, "apart": 1.0, "low": 2.0},
    )
    asked = []
    for some in (rows, rows[:1]):
        file.write_text("\n".join(map(json.dumps, some)), encoding="utf-8")
        items = read_items(study, load_rubric(study))
        own = training_rubric(load_rubric(study), items).asked(POOL)
        asked.append({one.name: one.required for one in own})
    both = {"quality": True, "fluency": True, "naturalness": True, "faults": False, "effort": False, "order": False}
    assert asked == [both, {name: needed for name, needed in both.items() if name != "effort"} | {"order": True}]
    assert expected_of(items[0].pair) == {
        "quality": 1, "naturalness": "odd", "faults": "grammar, words", "order": "tone > form = sense",
    }  # fmt: skip
    assert [answer for _, answer in solution(items[0], load_rubric(study)).answers][1:] == [
        "Odd in places", "Grammar, Words", "tone > form = sense",
    ]  # fmt: skip


def test_a_right_point_without_words_is_a_number(variant: Make, tmp_path: Path) -> None:
    file = tmp_path / "known.jsonl"
    file.write_text(json.dumps(ROW | {"right_quality": 3}), encoding="utf-8")
    study = variant(name="few", transformations=["paraphrasing"], training=str(file))
    whole = load_rubric(study)
    (item,) = read_items(study, whole)
    ends = [{**question.model_dump(), "points": {1: {"en": "no"}, 5: {"en": "yes"}}} for question in whole.questions]
    pools = {name: {"title": pool.title, "asked": pool.asked} for name, pool in whole.pools.items()}
    bare = Rubric.model_validate(whole.model_dump() | {"questions": ends, "pools": pools})
    assert dict(solution(item, bare).answers)[whole.questions[0].title["en"]] == "3"


def test_crowd_pages_show_worked_examples_folded_in_the_raters_language(variant: Make, tmp_path: Path) -> None:
    harm = "<img src=x onerror=alert(1)> & ]]>"
    english, german = (ROW | {"transformed": f"{harm} {code}", "output_language": code} for code in ("en", "de"))
    file = tmp_path / "known.jsonl"
    translation = {"transformation": "translation", "why_de": "Eine andere Zahl."}
    file.write_text("\n".join(map(json.dumps, (english, german | translation))), encoding="utf-8")
    crowd = {"countries": {"en": ["US"], "de": ["DE"]}}
    study = variant(name="worked", transformations=["paraphrasing", "translation"], training=str(file), crowd=crowd)
    rubric = load_rubric(study)
    assert examples_html(read_items(study, rubric), rubric, Queue("translation", "en", "fr")) == ""
    found = {
        code: examples_html(read_items(study, rubric), rubric, Queue(pool, "en", code)) for code, pool in POOLS.items()
    }
    assert '<summary dir="auto">Worked examples' in unescape(found["en"])
    assert "Beispiele mit Lösung" in found["de"] and "Eine andere Zahl." in unescape(found["de"])
    for code, html in found.items():
        assert "<img" not in html and "]]>" not in html and f"{harm} {code}" in unescape(html)
        offer = make_offer(languages=("en", code), pool=POOLS[code])
        task = data_of(question_html(study, rubric, offer, "about:blank"))["task"]
        (example,) = task["examples"]
        assert example["texts"][1]["text"] == f"{harm} {code}" and example["right"]["answers"]
        assert task["words"]["examples"].startswith("Worked examples" if code == "en" else "Beispiele mit Lösung")
        room = shown_first(study.crowd, rubric, offer.batch.queue, 1) | {"examples": html, "return_code": ""}
        entrance = entrance_body("room", room, [], "", again=False)
        assert entrance.count(html) == 1 and entrance.index(html) < entrance.index("<form")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"right_quality": 9}, "row 1, right_quality: the answer 9 is not on the scale 1 to 5"),
        ({"right_quality": "good"}, "row 1, right_quality: 'good' is not a point of the scale"),
        ({"right_quality": None}, "row 1: no right answer; fill one of right_quality, right_fluency"),
        ({"right_speed": 1}, "the column 'right_speed' matches no question"),
        ({"transformation": "rhyming"}, "row 1: the study has no transformation 'rhyming'"),
        ({"language": "klingonese"}, "row 1: language 'klingonese' is not known"),
        ({"original": " "}, "row 1, 'original': is empty"),
        ({"why_en": "a\x07"}, "row 1, 'why_en': has a character that no page can show"),
        ({"transformation": "expansion"}, "has no known pair of this study's transformations"),
    ],
)
def test_a_wrong_row_is_one_line(variant: Make, tmp_path: Path, change: dict[str, Any], says: str) -> None:
    file = tmp_path / "known.jsonl"
    file.write_text(json.dumps(ROW | change), encoding="utf-8")
    study = variant(name="wrong", transformations=["paraphrasing"], training=str(file))
    with pytest.raises((DataError, StudyError), match=says.replace("?", ".")):
        read_items(study, load_rubric(study))


def test_a_file_that_is_missing_or_has_a_pair_twice_is_one_line(variant: Make, tmp_path: Path) -> None:
    file = tmp_path / "known.csv"
    study = variant(name="wrong", transformations=["paraphrasing"], training=str(file))
    with pytest.raises(DataError, match="training: no file .*known.csv; correct `training` in the study"):
        read_items(study, load_rubric(study))
    file.write_text("transformation,language,original,transformed,right_quality\n" + "paraphrasing,en,a,b,1\n" * 2)
    with pytest.raises(DataError, match="row 2: repeats the known pair of an earlier row; keep one"):
        read_items(study, load_rubric(study))
    file.write_text("transformation,language,original\nparaphrasing,en,a\n")
    with pytest.raises(DataError, match="no column 'transformed'"):
        read_items(study, load_rubric(study))
