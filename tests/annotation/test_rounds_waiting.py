"""Nobody waits long because a block is not complete: a made-up crowd of eight, some of whom go away."""

from __future__ import annotations

from annotation.rounds import early_block
from tests.annotation.at_work import campaigns
from tests.scale import scaled


def test_raters_wait_hardly_ever_for_a_block() -> None:
    number = scaled(4, 200)
    early, strict = (campaigns(number, 1, opens_early=opens_early) for opens_early in (True, False))
    assert early.idle <= 0.02 < strict.idle  # goal of at most 2%; without blocks that open early it would be missed
    assert strict.surplus == 0 < early.surplus <= 0.06


def test_a_block_opens_early_where_a_fifth_of_those_at_work_have_nothing_left() -> None:
    blocks = {("a",): (2, 10), ("b",): (1, 30), ("c",): (1, 12)}
    assert early_block(blocks, waiting=1, at_work=8) is None
    assert early_block(blocks, waiting=2, at_work=8) == ("c",)  # fewest blocks open, then fewest answers missing
    assert early_block(blocks, waiting=1, at_work=3) == ("c",)
    assert early_block({}, waiting=3, at_work=3) is None
