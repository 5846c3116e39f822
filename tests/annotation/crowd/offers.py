"""Batches of a drawn study, as they are offered."""

from __future__ import annotations

from annotation.campaign.records import CampaignRecords
from annotation.crowd.batches import Batch
from annotation.crowd.platform import Offer
from plumbline.identity import identity
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
