"""From signs to a decision, and what becomes of the verdicts: on ratings written by hand, without a server."""

from __future__ import annotations

from annotation.campaign.counting import counting_ratings
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.ratings.decisions import decide, review_text
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from plumbline.manifest import Manifest
from plumbline.records import Rating
from plumbline.study import Study
from tests.annotation.ratings.test_signs import honest
from tests.concluded import concluded
from tests.shared import rating_of


def rate(study: Study) -> None:
    """Raters b and c are careful; a gives 1 and 1 to everything, the controls and repeats that there are among it."""
    draw_sample(study)
    rubric = load_rubric(study)
    rows: dict[bool, list[Rating]] = {True: [], False: []}
    for number, pair in enumerate([*CampaignRecords(study).pairs, *CampaignRecords(study).controls]):
        for rater in ("a", "b", "c"):
            for question in rubric.question_names():
                careful = rubric.expected(pair.pool, pair.control).get(question, honest(number, question))
                if pair.control == "repeat":
                    careful = next(r.value for r in rows[False] if (r.pair_id, r.question) == (pair.repeats, question)
                                   and r.rater_id == "b")  # fmt: skip
                rows[bool(pair.control)].append(
                    rating_of(pair, rater, question, 1 if rater == "a" else careful, seconds=30.0)
                )
    Manifest.of(study).write_table("ratings.parquet", rows[False], Rating)
    Manifest.of(study).write_table("control_ratings.parquet", rows[True], Rating)


def test_a_decision_that_was_noted_by_a_killed_run_counts(generated: Study) -> None:
    rate(generated)
    before = CampaignRecords(generated).ratings
    decide(generated, "a", exclude=True, reason="fails controls")
    Manifest.of(generated).write_table("ratings.parquet", before, Rating)  # as though it had been killed before this
    accept(generated)
    ratings = CampaignRecords(generated).ratings
    assert set(ratings.loc[ratings["excluded"] == "fails controls", "rater_id"]) == {"a"}
    assert {verdict.n_ratings for verdict in concluded(generated).verdicts} == {
        96,
        192,
    }  # 24 pairs (or 48) x 2 raters x 2


def reviewed(study: Study) -> str:
    evidence = Evidence.read(study)
    return review_text(evidence, evidence.signs)


def test_a_rater_who_clicks_through_is_shown_excluded_and_let_in_again(generated: Study) -> None:
    rate(generated)
    signs = Evidence(generated).signs
    assert {sign.rater_id for sign in signs} == {"a"}
    assert {"controls", "same answer", "apart from the others"} <= {sign.rule for sign in signs}
    assert "decide nothing" in reviewed(generated)

    before = len(counting_ratings(CampaignRecords(generated).ratings, per_pair=3))
    decision = decide(generated, "a", exclude=True, reason="fails  controls\n", signs=signs)
    assert decision.reason == "fails controls"
    assert any(line.startswith("controls: ") for line in decision.signs)
    ratings = CampaignRecords(generated).ratings
    assert set(ratings.loc[ratings["excluded"] != "", "rater_id"]) == {"a"}
    assert len(ratings) == before  # nothing is deleted
    assert len(counting_ratings(ratings, per_pair=3)) == before * 2 // 3
    assert {sign.rater_id for sign in Evidence(generated).signs} == {"a"}  # the decision does not hide why
    text = reviewed(generated)
    assert "fails controls" in text
    to_read = text[text.index("to read, with a mean") : text.index("Decisions")].splitlines()
    numbers = {line.split()[-1] for line in to_read if line.split()[-1:] and line.split()[-1].isdigit()}
    assert numbers == {"2"}  # the means are of the ratings that count

    decide(generated, "a", exclude=False, reason="has explained it")
    assert len(counting_ratings(CampaignRecords(generated).ratings, per_pair=3)) == before
    assert [one.exclude for one in CampaignRecords(generated).decided] == [True, False]
