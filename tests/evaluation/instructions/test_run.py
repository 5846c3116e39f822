"""The loop of wordings: generated, labelled, gated, scored, kept; by models of character n-grams."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation.campaign.records import CampaignRecords
from evaluation.instructions import run as forecasts
from evaluation.instructions.run import _about_wordings, evaluate_instructions
from evaluation.instructions.units import PromptResults, decide, plan
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.score_frames import SCORES, read_scores
from evaluation.tasks import scoring
from generation.datasets.loading import iter_datasets
from generation.datasets.local import TableDataset
from generation.instructions.run import word_instructions
from generation.instructions.wordings import read_wordings
from plumbline.errors import DataError
from plumbline.fields import fields_of
from plumbline.study import Study
from tests.instructions import label, made

NGRAMS = [{"name": "short", "kind": "lexical"}, {"name": "long", "kind": "lexical"}]
ANSWERS = {
    "Translate the request into Latin:": ["irrelevant", "irrelevant", "acceptable"],
    "Class?": ["unnatural", "irrelevant", "acceptable"],
    "Query": ["acceptable"],
}
WHY = {
    "Translate the request into Latin:": "not accepted: irrelevant, by 2 of 3 raters",
    "Class?": "not accepted: no label was chosen by more than half of the 3 raters",
    "Query": "not accepted: labelled by 1 rater, but 2 are needed",
}


def study_of(folder: Path, **changes: Any) -> Study:
    """The sample study with wordings of one context and people's, for models that load at once."""
    own = folder / "own.csv"
    rows = ["retrieval,Query?", "retrieval,Query:", "retrieval,Find {it} for", "classification,Class?"]
    own.write_text("\n".join(["task,prompt", *rows, "sample_intents,Translate the request into Latin:"]) + "\n")
    subject = {"contexts": ["task_type"], "prompts": str(own), **changes.pop("subject", {})}
    study = made(folder, subject=subject, evaluation={"models": changes.pop("models", NGRAMS[:1])}, **changes)
    word_instructions(study)
    return study


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Any, pd.DataFrame]:
    """A labelled study and what the first run made of it."""
    study = study_of(tmp_path_factory.mktemp("instructions"))
    with pytest.raises(DataError, match=r"there are no verdicts yet; run `plumbline accept"):
        evaluate_instructions(study)
    label(study, ANSWERS)
    expected = forecasts.forecast(study)
    outcome = evaluate_instructions(study)
    assert expected.endswith(f"{outcome.made} scores left; {_texts(study)} texts, 0.03 million characters, to encode")
    return study, outcome, read_scores(study.folder / SCORES)


def _texts(study: Study) -> int:
    """By hand: each distinct query or request once a prompt, passages once."""
    search, intents = iter_datasets(study)
    assert isinstance(search, TableDataset)
    queries, passages = len({one.text for one in search.texts()}), len(set(search.corpus.values()))
    requests = len({one.text for one in intents.texts()})
    # retrieval: default, none, 4 accepted of the machine's 5, 3 of people's; classification: default, none, 5
    return (2 + 4 + 3) * queries + passages + (2 + 5) * requests


def test_every_accepted_wording_is_scored_with_the_default_and_none(scored: tuple[Study, Any, pd.DataFrame]) -> None:
    _, outcome, rows = scored
    assert not outcome.failures and outcome.made == 9 + 7 and outcome.kept == 0
    there = rows[rows["score"].notna()]
    assert there.groupby("task").size().to_dict() == {"sample_retrieval": 9, "sample_intents": 7}
    assert set(there.loc[~there["prompt_id"].isin(["default", "none"]), "label"]) == {"acceptable"}
    left = rows[rows["score"].isna()]
    assert dict(zip(left["text"], left["reason"], strict=True)) == WHY
    assert set(left["split"] + "/" + left["subset"]) == {"test/default"} and there["run"].nunique() == 1
    assert rows.loc[rows["text"] != "", "simulated"].all() and not rows.loc[rows["text"] == "", "simulated"].any()
    effective = dict(zip(there["text"], there["effective"], strict=True))
    assert effective["Find {it} for"] == "Find {it} for " and effective[""] == ""
    lines = "\n".join(_about_wordings(outcome, include_unaccepted=False))
    assert "wordings: 12 scored, 3 not" in lines and "labels are simulated" in lines


