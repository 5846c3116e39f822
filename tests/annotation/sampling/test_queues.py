"""Blocks of pairs: the same for the same seed, whole samples of their own, with controls and repeats in each."""

from __future__ import annotations

from collections import Counter

from annotation.campaign.records import CampaignRecords
from annotation.sampling.queues import Queue, block_numbers, in_order
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


def test_blocks_stand_in_the_samples_random_order(variant: Make) -> None:
    records = CampaignRecords(by_blocks(variant))
    ids = [pair.pair_id for pair in records.pairs if pair.pool == "paraphrasing"]
    numbers = block_numbers(records.study, records.pairs)
    assert [numbers[pair_id] for pair_id in in_order(ids, records.study.sample.seed)] == [0] * 8 + [1] * 8 + [2] * 8


def test_a_block_is_as_large_as_a_look_needs() -> None:
    assert campaign._FEWEST == FEWEST
