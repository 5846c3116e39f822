"""The page by Streamlit's own test runner: whole, empty, half-run, broken, hostile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from streamlit.testing.v1 import AppTest

from annotation.records import Verdict
from annotation.sample import read_pairs
from annotation.tables import SIMULATED
from annotation.verdicts import read_verdicts
from generation.records import Drift, Pair, Rating, Score
from generation.store import read_frame, write_json, write_table
from generation.study import Study
from tests.streamlit_app.conftest import DEMO, MODELS, Open

HOSTILE = (
    "<script>document.title='taken'</script><img src=x onerror=alert(1)>",
    "**bold** [link](http://192.0.2.1/) # heading ![i](http://192.0.2.1/i.png)",
    "$x^2$ $$\\frac{a}{b}$$ :smile: :red[alarm] :material/home:",
    '=HYPERLINK("http://192.0.2.1/","open")',
)


def headers(page: AppTest) -> list[str]:
    return [header.value for header in page.header]


def texts(page: AppTest) -> str:
    return "\n".join(text.value for text in page.text)


def commands(page: AppTest) -> list[str]:
    return [code.value for code in page.code]


def specs(page: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in page.get("vega_lite_chart")]


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


def assert_calm(page: AppTest) -> None:
    assert [item.message for item in page.exception] == []
    assert [item.value for item in page.error] == []


def test_a_finished_study_shows_everything(page: Open, finished: Path) -> None:
    shown = page("--study", DEMO, "--exports", finished)
    assert_calm(shown)
    assert shown.title[0].value == "Plumbline: demo"
    assert [warning.value for warning in shown.warning] == [SIMULATED]
    assert headers(shown) == [
        "How it stands",
        "Verdicts",
        "Drift against ratings",
        "Scores, original against transformed",
    ]
    stages = shown.dataframe[0].value
    assert list(stages["Stage"]) == ["generation", "sample", "publish", "collect", "accept", "evaluation"]
    assert (stages["State"] == "✔ done").all()
    verdicts = shown.dataframe[1].value
    assert dict(zip(verdicts["Transformation"], verdicts["Decision"], strict=True))["Style change"] == "✘ rejected"
    assert (verdicts["Decision"] == "✔ accepted").sum() == 7
    assert (verdicts["Raters"] == "simulated").all()
    assert "Style change (en), rejected: mean quality" in texts(shown)


def test_each_transformation_has_a_panel_by_axis(page: Open, finished: Path) -> None:
    shown = page("--study", DEMO, "--exports", finished)
    panels = [spec for spec in specs(shown) if "layer" not in spec]
    assert [panel["title"]["text"] for panel in panels] == [
        "Paraphrasing",
        "Backtranslation",
        "Style change",
        "Expansion",
        "Summarisation",
        "Summarised expansion",
        "Translation",
        "Cross-Translation",
    ]
    for panel in panels:
        first, *rest = panel["title"]["subtitle"]
        assert first.startswith("ρ = ")
        assert first.endswith("n = 24 pairs")
        assert rest == ["simulated ratings"]
    assert [heading.value for heading in shown.subheader][:3] == ["Lexical/Stylistic", "Length", "Language"]


def test_model_and_question_are_chosen_at_the_side(page: Open, finished: Path) -> None:
    shown = page("--study", DEMO, "--exports", finished)
    assert shown.sidebar.selectbox(key="model").options == list(MODELS)
    first = specs(shown)[0]["title"]["subtitle"]
    shown.sidebar.selectbox(key="model").set_value(MODELS[1]).run()
    second = specs(shown)[0]["title"]["subtitle"]
    shown.sidebar.selectbox(key="question").set_value("fluency").run()
    assert_calm(shown)
    assert specs(shown)[0]["encoding"]["x"]["title"] == "Mean fluency"
    assert first != second != specs(shown)[0]["title"]["subtitle"]


def test_a_chosen_pair_opens_with_its_ratings_by_pseudonym(page: Open, finished: Path, study: Study) -> None:
    shown = page("--study", DEMO, "--exports", finished)
    pair = read_pairs(study)[3]
    shown.session_state["chosen_pair"] = (pair.pair_id, 0)
    shown.run()
    assert_calm(shown)
    assert {pair.original, pair.transformed} <= set(commands(shown))
    ratings = next(frame.value for frame in shown.dataframe if "rater_id" in frame.value.columns)
    assert len(ratings) == 6
    assert ratings["rater_id"].str.fullmatch("simulated-[0-9a-f]{8}").all()
    shown.run()  # opened once, not at every run
    assert not any("rater_id" in frame.value.columns for frame in shown.dataframe)


def test_a_closed_pair_stays_closed_though_its_choice_is_reported_once_more(page: Open, finished: Path) -> None:
    """Closing a pair while the page still draws makes Streamlit call the choice's callback again."""
    shown = page("--study", DEMO, "--exports", finished)
    pair_id = next(frame.value for frame in shown.dataframe if "pair_id" in frame.value.columns)["pair_id"].iloc[0]
    shown.session_state["chosen_pair"], shown.session_state["closed_pairs"] = (pair_id, 0), 1
    shown.run()
    assert_calm(shown)
    assert not any("rater_id" in frame.value.columns for frame in shown.dataframe)


