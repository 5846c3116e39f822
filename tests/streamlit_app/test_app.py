"""The pages by Streamlit's own test runner: whole, empty, half-run, broken, hostile."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fsspec
import pandas as pd
import pytest
import streamlit as st
import yaml
from streamlit.testing.v1 import AppTest

from annotation.campaign.offering import LEDGER
from annotation.campaign.records import CampaignRecords
from annotation.crowd.batches import Batch
from annotation.crowd.ledger import BatchOffer, Ledger
from annotation.records import RuleSet
from annotation.status.status import read_status
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import rules_now
from annotation.verdicts.tables import SIMULATED, display
from evaluation.records import EvaluationRecords
from plumbline.manifest import Manifest
from plumbline.records import DriftRecord, Pair, Rating, Score
from plumbline.store import read_frame
from plumbline.study import Study, load_study
from streamlit_app.app import PAGES
from streamlit_app.views.verdicts import _rule
from tests.concluded import concluded
from tests.streamlit_app.conftest import DEMO, MODELS, VIEWS, Open, assert_calm, go_to

HOSTILE = (
    "<script>document.title='taken'</script><img src=x onerror=alert(1)>",
    "**bold** [link](http://192.0.2.1/) # heading ![i](http://192.0.2.1/i.png)",
    "$x^2$ $$\\frac{a}{b}$$ :smile: :red[alarm] :material/home:",
    '=HYPERLINK("http://192.0.2.1/","open")',
)
HARM = ("<script", "<img", "[link]", "$x", ":smile:", "HYPERLINK")
SECTIONS = {
    "answer": ["What is doubtful", "Verdicts", "Next", "Progress", "Rules and looks at results"],
    "drift": ["Lexical/Stylistic", "Length", "Language", "Correlations", "In full"],
    "verdicts": [
        "Decisions",
        "Means against the threshold",
        "Ratings given",
        "Ratings and agreement (HTEB, Table 2)",
        "In full",
    ],
    "campaign": [
        "Progress",
        "Agreement so far, with 95% intervals over pairs",
        "Raters",
        "Signs of careless answers",
        "In full",
    ],
    "scores": [
        "By axis (HTEB, Tables 14 and 15)",
        "By transformation (HTEB, Figure 6)",
        "Shifts (HTEB, Figure 7)",
        "Stability of ranks: Kendall's tau (HTEB, Table 4)",  # split-half reliability needs three models
        "Borda ranks",
        "Left out, failed, or included despite the verdict, with reasons",
        "In full",
    ],
    "texts": [],
}


def texts(page: AppTest) -> str:
    in_html = (
        unescape(re.sub("<style>.*</style>|<[^>]+>", " ", html.proto.body, flags=re.S)) for html in page.get("html")
    )
    return "\n".join([*(text.value for text in page.text), *in_html])


def captions(page: AppTest) -> str:
    return "\n".join(caption.value for caption in page.caption)


def commands(page: AppTest) -> list[str]:
    return [code.value for code in page.code]


def specs(page: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in page.get("vega_lite_chart")]


def panels(page: AppTest) -> list[dict[str, Any]]:
    """Those of drift against ratings."""
    return [spec for spec in specs(page) if "title" in spec]


def boxes(page: AppTest, words: str) -> int:
    return sum(words in item.value for item in page.markdown)


def table_with(page: AppTest, *columns: str) -> pd.DataFrame:
    """The first table with these columns: one that looks like a report's, or one to select rows in."""
    reported = [ElementTree.fromstring(html.proto.body) for html in page.get("html") if "<table" in html.proto.body]  # noqa: S314 (our own)
    rows = [
        [["".join(cell.itertext()).replace("\u00a0", " ") for cell in row] for row in table.iter("tr")]
        for table in reported
    ]
    frames = [pd.DataFrame(cells, columns=head) for head, *cells in rows]
    return next(frame for frame in [*frames, *(own.value for own in page.dataframe)] if {*columns} <= {*frame.columns})


def strings(value: Any) -> Iterator[str]:
    """Every string in a chart's specification."""
    if isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("view", VIEWS)
