"""Questions of other kinds on the crowd's page, in a browser and in a whole batch: what is ticked is what arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from annotation.campaign.records import CampaignRecords
from annotation.crowd import judging
from annotation.crowd.collecting import collect
from annotation.ratings.decisions import decide
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from plumbline.fields import expected_of
from tests.annotation import subjects
from tests.annotation.campaigns import Make
from tests.annotation.crowd.campaigns import drawn, honest, step
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.crowd.test_campaign import launch
from tests.annotation.kinds import BETTER, FAULTS, NATURAL, ORDER, RULES, ask, rubric


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MTurkSite]:
    ask(monkeypatch, tmp_path, rubric(NATURAL, FAULTS, BETTER, ORDER))
    with MTurkSite() as running:
        yield running


def test_a_batch_of_all_kinds_is_collected_paid_and_judged(variant: Make, site: MTurkSite) -> None:
    study = drawn(variant, rubric="kinds", acceptance={"rules": RULES, "min_pairs": 4, "min_raters": 1})
    launch(study, site)
    (hit,) = site.hits
    good = honest(study)
    other = {"naturalness": "natural", "faults": "words, grammar", "better": "", "order": "tone>sense = form"}

    def fields(**changes: str) -> dict[str, str]:
        given = {**other, **changes}
        sent = site.fields(hit, lambda pair_id, question: 0 if question in given else good(pair_id, question))
        return {name: given.get(name.rpartition(".")[2], value) for name, value in sent.items()}

    kind, strange = site.work(hit, "kind", fields()), site.work(hit, "strange", fields(naturalness="lovely"))
    found: list[object] = []
    step(study, site, lambda campaign: found.append(collect(campaign).troubles))
    (troubles,) = found
    assert isinstance(troubles, dict) and set(troubles) == {strange}
    assert "naturalness: the question has no label" in troubles[strange] and "lovely" in troubles[strange]
    step(study, site, collect)  # from the ledger
    ratings = CampaignRecords(study).ratings
    assert set(ratings["answer"]) == {"", "natural", "grammar, words", "tone > form = sense"}
    assert len(ratings) == 4 * 5  # pairs; quality, fluency, naturalness, faults, order: the empty text is no answer
    step(study, site, lambda campaign: judging.approve(campaign, [kind], "a trial"))
    (verdict,) = accept(study).verdicts
    assert verdict.decision == "accepted", verdict.reasons


def test_texts_are_rated_paid_and_judged_by_a_crowd(
    site: MTurkSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Texts of two groups: one worker rates well, one misses every known text, and the verdicts are of groups."""
    ask(monkeypatch, tmp_path, subjects.rubric())
    sample = {"pairs": 4, "batch": 8, "controls": 2, "repeats": 0}
    own = [one for one in subjects.rows() if one["language"] == "en"]
    study = subjects.texts(tmp_path, "paid", own, crowd={"countries": {"en": ["US"]}, "share": 1.0}, sample=sample)
    pairs = draw_sample(study)
    groups = {pair.pair_id: pair.transformation for pair in pairs}
    right = {pair.pair_id: expected_of(pair)["label"] for pair in CampaignRecords(study).controls}
    launch(study, site)
    (hit,) = site.hits
    assert not any("right" in name or "expected" in name for name in site.fields(hit))

    def fields(of_known: Callable[[str], str]) -> dict[str, str]:
        """Acceptable from machines, irrelevant from people; `of_known` says what a known text gets."""
        given = {one: "acceptable" if group == "machine" else "irrelevant" for one, group in groups.items()}
        given |= {one: of_known(label) for one, label in right.items()}
        sent = site.fields(hit)
        return {name: given.get(name.partition(".")[0], value) if name.endswith(".label") else value
                for name, value in sent.items()}  # fmt: skip

    careful = site.work(hit, "careful", fields(lambda label: label), seconds=600)
    careless = site.work(hit, "careless", fields(lambda label: "unnatural" if label != "unnatural" else "acceptable"))
    step(study, site, collect)
    assert len(right) == 4  # two of the batch, and two of a pilot
    assert set(CampaignRecords(study).ratings["pair_id"]) == set(groups)
    (suspect,) = {one.rater_id for one in Evidence(study).signs if one.rule == "controls"}  # the careless one
    step(study, site, lambda campaign: judging.approve(campaign, [careful, careless], "a trial"))
    assert {one.status for one in site.assignments.values()} == {"Approved"}
    assert {one.decision for one in accept(study).verdicts} == {"undecided"}  # until a person has looked
    decide(study, suspect, exclude=False, reason="the known texts are disputed")
    accepted = {one.transformation: one for one in accept(study).verdicts}
    shares = {group: {one.label: one.share.value for one in verdict.questions[0].shares}
              for group, verdict in accepted.items()}  # fmt: skip
    assert shares["machine"]["acceptable"] == 1 and shares["human"]["irrelevant"] == 1
    assert {group: one.decision for group, one in accepted.items()} == {"machine": "accepted", "human": "rejected"}