def test_wordings_that_mtebs_folders_mix_up_have_scores_of_their_own(scored: tuple[Study, Any, pd.DataFrame]) -> None:
    study, _, rows = scored
    search = next(iter_datasets(study))
    assert isinstance(search, TableDataset)
    spec = study.evaluation.models[0]
    for text in ("Query:", "Query?", "Find {it} for"):
        own = rows[rows["text"] == text]
        frame = search.splits["test"].assign(query=[f"{text} {one}" for one in search.splits["test"]["query"]])
        prefixed = dataclasses.replace(search, splits={"test": frame})
        by_hand = scoring.evaluate(prefixed, ModelHost.of(study).load(spec), "paper", 8)
        assert own["score"].tolist() == [pytest.approx(by_hand, abs=1e-9)]
    assert rows.loc[rows["text"].isin(["Query:", "Query?"]), "prompt_id"].nunique() == 2


def unloaded(*_: object) -> Encoder:
    """A loader of models that nobody should ask."""
    raise AssertionError("a model was loaded")


def test_texts_are_encoded_once_a_prompt_and_scores_are_kept(scored: tuple[Study, Any, pd.DataFrame]) -> None:
    study, outcome, _ = scored
    search, intents = iter_datasets(study)
    nothing = len({one.text for one in search.texts()}) + len({one.text for one in intents.texts()})
    assert outcome.encoded == _texts(study) - nothing  # of this model the default is none
    again = evaluate_instructions(study, load=unloaded)
    assert (again.made, again.kept) == (0, 16)


def test_the_gate_can_be_opened_to_show_its_effect_and_a_killed_run_goes_on(
    scored: tuple[Study, Any, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, _, rows = scored
    with monkeypatch.context() as patch:  # killed before anything was written but the journal
        patch.setattr(PromptResults, "write", lambda *_: None)
        assert evaluate_instructions(study, include_unaccepted=True).made == 3
    outcome = evaluate_instructions(study, include_unaccepted=True, load=unloaded)
    assert (outcome.made, outcome.kept) == (0, 19)
    assert "scored although unaccepted: 3 wordings" in "\n".join(_about_wordings(outcome, include_unaccepted=True))
    opened = read_scores(study.folder / SCORES)
    assert opened["score"].notna().all()
    assert set(opened.loc[opened["text"].isin(WHY), "label"]) == {"irrelevant", ""}
    assert evaluate_instructions(study, load=unloaded).kept == 16
    pd.testing.assert_frame_equal(read_scores(study.folder / SCORES), rows)


def test_known_items_tell_about_raters_and_are_no_wordings(tmp_path: Path) -> None:
    file = tmp_path / "known.csv"
    file.write_text("task,prompt,label\nretrieval,Bake a cake:,irrelevant\nsample_intents,Sort it out,acceptable\n")
    study = study_of(tmp_path, subject={"contexts": [], "known": str(file)})
    assert [one.text for one in read_wordings(study)] == [
        "Query?", "Query:", "Find {it} for", "Class?", "Translate the request into Latin:",
    ]  # fmt: skip
    label(study, {})
    (known,) = (one for one in CampaignRecords(study).controls if one.control == "known")  # one a batch
    right = {"Bake a cake:": "irrelevant", "Sort it out": "acceptable"}[fields_of(known)[0].text]
    assert known.control == "known" and json.loads(known.expected) == {"label": right}
    planned = plan(study)
    assert len(planned) == (2 + 3) + (2 + 2) and not {one.text for one in planned} & {"Bake a cake:"}
    assert all(one.label == "acceptable" for one in planned if one.text)
    for row, says in (
        ("retrieval,Query?,acceptable", "'Query?' is also a wording of its task; remove it"),
        (
            "retrieval,Bake,good",
            "row 2, field 'label': 'good' is not a label; known: acceptable, irrelevant, unnatural",
        ),
    ):
        file.write_text(f"task,prompt,label\n{row}\n")
        with pytest.raises(DataError, match=re.escape(says)):
            word_instructions(study)


@pytest.mark.parametrize(
    ("answers", "least", "found"),
    [
        (["acceptable", "acceptable"], 2, "acceptable"),
        (["acceptable", "unnatural", "unnatural"], 2, "unnatural"),
        (["acceptable", "unnatural"], 2, "no label was chosen by more than half of the 2 raters"),
        (
            ["acceptable", "acceptable", "unnatural", "irrelevant"],
            2,
            "no label was chosen by more than half of the 4 raters",
        ),
        (["acceptable"], 2, "labelled by 1 rater, but 2 are needed"),
        (["acceptable"], 1, "acceptable"),
        ([], 1, "nobody has labelled it"),
    ],
)
def test_a_label_is_that_of_more_than_half(answers: list[str], least: int, found: str) -> None:
    decided = decide(answers, least)
    assert found in (decided.label, decided.reason)
    assert decided.accepted == (found == "acceptable") and (decided.reason == "") == decided.accepted
