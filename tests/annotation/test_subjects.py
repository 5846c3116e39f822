"""Texts of a file as what raters judge: what is drawn, what they read of it, and what is refused in one line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from annotation.campaign.offering import begin_offering
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.crowd.tally import counted
from annotation.sampling.expected import ExpectedSample
from annotation.sampling.sample import draw_sample, extend_sample
from annotation.statistics.summaries import Design
from plumbline.errors import DataError
from plumbline.fields import fields_of
from plumbline.records import Pair
from plumbline.store import read_frame
from plumbline.study import ROOT, Study, load_study
from tests.annotation.kinds import ask
from tests.annotation.subjects import CHAT, rows, rubric, texts
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
    assert draw_sample(study) == pairs == CampaignRecords(study).pairs
    assert [(one.name, one.kind) for one in fields_of(pairs[0])] == [("text", "text"), ("talk", "chat")]
    assert {(one.axis, one.pool, one.queue, one.dataset) for one in pairs} == {
        ("texts", "human", "texts", "mine"),
        ("texts", "machine", "texts", "mine"),
    }
    assert {one.original for one in pairs} == {""} and not any(one.expected for one in pairs)
    drawn = {fields_of(one)[0].text for one in pairs}
    assert drawn == {row["text"] for row in rows() if "right" not in row}
    # 18 pairs are two batches in English and one in German: a known item for each that English has, repeats for all.
    assert Counter(one.control for one in CampaignRecords(study).controls) == {"known": 2, "repeat": 3}


def test_a_sample_is_extended_and_known_items_are_not_shown_again(make: Callable[..., Any]) -> None:
    study = make(sample={"pairs": 3, "batch": 4})
    first = draw_sample(study)
    before = {one.pair_id for one in CampaignRecords(study).controls if one.control == "known"}
    begin_offering(CampaignRecords(study), "argilla", load_rubric(study))
    larger = make(sample={"pairs": 6, "batch": 4})
    assert extend_sample(larger, "more").pairs == 6
    pairs = CampaignRecords(larger).pairs
    assert pairs[:6] == first and Counter(one.transformation for one in pairs) == {"human": 6, "machine": 6}
    known = [one.pair_id for one in CampaignRecords(larger).controls if one.control == "known"]
    assert len(known) == len(set(known)) == 3 and before < set(known)


def test_a_known_text_is_never_in_the_sample(make: Callable[..., Any]) -> None:
    """Rows 0 and 1 are known items too, one in other capitals; in another language, or beside another talk, none is."""
    again = [{**rows()[0], "right": "acceptable"}, {**rows()[1], "group": "machine", "right": "acceptable"}]
    again[0]["text"] = str(again[0]["text"]).upper()
    apart = [{**rows()[2], "language": "de"}, {**rows()[4], "talk": CHAT[:1]}]
    own = [*rows(), *again, *({**one, "right": "acceptable"} for one in apart)]
    study = make(own=own)
    pairs = draw_sample(study)
    assert {fields_of(one)[0].text for one in pairs} == {one["text"] for one in rows()[2:] if "right" not in one}
    assert [(one.transformation, one.language, one.known) for one in CampaignRecords(study).drawn_from] == [
        ("human", "de", 0), ("human", "en", 1), ("machine", "en", 1)
    ]  # fmt: skip
    said = here("sample", "--study", str(study.file), "--exports", str(study.folder.parent)).stdout
    assert "human, en: 1 text is also a known item, and is not in the sample" in said
    machines = [{**one, "right": "acceptable"} for one in rows() if one["group"] == "machine"]
    with pytest.raises(DataError, match="every text of machine is also a known item; add others, or remove machine"):
        draw_sample(make("none", own=[*rows(), *machines]))


def test_a_text_that_was_drawn_is_no_known_item_later(make: Callable[..., Any]) -> None:
    study = make(sample={"pairs": 3, "batch": 4})
    first = draw_sample(study)
    begin_offering(CampaignRecords(study), "argilla", load_rubric(study))
    texts_of_first = {fields_of(one)[0].text for one in first}
    later = [{**one, "right": "acceptable"} for one in rows() if one["text"] in texts_of_first]
    larger = make(own=[*later, *rows()], sample={"pairs": 6, "batch": 4, "controls": 9})
    extend_sample(larger, "more")
    known = [one for one in CampaignRecords(larger).controls if one.control == "known"]
    assert len(known) == 4 and texts_of_first.isdisjoint(fields_of(one)[0].text for one in known)


def test_a_plan_counts_what_a_queue_of_all_groups_is_asked(make: Callable[..., Any]) -> None:
    """18 texts in three batches, with a repeat each, and a known item in each of the two in English; none of pairs."""
    for changes, shown in (({}, 18 + 5), ({"subject": {"expected": {}}}, 18 + 3)):
        study = make(**changes)
        asked = load_rubric(study)
        drawn = ExpectedSample.of(study, asked).draw(9)
        assert counted(study, asked, [*drawn.pairs, *drawn.controls]).shown == shown


def items(folder: Path, **changes: Any) -> Study:
    """The sample study of items with changes, beside the sample study's data."""
    content = yaml.safe_load((ROOT / "studies" / "items.yaml").read_text(encoding="utf-8")) | changes
    for one in content["datasets"]:
        one["path"] = str(ROOT / "studies" / one["path"])
    file = folder / "items.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return load_study(file, folder / "exports")


def test_gold_is_in_no_record_of_items(tmp_path: Path) -> None:
    study = items(tmp_path)
    draw_sample(study)
    frame = read_frame(study.folder / "pairs.parquet", Pair, "")
    assert {name for row in frame["fields"] for name in json.loads(row)} == {
        "sentence1", "sentence2", "query", "candidates",
    }  # fmt: skip
    assert (frame["expected"] == "").all() and (frame["generator_hash"] != "").all()


def test_a_question_for_all_texts_is_asked_of_each_group(make: Callable[..., Any]) -> None:
    content = rubric()
    content["questions"][0]["pools"] = ["texts"]
    study = make(asked={"questions": content["questions"]})
    assert Design.of(study, load_rubric(study)).needed("human") == ("label",)


def test_the_sample_study_of_texts_is_drawn(tmp_path: Path) -> None:
    study = load_study(ROOT / "studies" / "texts.yaml", tmp_path)
    assert Counter(one.transformation for one in draw_sample(study)) == {"brief": 12, "described": 12}
