"""Batches: every pair once, controls and repeats where they belong, the same at each call."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from annotation.campaign.records import CampaignRecords
from annotation.crowd.batches import Batch, make_batches
from annotation.sampling.queues import Queue, block_numbers
from annotation.sampling.sample import draw_sample
from plumbline.errors import StudyError
from plumbline.study import Study
from tests.annotation.campaigns import Make
from tests.annotation.human.studies import study_of
from tests.shared import generate_once


@pytest.fixture
def study(variant: Make) -> Study:
    sample = {"pairs": 24, "batch": 10, "controls": 1, "repeats": 1}
    made = variant(transformations=["paraphrasing", "translation"], sample=sample, crowd={"countries": {"en": ["US"]}})
    generate_once(made)
    draw_sample(made)
    return made


def batches(study: Study, taken: list[Batch] | None = None, pilot: int = 0) -> list[Batch]:
    return make_batches(study, CampaignRecords(study).pairs, CampaignRecords(study).controls, taken or [], pilot)


def test_every_pair_stands_in_one_batch_of_its_queue(study: Study) -> None:
    pairs = {pair.pair_id: pair for pair in CampaignRecords(study).pairs}
    made = batches(study)
    shown = Counter(pair_id for batch in made for pair_id in batch.pair_ids)
    assert set(shown.values()) == {1}
    assert set(pairs) <= set(shown)
    for batch in made:
        assert {Queue.of(pairs[key]) for key in batch.pair_ids if key in pairs} == {batch.queue}
    sizes = [sum(key in pairs for key in batch.pair_ids) for batch in made if batch.pool == "paraphrasing"]
    assert sizes == [8, 8, 8]  # 24 pairs in batches of at most 10: three, as even as can be


def test_each_batch_has_a_positive_and_a_negative_and_repeats_come_after_their_pairs(study: Study) -> None:
    controls = {pair.pair_id: pair for pair in CampaignRecords(study).controls}
    for batch in batches(study):
        kinds = Counter(controls[key].control for key in batch.pair_ids if key in controls)
        assert kinds["negative"] == 1
        assert kinds["positive"] == (batch.pool == "paraphrasing")  # a translation has none
        assert kinds["repeat"] == 1  # as the study says, though one more was drawn for a pilot
        for place, key in enumerate(batch.pair_ids):
            if key in controls and controls[key].control == "repeat":
                assert controls[key].repeats in batch.pair_ids[:place]


@pytest.mark.parametrize("size", [1, 4, 24])
@pytest.mark.parametrize("repeats", [1, 30])
@pytest.mark.parametrize("blocks", [[], [8, 16, 24]])
def test_a_third_of_a_batch_and_of_a_block_lies_between_a_pair_and_its_repeat_or_there_is_none(
    variant: Make, size: int, repeats: int, blocks: list[int]
) -> None:
    sample = {"pairs": 24, "batch": size, "controls": 0, "repeats": repeats}
    parts: dict[str, Any] = {"raters": {"blocks": blocks}, "acceptance": {"rule": "lower_bound", "min_pairs": 8}}
    study = variant(transformations=["paraphrasing", "translation"], sample=sample, **(parts if blocks else {}))
    generate_once(study)
    draw_sample(study)
    records = CampaignRecords(study)
    first_of = {pair.pair_id: pair.repeats for pair in records.controls}
    for batch in batches(study):
        for place, key in enumerate(batch.pair_ids):
            if key in first_of:
                between = batch.pair_ids[batch.pair_ids.index(first_of[key]) + 1 : place]
                assert len(between) >= len(batch.pair_ids) / 3
    # A third of each queue, or of each block, can lie between: with all that come twice first, and the repeats last.
    numbers = block_numbers(study, records.pairs, records.controls) if blocks else {}
    parts_of = Counter[tuple[Queue, int]](), Counter[tuple[Queue, int]]()
    for pair in records.shown:
        parts_of[bool(pair.repeats)][Queue.of(pair), numbers.get(pair.pair_id, 0)] += 1
    once, again = parts_of
    assert again and all(number - 1 >= (number + again[part]) / 3 for part, number in once.items() if again[part])


def test_the_pilot_is_one_batch_a_group_of_languages_and_leaves_the_rest_for_later(study: Study) -> None:
    pilot = batches(study, pilot=5)
    assert Counter(batch.queue.languages for batch in pilot).most_common(1)[0][1] == 1
    assert all(batch.pilot for batch in pilot)
    rest = batches(study, taken=pilot)
    shown = Counter(key for batch in [*pilot, *rest] for key in batch.pair_ids)
    assert set(shown.values()) == {1}
    assert {pair.pair_id for pair in CampaignRecords(study).pairs} <= set(shown)
    kinds = [_kinds(study, batch) for batch in [*pilot, *rest]]
    assert all(found["negative"] == found["repeat"] == 1 for found in kinds)
    assert batches(study, taken=[*pilot, *rest]) == []
    assert batches(study, taken=pilot, pilot=5) == []  # every group has had its pilot


def _kinds(study: Study, batch: Batch) -> Counter[str]:
    return Counter(pair.control for pair in CampaignRecords(study).controls if pair.pair_id in batch.pair_ids)


def test_batches_are_the_same_at_each_call_and_others_by_another_seed(study: Study) -> None:
    assert batches(study) == batches(study)
    other = study.model_copy(update={"sample": study.sample.model_copy(update={"seed": 7})})
    other._exports = study._exports
    here, there = ({one.batch_id for one in batches(each) if one.pool == "paraphrasing"} for each in (study, other))
    assert len(here) == 3 and here.isdisjoint(there)


def test_a_pilot_that_is_too_large_is_refused_in_the_words_of_the_study(tmp_path: Path) -> None:
    study = study_of(tmp_path, {"dataset": "search", "items": 3, "raters": 1, "candidates": 6}, name="large-pilot")
    draw_sample(study)
    with pytest.raises(StudyError, match=rf"no {study.called.judged} has more than 3 items left in any language"):
        batches(study, pilot=25)
