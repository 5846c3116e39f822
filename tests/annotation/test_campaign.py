"""Publishing, answering and collecting on a really started Argilla, and what happens when it is not there."""

from __future__ import annotations

import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pandas as pd
import pytest

from annotation import server
from annotation.agreement import counting_ratings, read_ratings
from annotation.campaign import collect, publish, published
from annotation.client import Argilla, connect
from annotation.rubric import load_rubric
from annotation.sample import draw_sample
from annotation.simulate import simulate, simulated_answer
from generation.exceptions import DataError, ServiceError, StudyError
from generation.records import Pair, Rating
from generation.run import generate
from generation.store import only_one, write_table
from generation.study import ROOT, Study

Make = Callable[..., Study]


def prepared(study: Study) -> Study:
    generate(study)
    draw_sample(study)
    return study


def small(variant: Make, name: str, **changes: object) -> Study:
    """A study of two pools with four pairs each."""
    raters = {"per_pair": 3, "simulated": [{"name": "strict", "bias": -0.3}, {"name": "even"}, {"name": "kind"}]}
    parts = {"name": name, "transformations": ["paraphrasing", "translation"], "sample": {"pairs": 4}, "raters": raters}
    return prepared(variant(**(parts | changes)))


def rater(argilla: Argilla, name: str) -> server.User:
    assert argilla.connection is not None
    return server.ensure_user(argilla.connection, name, first_name=name)


def answer(argilla: Argilla, user: server.User, record: dict[str, str], status: str, **values: int) -> None:
    body = {
        "values": {question: {"value": value} for question, value in values.items()} or None,
        "status": status,
    }
    argilla.request("POST", f"/records/{record['id']}/responses", api_key=user.api_key, json=body)


def queue(argilla: Argilla, user: server.User, dataset_id: str) -> list[dict[str, str]]:
    pending = {"type": "terms", "scope": {"entity": "response", "property": "status"}, "values": ["pending"]}
    body = {"filters": {"type": "and", "and": [pending]}}
    path = f"/me/datasets/{dataset_id}/records/search"
    found = argilla.request("POST", path, api_key=user.api_key, json=body, params={"limit": 100})
    return [item["record"] for item in found["items"]]


def test_publishing_twice_adds_nothing(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "twice")
    assert publish(study, argilla) == {"paraphrasing": 4, "translation": 4}
    assert publish(study, argilla) == {"paraphrasing": 0, "translation": 0}


