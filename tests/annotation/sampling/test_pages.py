"""Outputs of an original on one page: all of its systems, checks that no number tells, and what cannot be shown so."""

from __future__ import annotations

from collections import defaultdict
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
from annotation.sampling.controls import ControlDesign
from annotation.sampling.sample import extend_sample
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import fix_rules
from plumbline.errors import StudyError
from plumbline.records import Pair
from plumbline.study import load_study
from tests.annotation.campaigns import SYSTEMS, systems
from tests.annotation.crowd.offers import batch_offer

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