def test_people_are_not_called_simulated(page: Open, exports: Path, study: Study) -> None:
    ratings = read_frame(study.folder / "ratings.parquet", Rating, "").assign(simulated=False)
    write_table(study.folder / "ratings.parquet", ratings, Rating)
    verdicts = [verdict.model_copy(update={"simulated": False}) for verdict in read_verdicts(study)]
    write_json(study.folder / "verdicts.json", verdicts)
    shown = page("--study", DEMO, "--exports", exports)
    assert_calm(shown)
    assert len(shown.warning) == 0
    assert specs(shown)[0]["title"]["subtitle"][1:] == []
    assert not any("simulated" in caption.value for caption in shown.caption)


def test_one_simulated_rating_is_enough_for_the_banner(page: Open, exports: Path, study: Study) -> None:
    ratings = read_frame(study.folder / "ratings.parquet", Rating, "").assign(simulated=False)
    ratings.loc[0, "simulated"] = True
    write_table(study.folder / "ratings.parquet", ratings, Rating)
    (study.folder / "verdicts.json").unlink()
    assert [item.value for item in page("--study", DEMO, "--exports", exports).warning] == [SIMULATED]


def test_an_empty_study_says_what_to_run(page: Open, tmp_path: Path) -> None:
    shown = page("--study", DEMO, "--exports", tmp_path)
    assert_calm(shown)
    assert (shown.dataframe[0].value["State"] == "– not yet").all()
    options = f"--study {DEMO} --exports {tmp_path}"
    assert commands(shown)[0] == f"python -m generation.run {options}"
    assert f"python -m annotation accept {options}" in commands(shown)
    assert f"python -m evaluation.run {options}" in commands(shown)
    assert "is not there yet" in texts(shown)
    assert sum("Not there yet" in item.value for item in shown.markdown) == 3


@pytest.mark.parametrize(
    ("gone", "command", "charts"),
    [
        ("ratings.parquet", "python -m annotation collect", 2),
        ("scores.parquet", "python -m evaluation.run", 8),
        ("verdicts.json", "python -m annotation accept", 8),
        ("pairs.parquet", "python -m annotation sample", 2),
        ("drift.parquet", "python -m evaluation.run", 2),
    ],
)
def test_a_half_run_study_shows_the_rest(page: Open, exports: Path, gone: str, command: str, charts: int) -> None:
    (exports / "demo" / gone).unlink()
    shown = page("--study", DEMO, "--exports", exports)
    assert_calm(shown)
    assert f"{command} --study {DEMO} --exports {exports}" in commands(shown)
    assert len(headers(shown)) == 4
    assert len(specs(shown)) == charts
    assert any("Not there yet" in item.value for item in shown.markdown)


@pytest.mark.parametrize("name", ["ratings.parquet", "pairs.parquet", "drift.parquet", "scores.parquet"])
def test_a_corrupt_table_is_named_and_the_rest_goes_on(page: Open, exports: Path, name: str) -> None:
    (exports / "demo" / name).write_bytes(b"PAR1 not really")
    shown = page("--study", DEMO, "--exports", exports)
    assert_calm(shown)
    assert f"{name} is damaged" in texts(shown)
    assert any("This cannot be shown" in item.value for item in shown.markdown)
    assert len(headers(shown)) == 4


