"""The task that all pools of raters are shown: made of rubric, queue and study, for each kind of question."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from annotation.campaign.rubric import Rubric, load_rubric
from annotation.crowd.page import examples_html, question_html
from annotation.crowd.prolific.workspaces import shown_first
from annotation.page.task import hosted_html, items_of, rating_words, task_of
from annotation.page.training import read_items
from annotation.questions.label import SingleLabelQuestion
from annotation.questions.rating import RatingQuestion
from annotation.sampling.queues import Queue
from annotation.server.plugin.plumbline_argilla import rate
from annotation.server.plugin.plumbline_argilla.crowd_html import entrance_body
from plumbline.study import ROOT, Study, load_study
from plumbline.study.campaign import Tolerance
from tests.annotation.campaigns import Make
from tests.annotation.crowd.offers import TEXTS, make_offer
from tests.annotation.previews import data_of

QUEUE = Queue("paraphrasing", "en", "en")


@pytest.fixture
def study(variant: Callable[..., Study]) -> Study:
    return variant(name="page")


def with_scale(whole: Rubric, scale: object, start: float | None = None) -> Rubric:
    """A rubric of one question with this scale, of which the ends have words."""
    first = whole.questions[0].model_dump() | {"points": {0: {"en": "No"}, 10: {"en": "Yes"}}, "start": start}
    pools = {name: {"title": pool.title, "asked": pool.asked} for name, pool in whole.pools.items()}
    return Rubric.model_validate(whole.model_dump() | {"scale": scale, "questions": [first], "pools": pools})


def asked(study: Study, whole: Rubric, queue: Queue = QUEUE, **more: Any) -> list[dict[str, Any]]:
    questions: list[dict[str, Any]] = json.loads(json.dumps(task_of(study, whole, queue, "b", **more)))["questions"]
    return questions


@pytest.mark.parametrize(
    ("scale", "start", "shown"),
    [
        ({"from": 0, "to": 10}, None, {"low": 0, "high": 10, "step": 0.1, "start": None}),
        ({"from": 0, "to": 10, "step": 0.25}, 5, {"low": 0, "high": 10, "step": 0.25, "start": 5}),
    ],
)
def test_a_fine_scale_is_a_slider(study: Study, scale: object, start: float | None, shown: dict[str, object]) -> None:
    (question,) = asked(study, with_scale(load_rubric(study), scale, start))
    assert question["kind"] == "slider" and question["points"] == [[0, "No"], [10, "Yes"]]
    assert {name: question[name] for name in shown} == shown


@pytest.mark.parametrize("language", ["ar", "de", "en", "es", "fr", "ha", "ru", "sw", "tr", "ur"])
@pytest.mark.parametrize("of_pairs", [True, False])
def test_the_page_has_its_words_in_each_language(language: str, of_pairs: bool) -> None:
    assert set(rating_words(language, of_pairs=of_pairs)) == set(rate.WORDS)


def test_a_file_runs_its_own_script_and_nothing_else(study: Study) -> None:
    pairs = make_offer([("</script><b>", "&amp;"), *TEXTS]).pairs
    task = task_of(study, load_rubric(study), QUEUE, "b")
    html = hosted_html(task, items_of(pairs), "https://example.org/submit")
    assert data_of(html)["items"] == [
        {"id": pair.pair_id, "texts": [pair.original, pair.transformed]} for pair in pairs
    ]
    policy = html.split('Content-Security-Policy" content="')[1].split('"')[0]
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy
    assert not [name for name in ("onclick=", "onload=", "innerHTML", "eval(", "document.write") if name in html]
    assert html == hosted_html(task, items_of(pairs), "https://example.org/submit")


POOLS = {"en": "paraphrasing", "de": "translation"}

ROW: dict[str, Any] = {
    "transformation": "paraphrasing", "language": "en", "original": "One.", "transformed": "Two.",
    "right_quality": 1, "why_en": "Another number.",
}  # fmt: skip


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
        room = shown_first(study, rubric, offer.batch.queue, 1) | {"examples": html, "return_code": ""}
        entrance = entrance_body("room", room, "")
        assert entrance.count(html) == 1 and entrance.index(html) < entrance.index("<form")


def test_the_shipped_pairs_are_known_in_english_and_german() -> None:
    study = load_study(ROOT / "studies/demo.yaml")
    items = read_items(study, load_rubric(study))
    assert {item.pair.language for item in items} == {"en", "de"}
    assert all({"en", "de"} <= set(item.reasons) and item.pair.expected for item in items)
    assert len({item.pair.pair_id for item in items}) == len(items)


def test_a_rating_is_right_within_the_studys_points_and_a_label_if_it_is_equal() -> None:
    rating, label = (
        RatingQuestion("quality", scale=(1, 2, 3, 4, 5)),
        SingleLabelQuestion("sound", labels=("good", "odd")),
    )
    right = [value for value in (1, 2, 3, 4, 5) if rating.is_right(value, 3, Tolerance.within)]
    assert right == [2, 3, 4]
    assert label.is_right("odd", "odd", 0) and not label.is_right("good", "odd", 0)