def test_a_finished_study_fills_each_page(page: Open, finished: Path, view: str) -> None:
    shown = page("--study", DEMO, "--exports", finished, view=view)
    assert [title.value for title in shown.title] == [PAGES[view]]
    assert texts(shown).startswith("demo: The sample study")
    assert [warning.value for warning in shown.warning] == [SIMULATED]
    assert [heading.value for heading in shown.header] == SECTIONS[view]
    assert boxes(shown, "Not available yet") == boxes(shown, "cannot be shown") == 0
    assert {button.label for button in shown.download_button} <= {"Download as CSV", "Download as SVG"}
    # Each figure has its SVG (the panels of drift have one together), and says what it shows.
    svgs = [button for button in shown.download_button if button.label == "Download as SVG"]
    assert len(svgs) == (1 if view == "drift" else len(specs(shown)))


def test_a_study_at_an_address_fills_pages_and_shows_what_others_change(
    page: Open, finished: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("plumbline.study.working", lambda _: tmp_path)
    far = fsspec.filesystem("memory")
    far.put(f"{finished}/demo", "/far/demo", recursive=True)
    where = ("--study", DEMO, "--exports", "memory://far")
    try:
        for view in ("answer", "scores"):
            shown = page(*where, view=view)
            assert [heading.value for heading in shown.header] == SECTIONS[view]
            assert boxes(shown, "Not available yet") == boxes(shown, "cannot be shown") == 0
        far.rm("/far/demo/scores.parquet")
        monkeypatch.setattr("streamlit_app.readers._LISTED", 1e-9)
        assert boxes(page(*where, view="scores"), "Not available yet")
    finally:
        far.store.clear()


@pytest.mark.parametrize("view", VIEWS)
def test_an_empty_study_says_what_to_run(page: Open, tmp_path: Path, view: str) -> None:
    shown = page("--study", DEMO, "--exports", tmp_path, view=view)
    options = f"--study {DEMO} --exports {tmp_path}"
    assert boxes(shown, "cannot be shown") == 0
    # Once a page; the first one has the table of stages.
    assert boxes(shown, "Not available yet") == (view != "answer")
    assert [heading.value for heading in shown.header] == (
        ["Next", "Progress", "Rules and looks at results"] if view == "answer" else []
    )
    assert all(command.endswith(options) for command in commands(shown))
    if view == "answer":
        assert set(table_with(shown, "State")["State"]) == {"– not yet"}
        assert commands(shown)[0] == f"plumbline generate {options}"
    else:  # what brings it needs other commands first, which the first page has
        brings = {"verdicts": "accept", "campaign": "sample", "texts": "sample"}.get(view, "evaluate")
        assert not commands(shown) and f"plumbline {brings}" in texts(shown)


@pytest.fixture(scope="module")
def broken(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose every file is damaged."""
    exports = tmp_path_factory.mktemp("broken") / "exports"
    shutil.copytree(finished, exports)
    for file in (exports / "demo").rglob("*"):
        if file.is_file():
            file.write_bytes(b"PAR1 not really")
    return exports


@pytest.mark.parametrize("view", VIEWS)
def test_a_broken_study_is_no_traceback(page: Open, broken: Path, view: str) -> None:
    shown = page("--study", DEMO, "--exports", broken, view=view)
    assert "damaged" in texts(shown)
    assert boxes(shown, "cannot be shown") >= 1


def take_away(study: Study, name: str) -> None:
    """Remove a record, as if it had never been written."""
    (study.folder / name).unlink()
    with Manifest.of(study).changing() as manifest:
        manifest["kept"].pop(name, None)


@pytest.mark.parametrize(
    ("gone", "view", "words"),
    [
        ("ratings.parquet", "drift", "ratings.parquet does not exist yet"),
        ("scores.parquet", "scores", "scores.parquet does not exist yet"),
        ("looks.json", "verdicts", "there are no verdicts yet"),
    ],
)
def test_a_half_run_study_says_what_is_missing(
    page: Open, exports: Path, study: Study, gone: str, view: str, words: str
) -> None:
    take_away(study, gone)
    shown = page("--study", DEMO, "--exports", exports, view=view)
    assert words in texts(shown)
    assert boxes(shown, "Not available yet") == 1


def test_where_all_models_failed_there_is_why_and_no_figure_without_numbers(
    page: Open, exports: Path, study: Study
) -> None:
    scores = EvaluationRecords(study).scores.assign(score=math.nan, status="failed", reason="out of memory")
    Manifest.of(study).write_table("scores.parquet", scores, Score)
    shown = page("--study", DEMO, "--exports", exports, view="scores")
    assert specs(shown) == [] and table_with(shown, "Status")["Status"].unique() == ["failed"]
    assert [heading.value for heading in shown.header] == SECTIONS["scores"][-2:]


def test_what_needs_no_verdict_is_there_without_one(page: Open, exports: Path, study: Study) -> None:
    for gone in ("looks.json", "scores.parquet"):
        take_away(study, gone)
    shown = page("--study", DEMO, "--exports", exports, view="campaign")
    assert boxes(shown, "Not available yet") == 0
    assert len(table_with(shown, "Rater")) == 3
    assert len(panels(page("--study", DEMO, "--exports", exports, view="drift"))) == 8


def test_corrupt_json_is_no_traceback(page: Open, exports: Path) -> None:
    for name in ("manifest.json", "looks.json"):
        file = exports / "demo" / name
        whole = file.read_bytes()
        for content in ("{", "[1]", '{"stages": 3}', '{"stages": {"accept": 3}}'):
            file.write_text(content, encoding="utf-8")
            shown = page("--study", DEMO, "--exports", exports)
            assert {heading.value for heading in shown.header} <= set(SECTIONS["answer"]), f"{name}: {content}"
            assert boxes(shown, "cannot be shown") <= 1, f"{name}: {content}"  # each damage is said once
        file.write_bytes(whole)


@pytest.mark.parametrize("arguments", [(), ("--nothing",), ("--study", "studies/nowhere.yaml")])
def test_a_wrong_start_is_one_line(page: Open, arguments: tuple[str, ...]) -> None:
    shown = page(*arguments)
    assert len(texts(shown)) > 20
    if len(arguments) < 2:
        assert commands(shown) == ["streamlit run streamlit_app/app.py -- --study studies/demo.yaml"]


def test_amendments_and_looks_are_shown(page: Open, exports: Path, study: Study) -> None:
    rules = rules_now(CampaignRecords(study))
    changed_rules = rules | {"acceptance": rules["acceptance"] | {"threshold": 2.5}}
    fixed = [
        RuleSet(fixed_at=datetime(2026, 2, 1, tzinfo=UTC), rules=changed_rules),
        RuleSet(fixed_at=datetime(2026, 4, 1, tzinfo=UTC), rules=rules, reason="<b>too low</b>"),
    ]
    Manifest.of(study).write_models("rules.json", fixed)
    shown = page("--study", DEMO, "--exports", exports)
    changed = "The rules were changed after the first rating, on 2026-04-01 at 00:00 UTC."
    assert changed in [warning.value for warning in shown.warning]
    assert "<b>too low</b> (acceptance.threshold 2.5, now 3.0)" in texts(shown)
    assert list(table_with(shown, "Rule")["Verdicts"]) == ["7 accepted, 1 rejected"]


def test_each_transformation_has_a_panel_by_axis_with_rho_its_interval_and_n(page: Open, finished: Path) -> None:
    shown = page("--study", DEMO, "--exports", finished, view="drift")
    drawn = panels(shown)
    titles = ["Paraphrasing", "Backtranslation", "Style change", "Expansion", "Summarisation", "Summarised expansion"]
    assert [panel["title"]["text"] for panel in drawn] == [*titles, "Translation", "Cross-translation"]
    rows = table_with(shown, "rho [95%]").set_index("Transformation")
    for panel in drawn:
        (first, *rest), row = panel["title"]["subtitle"], rows.loc[panel["title"]["text"]]
        rho = row["rho [95%]"].replace("+", "").replace("0.", ".").replace(".", "0.")
        assert first == f"ρ = {rho}, n = 24 pairs" and row["Pairs"] == "24" and rest == ["simulated ratings"]
    assert "Few pairs in each panel: n = 24." in captions(shown)


def test_choices_stand_in_the_address(page: Open, finished: Path) -> None:
    shown = page("--study", DEMO, "--exports", finished, view="drift")
    assert shown.sidebar.selectbox(key="model").options == list(MODELS)
    first = specs(shown)[0]["title"]["subtitle"]
    shown.sidebar.selectbox(key="model").set_value(MODELS[1]).run()
    shown.sidebar.selectbox(key="question").set_value("fluency").run()
    assert_calm(shown)
    assert specs(shown)[0]["encoding"]["x"]["title"] == "Mean fluency"
    assert first != specs(shown)[0]["title"]["subtitle"]
    again = page("--study", DEMO, "--exports", finished, view="drift", model=MODELS[1], question="fluency")
    assert specs(again)[0]["title"] == specs(shown)[0]["title"]
    wrong = page("--study", DEMO, "--exports", finished, view="drift", model="no such model")
    assert specs(wrong)[0]["title"]["subtitle"] == first


def test_a_chosen_pair_opens_with_its_ratings_by_pseudonym(page: Open, finished: Path, study: Study) -> None:
    shown = page("--study", DEMO, "--exports", finished, view="drift")
    pair = CampaignRecords(study).pairs[3]
    shown.session_state["chosen_pair"] = (pair.pair_id, 0)
    shown.run()
    assert_calm(shown)
    ratings = table_with(shown, "Rater", "Rating")
    assert len(ratings) == 6
    assert ratings["Rater"].str.fullmatch("simulated-[0-9a-f]{8}").all()
    assert f"from {pair.dataset}" in texts(shown)
    assert shown.query_params["pair"] == pair.pair_id
    assert [button.label for button in shown.download_button].count("Download as CSV") == 2
    shown.run()  # as long as the address says so
    assert len(table_with(shown, "Rater", "Rating")) == 6
    del shown.query_params["pair"]
    shown.run()
    assert "Rating" not in texts(shown)
    shown = page("--study", DEMO, "--exports", finished, view="drift", pair=HOSTILE[0])
    assert "The sample no longer contains this pair." in texts(shown)


def test_a_closed_pair_stays_closed_though_its_choice_is_reported_once_more(
    page: Open, finished: Path, study: Study
) -> None:
    """Closing a pair while the page still draws makes Streamlit call the choice's callback again."""
    shown = page("--study", DEMO, "--exports", finished, view="drift")
    pair_id = CampaignRecords(study).pairs[0].pair_id
    shown.session_state["chosen_pair"], shown.session_state["closed_pairs"] = (pair_id, 0), 1
    shown.run()
    assert_calm(shown)
    assert "Rating" not in texts(shown)


def test_people_are_not_called_simulated_and_one_simulated_rating_is(page: Open, exports: Path, study: Study) -> None:
    ratings = read_frame(study.folder / "ratings.parquet", Rating, "").assign(simulated=False)
    Manifest.of(study).write_table("ratings.parquet", ratings, Rating)
    accept(study)
    shown = page("--study", DEMO, "--exports", exports)
    for view in VIEWS:
        go_to(shown, view).run()
        assert_calm(shown)
        assert len(shown.warning) == 0
        assert "simulated" not in captions(shown).lower().replace("simulated raters come", "")
    ratings.loc[0, "simulated"] = True  # one is enough
    Manifest.of(study).write_table("ratings.parquet", ratings, Rating)
    assert [item.value for item in page("--study", DEMO, "--exports", exports).warning] == [SIMULATED]


def test_verdicts_are_shown_with_their_means_intervals_and_reasons(page: Open, finished: Path, study: Study) -> None:
    shown = page("--study", DEMO, "--exports", finished, view="verdicts")
    table = table_with(shown, "Decision").set_index("Transformation")
    assert "used only if people's mean rating on each question is at least 3." in captions(shown)
    first = concluded(study).verdicts[0]
    lower = first.model_copy(update={"result": first.result.model_copy(update={"rule": "lower_bound"})})
    assert _rule(lower) == "the lower end of the interval of people's mean rating on each question is at least 3"
    for verdict in concluded(study).verdicts:
        row, quality = table.loc[display(verdict.transformation, pooled=False)], verdict.questions[0]
        assert row["Decision"].endswith(verdict.decision) and row["Pairs"] == str(verdict.n_pairs)
        assert row["Quality [95%]"] == f"{quality.mean:.2f} [{quality.low:.2f}, {quality.high:.2f}]"
    assert table.loc["Style change", "Decision"] == "✘ rejected"
    assert table.loc["Style change", "Reasons"].startswith("mean quality")


def test_the_campaign_shows_progress_and_pseudonyms(page: Open, finished: Path, study: Study) -> None:
    """24 pairs by 3 raters, where the study wants 4."""
    shown = page("--study", DEMO, "--exports", finished, view="campaign")
    progress = table_with(shown, "Wanted")
    assert list(progress["Answers that count"]) == ["72"] * 8
    assert list(progress["Wanted"]) == ["96"] * 8
    asked, tally = table_with(shown, "Queue").iloc[-1], read_status(Evidence(study), datetime.now(UTC)).asked_for
    assert tally is not None
    counts = [tally.pairs, tally.controls, tally.repeats, tally.answers_to_pairs, tally.answers, tally.ratings]
    assert [int(number.replace(",", "")) for number in asked.iloc[1:7]] == counts
    assert table_with(shown, "Rater")["Rater"].str.fullmatch("simulated-[0-9a-f]{8}").all()


def test_a_campaigns_page_is_drawn_anew_once_records_have_changed(
    page: Open, exports: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, drawn_anew = list[Callable[[], object]](), list[bool]()
    monkeypatch.setattr(
        st, "fragment", lambda run_every: lambda look: lambda *facts: looks.append(partial(look, *facts))
    )
    page("--study", DEMO, "--exports", exports, view="campaign")
    monkeypatch.setattr(st, "rerun", lambda: drawn_anew.append(True))
    looks[-1]()
    assert drawn_anew == []
    ratings = read_frame(study.folder / "ratings.parquet", Rating, "")
    Manifest.of(study).write_table("ratings.parquet", ratings.head(8), Rating)
    looks[-1]()
    assert drawn_anew == [True]


def test_texts_begin_with_those_to_read_first_and_have_their_drift(page: Open, exports: Path, study: Study) -> None:
    ratings = read_frame(study.folder / "ratings.parquet", Rating, "")
    pair_id = ratings["pair_id"].iloc[40]
    ratings["comment"] = ratings["pair_id"].map({pair_id: "odd"}).fillna("")
    Manifest.of(study).write_table("ratings.parquet", ratings, Rating)
    shown = page("--study", DEMO, "--exports", exports, view="texts", model=MODELS[1])
    table = table_with(shown, "original")
    assert len(table) == len(CampaignRecords(study).pairs)
    pair = next(pair for pair in CampaignRecords(study).pairs if pair.pair_id == pair_id)
    assert list(table.iloc[0][["comments", "original", "transformed"]]) == [3, pair.original, pair.transformed]
    drift = read_frame(study.folder / "drift.parquet", DriftRecord, "").set_index(["model", "pair_id"])["drift"]
    assert table["drift"].iloc[0] == drift[MODELS[1], pair_id]
    apart = table["highest"] - table["lowest"]
    assert apart.iloc[1:].is_monotonic_decreasing
    shown.session_state["chosen_pair"] = (pair_id, 0)
    shown.run()
    assert_calm(shown)
    assert set(table_with(shown, "Rater", "Rating")["Comment"]) == {"odd"}
    (study.folder / "ratings.parquet").unlink()
    unrated = page("--study", DEMO, "--exports", exports, view="texts", pair=pair_id)
    assert len(table_with(unrated, "original")) == len(table) and "Nobody has rated it yet." in texts(unrated)


def test_a_crowd_campaigns_cost_stands_against_its_plan(page: Open, exports: Path, tmp_path: Path) -> None:
    """Two batches for 3 workers at $2.40 and a third of it in fees: 2 x 3 x $3.20 planned, one batch of it posted."""
    content = yaml.safe_load(hostile_study(tmp_path).read_text(encoding="utf-8"))
    content["crowd"] = {"countries": {"en": ["US"]}, "fee": 1 / 3}
    file = tmp_path / "crowd.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    study = load_study(file, exports)
    shown_pairs = [pair.pair_id for pair in CampaignRecords(study).shown]
    batches = [
        Batch(
            batch_id=f"batch-{number}", pool="expansion", language="en", output_language="en", pilot=False,
            pair_ids=tuple(shown_pairs[number::2]),
        )
        for number in range(2)
    ]  # fmt: skip
    with Ledger(study.scratch / LEDGER, study.name, "prolific", "live") as ledger:
        ledger.add_batches([BatchOffer(batch, places=3, reward=240) for batch in batches])
        ledger.once(("post", "batch-0", 960), {}, lambda _: None, lambda _: "a-worker-s-id")
        shown = page("--study", file, "--exports", exports, view="campaign")
        assert "$9.60 of $19.20" in texts(page("--study", file, "--exports", exports))
        row = table_with(shown, "Planned").iloc[0]
        assert list(row[["Batches offered", "Planned", "Spent or reserved"]]) == ["1 of 2", "$19.20", "$9.60"]
        # A ledger that is being written is seen too.
        ledger.once(("post", "batch-1", 960), {}, lambda _: None, lambda _: "another-worker-s-id")
        shown.run()
        assert table_with(shown, "Planned").iloc[0]["Spent or reserved"] == "$19.20"
    whole = [texts(shown), captions(shown), *(frame.value.to_csv() for frame in shown.dataframe)]
    assert not any("worker-s-id" in text for text in whole)


def test_english_and_other_data_sets_have_tables_of_their_own(page: Open, exports: Path) -> None:
    path = exports / "demo" / "scores.parquet"
    scores = pd.read_parquet(path)
    scores.loc[scores["dataset"].isin(["sample_sts", "sample_intents"]), "language"] = "de"
    Manifest.of(load_study(DEMO, exports)).write_table("scores.parquet", scores, Score)
    original = scores[(scores["transformation"] == "original") & (scores["model"] == MODELS[0])]
    german = original["language"] == "de"
    shown = page("--study", DEMO, "--exports", exports, view="scores")
    for group, rows in (("English", original[~german]), ("Other languages", original[german])):
        shown.sidebar.selectbox(key="group").set_value(group).run()
        assert_calm(shown)
        table = table_with(shown, "Original", "Total").set_index("Model")
        assert table.loc[MODELS[0], "Original"] == f"{100 * rows['score'].mean():.2f}"
        assert f"Few data sets: n = {len(rows)}." in captions(shown)


def test_a_study_that_evaluates_no_model_has_no_pages_about_models(page: Open, finished: Path, tmp_path: Path) -> None:
    content = yaml.safe_load(hostile_study(tmp_path).read_text(encoding="utf-8"))
    del content["evaluation"]
    file = tmp_path / "unscored.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    asked: list[list[str]] = []
    with pytest.MonkeyPatch.context() as patch:
        usual = st.navigation
        patch.setattr(
            st, "navigation", lambda pages: (asked.append([page_entry.title for page_entry in pages]), usual(pages))[1]
        )
        for view in ("answer", "campaign", "verdicts"):
            page("--study", file, "--exports", finished, view=view)
    assert {*map(tuple, asked)} == {("The answer", "Verdicts", "Campaign", "Texts")}


def test_a_changed_file_is_noticed_and_the_command_is_there(page: Open, exports: Path, study: Study) -> None:
    shown = page("--study", DEMO, "--exports", exports)
    assert texts(shown).count(" accepted , P ") == 7
    ratings = read_frame(study.folder / "ratings.parquet", Rating, "")
    Manifest.of(study).write_table("ratings.parquet", ratings.assign(value=1), Rating)
    shown.run()
    assert_calm(shown)
    assert "ratings.parquet changed after the verdicts were reached" in texts(shown)
    assert not texts(shown).count(" accepted , P ")
    assert table_with(shown, "State").set_index("Stage")["State"]["verdicts"] == "⚠ stale"
    assert f"plumbline accept --study {DEMO} --exports {exports}" in commands(shown)
    assert boxes(shown, "The verdicts are no longer valid") == 1


def test_texts_are_found_by_a_piece_of_text_and_no_pattern(page: Open, finished: Path) -> None:
    shown = page("--study", DEMO, "--exports", finished, view="texts", q="TRAIN TICKET")
    table = table_with(shown, "original")
    assert len(table) and (table["original"] + table["transformed"]).str.lower().str.contains("train ticket").all()
    kind = table["kind"].iloc[0]
    shown.sidebar.selectbox(key="kind").set_value(table["transformation"].iloc[0]).run()
    assert set(table_with(shown, "original")["kind"]) == {kind}
    shown.text_input(key="q").set_value("t.*n").run()
    assert "Nothing found." in texts(shown)


@pytest.fixture(scope="module")
def hostile(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study whose texts, models and reasons would do harm if they were more than text."""
    folder = tmp_path_factory.mktemp("hostile")
    shutil.copytree(finished, folder / "exports")
    study = load_study(hostile_study(folder), folder / "exports")
    pairs = [
        pair.model_copy(update={"original": HOSTILE[number % 4], "transformed": HOSTILE[(number + 1) % 4]})
        for number, pair in enumerate(CampaignRecords(study).pairs)
    ]
    Manifest.of(study).write_table("pairs.parquet", pairs, Pair)
    for name, record in (("drift", DriftRecord), ("scores", Score)):
        frame = read_frame(study.folder / f"{name}.parquet", record, "")
        frame["model"] = frame["model"].map(dict(zip(MODELS, HOSTILE, strict=False)))
        frame = frame.assign(reason=HOSTILE[3]) if name == "scores" else frame
        Manifest.of(study).write_table(f"{name}.parquet", frame, record)
    accept(study)
    return study


@pytest.mark.parametrize("view", VIEWS)
def test_hostile_texts_are_shown_as_they_stand(page: Open, hostile: Study, view: str) -> None:
    pair = {"pair": CampaignRecords(hostile).pairs[0].pair_id} if view == "drift" else {}
    shown = page("--study", hostile.file, "--exports", hostile.folder.parent, view=view, **pair)
    assert HOSTILE[0] in texts(shown)
    read_as_markdown = [*shown.markdown, *shown.caption, *shown.header, *shown.subheader, *shown.title, *shown.warning]
    for element in read_as_markdown:
        assert not any(part in element.value for part in HARM)
    for html in shown.get("html"):
        assert not any(part in html.proto.body for part in ("<script", "<img"))
    for spec in specs(shown):  # texts are data beside the specification, never part of it
        assert not any(part in text for text in strings({**spec, "datasets": {}}) for part in HARM if view == "drift")


def hostile_study(folder: Path) -> Path:
    content = yaml.safe_load(DEMO.read_text(encoding="utf-8"))
    content["description"] = HOSTILE[0]
    for part in (*content["datasets"], *content["engines"].values()):
        part["path"] = str(DEMO.parent / part["path"])
    file = folder / "hostile.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def test_too_few_ratings_say_why_there_is_no_rho(page: Open, exports: Path, study: Study) -> None:
    ratings = read_frame(study.folder / "ratings.parquet", Rating, "")
    keep = ratings[ratings["transformation"] == "expansion"]["pair_id"].drop_duplicates().head(2)
    Manifest.of(study).write_table("ratings.parquet", ratings[ratings["pair_id"].isin(keep)], Rating)
    shown = page("--study", DEMO, "--exports", exports, view="drift")
    assert len(panels(shown)) == 1
    words = " ".join(panels(shown)[0]["title"]["subtitle"])
    assert words == "no ρ: rho needs at least 3 pairs, not 2 n = 2 pairs simulated ratings"


def test_no_ratings_at_all_are_said(page: Open, exports: Path, study: Study) -> None:
    ratings = read_frame(study.folder / "ratings.parquet", Rating, "")
    Manifest.of(study).write_table("ratings.parquet", ratings.head(0), Rating)
    shown = page("--study", DEMO, "--exports", exports, view="drift")
    assert "No pair has both a drift and a rating that counts." in captions(shown)
    assert len(shown.header) == 0


def test_panels_of_many_transformations_stand_in_several_rows(
    page: Open, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamlit_app.views.drift.PANELS", 2)
    shown = page("--study", DEMO, "--exports", finished, view="drift")
    assert len(panels(shown)) == 8 and {column.weight for column in shown.columns} == {0.5}
