"""A transformation and questions of one's own through everything, by files and commands alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from streamlit.testing.v1 import AppTest

from annotation import server
from annotation.campaign.records import CampaignRecords
from annotation.options import HOME_VARIABLE
from evaluation.records import EvaluationRecords
from plumbline.study import ROOT, Study, load_study
from tests.annotation.crowd.campaigns import honest
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.kinds import EFFORT, NATURAL, ask, rubric
from tests.annotation.previews import words
from tests.commands import here
from tests.concluded import concluded
from tests.streamlit_app.conftest import APP, VIEWS, go_to

pytestmark = pytest.mark.usefixtures("undrawn", "without_next")

TYPOS = {"name": "typing_errors", "axis": "noise", "function": "generation.examples:typos",
         "raters": {"asked": {"en": "The program swapped neighbouring letters."}}}  # fmt: skip
HTEBS = ("paraphrasing", "summarised_expansion", "translation")
# A label, and a rating on a scale with a gap: no recording has answers to them for simulated raters.
HARD = EFFORT | {"scale": [0, 1, 4], "required": True, "pools": [],
                 "points": {0: {"en": "easy"}, 1: {"en": "some effort"}, 4: {"en": "hard"}}}  # fmt: skip
SOUND = {"question": "naturalness", "label": "wrong", "at_most": 0.5}
LIVE = ("--live", "--platform", "mturk", "--max-cost", "200", "--yes")
KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "a-secret-key", "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}  # fmt: skip
Run = Callable[..., str]


@pytest.fixture
def study(tmp_path: Path, home: server.Home, monkeypatch: pytest.MonkeyPatch) -> Study:
    """The sample study with few pairs, a lexical model, and what is one's own: a study file and a rubric file."""
    ask(monkeypatch, tmp_path, rubric(NATURAL, HARD))
    for name, value in {HOME_VARIABLE: str(home.path), **KEYS}.items():
        monkeypatch.setenv(name, value)
    data = yaml.safe_load((ROOT / "studies" / "demo.yaml").read_text(encoding="utf-8"))
    data["datasets"] = [one for one in data["datasets"] if one["task"] == "sts"]
    for part in (*data["datasets"], *data["engines"].values()):
        part["path"] = str(ROOT / "studies" / part["path"])
    del data["training"]  # its known pairs have no answers to the questions of one's own
    data["raters"] |= {"per_pair": 3, "simulated": data["raters"]["simulated"][:2]}
    data |= {
        "name": "ninth",
        "rubric": "kinds",
        "transformations": [*HTEBS, TYPOS],
        "sample": {"pairs": 3, "batch": 12},
        "acceptance": {"protocol": "paper", "min_pairs": 3, "rules": [{"question": "quality", "at_least": 2.5}, SOUND]},
        "crowd": {"countries": {code: ["US"] for code in ("ar", "de", "en", "es", "fr", "ru", "tr")}, "share": 1.0},
        "evaluation": {"models": [{"name": "n-grams", "kind": "lexical"}]},
    }
    file = tmp_path / "ninth.yaml"
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    return load_study(file, tmp_path / "exports")


@pytest.fixture
def run(study: Study) -> Run:
    """A command on the study; what it prints."""

    def command(module: str, words: str = "", *options: str) -> str:
        where = ("--study", str(study.file), "--exports", str(study.folder.parent))
        done = here(module, *words.split(), *where, *options)
        assert done.returncode == 0, (module, words, done.stderr)
        return done.stdout

    return command


