"""Adjudication in a real Argilla: judges' scores are suggestions there, and what is answered is no rating."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation import server
from annotation.adjudication import (
    ADJUDICATIONS,
    SAID,
    DisputedPairs,
    collect_adjudications,
    judged_text,
    publish_review,
)
from annotation.anchoring import SHOWN, read_anchoring, suggestions_to_show
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.argilla.simulate import simulate
from annotation.campaign_records import CampaignRecords
from annotation.judges.decisions import read_judging
from annotation.judges.pool import draw_judged
from annotation.judges.run import judge
from annotation.names import account_pseudonym
from annotation.ratings.ratings import saw_scores
from annotation.records import Adjudication, Review
from annotation.report.page import write_report
from annotation.sampling.sample import draw_sample, extend_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from plumbline.errors import DataError, StudyError
from plumbline.study import Study
from tests.annotation.campaigns import ALONE, Make, answer, dataset, pending, rater, small

Rows = dict[tuple[str, str], Adjudication]


def judged(variant: Make, name: str, folder: Path, **changes: Any) -> Study:
    """A small study whose judges find quality 2 and fluency 1 everywhere, and say nothing of its first pair."""
    engine = {"kind": "recorded", "path": str(folder / "said.jsonl")}
    models = {"oracle": "seer", "sibyl": "cuma"}
    judges = [{"name": name, "engine": {**engine, "model": model}, "score": "text"} for name, model in models.items()]
    study = small(variant, name, transformations=["paraphrasing"], judges=judges, judge_pool=6, **changes)
    lines = [
        {"original": one.original, "transformed": one.transformed, "answers": {"quality": "2", "fluency": "1"}}
        for one in draw_judged(study, keep=False)
    ]
    lines[0]["answers"] = {"quality": "I cannot say", "fluency": "?"}
    (folder / "said.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    judge(study)
    return study


def of_records(argilla: Argilla, dataset_id: str) -> list[dict[str, Any]]:
    params = {"include": ["responses", "suggestions"], "limit": 100}
    found: list[dict[str, Any]] = argilla.request("GET", f"/datasets/{dataset_id}/records", params=params)["items"]
    return found


def farthest(study: Study) -> list[str]:
    """The pairs by how far people's means are from 2 and 1, on the question where they are farthest."""
    ratings = CampaignRecords.open(study).all_ratings
    known = set(DisputedPairs.of(Evidence.open(study)).rows["pair_id"])
    assert len(known) == 3  # of four: judges said nothing of one
    means = ratings[ratings["pair_id"].isin(known)].groupby(["pair_id", "question"])["value"].mean().unstack()
    far = (means.astype(float) - pd.Series({"quality": 2, "fluency": 1})).abs().max(axis=1)
    return [str(one) for one in far.sort_values(ascending=False, kind="stable").index]


def adjudicated(argilla: Argilla, study: Study, eve: server.User, shown: list[dict[str, Any]]) -> tuple[Rows, str]:
    """Eve answers one pair and discards the other, which she drafts first; what is collected, and her pseudonym."""
    one, other = shown
    assert {record["id"] for record in pending(argilla, eve, one["dataset_id"])} == {one["id"], other["id"]}
    answer(argilla, eve, one, "submitted", quality=4, fluency=5, comment="they read it well")
    answer(argilla, eve, other, "draft", quality=1)
    assert len(collect_adjudications(study, argilla)) == 2  # a draft waits
    records = of_records(argilla, one["dataset_id"])
    drafted = next(record["responses"][0]["id"] for record in records if record["id"] == other["id"])
    argilla.request("PUT", f"/responses/{drafted}", api_key=eve.api_key, json={"status": "discarded"})
    collect(study, argilla)
    collect_adjudications(study, argilla)
    rows = {(row.pair_id, row.question): row for row in CampaignRecords.open(study).models(ADJUDICATIONS)}
    called = next(user.id for user in argilla.users() if user.username == eve.username)
    return rows, account_pseudonym(study.name, called, simulated=False)


