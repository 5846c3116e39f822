"""`judge check`: judges beside people from the study's own files, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from annotation import server
from annotation.campaign_records import CampaignRecords
from annotation.csv_answers import collect_csv
from annotation.judges.check import FOLDER, JudgeCheck, check_text, held_against
from annotation.judges.decisions import FILE, JudgedOutcome, read_beside, with_judges
from annotation.judges.powered import powered_means
from annotation.judges.run import judge
from annotation.report.material import read_material
from annotation.report.page import write_report
from annotation.report.raters import order_exhibit
from annotation.sampling.sample import draw_sample
from annotation.verdicts.counted import basis
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.verdicts import verdicts
from plumbline.study import Study
from plumbline.study.engines import EngineSpec
from tests.annotation.judges.test_powered import design, frames, sample, sampled
from tests.commands import here

COLUMNS = {"pair": "pair_id", "rater": "rater", "quality": "quality", "fluency": "fluency"}


def rated(study: Study, folder: Path) -> None:
    """Answers of three raters to every pair, from a file."""
    draw = np.random.default_rng(7)
    pairs = draw_sample(study)
    rows = [
        (one.pair_id, rater, *np.clip(np.round(mean + draw.normal(0, 0.7, 2)), 1, 5).astype(int))
        for one, mean in zip(pairs, draw.normal(4, 0.7, len(pairs)), strict=True)
        for rater in ("anna", "ben", "cleo")
    ]
    file = folder / "answers.csv"
    pd.DataFrame(rows, columns=list(COLUMNS.values())).to_csv(file, index=False)
    collect_csv(study, server.Home(folder / "home"), file, COLUMNS)


def beside_people(study: Study, where: list[str]) -> None:
    """`accept` with and without judges: people's verdicts are the same, and what judges add stands beside them."""
    verdict_file, added = study.folder / "verdicts.json", study.folder / FILE
    tables = study.judgements.rename(study.folder / "away")
    silent = here("accept", *where)
    alone = verdict_file.read_bytes()
    assert silent.returncode == 0 and "Judges" not in silent.stdout and not added.exists()
    tables.rename(study.judgements)
    told = here("accept", *where).stdout
    assert verdict_file.read_bytes() == alone
    assert told.index("Verdicts, study demo") < told.index("Judges beside people") < told.index("48 rated, 48 judged")
    rows = {one["transformation"]: one for one in json.loads(added.read_text(encoding="utf-8"))}
    people = {one["transformation"]: one for one in json.loads(alone)}
    assert {name: one["decision"] for name, one in rows.items()} == {n: one["decision"] for n, one in people.items()}
    assert rows["expansion"]["with_judges"] == "" and rows["translation"]["with_judges"] == "accepted"
    assert rows["expansion"]["why_not"] == ("quality, fluency: 24 rated pairs; means with judges need at least 30")
    assert all(one["recorded"] == ["numbers", "shares"] and not one["simulated"] for one in rows.values())
    assert rows["translation"]["ratings_sha256"] == people["translation"]["rests_on"]["ratings.parquet"]

    evidence, found = Evidence.whole(study), CampaignRecords.open(study).verdicts
    saw = {"settings": {"saw_ratings": True}}
    shown = [
        judge.model_copy(update={"engine": EngineSpec(**judge.engine.model_dump(exclude_unset=True) | saw)})
        for judge in study.judges
    ]
    other = evidence.changed(study=study.model_copy(update={"judges": tuple(shown)}))
    made, _ = read_beside(other, found)
    assert made is not None and set(made.decisions["with_judges"]) == {""}
    assert "shares, numbers saw people's ratings" in made.decisions["why_not"].iloc[-1]
    rule = study.acceptance.model_copy(update={"judges": "none"})
    assert read_beside(evidence.changed(study=study.model_copy(update={"acceptance": rule})), found) == (None, "")

    page = write_report(study).read_text(encoding="utf-8")
    assert page.index("What was decided</h2>") < page.index("Judges beside people</h2>")
    assert "Judges whose answers come from a file: numbers, shares." in page
    assert "people + judges: 48 rated, 48 judged, worth" in page
    printed = pd.read_csv(study.folder / "report" / "judges_decisions.csv", keep_default_na=False)
    assert list(printed["with_judges"]) == [one["with_judges"] for one in rows.values()]
    agreeing = pd.read_csv(study.folder / "report" / "judges_agreement.csv")
    assert len(agreeing) == 2 * 2 * 9 and agreeing["recorded"].all()  # judges, questions, transformations and all

    length = pd.read_csv(study.folder / "report" / "judges_length.csv")
    assert len(length) == 2 * 2 and length["recorded"].all() and "Slope of the gap (judge" in page
    read_downwards(study, made)

    damaged = study.judgements / "shares.parquet"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:100])
    left_out = here("accept", *where)
    assert left_out.returncode == 0 and not added.exists()
    assert "shares.parquet" in left_out.stdout.partition("Judges beside people")[2]
    assert verdict_file.read_bytes() == alone
    damaged.write_bytes(whole)


