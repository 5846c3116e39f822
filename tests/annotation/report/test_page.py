"""The report on the sample study, rated by hand: its numbers are those of the records, each state has its words."""

from __future__ import annotations

import copy
import json
import math
import re
import sys
from collections.abc import Callable
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Page

from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.ratings.decisions import decide
from annotation.report.charts import (
    DECISIONS,
    looks_charts,
    mean_intervals,
    means_in_words,
    rating_shares,
    shares_in_words,
)
from annotation.report.exhibits import wording_exhibit
from annotation.report.material import read_material
from annotation.report.page import examples, write_report
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.tables import SIMULATED
from plumbline.__main__ import run
from plumbline.errors import DataError, StudyError
from plumbline.exhibits.page import svg
from plumbline.manifest import Manifest
from plumbline.records import Rating
from plumbline.study import ROOT, Study, load_study
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation.crowd.campaigns import copied
from tests.annotation.ratings.test_review import rate
from tests.annotation.verdicts.fixed import fixed_in_2025
from tests.axe import grave_of_file
from tests.conftest import make_variant
from tests.shared import generate_once

SECTIONS = [
    *("In short", "Contents", "What is doubtful", "What was decided", "Examples", "Methods", "Ratings and agreement"),
    *("Reliability", "Raters", "Decisions and exclusions", "Rules", "This report"),
]
TABLES = {"verdicts", "table_2", "agreement", "examples", "raters", "signs", "decisions", "exclusions", "rules",
          "amendments", "ratings_by_point", "means", "wording",
          "reliability", "asked"}  # fmt: skip
SCRIPT = "=HYPERLINK(1) <script>alert(1)</script>"


