"""What is measured beside the scores: accepted pairs alone, the drift of all texts; each row made once."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from annotation.campaign.records import CampaignRecords
from annotation.records import PairMean
from evaluation import measures as beside
from evaluation.measures import accepted_alone, outputs_of
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.records import EvaluationRecords
from evaluation.sources import Folder
from evaluation.units import Model, ScoreUnit, plan_units
from generation.datasets.loading import iter_datasets
from generation.jobs import Plan
from plumbline.errors import DataError
from plumbline.manifest import Manifest
from plumbline.records import Pair
from plumbline.store import write_table
from plumbline.study import Study
from tests.evaluation.conftest import (
    FakeModel,
    changed,
    pair_of,
    print_verdicts,
    vectors,
    verdict,
    write_outputs,
    write_study,
)

pytestmark = pytest.mark.usefixtures("by_hand")

ROWS = range(6)  # of the data set sts: both sentences of these have accepted pairs, and the first of row 6


def write_rated(study: Study, rejected: tuple[str, ...] = ()) -> None:
    """Pairs of the first rows' sentences, all accepted but those of the texts named."""
    plan, dataset = Plan(study), next(iter_datasets(study))
    texts = [t for t in dataset.texts() if int(t.item) in ROWS or (t.item, t.field) == ("6", "sentence1")]
    pairs, means = [], []
    for job in plan.jobs(texts, "paraphrasing", 1337):
        pair = pair_of(plan, job, dataset)
        pairs.append(pair)
        for question in ("quality", "fluency"):
            bad = job.text in rejected and question == "fluency"
            means.append(
                PairMean(
                    pair_id=pair.pair_id,
                    transformation="paraphrasing",
                    language="en",
                    question=question,
                    n_ratings=3,
                    mean=1.0 if bad else 4.0,
                    decision="rejected" if bad else "accepted",
                )
            )
    Manifest.of(study).write_table("pairs.parquet", pairs, Pair)
    Manifest.of(study).write_table("controls.parquet", list[Pair](), Pair)
    write_table(study.folder / "pair_means.parquet", means, PairMean)
    print_verdicts(study, [verdict(study, name) for name in study.transformations])


@pytest.fixture
def rated(tmp_path: Path) -> Study:
    study = write_study(tmp_path, acceptance={"min_pairs": 5})
    write_outputs(study)
    write_rated(study)
    return study


def run(study: Study, *chosen: str, ran: str = "", include_rejected: bool = False) -> tuple[FakeModel, int]:
    """Measure what is left; the model that was asked, and how many rows it made. `ran` is a model that ran before."""
    model, made = FakeModel(), 0
    units = plan_units(
        Folder(study),
        EvaluationRecords(study).conclusion.verdicts,
        CampaignRecords(study).pairs,
        include_rejected=include_rejected,
    )
    records = EvaluationRecords(study)
    models = Model.all_of(ModelHost.of(study))
    picked = [one for one in models if one.name in chosen]
    begun = [one for one in models if one in picked or one.name == ran]
    (measure,) = beside.measures(records)
    table = beside.MeasureTable(records, units, begun, measure)
    for one in picked:
        encoder = Encoder(model, one.name, one.revision)
        for found in (piece(encoder) for piece in beside.pieces([table.todo(one)])):
            table.save(one, found.key, found.rows)
            made += 1
    table.write()
    return model, made


def row_of(frame: pd.DataFrame, **values: Any) -> pd.Series:
    (place,) = np.flatnonzero(np.logical_and.reduce([frame[name] == value for name, value in values.items()]))
    return frame.iloc[place]


def rho(frame: pd.DataFrame, rows: list[int], change: Any) -> float:
    """Spearman's rho of cosine and gold score, straight from the file."""
    part = frame.iloc[rows]
    first, second = (vectors([change(text) for text in part[f"sentence{side}"]]) for side in (1, 2))
    cosines = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return float(stats.spearmanr(cosines, part["score"]).statistic)


def test_only_items_of_accepted_pairs_are_scored_before_and_after(rated: Study) -> None:
    run(rated, "one")
    frame = pd.read_csv(rated.resolve("sts.csv"))
    found = row_of(EvaluationRecords(rated).accepted_scores, model="one", dataset="sts", transformation="paraphrasing")
    # Row 6 has one accepted sentence of two, so it is not an item: 6 items of 13 accepted pairs.
    assert (found["n"], found["reason"]) == (6, "")
    assert found["original"] == pytest.approx(rho(frame, list(ROWS), str), abs=1e-6)
    assert found["score"] == pytest.approx(rho(frame, list(ROWS), lambda t: changed(t, "paraphrasing")), abs=1e-6)


def test_a_pair_that_one_question_rejects_takes_its_item_out(rated: Study) -> None:
    frame = pd.read_csv(rated.resolve("sts.csv"))
    write_rated(rated, rejected=(frame["sentence2"][0],))
    run(rated, "one")
    found = row_of(EvaluationRecords(rated).accepted_scores, dataset="sts", transformation="paraphrasing")
    assert found["n"] == 5
    assert found["original"] == pytest.approx(rho(frame, [1, 2, 3, 4, 5], str), abs=1e-6)
    write_rated(rated, rejected=tuple(frame["sentence2"][:2]))
    model, _ = run(rated, "one")
    found = row_of(EvaluationRecords(rated).accepted_scores, dataset="sts", transformation="paraphrasing")
    assert math.isnan(found["original"]) and math.isnan(found["score"]) and not model.calls
    assert found["reason"] == "4 items consist of accepted pairs alone, of at least 5 that are needed"