def refused_while_open(argilla: Argilla, study: Study) -> None:
    """While a pair of the campaign waits for an answer, she could still give it."""
    first = of_records(argilla, dataset(study, argilla))[0]
    argilla.request("DELETE", f"/responses/{first['responses'][0]['id']}")
    with pytest.raises(StudyError, match="'settle-eve' can still rate 1 pair of settle and would see others'"):
        publish_review(study, argilla, 2, ["settle-eve"])
    assert CampaignRecords.open(study).reviews == [] and not any("REVIEW" in name for name in argilla.workspaces())
    simulate(study, argilla)


def test_adjudicators_see_what_judges_and_people_said_and_give_no_rating(
    argilla: Argilla, variant: Make, far: Callable[[Study], Study], tmp_path: Path
) -> None:
    study = far(judged(variant, "settle", tmp_path))
    eve = rater(argilla, "settle-eve")
    publish(study, argilla)
    simulate(study, argilla)
    collect(study, argilla)
    with pytest.raises(DataError, match="plumbline accept"):  # what judges said is seen after the verdicts
        DisputedPairs.of(Evidence.open(study))
    accept(study)
    with pytest.raises(StudyError, match="'settle-eva' has no annotator's account.* did you mean 'settle-eve'"):
        publish_review(study, argilla, 2, ["settle-eva"])

    refused_while_open(argilla, study)
    collect(study, argilla, replace=True)
    accept(study)
    kept = ("ratings.parquet", "control_ratings.parquet", "verdicts.json", "agreement.json", "pair_means.parquet")
    before = {name: (study.folder / name).read_bytes() for name in kept}
    found = publish_review(study, argilla, 2, ["settle-eve"])
    assert found.new == {"settle-REVIEW-paraphrasing-EN": 2} and found.rated == {}
    assert publish_review(study, argilla, 2, ["settle-eve"]).new == {"settle-REVIEW-paraphrasing-EN": 0}
    assert found.pairs == farthest(study)[:2]
    review = next(one.id for (place, _), one in argilla.datasets().items() if place == "settle-REVIEW")
    questions = {one["id"]: one["name"] for one in argilla.request("GET", f"/datasets/{review}/questions")["items"]}
    shown = {record["external_id"]: record for record in of_records(argilla, review)}
    assert set(shown) == set(found.pairs)
    for record in shown.values():
        said = {questions[one["question_id"]]: (one["value"], one["agent"]) for one in record["suggestions"]}
        agent = "mean of oracle and sibyl"
        assert said == {"quality": (2, agent), "fluency": (1, agent)}
        told = record["fields"][SAID]
        assert "oracle (its answers come from a file): quality 2, fluency 1" in told
        assert told.count("(simulated): ") == 3 and "Rater 3" in told
        assert "simulated-" not in told  # no pseudonym
    own = dataset(study, argilla)
    assert not any(record["suggestions"] for record in of_records(argilla, own))  # the campaign has none, as ever
    simulated = next(user for user in argilla.users() if user.username == "simulated-strict")
    listed = argilla.request("GET", "/me/datasets", api_key=simulated.api_key)["items"]
    assert own in {one["id"] for one in listed} and review not in {one["id"] for one in listed}

    rows, called = adjudicated(argilla, study, eve, [shown[pair_id] for pair_id in found.pairs])
    decided = rows[found.pairs[0], "quality"]
    assert (decided.value, decided.suggested, decided.rated) == (4, 2, False)
    assert (decided.adjudicator, decided.comment, decided.status) == (called, "they read it well", "submitted")
    assert {rows[found.pairs[1], name].status for name in ("quality", "fluency")} == {"discarded"} and len(rows) == 4

    accept(study)
    assert {name: (study.folder / name).read_bytes() for name in kept} == before
    text = judged_text(
        DisputedPairs.of(Evidence.open(study)), CampaignRecords.open(study).models(ADJUDICATIONS), {called: "eve"}
    )
    assert "Judges whose answers come from a file: oracle, sibyl" in text and "SIMULATED" in text
    assert f"Adjudications: {called} eve 2 (0 on pairs that the adjudicator had rated)." in text
    argilla.request("DELETE", f"/datasets/{review}")
    with pytest.raises(DataError, match="2 adjudications collected before are no longer at"):
        collect_adjudications(study, argilla)


