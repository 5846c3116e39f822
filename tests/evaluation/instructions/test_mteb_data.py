"""Data sets of mteb's own under wordings: loaded from a hub of ours, scored by mteb, held against it by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from evaluation.instructions import units
from evaluation.instructions.run import evaluate_instructions
from evaluation.score_frames import study_scores
from generation.instructions.run import word_instructions
from plumbline.manifest import StudyRecords
from tests.evaluation.conftest import FakeModel, Loader, cosine
from tests.instructions import label, made
from tests.mteb_site import ARABIC, PAIRS, search_tables, site, specs

NAMES = ("STS17", "ArguAna")
COMPARE, FIND = "Compare {both} sides:", "Find what two contradicts:"


def rho(rows: list[dict[str, Any]], before: str) -> float:
    """Spearman's correlation with both sentences under a prompt."""
    found = [cosine(before + row["sentence1"], before + row["sentence2"]) for row in rows]
    return float(spearmanr([row["score"] for row in rows], found).statistic)


def gain(number: int, before: str) -> float:
    """Of query `number` under a prompt; passages are as they are. One passage is relevant: 1 / log2(rank + 1)."""
    passages = [f"{one['title']} {one['text']}".strip() for one in search_tables(4)["corpus"]]
    ranked = sorted(range(6), key=lambda n: -cosine(f"{before}asked {number}", passages[n]))
    return 1 / math.log2(ranked.index(number) + 2)


def test_each_subset_is_scored_under_its_models_prompt_none_and_every_wording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.csv"
    own.write_text(f"task,prompt\nsts,{COMPARE}\nArguAna,{FIND}\nretrieval,Refused\n", encoding="utf-8")
    study = made(
        tmp_path,
        subject={"contexts": [], "prompts": str(own), "descriptions": {}},
        datasets=[specs()[name].model_dump(exclude_defaults=True) | {"mteb": name} for name in NAMES],
        evaluation={"models": [{"name": "fake"}]},
    )
    word_instructions(study)
    label(study, {"Refused": ["irrelevant"] * 3})
    monkeypatch.setattr(units, "iter_datasets", lambda _: iter([site().tasks[name] for name in NAMES]))
    loader = Loader(FakeModel(prompts={"query": "asked as: "}))
    outcome = evaluate_instructions(study, load=loader)
    assert (outcome.failures, outcome.made) == ({}, 2 * 3)
    rows = study_scores(StudyRecords(study))
    said = {"": "", COMPARE: f"{COMPARE} ", FIND: f"{FIND} "}
    for row in rows[rows["task"] == "STS17"].to_dict("records"):  # pairs have no role, so no prompt of the model's own
        expected = rho(PAIRS if row["subset"] == "en-de" else ARABIC, said[row["text"]])
        assert (row["score"], row["effective"]) == (pytest.approx(expected, abs=1e-6), said[row["text"]])
    assert rows[rows["task"] == "STS17"].groupby("subset").size().to_dict() == {"ar-ar": 3, "en-de": 3}
    searched = rows[rows["task"] == "ArguAna"].set_index("prompt_id")
    assert searched.loc[searched["text"] == "Refused", "reason"].tolist() == [
        "not accepted: irrelevant, by 3 of 3 raters"
    ]
    scored = searched[searched["score"].notna()]
    assert len(scored) == 3 and scored.loc["default", "effective"] == "asked as: "
    for _, row in scored.iterrows():
        gains = [gain(number, row["effective"]) for number in range(4)]
        assert row["score"] == pytest.approx(np.mean(gains), abs=1e-5)
    passages = [text for prompt, _, texts in loader.model.calls for text in texts if text.endswith("passage 0")]
    assert len(passages) == 1  # once for all prompts
    assert evaluate_instructions(study, load=loader).made == 0
