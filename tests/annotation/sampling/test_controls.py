"""Controls and repeats: enough in every batch, made without a model, with answers that the rubric knows."""

from __future__ import annotations

from collections import Counter

import pytest

from annotation.campaign.records import CampaignRecords
from annotation.sampling.candidates import overlap, words_of
from annotation.sampling.controls import UNRELATED, all_but_unchanged
from annotation.sampling.queues import Queue, queues_of
from annotation.sampling.sample import draw_sample
from plumbline.study import Study
from tests.annotation.campaigns import Make
from tests.shared import generate_once


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