def test_half_of_an_experiment_shows_judges_scores_and_enters_no_verdict(
    argilla: Argilla, variant: Make, far: Callable[[Study], Study], tmp_path: Path
) -> None:
    raters = {"per_pair": 3, "simulated": [{"name": "strict"}, {"name": "even"}, {"name": "kind"}]}
    parts = {"raters": {**raters, "suggestions": "half"}, "acceptance": {"min_pairs": 2}}
    study = far(judged(variant, "anchor", tmp_path, **parts))
    half = {pair.pair_id for pair in CampaignRecords.open(study).controls}
    with pytest.raises(StudyError, match="but there are none; run `plumbline judge run"):
        publish(study, argilla)
    shown = suggestions_to_show(study)
    noted = {(one.pair_id, one.shown) for one in CampaignRecords.open(study).models(SHOWN)}
    assert len(noted) == 3 and {pair_id for pair_id, seen in noted if seen} == set(shown) <= half and len(half) == 2
    publish(study, argilla, suggestions=shown)
    for record in of_records(argilla, dataset(study, argilla)):
        values = sorted(one["value"] for one in record["suggestions"])
        assert values == ([1, 2] if record["external_id"] in shown else [])
        assert not any(word in json.dumps(record["metadata"]) for word in ("oracle", "sibyl"))
    file = tmp_path / "said.jsonl"
    said = file.read_text(encoding="utf-8")
    file.write_text("", encoding="utf-8")
    assert repr(suggestions_to_show(study)) == repr(shown)  # what was noted holds
    file.write_text(said, encoding="utf-8")

    simulate(study, argilla)
    ratings = collect(study, argilla)
    assert len(ratings) == 2 * 3 * 2 and not half & set(ratings["pair_id"])
    done = accept(study)
    assert [one.n_pairs for one in done.verdicts] == [2] and any("other half" in line for line in done.doubts)
    found = read_anchoring(done.evidence)
    assert found[["n_shown", "n_hidden", "left_out"]].sum(axis=1).tolist() == [3] * 4  # one has no score
    assert "(raters.suggestions)" in read_judging(done.evidence).refused
    page = write_report(study).read_text(encoding="utf-8")
    assert page.index("What was decided</h2>") < page.index("Anchoring: an experiment</h2>")

    judges = [judge.model_dump(exclude_unset=True) for judge in study.judges]
    sample = {"pairs": 4, **ALONE}
    other = far(variant(name="anchor", transformations=["paraphrasing"], sample=sample, raters=raters, judges=judges))
    with pytest.raises(StudyError, match="asks for other pairs"):
        draw_sample(other)
    with pytest.raises(StudyError, match="is 'none', but the sample was drawn with a half that shows"):
        publish(other, argilla)
    with pytest.raises(StudyError, match="is 'none', but the sample was drawn with a half that shows"):
        extend_sample(other, "more")
    with pytest.raises(StudyError, match="the sample of an experiment with suggestions is drawn only once"):
        extend_sample(study, "more")


def test_who_rates_after_having_seen_judges_scores_is_named() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    review = Review(at=at, pairs=("p",), adjudicators=("rater-1", "rater-2"), judges=("oracle",))
    times = {"rater-1": at + timedelta(hours=1), "rater-2": at - timedelta(hours=1), "rater-3": at + timedelta(hours=1)}
    ratings = pd.DataFrame({"rater_id": list(times), "status": "submitted", "submitted_at": list(times.values())})
    assert saw_scores([review], ratings) == ["rater-1"] and saw_scores([], ratings) == []
    assert saw_scores([review], ratings.assign(status="draft")) == []