def read_downwards(study: Study, made: JudgedOutcome) -> None:
    """A judge that says half a point less where it reads the scale downwards: the report has it in a row."""
    said = made.judging.judgements
    both = pd.concat([said, said.assign(order="down", score=said["score"] - 0.5)])
    shown = order_exhibit(
        read_material(Evidence.open(study)), replace(made, judging=replace(made.judging, judgements=both))
    )
    assert shown.frame["difference"].tolist() == pytest.approx([0.5] * 4) and not shown.frame["large"].any()
    assert list(shown.printed.columns) == ["Judge", "Question", "Outputs", "Up minus down [95%]", "1 point or more"]
    assert not len(order_exhibit(read_material(Evidence.open(study)), made).frame)  # one order alone has no effect


def test_the_sample_studys_judges_are_held_against_its_raters(generated: Study, tmp_path: Path) -> None:
    """24 pairs are too few for judges; the two translations share 48. Without verdicts it says what to run first."""
    where = ["--study", str(generated.file), "--exports", str(generated.folder.parent)]
    rated(generated, tmp_path)
    judge(generated)
    early = here("judge", "check", *where)
    assert early.returncode == 2 and "plumbline accept" in early.stderr
    beside_people(generated, where)
    done = here("judge", "check", *where, "--flag", "any")
    assert done.returncode == 0, done.stderr
    assert "Judges whose answers come from a file: numbers, shares" in done.stdout
    assert "24 rated pairs; means with judges need at least 30" in done.stdout
    assert "translation (en), cross_translation (en): quality: people + judges: 48 rated, 48 judged" in done.stdout
    tables = {path.stem: pd.read_csv(path) for path in (generated.folder / FOLDER).glob("*.csv")}
    assert {"people", "raters", "alternative", "length", "between", "together", "decisions"} <= set(tables)
    people = tables["people"].set_index(["judge", "question", "transformation"])
    assert people.loc[("shares", "quality", "expansion"), "n"] == 24
    assert len(tables["decisions"]) == 8 and set(tables["between"]["first"]) == {"numbers"}


def test_what_differs_comes_first_and_orders_and_lengths_are_told() -> None:
    """40 pairs by people alone are undecided, with the judge accepted; read downwards it gives half a point less."""
    ratings, judging = frames(mean=3.32)
    said = judging.judgements
    down = said.assign(order="down", score=(said["score"] - 0.5).clip(1, 5))
    both = pd.concat([said, down])
    texts = judging.judged.assign(original="a b", transformed=["a b c d", "a b"] * 100)
    chosen = design()
    tables = held_against(ratings, both, texts, chosen)
    order = tables["order"].iloc[0]
    assert order["n"] == 200 and order["difference"] == pytest.approx(0.5, abs=0.02)
    length, gap = tables["length"].iloc[0], tables["people"].iloc[-1]
    assert length["low"] < length["slope"] < length["high"] and gap["low"] < gap["gap"] < gap["high"]
    found = verdicts(sample(), ratings.assign(submitted_at=0), chosen, None)
    means = powered_means(basis(sampled(), ratings, chosen), replace(judging, judgements=both), chosen)
    tables["decisions"] = with_judges(found, means, chosen.rule)
    text = check_text("mine", JudgeCheck(tables, ("paraphrasing (en): undecided by people alone",), (), simulated=True))
    lines = text.splitlines()
    assert lines[0] == "Judges of study mine" and lines[1].startswith("SIMULATED")
    assert lines[2] == "Different decision with judges: paraphrasing (en): undecided by people alone"
    assert "paraphrasing (en), paraphrasing (de): quality: people + judges: 40 rated, 160 judged, worth" in text
    assert "up minus down" in text and "its mean may still be wrong" in text
