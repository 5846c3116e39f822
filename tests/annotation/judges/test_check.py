"""`judge check`: judges beside people from the study's own files, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from annotation import server
from annotation.csv_answers import collect_csv
from annotation.judges.check import FOLDER, JudgeCheck, check_text, held_against
from annotation.judges.powered import read_outcome
from annotation.judges.run import judge
from annotation.report.page import write_report
from annotation.sampling.sample import draw_sample
from annotation.verdicts.evidence import Evidence
from plumbline.study import Study
from tests.annotation.campaigns import Make
from tests.annotation.judges.test_powered import design, frames
from tests.commands import here
from tests.concluded import concluded
from tests.shared import generate_once

COLUMNS = {"pair": "pair_id", "rater": "rater", "quality": "quality", "fluency": "fluency"}


def rated(study: Study, folder: Path) -> None:
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
    """`accept` with and without judges: people's verdicts are the same, and judges stand after them."""
    verdict_file = study.folder / "verdicts.json"
    tables = study.judgements.rename(study.folder / "away")
    silent = here("accept", *where)
    alone = verdict_file.read_bytes()
    assert silent.returncode == 0 and "Judges" not in silent.stdout
    tables.rename(study.judgements)
    told = here("accept", *where).stdout
    assert verdict_file.read_bytes() == alone
    assert told.index("Verdicts, study demo") < told.index("Judges beside people") < told.index("As precise as rated")

    evidence, found = Evidence.whole(study), concluded(study).verdicts
    made, _ = read_outcome(evidence, found)
    assert made is not None and made.recorded == ("numbers", "shares") and not made.simulated
    means = made.means.set_index(["pool", "question"])
    assert means.loc[("expansion", "quality"), "reason"] == "24 rated pairs; means with judges need at least 30"
    both = means.loc[("translation", "quality")]
    assert both[["n_rated", "n_judged", "reason"]].tolist() == [48, 48, ""] and both["low"] < both["mean"]

    page = write_report(study)[0].read_text(encoding="utf-8")
    assert page.index("What was decided</h2>") < page.index("Judges beside people</h2>")
    assert "Judges whose answers come from a file: numbers, shares." in page
    printed = pd.read_csv(study.folder / "report" / "judges_means.csv", keep_default_na=False)
    assert list(printed["reason"]) == list(made.means["reason"])
    damaged = study.judgements / "shares.parquet"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:100])
    left_out = here("accept", *where)
    assert left_out.returncode == 0
    assert "shares.parquet" in left_out.stdout.partition("Judges beside people")[2]
    assert verdict_file.read_bytes() == alone
    damaged.write_bytes(whole)


def test_the_sample_studys_judges_are_held_against_its_raters(variant: Make, tmp_path: Path) -> None:
    """24 pairs are too few for judges; the two translations share 48. Without verdicts it says what to run first."""
    judges = [{"name": "shares", "engine": "shares"}, {"name": "numbers", "engine": "numbers", "score": "text"}]
    study = variant(judges=judges, transformations=["expansion", "translation", "cross_translation"])
    generate_once(study)
    where = ["--study", str(study.file), "--exports", str(study.folder.parent)]
    rated(study, tmp_path)
    judge(study)
    early = here("judge", "check", *where)
    assert early.returncode == 2 and "plumbline accept" in early.stderr
    beside_people(study, where)
    done = here("judge", "check", *where)
    assert done.returncode == 0, done.stderr
    assert "Judges whose answers come from a file: numbers, shares" in done.stdout
    assert "24 rated pairs;" in done.stdout
    tables = {path.stem: pd.read_csv(path) for path in (study.folder / FOLDER).glob("*.csv")}
    assert {"people", "raters", "alternative", "length", "between", "means"} <= set(tables)
    people = tables["people"].set_index(["judge", "question", "transformation"])
    assert people.loc[("shares", "quality", "expansion"), "n"] == 24
    assert len(tables["means"]) == 2 * 2 and set(tables["between"]["first"]) == {"numbers"}


def test_lengths_are_told() -> None:
    ratings, judging = frames(mean=3.32)
    texts = judging.judged.assign(original="a b", transformed=["a b c d", "a b"] * 100)
    tables = held_against(ratings, judging.judgements, texts, design())
    length, gap = tables["length"].iloc[0], tables["people"].iloc[-1]
    assert length["low"] < length["slope"] < length["high"] and gap["low"] < gap["gap"] < gap["high"]
    lines = check_text("mine", JudgeCheck(tables, (), simulated=True)).splitlines()
    assert lines[0] == "Judges of study mine" and lines[1].startswith("SIMULATED")
