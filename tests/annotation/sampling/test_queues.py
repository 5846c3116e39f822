"""Blocks of pairs: the same for the same seed, whole samples of their own, with controls and repeats in each."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from annotation.argilla.publish import Publication
from annotation.campaign.offering import ARGILLA, begin_offering
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.crowd.batches import make_batches
from annotation.crowd.page import question_xml
from annotation.human.order import pages_shown
from annotation.preview import preview_html
from annotation.ratings.answers import Answer, SourcePart, keep
from annotation.sampling.candidates import overlap, words_of
from annotation.sampling.controls import UNRELATED, ControlDesign, all_but_unchanged
from annotation.sampling.queues import Queue, block_numbers, in_order, queues_of
from annotation.sampling.sample import draw_sample, extend_sample
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import fix_rules
from plumbline.errors import StudyError
from plumbline.records import Pair
from plumbline.statistics.group_sequential import FEWEST
from plumbline.study import Study, campaign, load_study
from tests.annotation.campaigns import SYSTEMS, Make, systems
from tests.annotation.crowd.offers import batch_offer
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


THREE = {"pairs": 6, "together": True, "batch": 9}


def by_page(pages: dict[str, str], pairs: list[Pair]) -> list[list[Pair]]:
    """The pairs of each page, in the order of the first."""
    found = defaultdict[str, list[Pair]](list)
    for pair in pairs:
        found[pages[pair.pair_id]].append(pair)
    return list(found.values())


def test_every_page_has_as_many_outputs_and_a_batch_has_whole_pages(tmp_path: Path) -> None:
    study = systems(tmp_path, *SYSTEMS, sample=THREE)
    records = CampaignRecords(study)
    pages = pages_shown(study, records.shown)
    kinds = defaultdict[tuple[str, ...], list[list[Pair]]](list)
    for page in by_page(pages, records.shown):
        assert len({pair.original for pair in page}) == 1
        kinds[tuple(sorted(pair.control for pair in page))].append(page)
    drawn, checks, again = ("", "", ""), ("negative", "negative", "positive"), ("repeat", "repeat", "repeat")
    assert {kind: len(found) for kind, found in kinds.items()} == {drawn: 6, checks: 2, again: 2}  # two batches
    assert all({pair.transformation for pair in page} == {*SYSTEMS} for page in kinds[drawn])
    assert all(len({pair.transformed for pair in page}) == 3 for page in kinds[checks])
    page_ids = [{pair.pair_id for pair in page} for page in kinds[drawn]]
    assert all({pair.repeats for pair in page} in page_ids for page in kinds[again])
    assert ControlDesign.of(study, load_rubric(study)).beside("systems") == 3 + 3
    batches = make_batches(study, records.pairs, records.controls)
    assert sorted(pair_id for batch in batches for pair_id in batch.pair_ids) == sorted(pages)
    for batch in batches:
        shown = [records.shown_by_id[pair_id] for pair_id in batch.pair_ids]
        once = [pair for pair in shown if not pair.repeats]
        assert [len(page) for page in by_page(pages, shown)] == [3] * (len(shown) // 3)
        assert [len(page) for page in by_page(pages, once)] == [3] * (3 + 1)
        assert [pair.repeats for pair in shown[len(once) :]] == list(batch.pair_ids[: len(shown) - len(once)])
    assert preview_html(records, most=1).count("srcdoc") == 1
    offer = batch_offer(study, pairs=3, salt="page", pool="zebu")
    with pytest.raises(StudyError, match="MTurk.*by link, or take sample.together out"):
        question_xml(study, records.rubric, offer, "https://example.org")


def test_a_system_that_would_be_seen_alone_cannot_join_and_the_pages_stay(tmp_path: Path) -> None:
    study = systems(tmp_path, "zebu", "okapi", name="joined")
    records = CampaignRecords(study)
    begin_offering(records, ARGILLA, records.rubric)
    fix_rules(records)
    with pytest.raises(StudyError, match="was offered to raters"):
        systems(tmp_path, "zebu", "okapi", "quokka", name="joined")
    with pytest.raises(StudyError, match="would see those of quokka alone; make a new study"):
        extend_sample(load_study(study.file, exports=study.folder.parent), "a third system")
    assert Publication({}, None, singly=True).lines() == [  # type: ignore[arg-type]
        "sample.together: the page of this Argilla shows one output at a time; Plumbline's own server shows all"
    ]


@pytest.mark.parametrize(("seconds", "fast"), [(4.8, False), (2.4, True)])
def test_who_reads_an_original_once_for_all_of_its_outputs_is_not_too_fast(
    tmp_path: Path, seconds: float, fast: bool
) -> None:
    """Of three outputs with 10 to 13 words each and an original with 6 to 10: 1.6 s each are enough, 0.8 s are not."""
    study = systems(tmp_path, *SYSTEMS, sample={**THREE, "pairs": 8, "repeats": 0})
    records = CampaignRecords(study)
    start, answers = datetime(2026, 3, 1, tzinfo=UTC), list[Answer]()
    for number, page in enumerate(by_page(pages_shown(study, records.pairs), records.pairs)):
        for place, pair in enumerate(page):
            at = start + timedelta(seconds=number * seconds + place / 100)
            values = {"quality": 1 + (number + place) % 5, "fluency": 1 + place}
            answers.append(Answer(pair_id=pair.pair_id, values=values, submitted_at=at.isoformat(), rater_id="rater"))
    keep(records, "here.csv", {"here.csv": SourcePart("", tuple(answers))}, replace=False)
    assert ("too fast" in {sign.rule for sign in Evidence(study).signs}) == fast


def test_what_cannot_be_shown_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="sample.together: no two transformations share a queue"):
        systems(tmp_path, "zebu")
    by_blocks = {"raters": {"blocks": [8, 16]}, "acceptance": {"rule": "lower_bound", "min_pairs": 8}}
    with pytest.raises(StudyError, match="sample.together: raters.blocks deal out"):
        systems(tmp_path, "zebu", "okapi", **by_blocks)
