"""A study that starts from a bundle: the very same pairs, rated again by other people."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation.argilla import simulate
from annotation.campaign_records import CampaignRecords
from annotation.ratings.ratings import write_ratings
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from evaluation.bundle import source
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.check import open_checked
from evaluation.bundle.export import export
from evaluation.bundle.source import study_again
from generation.jobs import Plan
from generation.production import generate
from plumbline.errors import DataError, StudyError
from plumbline.records import Pair, Rating
from plumbline.study import Study, load_study
from tests.commands import here
from tests.evaluation.bundle.samples import DATA, RIGHTS, recorded_study
from tests.evaluation.bundle.test_bundle import renewed, with_json, words_in


def shown(pairs: Any) -> list[tuple[str, ...]]:
    return [(one.pair_id, one.key, one.original, one.transformed, one.control, one.prompt_hash) for one in pairs]


def test_other_people_rate_the_same_pairs_and_both_campaigns_are_held_side_by_side(
    bundle: Path, tmp_path: Path
) -> None:
    out, exports = tmp_path / "again.yaml", tmp_path / "exports"
    done = here("bundle", "study", str(bundle), "--out", str(out), "--exports", str(exports))
    assert done.returncode == 0, done.stderr
    first = Bundle.open(bundle)
    study = load_study(out, exports)
    assert shown(CampaignRecords.open(study).pairs) == shown(first.evidence.collected.sample_pairs)
    assert shown(CampaignRecords.open(study).controls) == shown(first.evidence.collected.control_pairs)
    told = {one.name for one in study.folder.rglob("*")}
    assert told - {".manifest.lock"} == {"pairs.parquet", "controls.parquet", "sample.json", "manifest.json"}
    assert (study.acceptance, study.raters.per_pair) == (first.study().acceptance, first.study().raters.per_pair)

    deserved = simulate._truths(study, first.rubric, CampaignRecords.open(study).shown)  # nothing here: drawn, or right
    assert set(deserved) == {
        one.pair_id for one in (*CampaignRecords.open(study).pairs, *CampaignRecords.open(study).controls)
    }
    assert all(1 <= value <= 5 for one in deserved.values() for value in (one["quality"], one["fluency"]))
    negative = next(one for one in CampaignRecords.open(study).controls if one.control == "negative")
    assert deserved[negative.pair_id]["quality"] == 1

    before = first.evidence.collected.sample_ratings
    lower = before.assign(value=(before["value"] - 1).clip(lower=1), rater_id=before["rater_id"] + "0")
    write_ratings(CampaignRecords.open(study), lower.assign(rater_id="simulated-" + lower["rater_id"].str[-8:]))
    accept(study)
    done = here("bundle", "diff", str(bundle), str(out), "--exports", str(exports))
    assert done.returncode == 0, done.stderr
    due = []
    for pool in ("translation", "paraphrasing"):
        ids = [one.pair_id for one in first.evidence.collected.sample_pairs if one.pool == pool]
        own, theirs = (
            frame[(frame["question"] == "quality") & frame["pair_id"].isin(ids)].groupby("pair_id")["value"].mean()
            for frame in (before, lower)
        )
        due.append([str(len(ids)), f"{own.mean():.2f}", f"{theirs.mean():.2f}", f"{(theirs - own).mean():+.2f}"])
    rows = [line.split("quality", 1)[1].split() for line in done.stdout.splitlines() if " quality " in line]
    assert [row[:4] for row in rows] == due, done.stdout
    assert "SIMULATED" in done.stdout


def test_texts_that_may_not_be_handed_on_are_joined_before_people_read_them(tmp_path: Path) -> None:
    rights = {"sample_sts": RIGHTS | {"texts": "reference"}, "sample_intents": RIGHTS}
    made = recorded_study(tmp_path, datasets=rights)
    export(made, tmp_path / "a.plumb")
    found, out = open_checked(tmp_path / "a.plumb"), tmp_path / "again.yaml"
    with pytest.raises(StudyError, match="may not be shared .* --data sample_sts=FILE"):
        study_again(found, out, tmp_path / "exports2")
    assert not out.exists()
    files = {"sample_sts": DATA / "pairs.csv"}
    joined = study_again(found, out, tmp_path / "exports2", files)
    assert shown(CampaignRecords.open(joined.study).pairs) == shown(CampaignRecords.open(made).pairs)
    whole = {one.pair_id: one for one in CampaignRecords.open(made).controls}
    told = CampaignRecords.open(joined.study).controls
    assert shown(told) == shown(whole[one.pair_id] for one in told)  # whole, or not there at all
    assert (len(told), joined.left_out) == (joined.controls, len(whole) - joined.controls) and joined.left_out > 0


def test_prompts_wordings_and_a_model_in_a_folder_come_with_it(variant: Callable[..., Study], tmp_path: Path) -> None:
    generator = {"kind": "recorded", "model": "/models/plumbline-sample", "path": "demo/outputs"}
    asked = {"prompts": "pteb", "wordings": ["tr"], "transformations": ["paraphrasing"], "generator": generator}
    texts = {"name": "sample_sts", "task": "sts", "path": "demo/pairs.csv", "language": "en"}
    rights = {"datasets": {"sample_sts": RIGHTS}}
    made = variant(datasets=[texts], sample={"pairs": 20}, bundle=rights, **asked)
    generate(made)
    draw_sample(made)
    write_ratings(CampaignRecords.open(made), pd.DataFrame(list(rated(CampaignRecords.open(made).pairs))))
    accept(made)
    export(made, tmp_path / "a.plumb")
    found = open_checked(tmp_path / "a.plumb")
    for name in found.archive.names:
        assert "/models" not in words_in(name, found.archive.read(name)), name
    assert found.manifest.generator["model"] == "plumbline-sample"
    again = study_again(found, tmp_path / "again.yaml", tmp_path / "exports2").study
    assert (again.prompts, again.wordings, again.generator.model) == ("pteb", ("tr",), "plumbline-sample")
    assert shown(CampaignRecords.open(again).pairs) == shown(CampaignRecords.open(made).pairs)
    assert {one.generator_hash for one in CampaignRecords.open(again).pairs} == {Plan(again).generator_hash}


def rated(pairs: list[Pair]) -> Iterator[dict[str, object]]:
    """Three programs' ratings of each pair."""
    for pair in pairs:
        for rater, question in itertools.product(range(3), ("quality", "fluency")):
            yield Rating(
                pair_id=pair.pair_id, transformation=pair.transformation, language=pair.language,
                rater_id=f"simulated-{rater:08x}", question=question, value=4 + rater % 2, status="submitted",
                submitted_at=datetime(2026, 1, 2, tzinfo=UTC), source="simulated", simulated=True,
            ).model_dump()  # fmt: skip


