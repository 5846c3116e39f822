"""Batches of a drawn study, as they are offered."""

from __future__ import annotations

from collections.abc import Sequence

from annotation.campaign.records import CampaignRecords
from annotation.crowd.batches import Batch
from annotation.crowd.platform import Offer
from plumbline.identity import identity
from plumbline.records import Pair
from plumbline.study import Study


def batch_offer(study: Study, pairs: int, salt: str = "", places: int = 2, pool: str = "paraphrasing") -> Offer:
    """The first so many pairs of a pool's first queue as one batch; another one for each `salt`."""
    own = [pair for pair in CampaignRecords(study).pairs if pair.pool == pool]
    shown = [pair for pair in own if pair.output_language == own[0].output_language][:pairs]
    batch = Batch(
        batch_id=identity("offer", study.name, salt, *(pair.pair_id for pair in shown))[:16], pool=pool,
        language=shown[0].language, output_language=shown[0].output_language, pilot=False,
        pair_ids=tuple(pair.pair_id for pair in shown),
    )  # fmt: skip
    return Offer(batch, tuple(shown), places, 80)


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