@pytest.mark.parametrize("content", ["{", "[1]", '{"stages": 3}', '{"stages": {"accept": 3}}'])
@pytest.mark.parametrize("name", ["manifest.json", "verdicts.json"])
def test_corrupt_json_is_no_traceback(page: Open, exports: Path, name: str, content: str) -> None:
    (exports / "demo" / name).write_text(content, encoding="utf-8")
    shown = page("--study", DEMO, "--exports", exports)
    assert_calm(shown)
    assert len(headers(shown)) == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("name: demo\nnmae: x\n", "unknown key 'nmae'"),
        ("- 1\n", "a study is a mapping"),
        ("name: [", "not valid YAML"),
        ("name: demo\n<b>x</b>: 1\n", "unknown key '<b>x</b>'"),
    ],
)
def test_an_invalid_study_is_one_line(page: Open, tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(content, encoding="utf-8")
    shown = page("--study", file)
    assert_calm(shown)
    assert shown.title[0].value == "Plumbline"
    assert said in texts(shown)


@pytest.mark.parametrize("arguments", [(), ("--nothing",), ("--study", "studies/nowhere.yaml")])
def test_a_wrong_start_is_one_line(page: Open, arguments: tuple[str, ...]) -> None:
    shown = page(*arguments)
    assert_calm(shown)
    assert len(texts(shown)) > 20
    if len(arguments) < 2:
        assert commands(shown) == ["streamlit run streamlit_app/app.py -- --study studies/demo.yaml"]


def test_a_changed_file_is_noticed(page: Open, exports: Path, study: Study) -> None:
    shown = page("--study", DEMO, "--exports", exports)
    before = shown.dataframe[1].value["Decision"]
    verdicts = [verdict.model_copy(update={"decision": "undecided"}) for verdict in read_verdicts(study)]
    write_json(study.folder / "verdicts.json", verdicts)
    drift = read_frame(study.folder / "drift.parquet", Drift, "")
    write_table(study.folder / "drift.parquet", drift[drift["model"] == MODELS[1]], Drift)
    shown.run()
    assert_calm(shown)
    assert not (before == "? undecided").any()
    assert (shown.dataframe[1].value["Decision"] == "? undecided").all()
    assert shown.sidebar.selectbox(key="model").options == [MODELS[1]]


def test_hostile_texts_are_shown_as_they_stand(page: Open, exports: Path, study: Study, tmp_path: Path) -> None:
    pairs = [
        pair.model_copy(update={"original": HOSTILE[number % 4], "transformed": HOSTILE[(number + 1) % 4]})
        for number, pair in enumerate(read_pairs(study))
    ]
    write_table(study.folder / "pairs.parquet", pairs, Pair)
    for name, record in (("drift", Drift), ("scores", Score)):
        frame = read_frame(study.folder / f"{name}.parquet", record, "")
        frame["model"] = frame["model"].map(dict(zip(MODELS, HOSTILE, strict=False)))
        write_table(study.folder / f"{name}.parquet", frame, record)
    verdicts = [verdict.model_copy(update={"reasons": HOSTILE}) for verdict in read_verdicts(study)]
    write_json(study.folder / "verdicts.json", verdicts)
    shown = page("--study", hostile_study(tmp_path), "--exports", exports)
    shown.session_state["chosen_pair"] = (pairs[0].pair_id, 0)
    shown.run()
    assert_calm(shown)
    assert HOSTILE[0] in texts(shown)
    assert {HOSTILE[0], HOSTILE[1]} <= set(commands(shown))
    read_as_markdown = [*shown.markdown, *shown.caption, *shown.header, *shown.subheader, *shown.title, *shown.warning]
    for element in read_as_markdown:
        assert not any(part in element.value for part in ("<script", "[link]", "$x", ":smile:", "HYPERLINK"))
    for spec in specs(shown):  # texts are data beside the specification, never part of it
        assert not any(part in text for text in strings(spec) for part in ("<script", "[link]", "$x", "HYPERLINK"))


def hostile_study(folder: Path) -> Path:
    content = yaml.safe_load(DEMO.read_text(encoding="utf-8"))
    content["description"] = HOSTILE[0]
    file = folder / "hostile.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def test_what_is_included_though_refused_is_marked(page: Open, exports: Path) -> None:
    path = exports / "demo" / "scores.parquet"
    scores = pd.read_parquet(path)
    refused = scores["status"] == "left_out"
    scores.loc[refused, ["status", "score"]] = ["included_rejected", 0.5]
    scores.to_parquet(path)
    shown = page("--study", DEMO, "--exports", exports)
    assert_calm(shown)
    without = axis_table(shown)
    assert not without["Notes"].str.contains("not accepted").any()
    shown.toggle[0].set_value(True).run()
    assert_calm(shown)
    assert axis_table(shown)["Notes"].str.contains("not accepted, but included: style_change").all()
    assert not axis_table(shown)["Lexical/Stylistic"].equals(without["Lexical/Stylistic"])


def axis_table(page: AppTest) -> pd.DataFrame:
    return next(frame.value for frame in page.dataframe if "HTEB total" in frame.value.columns)


def test_too_few_ratings_say_why_there_is_no_rho(page: Open, exports: Path, study: Study) -> None:
    ratings = read_frame(study.folder / "ratings.parquet", Rating, "")
    keep = ratings[ratings["transformation"] == "expansion"]["pair_id"].drop_duplicates().head(2)
    write_table(study.folder / "ratings.parquet", ratings[ratings["pair_id"].isin(keep)], Rating)
    shown = page("--study", DEMO, "--exports", exports)
    assert_calm(shown)
    panels = [spec for spec in specs(shown) if "layer" not in spec]
    assert len(panels) == 1
    said = " ".join(panels[0]["title"]["subtitle"])
    assert said == "no ρ: rho needs at least 3 pairs, there are 2 n = 2 pairs simulated ratings"


def test_no_ratings_at_all_are_said(page: Open, exports: Path, study: Study) -> None:
    ratings = read_frame(study.folder / "ratings.parquet", Rating, "")
    write_table(study.folder / "ratings.parquet", ratings.head(0), Rating)
    write_json(study.folder / "verdicts.json", list[Verdict]())
    shown = page("--study", DEMO, "--exports", exports)
    assert_calm(shown)
    captions = [caption.value for caption in shown.caption]
    assert "No pair has both a rating that counts and a drift." in captions
    assert "There are no verdicts: the sample holds no pairs." in captions