def test_a_study_that_was_cut_off_is_written_to_its_end(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, out, exports = Bundle.open(bundle), tmp_path / "again.yaml", tmp_path / "exports"
    monkeypatch.setattr(source, "write_table", lambda *_: os.kill(os.getpid(), 9))
    child = os.fork()
    if not child:
        study_again(found, out, exports)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    assert out.exists() and not (exports / "again" / "pairs.parquet").exists()
    monkeypatch.undo()
    made = study_again(found, out, exports)
    assert shown(CampaignRecords.open(made.study).pairs) == shown(found.evidence.collected.sample_pairs)
    (made.study.folder / "offered.json").write_text("[]", encoding="utf-8")  # somebody was asked
    with pytest.raises(StudyError, match="records of a study with that name"):
        study_again(found, out, exports)
    assert out.exists()


def test_what_would_be_another_campaign_is_refused(bundle: Path, tmp_path: Path) -> None:
    found, out, exports = Bundle.open(bundle), tmp_path / "again.yaml", tmp_path / "exports"
    found.settings["generator"]["revision"] = "2"
    with pytest.raises(StudyError, match="were made by another generator or other prompts than the study has"):
        study_again(found, out, exports)
    found = Bundle.open(bundle)
    found.__dict__["rubric"] = found.rubric.model_copy(update={"scale": (1, 2, 3)})
    with pytest.raises(StudyError, match="its rubric 'hteb' differs from yours"):
        study_again(found, out, exports)
    found = Bundle.open(bundle)
    one = found.transformations["paraphrasing"]
    found.transformations["mine"] = one.model_copy(update={"prompts": (), "kind": "function", "model": "os:getcwd"})
    with pytest.raises(StudyError, match="mine was made by os:getcwd, which is not in the bundle"):
        study_again(found, out, exports)
    assert not out.exists() and not exports.exists()
    found.transformations["mine"] = one.model_copy(
        update={"definition": {"name": "mine", "axis": "tone", "calls": ["a_file_of_the_makers"]}}
    )
    with pytest.raises(StudyError, match=r"end in \.yaml; name it .*again\.yaml"):
        study_again(found, out.with_suffix(""), exports)
    with pytest.raises(StudyError, match="--data sts: no data set of that name needs a copy"):
        study_again(found, out, exports, {"sts": out})
    told = study_again(found, out, exports)  # prompts of the maker's own come with it, word for word
    assert Plan(told.study).prompt_hashes["mine"] == one.prompt_hash
    with pytest.raises(StudyError, match="this file exists"):
        study_again(Bundle.open(bundle), out, exports)
    out.unlink()
    with pytest.raises(StudyError, match="records of a study with that name"):
        study_again(Bundle.open(bundle), out, exports)
    assert not out.exists()


def test_what_would_run_code_comes_with_no_study(edited: Callable[..., Path], tmp_path: Path) -> None:
    """An engine's settings go to vLLM as they stand: a stranger's would let a model of the stranger's run code."""
    evil = {"generator": {"kind": "vllm", "model": "evil/model", "settings": {"trust_remote_code": True}}}
    changes = {name: with_json(lambda said: said | evil) for name in ("study.json", "manifest.json")}
    found, out = Bundle.open(renewed(edited(changes))), tmp_path / "again.yaml"
    with pytest.raises(DataError, match="has an unexpected setting 'settings' in generator"):
        study_again(found, out, tmp_path / "exports")
    assert not out.exists()