class Reader(HTMLParser):
    """A page's elements, its headings and its words; each element that is opened must be closed in its turn."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.headings: list[str] = []
        self.words = ""
        self.feed(page.read_text(encoding="utf-8"))
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """78 pairs with the ratings of `rate`: three raters, two questions; a gives 1 to everything."""
    make = make_variant(tmp_path_factory.mktemp("rated"))
    study = make(transformations=["paraphrasing", "expansion", "summarisation"], sample={"pairs": 26})
    generate_once(study)
    rate(study)
    return study


@pytest.fixture(scope="module")
def accepted(rated: Study, tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = copied(rated, tmp_path_factory.mktemp("accepted"))
    accept(study)
    return study


@pytest.fixture
def study(rated: Study, tmp_path: Path) -> Study:
    return copied(rated, tmp_path)


@pytest.fixture
def judged(accepted: Study, tmp_path: Path) -> Study:
    return copied(accepted, tmp_path)


def table(study: Study, name: str) -> pd.DataFrame:
    return pd.read_csv(study.folder / "report" / f"{name}.csv", keep_default_na=False)


def records(study: Study, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((study.folder / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_its_numbers_are_those_of_the_records(study: Study) -> None:
    commented = CampaignRecords(study).ratings.assign(comment="Ada Lovelace, 555-0100")
    Manifest.of(study).write_table("ratings.parquet", commented, Rating)
    accept(study)
    page = Reader(write_report(study)[0])
    assert page.headings == [*SECTIONS, "Notes"]
    assert {file.stem for file in (study.folder / "report").glob("*.csv")} == TABLES
    assert page.tags.count("svg") == 2  # a figure for each question
    assert SIMULATED not in page.words

    html = (study.folder / "report" / "index.html").read_text(encoding="utf-8")
    places = re.findall(r'<i class="mean" style="left: ([\d.]+)%"', html)
    means = [question["mean"] for verdict in records(study, "verdicts") for question in verdict["questions"]]
    assert list(map(float, places)) == [round(100 * (mean - 1) / 4, 1) for mean in means]  # on a scale of 1 to 5
    found = table(study, "verdicts")
    for row, verdict in zip(found.to_dict("records"), records(study, "verdicts"), strict=True):
        quality = verdict["questions"][0]
        assert (row["transformation"], row["decision"]) == (verdict["transformation"], verdict["decision"])
        chance = min(summary["probability"] for summary in verdict["questions"])
        assert float(row["quality_mean"]) == quality["mean"] and float(row["probability"]) == chance
    for row, group in zip(table(study, "table_2").to_dict("records"), records(study, "agreement"), strict=True):
        assert float(row["fluency_sd"]) == group["questions"][1]["sd"]
        assert float(row["quality_ac2"]) == group["questions"][0]["ac2"]["value"]
        assert f"{group['questions'][0]['mean']:.2f} ± {group['questions'][0]['sd']:.2f}" in page.words

    raters = table(study, "raters").set_index("rater_id")
    assert raters["submitted"].to_dict() == raters["counting"].to_dict() == dict.fromkeys("abc", 78 * 2)
    assert raters["median_seconds"].to_list() == [30.0] * 3
    assert "same answer" in raters.loc["a", "signs"] and "same answer" not in raters.loc["b", "signs"]
    points = table(study, "ratings_by_point")
    own = points[(points["question"] == "quality") & (points["transformation"] == "paraphrasing")]
    assert own["n"].sum() == 26 * 3 and own["share"].sum() == pytest.approx(1)
    mean = (own["value"] * own["n"]).sum() / 78  # of the points, as in the verdict of the ratings
    assert mean == pytest.approx(float(found["quality_mean"][0]))

    everything = "".join(file.read_text("utf-8") for file in (study.folder / "report").iterdir())
    assert "Lovelace" not in everything and "comments are left out of this report" in page.words


@pytest.mark.usefixtures("undrawn")
def test_exclusions_are_shown_with_what_they_change_and_reasons_are_only_text(study: Study) -> None:
    decide(study, "a", exclude=True, reason=f"{SCRIPT} fails controls", signs=Evidence(study).signs)
    accept(study)
    page = Reader(write_report(study)[0])
    assert page.tags.count("script") == 1 and f"{SCRIPT} fails controls" in page.words
    assert table(study, "decisions")["reason"].to_list() == [f"'{SCRIPT} fails controls"]  # no formula
    counts = table(study, "exclusions")
    assert counts.loc[counts["counts"] == "yes", "ratings"].item() == 78 * 2 * 2
    assert counts.loc[counts["why"].str.contains("excluded"), "ratings"].item() == 78 * 2
    changed = sum(one["decision"] != one["review"]["with_excluded"] for one in records(study, "verdicts"))
    assert 0 < changed < 3
    assert f"156 ratings of the sample; had they counted, {changed} of 3 verdicts would be different" in page.words
    # b and c agree on everything, so no interval is known, and one line says so for all rows.
    same = "AC2, alpha, kappa, raw agreement, all rows: no two ratings of a pair differ"
    assert page.words.count(same) == 2 and table(study, "raters")["decision"].to_list() == ["excluded", "", ""]


@pytest.mark.usefixtures("undrawn")
def test_what_does_not_count_is_counted_by_reason_and_simulated_ratings_are_called_so(study: Study) -> None:
    """a, b, c and d are the four of each pair; e comes later, f and g did not submit. All are simulated."""
    ratings = CampaignRecords(study).ratings.assign(simulated=True)
    c = ratings[ratings["rater_id"] == "c"]
    late = c.assign(rater_id="e", submitted_at=c["submitted_at"] + timedelta(hours=1))
    draft, discarded = (c.assign(rater_id=rater, status=status, value=None)
                        for rater, status in (("f", "draft"), ("g", "discarded")))  # fmt: skip
    added = [c.assign(rater_id="d"), late, draft, discarded]
    Manifest.of(study).write_table("ratings.parquet", pd.concat([ratings, *added]).astype({"value": "Int64"}), Rating)
    accept(study)
    page = Reader(write_report(study)[0])
    counts = table(study, "exclusions").set_index("why")["ratings"].to_list()
    controls = len(CampaignRecords(study).control_ratings)
    assert counts == [4 * 156, 156, 156, 156, controls]  # counts, surplus, draft, discarded, controls
    raters = table(study, "raters").set_index("rater_id")
    kinds = ["submitted", "counting", "surplus", "draft", "discarded"]
    assert raters.loc["d", kinds].to_list() == [156, 156, 0, 0, 0]
    assert raters.loc["e", kinds].to_list() == [156, 0, 156, 0, 0]
    assert raters.loc["f", kinds].to_list() == [0, 0, 0, 156, 0]
    assert "count (156 ratings came later); 78 of 78 pairs have ratings from that many raters." in page.words
    assert page.words.index(SIMULATED) < page.words.index("This report")


@pytest.mark.usefixtures("undrawn")
def test_without_any_rating_that_counts_there_is_still_a_report(study: Study) -> None:
    for rater in "abc":
        decide(study, rater, exclude=True, reason="all of them")
    accept(study)
    page = Reader(write_report(study)[0])
    assert page.words.count("There are no ratings that count.") == 2
    assert "3 verdicts, for these raters: 3 undecided." in page.words
    assert page.headings == [name for name in SECTIONS if name not in ("Examples", "Reliability")]


@pytest.mark.browser
def test_it_keeps_nobody_out(judged: Study, page: Page) -> None:
    assert grave_of_file(page, write_report(judged)[0]) == []
    page.emulate_media(media="print")  # on A4 less its margins no table is cut off
    page.set_viewport_size({"width": 680, "height": 900})
    right = page.locator(".wide :is(th, td)").evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
    assert right and max(right) <= 680


def test_examples_are_the_best_the_worst_and_the_most_disputed(variant: Callable[..., Study]) -> None:
    study = variant(name="examples", transformations=["paraphrasing"], sample={"pairs": 8}, raters={"per_pair": 3})
    generate_once(study)
    rate(study)
    # Means 5, 4.67, 4.33, 3, 3, 2, 1.67, 1; the SDs of 1 3 5 and of 1 4 4 are 2 and sqrt(3): the most disputed,
    # then 1 2 3 with 1. Of what is left 5, 4.67, 4.33 are the best, and 1, 1.67 the worst.
    given = [(5, 5, 5), (5, 5, 4), (5, 4, 4), (1, 3, 5), (1, 4, 4), (1, 2, 3), (2, 2, 1), (1, 1, 1)]
    ratings = CampaignRecords(study).ratings
    ids = sorted(ratings["pair_id"].unique())
    where = zip(ratings["pair_id"], ratings["rater_id"], strict=True)
    values = [given[ids.index(pair)]["abc".index(rater)] for pair, rater in where]
    Manifest.of(study).write_table("ratings.parquet", ratings.assign(value=values).astype({"value": "Int64"}), Rating)
    accept(study)
    found = examples(read_material(Evidence(study)))
    assert list(found["why"]) == ["best"] * 3 + ["worst"] * 2 + ["most disputed"] * 3
    assert [ids.index(one) for one in found["pair_id"]] == [0, 1, 2, 7, 6, 3, 4, 5]
    assert found["sd"].iloc[-3:].tolist() == pytest.approx([2, 3**0.5, 1])
    assert found["texts"].str.startswith("original: ").all() and found["texts"].str.contains("\ntransformed: ").all()


def shares(points: int = 5) -> pd.DataFrame:
    """72 ratings of paraphrases, all of them on the two highest points; no ratings of expansions."""
    given = {"paraphrasing": [0.0] * (points - 2) + [0.25, 0.75], "expansion": [0.0] * points}
    rows = [
        (name, value + 1, share, 72 if name == "paraphrasing" else 0)
        for name, own in given.items()
        for value, share in enumerate(own)
    ]
    return pd.DataFrame(rows, columns=["transformation", "value", "share", "total"])


@pytest.mark.parametrize("points", [5, 6])
def test_shares_are_drawn_one_after_the_other(points: int) -> None:
    chart = rating_shares(shares(points), range(1, points + 1))
    rows = next(iter(chart.to_dict()["datasets"].values()))
    own = [row for row in rows if row["total"]][-2:]
    assert [(row["start"], row["end"], row["words"]) for row in own] == [(0, 0.25, "25%"), (0.25, 1, "75%")]
    drawing = svg(chart)
    assert "Paraphrasing (n = 72)" in drawing and "75%" in drawing
    told = shares_in_words(shares(points))
    assert f"25% are {points - 1}, 75% are {points}" in told and "Expansion (n = 0): no ratings." in told


def test_of_more_verdicts_than_anybody_looks_at_there_are_figures_and_no_cards(
    judged: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("verdicts.tables", "report.page"):
        monkeypatch.setattr(f"annotation.{module}.CARDS", 2)
    page = Reader(write_report(judged)[0])
    assert page.tags.count("svg") == 2 * 2 and "the dashed line is the threshold" in page.words
    assert "Each line is a scale" not in page.words


@pytest.mark.usefixtures("undrawn")
def test_an_amended_study_says_so_at_the_top_and_among_the_rules(study: Study) -> None:
    fixed_in_2025(study)
    amended = study.model_copy(update={"acceptance": AcceptanceSpec(threshold=2.0)})
    accept(amended, SCRIPT)
    page = Reader(write_report(amended)[0])
    told = page.words[: page.words.index("Verdicts (")]
    assert "The rules were amended after the first rating, on" in told and f"UTC: {SCRIPT}" in told
    row = table(study, "amendments").to_dict("records")[0]
    assert row["changes"] == "acceptance.threshold 3.0, now 2.0"
    assert table(study, "rules").set_index("rule").loc["acceptance.threshold", "value"] == "2.0"
    assert "The rules were amended once after the first rating." in page.words

    # A transformation whose words raters did not have at the beginning.
    first, *later = CampaignRecords(amended).rules
    content = copy.deepcopy(first.rules)
    content["rubric"]["pools"].pop("paraphrasing")
    Manifest.of(study).write_models("rules.json", [first.model_copy(update={"rules": content}), *later])
    accept(amended)
    assert "paraphrasing" in set(wording_exhibit(read_material(Evidence(amended))).frame["pool"])


def test_what_no_longer_follows_is_refused_in_one_line(study: Study) -> None:
    with pytest.raises(DataError, match=r"no verdicts yet; run .*accept"):
        write_report(study)
    accept(study)
    stricter = study.model_copy(update={"sample": study.sample.model_copy(update={"seed": 7})})
    with pytest.raises(StudyError, match=r"changed after the first rating .*: sample.seed 1337, now 7; undo this"):
        read_material(Evidence(stricter))
    decide(study, "a", exclude=True, reason="fails controls")
    with pytest.raises(DataError, match="decisions about raters and pairs changed after the verdicts were reached"):
        write_report(study)
    assert not (study.folder / "report").exists()


def test_without_its_packages_the_command_names_one(judged: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("annotation.report", "annotation.report.charts"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "altair", None)  # as where the extra is not installed
    with pytest.raises(StudyError, match=r"reports need altair: pip install -e '\.\[report\]'"):
        run(["ratings-report", "--study", str(judged.file), "--exports", str(judged.folder.parent)])


MEANS = pd.DataFrame(
    [
        ("paraphrasing", "en", "", "lexical_stylistic", "accepted", 4.0, 3.5, 4.5, 3.0),
        ("expansion", "en", "", "length", "rejected", 2.0, math.nan, math.nan, 3.0),
        ("translation", "de", "sts", "language", "undecided", 4.8, 4.4, 5.0, 3.0),
    ],
    columns=["transformation", "language", "task_type", "axis", "decision", "mean", "low", "high", "threshold"],
)


def test_means_have_their_interval_threshold_and_decision() -> None:
    drawing = svg(mean_intervals(MEANS, range(1, 6)))
    for name in ("Paraphrasing (en): accepted", "Expansion (en): rejected", "Translation (de, sts): undecided"):
        assert name in drawing
    assert len(set(DECISIONS.values())) == 3
    lines = mean_intervals(MEANS, range(1, 6)).to_dict()["layer"][1]
    assert lines["encoding"]["x"]["scale"]["domain"] == [1, 5]
    assert means_in_words(MEANS) == (
        "Threshold 3.00. Paraphrasing (en): accepted, mean 4.00 [3.50, 4.50]; Expansion (en): rejected, mean 2.00;"
        " Translation (de, sts): undecided, mean 4.80 [4.40, 5.00]."
    )


def test_looks_lead_from_mean_to_mean_with_the_intervals_and_the_limit() -> None:
    looks = pd.DataFrame({"verdict": "Ours: accepted", "decision": "accepted", "look": [1, 2], "pairs": [20, 40]})
    looks = looks.assign(mean=[3.2, 3.6], low=[2.8, 3.1], high=[3.9, 4.0], limit=3.0)
    looks = pd.concat([looks.assign(question="quality", label=label) for label in ("", "a")])
    rubric = load_rubric(load_study(ROOT / "studies" / "demo.yaml"))
    ((chart, caption),) = looks_charts(looks, rubric)  # the rubric's other question has no look
    specification = chart.to_dict()
    assert "quality" in caption and not list(looks_charts(looks.iloc[:0], rubric))
    limit, intervals, line = (layer["encoding"] for layer in specification["layer"])
    assert (line["x"]["field"], line["y"]["field"]) == ("pairs", "mean") and line["y"]["scale"]["domain"] == [1, 5]
    assert (intervals["y"]["field"], intervals["y2"]["field"], limit["y"]["field"]) == ("low", "high", "limit")
    assert line["color"]["scale"]["domain"] == ["accepted"]  # no empty place in the legend