def test_an_output_that_is_not_the_one_that_was_rated_is_not_accepted(rated: Study) -> None:
    pairs = CampaignRecords(rated).pairs
    first = pd.read_csv(rated.resolve("sts.csv"))["sentence1"][0]
    others = [pair.model_copy(update={"transformed": "another"}) if pair.original == first else pair for pair in pairs]
    Manifest.of(rated).write_table("pairs.parquet", others, Pair)
    run(rated, "one", include_rejected=True)  # else the gate leaves the whole transformation out
    found = row_of(EvaluationRecords(rated).accepted_scores, dataset="sts", transformation="paraphrasing")
    assert found["n"] == 5


def test_what_was_not_rated_has_a_row_with_the_reason(rated: Study) -> None:
    run(rated, "one")
    frame = EvaluationRecords(rated).accepted_scores
    assert len(frame) == 4  # two data sets, two transformations
    assert "no pair of this transformation" in row_of(frame, dataset="sts", transformation="translation")["reason"]
    assert row_of(frame, dataset="requests", transformation="paraphrasing")["reason"].startswith("0 items")
    (rated.folder / "pair_means.parquet").unlink()
    run(rated, "one")
    assert set(EvaluationRecords(rated).accepted_scores["reason"]) == {
        f"no pair is accepted yet: run `{rated.command('accept')}`"
    }


def unit_of(study: Study, dataset: str) -> ScoreUnit:
    units = plan_units(Folder(study), EvaluationRecords(study).conclusion.verdicts, CampaignRecords(study).pairs)
    return next(unit for unit in units if unit.place == (dataset, "paraphrasing", 1337))


def test_the_train_split_stays_whole(rated: Study) -> None:
    unit = unit_of(rated, "requests")
    texts = {text.text: text for text in unit.dataset.texts() if text.split == "test"}
    accepted = [text.text_id for text in list(texts.values())[:3]]
    before, after = accepted_alone(unit.dataset, outputs_of(unit), accepted)
    assert [sum(text.split == split for text in before.texts()) for split in ("train", "test")] == [16, 3]
    assert [changed(text.text, "paraphrasing") for text in before.texts()] == [text.text for text in after.texts()]


def test_items_whose_outputs_failed_are_dropped_on_both_sides(rated: Study) -> None:
    unit = unit_of(rated, "sts")
    ids = [text.text_id for text in unit.dataset.texts()]
    outputs = replace(outputs_of(unit), failed=frozenset(ids[:1]))
    before, after = accepted_alone(unit.dataset, outputs, ids)
    assert before.sizes() == after.sizes() == {"": 11}


def test_a_second_run_makes_nothing_and_asks_no_model(rated: Study) -> None:
    _, made = run(rated, "one", "two")
    assert made == 2  # one accepted score for each model
    kept = EvaluationRecords(rated).accepted_scores
    model, made = run(rated, "one", "two")
    assert made == 0 and not model.calls
    pd.testing.assert_frame_equal(EvaluationRecords(rated).accepted_scores, kept)


def test_models_that_are_not_chosen_keep_their_rows_and_get_no_new_ones(rated: Study) -> None:
    run(rated, "one")
    assert list(EvaluationRecords(rated).accepted_scores["model"]) == ["one"] * 4
    run(rated, "two", ran="one")
    assert list(EvaluationRecords(rated).accepted_scores["model"]) == ["one"] * 4 + ["two"] * 4


def test_another_output_or_acceptance_is_measured_again(rated: Study) -> None:
    run(rated, "one")
    frame = pd.read_csv(rated.resolve("sts.csv"))
    lost = frame["sentence1"][1]
    write_outputs(rated, lambda text, name: "failed" if (text, name) == (lost, "paraphrasing") else "ok")
    write_rated(rated)
    model, made = run(rated, "one")
    assert made == 1 and lost not in model.seen
    write_outputs(rated)
    write_rated(rated, rejected=(frame["sentence1"][0],))
    assert run(rated, "one")[1] == 1


def test_what_was_made_before_a_model_failed_stays(rated: Study) -> None:
    units = plan_units(Folder(rated), EvaluationRecords(rated).conclusion.verdicts, CampaignRecords(rated).pairs)
    records = EvaluationRecords(rated)
    models = Model.all_of(ModelHost.of(rated))
    (measure,) = beside.measures(records)
    table = beside.MeasureTable(records, units, models, measure)
    for model, spoilt in zip(models, (False, True), strict=True):
        encoder = Encoder(FakeModel(spoil=lambda _, spoilt=spoilt: spoilt), model.name, "1")
        (piece,) = beside.pieces([table.todo(model)])
        with pytest.raises(DataError, match="not finite") if spoilt else contextlib.nullcontext():
            found = piece(encoder)
            table.save(model, found.key, found.rows)
    table.write()
    scores = EvaluationRecords(rated).accepted_scores
    assert list(scores.loc[scores["score"].notna(), "model"]) == ["one"]


def test_without_files_there_are_no_rows(rated: Study) -> None:
    assert EvaluationRecords(rated).accepted_scores.empty
