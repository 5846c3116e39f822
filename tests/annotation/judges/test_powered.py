"""People's means with judges' help on frames: by hand, and refused where it must be."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from annotation import server
from annotation.csv_answers import collect_csv
from annotation.judges.check import FOLDER, JudgeCheck, check_text, held_against
from annotation.judges.powered import Judging, powered_means, read_outcome
from annotation.judges.run import judge
from annotation.report.page import write_report
from annotation.sampling.sample import draw_sample
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import basis
from annotation.verdicts.evidence import Evidence
from plumbline.records import Pair
from plumbline.statistics.group_sequential import repeated_interval
from plumbline.statistics.prediction_powered import Pool, RatedPairs, powered
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation.campaigns import Make
from tests.annotation.judgements import SCALE, pair, pair_rows
from tests.commands import here
from tests.concluded import concluded
from tests.shared import generate_once

RATED, ALL = 40, 200


def sample() -> list[Pair]:
    return [pair(i, language=("en", "de")[i % 2]) for i in range(RATED)]


def frames(mean: float = 3.15, seed: int = 4) -> tuple[pd.DataFrame, Judging]:
    """Ratings of the sample by three raters, and a judge of 200 outputs that is near people and too kind."""
    draw = np.random.default_rng(seed)
    outputs = [*sample(), *(pair(i, language=("en", "de")[i % 2]) for i in range(RATED, ALL))]
    quality = draw.normal(mean, 0.8, ALL)
    rows = [
        (one.pair_id, one.transformation, one.language, f"r{rater}", "quality", value)
        for one, felt in zip(outputs[:RATED], quality, strict=False)
        for rater, value in enumerate(np.clip(np.round(felt + draw.normal(0, 0.9, 3)), 1, 5))
    ]
    names = ["pair_id", "transformation", "language", "rater_id", "question", "value"]
    judged = pd.DataFrame(
        [(o.pair_id, o.transformation, o.pool, o.language, o.task_type, f"{o.language}/sts") for o in outputs],
        columns=["pair_id", "transformation", "pool", "language", "task_type", "stratum"],
    )
    judgements = pd.DataFrame(
        {"pair_id": judged["pair_id"], "score": np.clip(quality + 0.4 + draw.normal(0, 0.3, ALL), 1, 5)}
    ).assign(judge="j", question="quality", status="ok", prompt_hash="p")
    ratings = pd.DataFrame(rows, columns=names).assign(status="submitted", excluded="", simulated=False)
    return ratings, Judging(judged, judgements)


def design(**rule: Any) -> Design:
    spec = {"scope": "transformation", "rule": "lower_bound", **rule}
    return Design(("quality",), SCALE, 3, AcceptanceSpec.model_validate(spec))


def sampled() -> pd.DataFrame:
    return pair_rows(sample())


def row(ratings: pd.DataFrame, judging: Judging, chosen: Design | None = None) -> pd.Series:
    chosen = chosen or design()
    found = powered_means(basis(sampled(), ratings, chosen), judging, chosen)
    assert len(found) == 1
    return found.iloc[0]


def test_the_numbers_of_a_frame_are_those_of_the_formula() -> None:
    ratings, judging = frames()
    found = row(ratings, judging)
    scores = judging.judgements.set_index("pair_id")["score"]
    strata = judging.judged["language"].eq("de").to_numpy().astype(np.int64)
    sums = ratings.groupby("pair_id", sort=False)["value"].sum().to_numpy(np.float64)
    rated = RatedPairs(sums, np.full(RATED, 3.0), scores.to_numpy()[:RATED], strata[:RATED])
    theirs = powered(rated, Pool(scores.to_numpy()[RATED:], strata[RATED:]))
    assert [found["mean"], found["low"], found["high"]] == pytest.approx(
        [float(one) for one in (theirs.mean.value, theirs.mean.low, theirs.mean.high)]
    )
    own = repeated_interval(sums / 3, (1, 5), 0.025)
    assert [found["people_mean"], found["people_low"]] == pytest.approx([sums.mean() / 3, own[0]])
    assert found[["n_rated", "n_judged", "n_failed"]].tolist() == [RATED, ALL - RATED, 0]
    assert found["worth"] == pytest.approx(theirs.worth) and found["worth"] > RATED


def test_several_judges_are_one_by_their_mean() -> None:
    ratings, judging = frames()
    other = judging.judgements.assign(judge="k", score=5.0)
    both = replace(judging, judgements=pd.concat([judging.judgements, other]))
    halved = judging.judgements.assign(score=(judging.judgements["score"] + 5) / 2)
    assert row(ratings, both)["low"] == pytest.approx(row(ratings, replace(judging, judgements=halved))["low"])


def refused(case: str) -> tuple[pd.DataFrame, Judging, Design]:
    ratings, judging = frames()
    said, chosen = judging.judgements, design()
    if case == "few":
        ratings = ratings[ratings["pair_id"].isin([one.pair_id for one in sample()][:29])]
    elif case == "unanswered":
        last = said.index == said.index[-1]
        said = said.assign(score=said["score"].mask(last), status=np.where(last, "unanswered", "ok"))
        judging = replace(judging, judgements=said)
    elif case == "others":
        judging = replace(judging, judged=judging.judged.iloc[3:])
    elif case == "nothing beyond":
        judging = replace(judging, judged=judging.judged.iloc[:RATED], judgements=said.iloc[:RATED])
    elif case == "prompts":
        judging = replace(judging, judgements=said.assign(prompt_hash=["p"] * 100 + ["q"] * 100))
    elif case == "failed":
        judging = replace(judging, judgements=said.assign(score=np.nan, status="failed"))
    else:
        rule = AcceptanceSpec(scope="transformation", rule="lower_bound")
        chosen = replace(chosen, rule=rule, blocks=(20, 40))
    return ratings, judging, chosen


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("few", "29 rated pairs; means with judges need at least 30"),
        ("unanswered", "j has not judged 1 of 200 outputs; the others may not be a random sample"),
        ("others", "rated pairs must be a random sample of the judges' outputs, but 3 are not among these"),
        ("nothing beyond", "judges were given no output beyond the rated pairs"),
        ("prompts", "a judge got different prompts for the same question"),
        ("failed", "no output has a score from every judge"),
        ("blocks", "the rule looks more than once, and these intervals are for a single look"),
    ],
)
def test_what_would_break_the_inference_is_refused_and_people_stand_alone(case: str, said: str) -> None:
    ratings, judging, chosen = refused(case)
    found = row(ratings, judging, chosen)
    assert found["reason"] == said
    assert found[["mean", "low", "high", "slope", "rho", "worth"]].isna().all()
    assert not math.isnan(found["people_mean"])


def test_failed_judgements_are_counted_and_bias_nothing() -> None:
    """The judge fails on all that it finds bad: left out, people's mean of the rest would be far too high."""
    ratings, judging = frames()
    said = judging.judgements
    worst = said["score"] < 3.2
    failed = said.assign(score=said["score"].mask(worst), status=np.where(worst, "failed", "ok"))
    found = row(ratings, replace(judging, judgements=failed))
    assert found["n_failed"] == worst.sum() > 40
    assert abs(found["mean"] - found["people_mean"]) < 0.15 and found["reason"] == ""
    kept = ratings[~ratings["pair_id"].isin(said.loc[worst, "pair_id"])]
    assert kept["value"].mean() > found["mean"] + 0.4


