"""Known pairs as a study names them: what is read, what is right, what is refused."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any

from annotation.campaign.rubric import load_rubric
from annotation.crowd.page import examples_html, question_html
from annotation.crowd.prolific.workspaces import shown_first
from annotation.page.training import read_items
from annotation.questions.label import SingleLabelQuestion
from annotation.questions.rating import RatingQuestion
from annotation.sampling.queues import Queue
from annotation.server.plugin.plumbline_argilla.crowd_html import entrance_body
from plumbline.study import ROOT, load_study
from plumbline.study.campaign import Tolerance
from tests.annotation.campaigns import Make
from tests.annotation.crowd.made_offers import make_offer
from tests.annotation.previews import data_of

POOLS = {"en": "paraphrasing", "de": "translation"}

ROW: dict[str, Any] = {
    "transformation": "paraphrasing", "language": "en", "original": "One.", "transformed": "Two.",
    "right_quality": 1, "why_en": "Another number.",
}  # fmt: skip


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