def test_publishing_that_was_cut_off_goes_on(argilla: Argilla, variant: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off between making a dataset and finishing it: the half-made one is made anew."""
    study = small(variant, "cutoff")

    def cut_off(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("argilla.Dataset._publish", cut_off)
        with pytest.raises(KeyboardInterrupt):
            publish(study, argilla)
    assert publish(study, argilla) == {"paraphrasing": 4, "translation": 4}


def test_another_number_of_raters_after_publishing_is_refused(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "morelater")
    publish(study, argilla)
    later = small(variant, "morelater", raters={"per_pair": 5})
    with pytest.raises(StudyError, match="asks 3 answers a pair, raters.per_pair is now 5"):
        publish(later, argilla)


def test_answers_to_another_sample_are_not_dropped_silently(argilla: Argilla, variant: Make) -> None:
    ada = rater(argilla, "ada")
    study = small(variant, "resampled")
    publish(study, argilla)
    record = queue(argilla, ada, published(study, argilla)["paraphrasing"])[0]
    answer(argilla, ada, record, "submitted", quality=4, fluency=5)
    others = [pair for pair in draw_sample(study) if pair.pair_id != record["external_id"]]
    write_table(study.folder / "pairs.parquet", others, Pair)
    with pytest.raises(DataError, match=r"1 answers on the server .* are of pairs that are not in pairs.parquet"):
        collect(study, argilla)
    assert collect(study, argilla, replace=True).empty


def test_the_two_translations_share_a_dataset(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "shared", transformations=["translation", "cross_translation"])
    assert publish(study, argilla) == {"translation": 8}


def test_annotators_see_texts_questions_and_guidelines_but_not_where_texts_come_from(
    argilla: Argilla, variant: Make
) -> None:
    user = rater(argilla, "grace")
    study = small(variant, "seen")
    publish(study, argilla)
    dataset_id = published(study, argilla)["paraphrasing"]
    records = queue(argilla, user, dataset_id)
    assert len(records) == 4
    assert set(records[0]["fields"]) == {"original", "transformed"}
    assert set(records[0]["metadata"]) == {"language", "output_language"}
    shown = argilla.request("GET", f"/datasets/{dataset_id}", api_key=user.api_key)
    assert "asked to rephrase the text" in shown["guidelines"]
    assert shown["distribution"] == {"strategy": "overlap", "min_submitted": 3}
    questions = argilla.request("GET", f"/datasets/{dataset_id}/questions", api_key=user.api_key)["items"]
    assert [question["name"] for question in questions] == ["quality", "fluency", "comment"]
    fields = argilla.request("GET", f"/datasets/{dataset_id}/fields", api_key=user.api_key)["items"]
    assert {field["settings"]["use_markdown"] for field in fields} == {False}


def test_collected_ratings_say_who_when_and_in_which_state(argilla: Argilla, variant: Make) -> None:
    ada, bob = rater(argilla, "ada"), rater(argilla, "bob")
    study = small(variant, "states")
    publish(study, argilla)
    records = queue(argilla, ada, published(study, argilla)["paraphrasing"])
    answer(argilla, ada, records[0], "submitted", quality=4, fluency=5)
    answer(argilla, bob, records[0], "submitted", quality=2, fluency=3)
    answer(argilla, ada, records[1], "draft", quality=1)
    answer(argilla, ada, records[2], "discarded")
    ratings = collect(study, argilla)
    states = Counter(zip(ratings["status"], ratings["question"], ratings["value"].fillna(0).astype(int), strict=True))
    assert states == {
        ("submitted", "quality", 4): 1,
        ("submitted", "fluency", 5): 1,
        ("submitted", "quality", 2): 1,
        ("submitted", "fluency", 3): 1,
        ("draft", "quality", 1): 1,
        ("draft", "fluency", 0): 1,
        ("discarded", "quality", 0): 1,
        ("discarded", "fluency", 0): 1,
    }
    assert ratings["rater_id"].nunique() == 2
    assert ratings["rater_id"].str.match(r"^rater-[0-9a-f]{8}$").all()
    assert not ratings["simulated"].any()
    assert (pd.Timestamp.now(tz="UTC") - ratings["submitted_at"]).dt.total_seconds().between(0, 600).all()
    assert len(counting_ratings(ratings, 3)) == 4
    again = collect(study, argilla)
    pd.testing.assert_frame_equal(ratings, again)


def test_answers_that_vanished_from_the_server_are_not_dropped_silently(argilla: Argilla, variant: Make) -> None:
    ada = rater(argilla, "ada")
    study = small(variant, "vanished")
    publish(study, argilla)
    record = queue(argilla, ada, published(study, argilla)["paraphrasing"])[0]
    answer(argilla, ada, record, "submitted", quality=4, fluency=5)
    before = collect(study, argilla)
    rows = next(r for r in argilla.records(published(study, argilla)["paraphrasing"]) if r["id"] == record["id"])
    argilla.request("DELETE", f"/responses/{rows['responses'][0]['id']}", api_key=ada.api_key)
    with pytest.raises(DataError, match="2 ratings that were collected before are not on the server"):
        collect(study, argilla)
    pd.testing.assert_frame_equal(read_ratings(study), before)
    assert collect(study, argilla, replace=True).empty


def test_simulated_raters_finish_every_pair_once_and_say_what_they_are(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "simulated")
    publish(study, argilla)
    assert simulate(study, argilla) == 2 * 4 * 3
    assert simulate(study, argilla) == 0
    ratings = collect(study, argilla)
    assert ratings["simulated"].all()
    assert ratings["rater_id"].str.startswith("simulated-").all()
    assert ratings.groupby(["pair_id", "question"])["rater_id"].nunique().eq(3).all()
    records = list(argilla.records(published(study, argilla)["translation"]))
    assert {record["status"] for record in records} == {"completed"}


def test_simulated_answers_come_after_peoples(argilla: Argilla, variant: Make) -> None:
    ada = rater(argilla, "ada")
    study = small(variant, "mixed")
    publish(study, argilla)
    record = queue(argilla, ada, published(study, argilla)["paraphrasing"])[0]
    answer(argilla, ada, record, "submitted", quality=1, fluency=1)
    assert simulate(study, argilla) == 2 * 4 * 3 - 1
    ratings = collect(study, argilla)
    counts = ratings[ratings["question"] == "quality"].groupby("pair_id")["rater_id"].nunique()
    assert set(counts) == {3}


def test_a_simulated_answer_is_a_pure_function_near_the_truth(demo: Study) -> None:
    rubric = load_rubric(demo)
    strict = demo.raters.simulated[0]
    truth = {"quality": 4, "fluency": 5}
    answers = [simulated_answer(demo, strict, f"pair{i}", truth, rubric) for i in range(400)]
    assert answers == [simulated_answer(demo, strict, f"pair{i}", truth, rubric) for i in range(400)]
    quality = [given["quality"] for given in answers]
    # 4 - 0.3 with noise 0.5: the mean of 400 is within 0.1 of 3.7 (its standard error is 0.5/20 = 0.025)
    assert sum(quality) / 400 == pytest.approx(3.7, abs=0.1)
    assert max(given["fluency"] for given in answers) <= 5


def test_simulation_needs_raters(argilla: Argilla, variant: Make) -> None:
    with pytest.raises(StudyError, match="raters.simulated is empty"):
        simulate(small(variant, "norater", raters={"per_pair": 3}), argilla)


def test_simulation_never_reaches_a_server_elsewhere(argilla: Argilla, variant: Make) -> None:
    elsewhere = Argilla(argilla.url, argilla.sdk, None)
    study = small(variant, "elsewhere")
    with pytest.raises(ServiceError, match="simulated raters answer on the local server alone"):
        simulate(study, elsewhere)


def test_collecting_before_publishing_says_so(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "unpublished")
    with pytest.raises(ServiceError, match=r"no dataset 'unpublished-paraphrasing'; run `python -m annotation publish"):
        collect(study, argilla)


def test_a_dataset_with_other_questions_is_refused(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "otherscale")
    publish(study, argilla)
    seven = load_rubric(study).model_copy(update={"scale": (1, 2, 3, 4, 5, 6, 7)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("annotation.campaign.load_rubric", lambda _: seven)
        with pytest.raises(StudyError, match="asks .* give the new study another name"):
            publish(study, argilla)


def test_a_server_of_the_environment_is_used(
    argilla: Argilla, home: server.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", argilla.url)
    monkeypatch.setenv("ARGILLA_API_KEY", server.credentials(home).owner.api_key)
    with connect(server.Home(home.path / "unused")) as elsewhere:
        assert elsewhere.connection is None
        assert {user.role for user in elsewhere.users()} >= {"owner"}
    assert not (home.path / "unused").exists()


def test_a_wrong_key_is_one_line(argilla: Argilla, home: server.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", argilla.url)
    monkeypatch.setenv("ARGILLA_API_KEY", "wrong")
    with pytest.raises(ServiceError, match="does not accept the key; set ARGILLA_API_KEY"), connect(home):
        pass


def test_a_missing_key_is_one_line(home: server.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", "http://127.0.0.1:9")
    monkeypatch.delenv("ARGILLA_API_KEY", raising=False)
    with pytest.raises(ServiceError, match="ARGILLA_API_KEY is not"), connect(home):
        pass


def test_a_missing_url_is_one_line(home: server.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_KEY", "any")
    monkeypatch.delenv("ARGILLA_API_URL", raising=False)
    with pytest.raises(ServiceError, match="ARGILLA_API_URL is not"), connect(home):
        pass


def test_two_commands_at_once_on_one_campaign_are_refused(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "atonce")
    with (
        only_one(study.folder / ".campaign.lock", "held"),
        pytest.raises(StudyError, match="another command works on the campaign of 'atonce'"),
    ):
        publish(study, argilla)
    assert publish(study, argilla) == {"paraphrasing": 4, "translation": 4}


def test_an_argilla_that_is_not_there_is_one_line(home: server.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ARGILLA_API_KEY", "any")
    with pytest.raises(ServiceError, match=r"http://127.0.0.1:9 does not answer"), connect(home):
        pass


class NotArgilla(http.server.BaseHTTPRequestHandler):
    """A web server that is something else."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture
def other_server() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), NotArgilla) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{other.server_port}"
        other.shutdown()


def test_a_server_that_is_no_argilla_is_one_line(
    other_server: str, home: server.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", other_server)
    monkeypatch.setenv("ARGILLA_API_KEY", "any")
    with pytest.raises(ServiceError, match="does not answer as Argilla does"), connect(home):
        pass


def test_killed_while_collecting_and_run_again_gives_the_same(
    argilla: Argilla, home: server.Home, variant: Make
) -> None:
    """`kill -9` at many moments of `collect`: the file is the old one or the new one, and a re-run completes it."""
    study = small(variant, "killed")
    publish(study, argilla)
    simulate(study, argilla)
    whole = collect(study, argilla)
    path = study.folder / "ratings.parquet"
    write_table(path, whole.iloc[:2], Rating)
    before = path.read_bytes()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ARGILLA_")}
    base = [sys.executable, "-m", "annotation", "collect", "--study", str(study.file)]
    command = [*base, "--exports", str(study.folder.parent), "--data", str(home.path)]
    for delay in (0.5, 1.5, 2.5):
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert path.read_bytes() == before or len(read_ratings(study)) == len(whole)
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    pd.testing.assert_frame_equal(read_ratings(study), whole)