def test_withdrawn_outputs_enter_no_number() -> None:
    ratings, judging = frames()
    gone = [judging.judged["pair_id"].iloc[-1]]
    assert row(ratings, replace(judging, withdrawn=gone))["n_judged"] == row(ratings, judging)["n_judged"] - 1


def test_over_raters_the_rules_own_interval_is_taken() -> None:
    ratings, judging = frames()
    by_pairs, by_raters = row(ratings, judging), row(ratings, judging, design(interval="pairs_and_raters"))
    assert by_raters["mean"] == by_pairs["mean"] and by_raters["low"] < by_pairs["low"]
    assert by_raters["people_low"] < by_raters["low"] < by_raters["mean"]


def test_people_who_all_say_the_same_have_an_interval_beside_judges_too() -> None:
    """40 pairs, all a 5: at 97.5% 1 - 0.025^(1/40) of the pairs may be ones."""
    ratings, judging = frames()
    found = row(ratings.assign(value=5.0), judging)
    low = 5 - 4 * (1 - 0.025 ** (1 / RATED))
    assert [found["people_low"], found["mean"], found["low"]] == pytest.approx([low, 5.0, low])
    assert found["reason"] == ""


def test_scores_off_the_scale_are_refused_in_one_line() -> None:
    ratings, judging = frames()
    off = judging.judgements.assign(score=judging.judgements["score"] + 4)
    with pytest.raises(ValueError, match="is outside the scale from 1 to 5"):
        row(ratings, replace(judging, judgements=off))


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
