"""Blocks of pairs: the same for the same seed, whole samples of their own, with controls and repeats in each."""

from __future__ import annotations

from collections import Counter

import pytest

from annotation.campaign.records import CampaignRecords
from annotation.sampling.candidates import overlap, words_of
from annotation.sampling.controls import UNRELATED, all_but_unchanged
from annotation.sampling.queues import Queue, block_numbers, in_order, queues_of
from annotation.sampling.sample import draw_sample
from plumbline.statistics.group_sequential import FEWEST
from plumbline.study import Study, campaign
from tests.annotation.campaigns import Make
from tests.shared import generate_once

RULE = {"rule": "lower_bound", "min_pairs": 8}
SAMPLE = {"pairs": 24, "batch": 8, "controls": 1, "repeats": 1}


def by_blocks(variant: Make, name: str = "blocks", **changes: object) -> Study:
    """A drawn study of three transformations whose verdicts are looked at after 8, 16 and 24 pairs."""
    parts = {"name": name, "transformations": ["paraphrasing", "translation", "cross_translation"], "sample": SAMPLE}
    study = variant(**(parts | {"raters": {"per_pair": 3, "blocks": [8, 16, 24]}, "acceptance": RULE} | changes))
    generate_once(study)
    draw_sample(study)
    return study


def test_each_block_has_its_share_of_pairs_controls_and_repeats(variant: Make) -> None:
    records = CampaignRecords(by_blocks(variant))
    numbers = block_numbers(records.study, records.pairs, records.controls)
    again = block_numbers(records.study, records.pairs[::-1], records.controls[::-1])
    assert numbers == again
    paraphrases = [pair for pair in records.pairs if pair.pool == "paraphrasing"]
    assert Counter(numbers[pair.pair_id] for pair in paraphrases) == {0: 8, 1: 8, 2: 8}
    checks = [pair for pair in records.controls if Queue.of(pair) == Queue("paraphrasing", "en", "en")]
    by_kind = Counter((pair.control, numbers[pair.pair_id]) for pair in checks)
    assert by_kind == {(kind, block): 1 for kind in ("positive", "negative", "repeat") for block in range(3)}
    for pair in records.controls:
        if pair.repeats:
            assert numbers[pair.pair_id] == numbers[pair.repeats]


def test_the_first_block_has_a_control_of_each_kind_however_few_there_are(variant: Make) -> None:
    records = CampaignRecords(by_blocks(variant))
    own = (pair for pair in records.controls if not pair.repeats and pair.transformation == "paraphrasing")
    few = {pair.control: pair for pair in own}
    numbers = block_numbers(records.study, records.pairs, list(few.values()))
    assert [numbers[pair.pair_id] for pair in few.values()] == [0, 0]


def test_a_pool_with_more_pairs_than_its_last_block_leaves_the_others_out(variant: Make) -> None:
    records = CampaignRecords(by_blocks(variant))
    numbers = block_numbers(records.study, records.pairs, records.controls)
    pooled = [pair for pair in records.pairs if pair.pool == "translation"]
    assert len(pooled) == 48 and sum(pair.pair_id in numbers for pair in pooled) == 24
    first = {pair.transformation for pair in pooled if numbers.get(pair.pair_id) == 0}
    assert first == {"translation", "cross_translation"}  # a block is of the whole pool
    assert all(pair.repeats in numbers for pair in records.controls if pair.repeats)


def test_every_batch_of_every_queue_has_its_controls_and_repeats(variant: Make) -> None:
    sample = {"pairs": 24, "batch": 10, "controls": 2, "repeats": 1}
    study = variant(transformations=["paraphrasing", "cross_translation"], sample=sample)
    generate_once(study)
    draw_sample(study)
    controls = queues_of(CampaignRecords(study).controls)
    for queue, pairs in queues_of(CampaignRecords(study).pairs).items():
        batches = -(-len(pairs) // 10)  # 24 paraphrases: 3 batches
        counts = Counter(pair.control for pair in controls[queue])
        expected = {"positive": 2 * batches, "negative": 2 * batches, "repeat": batches}
        if queue.pool == "translation":  # nothing is a translation of a text by construction
            del expected["positive"]
        assert counts == expected
    assert Counter(pair.control for pair in controls[Queue("paraphrasing", "en", "en")])["negative"] == 6


def test_controls_are_what_they_are_called_and_differ_from_the_sample(generated: Study) -> None:
    draw_sample(generated)
    sample = {pair.pair_id: pair for pair in CampaignRecords(generated).pairs}
    shown = {(Queue.of(pair), pair.original) for pair in sample.values()}
    controls = CampaignRecords(generated).controls
    assert {control.control for control in controls} == {"positive", "negative", "repeat"}
    for control in controls:
        assert control.pair_id not in sample
        if control.control == "repeat":
            again = sample[control.repeats]
            assert (control.original, control.transformed) == (again.original, again.transformed)
            continue
        assert (Queue.of(control), control.original) not in shown  # there are texts enough that were not drawn
        if control.control == "negative":
            assert overlap(words_of(control.original), words_of(control.transformed)) <= UNRELATED
        else:
            assert control.original != control.transformed
            assert words_of(control.original) == words_of(control.transformed)


@pytest.mark.parametrize(
    ("text", "language", "changed"),
    [
        ("The shop is closed.", "en", "The shop is closed"),
        ("cheap flights", "en", "cheap flights."),
        ("Is it open?", "en", "is it open?"),
        ("هل هو مفتوح؟", "ar", "هل هو مفتوح؟؟"),
        ("店は閉まっている", "ja", "店は閉まっている。"),
        ("店は閉まっている。", "ja", "店は閉まっている"),
    ],
)
def test_a_text_all_but_unchanged(text: str, language: str, changed: str) -> None:
    assert all_but_unchanged(text, language) == changed


def test_blocks_stand_in_the_samples_random_order(variant: Make) -> None:
    records = CampaignRecords(by_blocks(variant))
    ids = [pair.pair_id for pair in records.pairs if pair.pool == "paraphrasing"]
    numbers = block_numbers(records.study, records.pairs)
    assert [numbers[pair_id] for pair_id in in_order(ids, records.study.sample.seed)] == [0] * 8 + [1] * 8 + [2] * 8


def test_a_block_is_as_large_as_a_look_needs() -> None:
    assert campaign._FEWEST == FEWEST
