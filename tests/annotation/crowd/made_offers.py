"""Offers of made-up pairs, for tests of a platform alone."""

from __future__ import annotations

from collections.abc import Sequence

from annotation.crowd.batches import Batch
from annotation.crowd.platform import Offer
from plumbline.records import Pair

TEXTS = (("The cat sat on the mat.", "On the mat sat the cat."), ("It rains in Leeds.", "In Leeds it is raining."))


def make_offer(
    texts: Sequence[tuple[str, str]] = TEXTS,
    languages: tuple[str, str] = ("en", "en"),
    places: int = 3,
    reward: int = 120,
    pool: str = "paraphrasing",
) -> Offer:
    """A batch of these texts, `p0`, `p1` and so on, for so many workers at so many cents."""
    pairs = tuple(
        Pair(
            pair_id=f"p{number}", key=f"k{number}", transformation=pool, axis="form", pool=pool, dataset="demo",
            task_type="sts", language=languages[0], output_language=languages[1], seed=0, original=original,
            transformed=transformed, model="m", generator_hash="g", prompt_hash="h",
        )
        for number, (original, transformed) in enumerate(texts)
    )  # fmt: skip
    batch = Batch(
        batch_id=f"batch{len(pairs)}", pool=pool, language=languages[0], output_language=languages[1], pilot=False,
        pair_ids=tuple(pair.pair_id for pair in pairs),
    )  # fmt: skip
    return Offer(batch, pairs, places, reward)