@pytest.mark.usefixtures("argilla")
def test_a_transformation_and_questions_of_ones_own_need_no_line_of_code(
    study: Study, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("generate", "", "--allow-code")
    run("sample")
    run("preview")
    preview = words((study.folder / "preview.html").read_text(encoding="utf-8"))
    assert "The program swapped neighbouring letters." in preview and "How does the new text sound?" in preview
    planned = run("plan", "", "--campaigns", "2", "--pairs", "30", "--raters", "3")
    assert "share of wrong in naturalness at most 0.5" in planned
    assert "published in 4 datasets" in run("publish")
    run("simulate")
    told = run("collect")  # 12 pairs, 2 raters
    assert ", 24 of them to pairs (" in told
    early = CampaignRecords(study).ratings
    own = early[early["transformation"] == "typing_errors"]
    assert early["simulated"].all() and set(own["question"]) == {"quality", "fluency", "naturalness", "effort"}
    assert set(early.loc[early["question"] == "effort", "value"]) <= {0, 1, 4}
    run("status")
    assert "SIMULATED RATINGS" in run("accept")
    paid(study, run, monkeypatch)
    run("accept")
    run("ratings-report")
    judged(study)
    assert ", without noise" in run("evaluate")
    scores = EvaluationRecords(study).scores
    typos = scores[(scores["transformation"] == "typing_errors") & (scores["status"] == "evaluated")]
    assert len(typos) == 1 and typos["score"].notna().all() and set(typos["axis"]) == {"noise"}
    monkeypatch.setattr("sys.argv", [str(APP), "--study", str(study.file), "--exports", str(study.folder.parent)])
    for view in VIEWS:
        shown = AppTest.from_file(str(APP), default_timeout=60)
        go_to(shown, view).run()
        assert not shown.exception and not shown.error, (view, shown.exception, shown.error)


def paid(study: Study, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round on MTurk beside: each batch has a worker, who is collected, approved and paid."""
    good = honest(study)

    def answer(name: str) -> str:
        pair_id, _, question = name.rpartition(".")
        return {"naturalness": "natural", "effort": "1"}.get(question, str(good(pair_id, question)))

    with MTurkSite() as site:
        monkeypatch.setenv("MTURK_ENDPOINT", site.url)
        run("crowd", "plan", "--platform", "mturk", "--live")
        run("crowd", "launch", *LIVE)
        asked = ("quality", "fluency", "naturalness", "effort")
        for number, hit in enumerate(list(site.hits)):
            fields = site.fields(hit)
            assert {name.rpartition(".")[2] for name in fields} >= set(asked)
            site.work(hit, f"AWORKER{number}", {
                name: answer(name) if name.rpartition(".")[2] in asked else value for name, value in fields.items()
            }, seconds=240)  # fmt: skip
        told = run("collect")  # a study's answers, wherever they are given
        assert "[live mturk] " in told and "ninth: " in told
        for step, options in (("approve", ("--all",)), ("close", ()), ("bonus", LIVE[3:])):
            run("crowd", step, "--live", *options)
        assert {one.status for one in site.assignments.values()} == {"Approved"}
        assert "approved" in run("crowd", "status", "--live")


def judged(study: Study) -> None:
    """What the verdicts and the report say of what is one's own."""
    ratings = CampaignRecords(study).ratings
    assert set(ratings["source"]) == {"argilla", "mturk"}
    counted = ratings[~ratings["surplus"]]
    assert counted.groupby(["pair_id", "question"]).size().eq(3).all()  # two simulated raters and a worker
    verdicts = {one.transformation: one for one in concluded(study).verdicts}
    assert list(verdicts) == [*HTEBS, "typing_errors"]
    typos = verdicts["typing_errors"]
    assert (typos.decision, typos.axis, typos.origin.generator_kind) == ("accepted", "noise", "function")
    assert typos.simulated
    assert verdicts["summarised_expansion"].decision == "rejected"
    assert [one.question for one in typos.questions] == ["quality", "fluency", "naturalness", "effort"]
    assert {(len(one.result.rules), len(one.result.probabilities)) for one in verdicts.values()} == {(2, 2)}
    given = counted[(counted["transformation"] == "typing_errors") & (counted["question"] == "naturalness")]
    shares = {one.label: one.share.value for one in typos.questions[2].shares}
    assert shares == pytest.approx({name: (given["answer"] == name).mean() for name in ("natural", "odd", "wrong")})
    page = (study.folder / "report" / "index.html").read_text(encoding="utf-8")
    assert "naturalness (“How does the new text sound?”) asked for one of natural, odd, wrong" in page
    assert "were made by the function generation.examples:typos" in page
    assert (study.folder / "report" / "labels.csv").exists()
