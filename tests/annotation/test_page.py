"""The task that all pools of raters are shown: made of rubric, queue and study, for each kind of question."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotation.human.order import OrderDrawing
from annotation.page import COMMENT_LENGTH, data_of, hosted_html, items_of, named, rating_words, task_of
from annotation.rubric import Rubric, load_rubric
from annotation.sampling.queues import Queue
from annotation.server.plugin.plumbline_argilla import rate
from plumbline.errors import StudyError
from plumbline.study import Study
from tests.annotation.crowd.made_offers import TEXTS, make_offer
from tests.annotation.kinds import FAULTS, NATURAL, ORDER, RULES, ask, rubric

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


def test_a_task_says_who_is_asked_what_of_which_texts(study: Study) -> None:
    task = task_of(study, load_rubric(study), Queue("translation", "en", "ar"), "batch1", consent="Yes.")
    assert (task["study"], task["queue"], task["language"], task["consent"]) == ("page", "batch1", "en", "Yes.")
    assert task["name"] == "Translation, English – Arabic"
    assert [(text["name"], text["lang"], text["dir"]) for text in task["texts"]] == [
        ("original", "en", "ltr"), ("transformed", "ar", "rtl"),
    ]  # fmt: skip
    assert task["about"] == "What was asked" and task["asked"] == load_rubric(study).pool("translation").asked["en"]
    assert task["comment"] == {"name": "comment", "title": "Comment", "most": COMMENT_LENGTH}
    assert [len(reason) > 0 for reason in task["unable"]["reasons"]] == [True] * 3
    assert task["difference"] is False
    assert set(rate.WORDS) <= set(task["words"])


def test_a_queue_has_a_name_that_its_raters_understand(study: Study) -> None:
    whole = load_rubric(study)
    assert named(whole, QUEUE, "de") == f"{whole.pool('paraphrasing').title['de']}, Englisch"
    assert "، " in named(whole, QUEUE, "ar")


def test_a_study_has_differences_marked(variant: Callable[..., Study]) -> None:
    study = variant(name="page", raters={"difference": True})
    assert task_of(study, load_rubric(study), QUEUE, "b")["difference"] is True
    assert "difference" not in variant(name="page").raters.model_dump()  # hashes of studies stay


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


def test_each_other_point_has_a_button(study: Study) -> None:
    (question,) = asked(study, with_scale(load_rubric(study), [*range(11)]))
    assert question["kind"] == "rating"
    assert question["points"] == [[0, "No"], *([point, ""] for point in range(1, 10)), [10, "Yes"]]


def test_what_no_slider_can_show_is_refused(study: Study) -> None:
    uneven = [*range(10), *(9 + n / 20 for n in range(1, 21))]
    with pytest.raises(StudyError, match=r"a scale of 30 points is shown as a slider, which needs equal steps"):
        asked(study, with_scale(load_rubric(study), uneven))
    for scale, start in (([*range(11)], 5), ({"from": 0, "to": 10}, 11)):
        with pytest.raises(ValueError, match="is for sliders only, and must be on the scale"):
            with_scale(load_rubric(study), scale, start)


def test_labels_and_orders_have_their_words(
    variant: Callable[..., Study], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tells = NATURAL | {"name": "tells", "labels": {"yes": {"en": "Yes"}, "no": {"en": "No"}}}
    ask(monkeypatch, tmp_path, rubric(NATURAL, FAULTS, tells, ORDER | {"required": False}))
    study = variant(name="kinds", rubric="kinds", acceptance={"rules": RULES})
    by_name = {question["name"]: question for question in asked(study, load_rubric(study))}
    assert ["odd", "Odd in places"] in by_name["naturalness"]["points"]
    assert (by_name["faults"]["kind"], by_name["faults"]["required"]) == ("multi_label", False)
    assert by_name["order"]["after"] == ["tells", "yes"]  # whoever can tell gives an order
    once = task_of(study, load_rubric(study), QUEUE, "b", drawing=OrderDrawing("s", questions=("quality", "fluency")))
    assert "Transformation quality" in once["guidelines"] and "Fluency" not in once["guidelines"]


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
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    assert not [name for name in ("onclick=", "onload=", "innerHTML", "eval(", "document.write") if name in html]
    assert html == hosted_html(task, items_of(pairs), "https://example.org/submit")
