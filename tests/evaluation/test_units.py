"""Planning holds few texts and remembers what it found; nothing that was changed is taken for what it was."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation.campaign.records import CampaignRecords
from annotation.sampling.sample import extend_sample
from annotation.verdicts.acceptance import accept
from evaluation import gate, sources, texts
from evaluation.records import EvaluationRecords
from evaluation.report.material import read_evaluation
from evaluation.report.page import doubts_of
from evaluation.report.paper_tables import PaperResults, scores_text
from evaluation.scoring import evaluate
from evaluation.sources import Folder
from evaluation.texts import Outputs
from evaluation.units import ScoreUnit, plan_units
from generation.datasets.dataset import Dataset
from generation.datasets.loading import iter_datasets, load_dataset
from generation.production import read_transformed
from plumbline.errors import DataError
from plumbline.identity import identity
from plumbline.records import Text, TransformedText
from plumbline.store import write_table
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec
from tests.shared import note_outputs

from .conftest import Loader, verdict, write_outputs, write_study, write_verdicts


def planned(study: Study, **changes: Any) -> list[ScoreUnit]:
    return plan_units(
        Folder(study), [verdict(study, name, **changes) for name in study.transformations], CampaignRecords(study).pairs
    )


def said(units: list[ScoreUnit]) -> list[tuple[object, ...]]:
    """All that a unit says without its texts."""
    return [
        (u.place, u.content_id, u.decision, u.n, u.n_failed, u.n_kept_out, u.languages, sorted(u.sampled), u.revision)
        for u in units
    ]


def afresh(study: Study, **changes: Any) -> list[tuple[object, ...]]:
    """The same by a plan that remembers nothing."""
    (study.scratch / texts.PLANNED).unlink()
    return said(planned(study, **changes))


def rewrite(study: Study, change: Callable[[TransformedText], TransformedText]) -> None:
    for seed in study.seeds:
        rows = read_transformed(study, "paraphrasing", seed)
        note_outputs(study, "paraphrasing", seed, [change(rows[0]), *rows[1:]])


def test_a_plan_with_nothing_new_reads_no_texts(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    first = said(planned(study))

    def read(*_: Any) -> None:
        raise AssertionError("texts were read")

    with monkeypatch.context() as without:
        without.setattr(sources, "load_dataset", read)
        without.setattr(sources, "KeyedTable", read)
        assert said(planned(study)) == first
    assert afresh(study) == first


@pytest.mark.parametrize("edit", ["damaged", "numbers", "cut", "not a number", "of another version", "no findings"])
def test_what_was_remembered_and_then_changed_by_hand_is_found_out_again(study: Study, edit: str) -> None:
    first, file = said(planned(study)), study.scratch / texts.PLANNED
    written = file.read_text(encoding="utf-8")
    found = json.loads(written)["found"]
    made = {
        "damaged": "{damaged",
        "numbers": re.sub(r'"n": \d+', '"n": 7', written),
        "not a number": re.sub(r'"n": \d+', '"n": NaN', written),
        "cut": written[: len(written) // 2],
        "of another version": json.dumps(found),
        "no findings": json.dumps({"sha256": "", "found": dict.fromkeys(found, 7)}),
    }
    assert made[edit] != written
    file.write_text(made[edit], encoding="utf-8")
    assert said(planned(study)) == first and file.read_text(encoding="utf-8") == written


def test_a_copy_and_a_backup_are_planned_as_what_they_hold(study: Study, tmp_path: Path) -> None:
    """Of equal size and time of writing, with the plan of what was there before; then what was there before again."""
    file = study.resolve("sts.csv")
    first, status = said(planned(study)), file.stat()
    shutil.copytree(study.file.parent, tmp_path / "backup", symlinks=True)
    file.write_text(file.read_text(encoding="utf-8").replace("cat", "rat"), encoding="utf-8")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert first != said(planned(study)) == afresh(study)
    shutil.copy2(tmp_path / "backup" / "sts.csv", file)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert said(planned(study)) == first


@pytest.mark.parametrize("status", ["failed", "unanswered", "other"])
def test_outputs_that_were_changed_are_read_again(study: Study, status: str) -> None:
    before = said(planned(study))
    update: dict[str, Any] = {"output": "another one"} if status == "other" else {"status": status, "output": ""}
    rewrite(study, lambda row: row.model_copy(update=update))
    assert before != said(planned(study)) == afresh(study)


def test_a_verdict_is_carried_over_to_other_seeds_and_data_sets_only_where_the_study_and_every_table_say_so(
    study: Study, loader: Loader
) -> None:
    own = [one.model_dump(mode="json", exclude_defaults=True) for one in study.datasets]
    models = {"models": [{"name": "one", "revision": "1"}]}

    def scored(evaluation: dict[str, Any]) -> tuple[dict[gate.GateDecision, set[Any]], EvaluationRecords]:
        more = {"datasets": [*own, {**own[0], "name": "again"}], "seeds": [1337, 7]}
        wider = write_study(study.file.parent, **more, evaluation={**models, **evaluation})
        write_outputs(wider, drawn_from=False)
        records = EvaluationRecords(wider)
        units: dict[gate.GateDecision, set[Any]] = defaultdict(set)
        for unit in plan_units(Folder(wider), records.conclusion.verdicts, records.pairs):
            if unit.transformation == "paraphrasing":
                units[replace(unit.decision, verdicts=())].add((unit.name, unit.seed))
        evaluate(wider, load=loader)
        return units, EvaluationRecords(wider)

    places = {("sts", 7), ("requests", 7), ("again", 1337), ("again", 7)}
    assert scored({})[0] == {gate.GateDecision("evaluated", ""): {("sts", 1337), ("requests", 1337)}} | {
        gate.GateDecision(
            "left_out",
            f"no rated sample is from outputs of {name} in English with seed {seed}: extend the sample and have it"
            " rated, or set evaluation.carry_over",
        ): {(name, seed)}
        for name, seed in places
    }
    units, records = scored({"carry_over": True})
    assert units[gate.GateDecision("evaluated", gate.CARRIED_OVER)] == places
    evaluation = read_evaluation(records)
    verdicts, scores, notes = evaluation.verdicts, evaluation.scores, evaluation.notes
    results = PaperResults(scores, verdicts, notes, 0)
    assert any(gate.CARRIED_OVER in note for note in notes)
    assert gate.CARRIED_OVER in scores_text(scores, verdicts)
    assert f"{gate.CARRIED_OVER} (sts, requests, again)" in doubts_of(results, [], [])
    rows = read_transformed(records.study, "paraphrasing", 1337)
    note_outputs(study, "paraphrasing", 1337, [*rows[:-1], rows[-1].model_copy(update={"output": "Bananas."})])
    records = EvaluationRecords(records.study)
    reasons = {
        unit.place: unit.decision.reason
        for unit in plan_units(Folder(records.study), records.conclusion.verdicts, records.pairs)
    }
    assert "are not those that the sample was drawn from" in reasons["requests", "paraphrasing", 1337]


def test_a_wave_lets_a_data_set_in_only_once_it_is_rated(study: Study) -> None:
    own = [one.model_dump(mode="json", exclude_defaults=True) for one in study.datasets]
    more = pd.read_csv(study.resolve("requests.csv"))
    more.assign(text="another " + more["text"]).to_csv(study.file.parent / "more.csv", index=False)
    datasets = [*own, {**own[1], "name": "more", "path": "more.csv"}]
    wider = write_study(study.file.parent, datasets=datasets, sample={"pairs": 7})
    write_outputs(wider, drawn_from=False)
    write_table(wider.folder / "texts.parquet", (text for one in iter_datasets(wider) for text in one.texts()), Text)
    extend_sample(wider, "another data set")
    for decide, status in ((accept, "left_out"), (write_verdicts, "evaluated")):
        decide(wider)
        records = EvaluationRecords(wider)
        units = {unit.place: unit for unit in plan_units(Folder(wider), records.conclusion.verdicts, records.pairs)}
        assert units["more", "paraphrasing", 1337].decision.status == status
        assert units["sts", "paraphrasing", 1337].decision.status == "evaluated"


def test_a_data_set_that_was_changed_is_read_again(study: Study) -> None:
    before = said(planned(study))
    file = study.file.parent / "sts.csv"
    file.write_text("\n".join(file.read_text(encoding="utf-8").splitlines()[:-1]), encoding="utf-8")
    assert before != said(planned(study)) == afresh(study)


def test_what_no_verdict_covers_any_more_is_looked_for_again(study: Study) -> None:
    rewrite(study, lambda row: row.model_copy(update={"flags": ("wrong_language",)}))
    before = said(planned(study))
    assert before != said(planned(study, without=("wrong_language",))) == afresh(study, without=("wrong_language",))
    assert said(planned(study)) == before


def test_scores_are_the_same_however_few_texts_are_held(evaluated: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    before = EvaluationRecords(evaluated).scores
    shutil.rmtree(evaluated.folder / "made")
    (evaluated.folder / texts.PLANNED).unlink()
    monkeypatch.setattr(texts, "MOST", 0)
    evaluate(evaluated, load=Loader())
    assert EvaluationRecords(evaluated).scores.equals(before)


def test_a_data_set_that_changes_while_it_is_evaluated_is_refused(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "MOST", 0)
    units = planned(study)
    file = study.file.parent / "sts.csv"
    file.write_text("\n".join(file.read_text(encoding="utf-8").splitlines()[:-1]), encoding="utf-8")
    with pytest.raises(DataError, match="data set 'sts' was changed while it was evaluated; run the command again"):
        [unit.data() for unit in units]


def test_a_unit_that_is_sent_to_another_process_reads_its_texts_there(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few bytes travel, whatever was read; units that are held together read a data set once, and see its changes."""
    units = [unit for unit in planned(study) if unit.name == "sts"]
    expected = [unit.data().splits["test"].to_dict() for unit in units]  # type: ignore[attr-defined]
    read = Counter[str]()

    def load(spec: DatasetSpec, base: Path) -> Dataset:
        read[spec.name] += 1
        return load_dataset(spec, base)

    sent = [pickle.dumps(unit) for unit in units]
    monkeypatch.setattr(sources, "load_dataset", load)
    there = [pickle.loads(one) for one in sent]  # noqa: S301 (our own)
    assert [unit.data().splits["test"].to_dict() for unit in there] == expected and read == {"sts": 1}
    assert max(len(one) for one in sent) < 20_000 and said(there) == said(units)
    del there
    path = study.resolve("sts.csv")
    path.write_text(path.read_text().replace("cat", "rat"))
    with pytest.raises(DataError, match="'sts' was changed while it was evaluated"):
        pickle.loads(sent[0]).data()  # noqa: S301


@pytest.mark.parametrize("failed", [frozenset(), frozenset({"z", "y"})])
def test_the_identity_of_a_data_set_with_outputs_is_what_it_was(
    failed: frozenset[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"b": 'say "ü" \u2028 \\ x', "a": "", "c": "\U0001f600"}
    for piece in (1, 2, 4096):
        monkeypatch.setattr("evaluation.texts._PIECE", piece)
        expected = [[sorted(failed)]] if failed else [[]]
        assert Outputs(made, failed).content_id("xy") == identity(
            "transformed-v1", "xy", sorted(made.items()), *expected
        )
    assert Outputs({}).content_id("xy") == identity("transformed-v1", "xy", [], [])
