"""Other subjects than pairs, from the draw through Argilla to verdicts and pages."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.argilla.simulate import simulate
from annotation.argilla.workspaces import published
from annotation.ratings.review import signs_of
from annotation.report.page import write_report
from annotation.sampling.controls import read_controls
from annotation.sampling.sample import draw_sample
from annotation.status.status import read_status
from annotation.verdicts.acceptance import accept
from annotation.verdicts.verdicts import read_verdicts
from annotation.verdicts.verification import refuse_edited
from streamlit_app.readers import verdicts as page
from tests.annotation.campaigns import answer, rater
from tests.annotation.subjects import CHAT, ask, rubric, texts


def test_texts_of_a_file_from_the_draw_to_verdicts(
    argilla: Argilla, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ask(monkeypatch, tmp_path, rubric())
    study = texts(tmp_path, "subject-texts")
    pairs = draw_sample(study)
    assert Counter((pair.transformation, pair.language) for pair in pairs) == {
        ("machine", "en"): 9, ("human", "en"): 5, ("human", "de"): 4,
    }  # fmt: skip
    known = [pair for pair in read_controls(study) if pair.control == "known"]
    assert len(known) == 2 and all(json.loads(pair.expected)["label"] for pair in known)  # one a batch of nine

    publish(study, argilla)
    datasets = {queue: listed.id for queue, listed in published(study, argilla).items()}
    assert sorted(queue.dataset(study) for queue in datasets) == ["subject-texts-texts-DE", "subject-texts-texts-EN"]
    english = next(one for queue, one in datasets.items() if queue.language == "en")
    fields = argilla.request("GET", f"/datasets/{english}/fields")["items"]
    assert [(one["name"], one["title"], one["settings"]["type"]) for one in fields] == [
        ("text", "Instruction", "text"), ("talk", "Talk", "chat"),
    ]  # fmt: skip
    records = list(argilla.records(english))
    assert records[0]["fields"]["talk"] == CHAT
    sent = json.dumps(records, ensure_ascii=False)
    assert not any(word in sent for word in ("acceptable", "machine", "human", "known"))  # no gold, and no group

    person = rater(argilla, "subject-ada")
    publish(study, argilla)
    control = next(one for one in records if one["external_id"] in {pair.pair_id for pair in known})
    right = next(json.loads(pair.expected)["label"] for pair in known if pair.pair_id == control["external_id"])
    wrong = "unnatural" if right == "acceptable" else "acceptable"
    answer(argilla, person, control, "submitted", label=wrong)
    assert simulate(study, argilla)
    ratings = collect(study, argilla)
    assert set(ratings["question"]) == {"label"} and set(ratings["transformation"]) == {"human", "machine"}
    assert not set(ratings["pair_id"]) & {pair.pair_id for pair in known}
    signs = {sign.evidence for sign in signs_of(study) if sign.rule == "controls"}
    assert f"1 of 1 answers to controls are off: known label {wrong} for {right}" in signs

    accept(study)
    verdicts = {(one.transformation, one.language): one for one in read_verdicts(study)}
    assert set(verdicts) == {("human", "en"), ("human", "de"), ("machine", "en")}
    for (group, language), verdict in verdicts.items():
        own = ratings[(ratings["transformation"] == group) & (ratings["language"] == language) & ~ratings["surplus"]]
        share = next(one.share.value for one in verdict.questions[0].shares if one.label == "acceptable")
        assert share == pytest.approx((own["answer"] == "acceptable").mean())
        assert verdict.decision == ("accepted" if share >= 0.6 else "rejected")
        assert (verdict.generator_kind, verdict.model) == ("texts", "subject-texts.jsonl")
    refuse_edited(study, read_verdicts(study))
    stages = read_status(study, datetime.now(UTC)).stages
    assert {name for name, stage in stages.items() if stage.state != "done"} == {"report", "scores"}
    html = write_report(study).read_text(encoding="utf-8")
    assert "The texts of human come from the file subject-texts.jsonl." in html
    assert len(page.labels(study).frame)
    pd.testing.assert_frame_equal(collect(study, argilla), ratings)
