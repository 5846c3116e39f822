"""Publishing and answering on a really started Argilla, and what happens when it is not there."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from argilla._exceptions import ConflictError, SettingsError

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.client import Argilla, connect, translated
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.argilla.simulate import simulate, simulated_answer
from annotation.campaign_records import CampaignRecords
from annotation.judges.pool import draw_judged
from annotation.judges.run import judge
from annotation.names import WORKER
from annotation.rubric import load_rubric
from annotation.sampling.queues import Queue
from annotation.sampling.sample import extend_sample
from generation.production import read_transformed
from plumbline import prompts
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.manifest import Manifest
from plumbline.prompts import PROMPTS
from plumbline.records import TransformedText
from plumbline.store import only_one
from plumbline.study import ROOT, Study
from tests.annotation.campaigns import ALONE, answer, dataset, pending, rater, small

OUTPUTS = "transformations/paraphrasing/1337.parquet"
Make = Callable[..., Study]


def test_publishing_twice_adds_nothing(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "twice")
    new = publish(study, argilla).new
    assert new["twice-paraphrasing-EN"] == 4 and sum(new.values()) == 4 + 4
    assert publish(study, argilla).new == dict.fromkeys(new, 0)


def test_nothing_of_judges_reaches_raters(argilla: Argilla, variant: Make, tmp_path: Path) -> None:
    parts = {"transformations": ["paraphrasing"], "judge_pool": 6}
    oracle = {
        "name": "oracle",
        "engine": {"kind": "recorded", "model": "seer", "path": str(tmp_path / "oracle.jsonl")},
        "score": "text",
    }
    study = small(variant, "unseen", judges=[oracle], **parts)
    lines = [
        {"original": pair.original, "transformed": pair.transformed, "answers": {"quality": "2", "fluency": "1"}}
        for pair in draw_judged(study, keep=False)
    ]
    (tmp_path / "oracle.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert judge(study)[0].counts["ok"] == 12
    publish(study, argilla)
    user = rater(argilla, "unseen-rater")
    publish(study, argilla)
    shown = pending(argilla, user, dataset(study, argilla))
    path = f"/datasets/{dataset(study, argilla)}/records"
    kept = argilla.request("GET", path, params={"include": ["responses", "suggestions"], "limit": 100})["items"]
    assert len(shown) == len(kept) == 4
    for record in (*shown, *kept):
        assert not record.get("suggestions")
        assert not any(word in json.dumps(record) for word in ("oracle", "seer", "judge", "stratum"))
    reaching = [file for folder in ("argilla", "crowd") for file in (ROOT / "annotation" / folder).rglob("*.py")]
    assert reaching and not any("annotation.judges" in file.read_text() for file in reaching)


def test_an_extended_sample_reaches_the_same_datasets_and_touches_no_answer(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "wider", transformations=["paraphrasing"])
    publish(study, argilla)
    user = rater(argilla, "wider-rater")
    publish(study, argilla)
    (first, *_) = pending(argilla, user, dataset(study, argilla))
    answer(argilla, user, first, "submitted", quality=4, fluency=5)
    grown = variant(
        name="wider", transformations=["paraphrasing"], raters={"per_pair": 3}, sample={"pairs": 7, **ALONE}
    )
    extend_sample(grown, "more")
    assert publish(grown, argilla).new == {"wider-paraphrasing-EN": 3}
    assert len(pending(argilla, user, dataset(grown, argilla))) == 6
    ratings = collect(grown, argilla)
    assert ratings["pair_id"].unique().tolist() == [first["external_id"]]


def test_publishing_that_was_cut_off_goes_on(argilla: Argilla, variant: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off between making a dataset and finishing it: the half-made one is made anew."""
    study = small(variant, "cutoff")

    def cut_off(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("argilla.Dataset._publish", cut_off)
        with pytest.raises(KeyboardInterrupt):
            publish(study, argilla)
    assert sum(publish(study, argilla).new.values()) == 4 + 4


def test_another_number_of_raters_after_publishing_is_refused(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "morelater", transformations=["paraphrasing"])
    publish(study, argilla)
    later = small(variant, "morelater", transformations=["paraphrasing"], raters={"per_pair": 5})
    with pytest.raises(StudyError, match="wants 3 answers a pair, but raters.per_pair is now 5"):
        publish(later, argilla)


def test_translations_have_a_dataset_for_each_pair_of_languages(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "shared", transformations=["translation", "cross_translation"])
    pairs = CampaignRecords.open(study).pairs
    languages = {pair.output_language for pair in pairs}
    assert {pair.transformation for pair in pairs} == {"translation", "cross_translation"} and len(languages) > 1
    expected = {f"shared-translation-EN-{code.upper()}": 0 for code in languages}
    for pair in pairs:
        expected[f"shared-translation-EN-{pair.output_language.upper()}"] += 1
    assert publish(study, argilla).new == expected


def test_annotators_see_texts_questions_and_guidelines_but_not_where_texts_come_from(
    argilla: Argilla, variant: Make
) -> None:
    user = rater(argilla, "grace")
    study = small(variant, "seen", transformations=["paraphrasing"])
    publish(study, argilla)
    dataset_id = dataset(study, argilla)
    records = pending(argilla, user, dataset_id)
    assert len(records) == 4
    shown = argilla.request("GET", f"/datasets/{dataset_id}", api_key=user.api_key)
    assert "asked to rephrase the text" in shown["guidelines"]
    assert shown["distribution"] == {"strategy": "overlap", "min_submitted": 3}
    questions = argilla.request("GET", f"/datasets/{dataset_id}/questions", api_key=user.api_key)["items"]
    assert [question["name"] for question in questions] == ["quality", "fluency", "comment"]
    assert "5 = does exactly what was asked" in questions[0]["description"]
    fields = argilla.request("GET", f"/datasets/{dataset_id}/fields", api_key=user.api_key)["items"]
    assert {field["settings"]["use_markdown"] for field in fields} == {False}


def test_a_translations_raters_are_addressed_in_its_language_and_see_both_named(
    argilla: Argilla, variant: Make
) -> None:
    user = rater(argilla, "grace")
    study = small(variant, "german", transformations=["cross_translation"], sample={"pairs": 40})
    publish(study, argilla)
    dataset_id = dataset(study, argilla, Queue("translation", "en", "de"))
    shown = argilla.request("GET", f"/datasets/{dataset_id}", api_key=user.api_key)
    assert "Das Programm sollte den Text übersetzen" in shown["guidelines"]
    fields = argilla.request("GET", f"/datasets/{dataset_id}/fields", api_key=user.api_key)["items"]
    titles = ["Was verlangt war", "Original (Englisch)", "Neuer Text (Deutsch)", "Tasten"]
    assert [field["title"] for field in fields] == titles
    first = argilla.request("GET", f"/datasets/{dataset_id}/questions", api_key=user.api_key)["items"][0]
    assert first["title"].endswith(
        "(1 = ein anderer Sinn, oder nichts von dem, was verlangt war; 5 = tut genau, was verlangt war, und behält den"
        " ganzen Sinn)"
    )
    beside = next(argilla.records(dataset_id))["fields"]
    assert beside["answering"].startswith("1 bis 5 beantwortet die markierte Frage, Enter schickt ab")
    arabic = dataset(study, argilla, Queue("translation", "en", "ar"))  # without a wording of its own: English
    assert "asked to translate" in argilla.request("GET", f"/datasets/{arabic}", api_key=user.api_key)["guidelines"]


def test_nothing_that_an_annotator_can_ask_for_tells_a_control_from_a_pair(argilla: Argilla, variant: Make) -> None:
    user = rater(argilla, "grace")
    beside = {"controls": {"positive": 2, "negative": 2}, "repeats": 2}
    study = small(variant, "hidden", transformations=["paraphrasing"], sample={"pairs": 6, **beside})
    kinds = {
        pair.pair_id: pair.control
        for pair in [*CampaignRecords.open(study).pairs, *CampaignRecords.open(study).controls]
    }
    assert len(kinds) == 6 + 2 + 2 + 2
    publish(study, argilla)
    dataset_id = dataset(study, argilla)
    records = pending(argilla, user, dataset_id)
    assert {record["external_id"] for record in records} == set(kinds)
    assert {len(record["external_id"]) for record in records} == {32}
    for record in records:
        whole = argilla.request("GET", f"/records/{record['id']}", api_key=user.api_key)
        assert set(whole["fields"]) == {"asked", "original", "transformed", "answering"}
        assert whole["metadata"] == {"language": "en", "output_language": "en"}  # this end point hides no metadata
    properties = argilla.request("GET", f"/datasets/{dataset_id}/records", params={"limit": 100})["items"]
    arrival = [record["external_id"] for record in sorted(properties, key=lambda record: record["inserted_at"])]
    assert arrival == sorted(arrival)  # in the order of ids, which are hashes
    visible = argilla.request("GET", f"/me/datasets/{dataset_id}/metadata-properties", api_key=user.api_key)["items"]
    assert {one["name"] for one in visible} == {"language", "output_language"}


def test_each_rater_has_an_order_of_their_own_that_stays(argilla: Argilla, variant: Make) -> None:
    users = [rater(argilla, name) for name in ("grace", "ada", "bob")]
    study = small(variant, "orders", transformations=["paraphrasing"], sample={"pairs": 20})
    publish(study, argilla)
    dataset_id = dataset(study, argilla)

    def order(user: server.User) -> tuple[str, ...]:
        return tuple(record["external_id"] for record in pending(argilla, user, dataset_id))

    orders = [order(user) for user in users]
    assert len(set(orders)) == 3 and len({frozenset(one) for one in orders}) == 1
    first = pending(argilla, users[0], dataset_id)[0]
    answer(argilla, users[0], first, "submitted", quality=3, fluency=3)
    assert order(users[0]) == orders[0][1:]
    assert order(users[1]) == orders[1]  # others' answers change nothing


def test_only_those_who_read_the_languages_are_let_in(argilla: Argilla, variant: Make, home: server.Home) -> None:
    assert argilla.connection is not None
    study = small(variant, "readers")
    languages = {pair.output_language for pair in CampaignRecords.open(study).pairs if pair.pool == "translation"}
    one = min(languages)
    accounts.add(argilla.connection, home, ["english"], ["en"])
    accounts.add(argilla.connection, home, ["bilingual"], ["en", one])
    anyone = rater(argilla, "unknown")
    done = publish(study, argilla, accounts.languages_at(argilla, home))

    def sees(name: str) -> set[str]:
        known = server.credentials(home).find(name)
        assert known is not None
        items = argilla.request("GET", "/me/datasets", api_key=known.api_key)["items"]
        return {item["name"] for item in items if item["name"].startswith("readers-")}

    assert sees("english") == {"readers-paraphrasing-EN"}
    assert sees("bilingual") == {"readers-paraphrasing-EN", f"readers-translation-EN-{one.upper()}"}
    assert sees(anyone.username) == set(done.new)
    people = [user for user in argilla.users() if user.role == "annotator" and not user.simulated]
    names = [user.username for user in people if not user.username.startswith(WORKER)]
    read = accounts.languages_at(argilla, home)  # by other tests' accounts on this server, too
    assert done.admission.unknown == len([name for name in names if name not in read])
    assert done.admission.readers["readers-EN"] == len([name for name in names if "en" in read.get(name, ["en"])])


def test_a_campaign_of_other_prompts_than_the_studys_is_refused(
    argilla: Argilla, variant: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    study = small(variant, "reworded", transformations=["paraphrasing"])
    publish(study, argilla)
    folder = tmp_path / "prompts"
    shutil.copytree(prompts.PROMPTS, folder)
    wording = yaml.safe_load((folder / "paraphrasing.yaml").read_text(encoding="utf-8"))
    wording["text"] = "Say it otherwise.\n\n" + wording["text"]
    (folder / "paraphrasing.yaml").write_text(yaml.safe_dump(wording), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(prompts, "PROMPTS", folder)
        for work in (publish, collect):
            with pytest.raises(StudyError, match="the sample's pairs of paraphrasing were made by .* other prompts"):
                work(study, argilla)
    rows = [row.model_copy(update={"prompt_hash": "other"}) for row in read_transformed(study, "paraphrasing", 1337)]
    Manifest.of(study).write_table(OUTPUTS, rows, TransformedText)
    for work in (publish, collect):
        with pytest.raises(DataError, match="these outputs come from another generator or other prompts"):
            work(study, argilla)


def test_simulated_raters_finish_every_pair_once_and_say_what_they_are(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "simulated", transformations=["paraphrasing"])
    publish(study, argilla)
    assert simulate(study, argilla) == 4 * 3
    assert simulate(study, argilla) == 0
    ratings = collect(study, argilla)
    assert ratings["simulated"].all()
    assert ratings["rater_id"].str.startswith("simulated-").all()
    assert ratings.groupby(["pair_id", "question"])["rater_id"].nunique().eq(3).all()
    assert {record["status"] for record in argilla.records(dataset(study, argilla))} == {"completed"}


def test_simulated_answers_come_after_peoples(argilla: Argilla, variant: Make) -> None:
    ada = rater(argilla, "ada")
    study = small(variant, "mixed", transformations=["paraphrasing"])
    publish(study, argilla)
    record = pending(argilla, ada, dataset(study, argilla))[0]
    answer(argilla, ada, record, "submitted", quality=1, fluency=1)
    assert simulate(study, argilla) == 4 * 3 - 1
    ratings = collect(study, argilla)
    counts = ratings[ratings["question"] == "quality"].groupby("pair_id")["rater_id"].nunique()
    assert set(counts) == {3}


def test_a_simulated_answer_is_a_pure_function_near_the_truth(demo: Study) -> None:
    rubric = load_rubric(demo)
    strict = demo.raters.simulated[0]
    truth = {"quality": 4, "fluency": 5}
    answers = [simulated_answer(demo.raters.simulation_seed, strict, f"pair{i}", truth, rubric) for i in range(400)]
    assert answers == [
        simulated_answer(demo.raters.simulation_seed, strict, f"pair{i}", truth, rubric) for i in range(400)
    ]
    quality = [given["quality"] for given in answers]
    # 4 - 0.3 with noise 0.5: the mean of 400 is within 0.1 of 3.7 (its standard error is 0.5/20 = 0.025)
    assert sum(quality) / 400 == pytest.approx(3.7, abs=0.1)
    assert max(given["fluency"] for given in answers) <= 5


def test_simulation_needs_raters(argilla: Argilla, variant: Make) -> None:
    with pytest.raises(StudyError, match="raters.simulated is empty"):
        simulate(small(variant, "norater", transformations=["paraphrasing"], raters={"per_pair": 3}), argilla)


def test_simulation_never_reaches_a_server_elsewhere(argilla: Argilla, variant: Make) -> None:
    elsewhere = Argilla(argilla.url, argilla.sdk, None)
    study = small(variant, "elsewhere", transformations=["paraphrasing"])
    with pytest.raises(ServiceError, match="simulated raters answer only on the local server"):
        simulate(study, elsewhere)


def reworded(study: Study, name: str, scale: int = 5, word: str = "") -> Study:
    """The study with a rubric of its own: HTEB's on another scale, or with a word more in its first question."""
    content = load_rubric(study).model_dump(mode="json") | {"name": name, "scale": list(range(1, scale + 1))}
    for question in content["questions"]:
        question["points"] = {point: question["points"][str(min(point, 5))] for point in content["scale"]}
    content["questions"][0]["title"]["en"] += word
    file = PROMPTS / "rubrics" / f"{name}.yaml"
    file.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    return study.model_copy(update={"rubric": name})


@pytest.fixture
def rubric_name(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a rubric that a test writes; it goes with the test."""
    name = f"test-{os.getpid()}-{len(request.node.name)}"
    yield name
    (PROMPTS / "rubrics" / f"{name}.yaml").unlink(missing_ok=True)


def asked(argilla: Argilla, dataset_id: str) -> tuple[str, int]:
    """The first question's title, and how many points it has."""
    first = argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"][0]
    return first["title"], len(first["settings"]["options"])


def test_a_corrected_wording_reaches_the_datasets_while_nobody_has_answered(
    argilla: Argilla, variant: Make, rubric_name: str
) -> None:
    user = rater(argilla, "grace")
    rules = {"within": 1, "apart": 1.0, "low": 2.0}  # said: scales change below
    study = small(variant, "corrected", transformations=["paraphrasing"], quality=rules)
    publish(study, argilla)
    dataset_id = dataset(study, argilla)
    words = reworded(study, rubric_name, word=" (mended)")
    (line,) = publish(words, argilla).corrections()
    assert line.startswith("corrected in unanswered datasets: the wording of the question 'quality': ")
    assert (
        "meaning? (1 = another " in line and "meaning? (mended) (1 = another " in line and "; the guidelines: " in line
    )
    assert line.endswith("(corrected-paraphrasing-EN)")
    assert not publish(words, argilla).corrections()
    assert dataset(study, argilla) == dataset_id
    assert "(mended) (1 = another meaning" in asked(argilla, dataset_id)[0]
    seven = reworded(study, rubric_name, scale=7)
    assert sum(publish(seven, argilla).new.values()) == 4  # a scale cannot be changed: the dataset is made anew
    assert asked(argilla, dataset(study, argilla))[1] == 7
    assert [one.rules["rubric"]["scale"][-1] for one in CampaignRecords.open(study).rules] == [5, 5, 7]

    record = pending(argilla, user, dataset(study, argilla))[0]
    answer(argilla, user, record, "submitted", quality=7, fluency=5)
    with pytest.raises(
        StudyError, match=r"asks .*1, 2, 3, 4, 5, 6, 7.* raters have answered; give the new study another"
    ):
        publish(study, argilla)
    with pytest.raises(
        StudyError,
        match=r"shows other words than the rubric .* \(the wording of the question 'quality': .*!.*have answered",
    ):
        publish(reworded(study, rubric_name, scale=7, word="!"), argilla)
    assert len(CampaignRecords.open(study).rules) == 3
    assert collect(study, argilla)["value"].max() == 7  # they are read as they were asked


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
    study = small(variant, "atonce", transformations=["paraphrasing"])
    with (
        only_one(study.folder / ".campaign.lock", "held"),
        pytest.raises(StudyError, match="another command is working on the campaign of 'atonce'"),
    ):
        publish(study, argilla)
    assert sum(publish(study, argilla).new.values()) == 4


def test_an_argilla_that_is_not_there_is_one_line(home: server.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ARGILLA_API_KEY", "any")
    with pytest.raises(ServiceError, match=r"http://127.0.0.1:9 does not answer"), connect(home):
        pass


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (httpx.ReadError("Connection reset by peer"), r"does not answer \(Connection reset by peer\); start it"),
        (httpx.RemoteProtocolError(""), r"does not answer \(RemoteProtocolError\); start it"),
        (ConflictError("there is one", status_code=409), "refused with status 409: .*there is one$"),
        (None, "refused: Argilla SDK error"),
    ],
)
def test_what_the_sdk_hides_is_said(cause: Exception | None, said: str) -> None:
    """Argilla's SDK raises SettingsError for whatever ends the making of a dataset: a server that was killed, say."""
    with pytest.raises(ServiceError, match=said), translated("http://127.0.0.1:9"):
        raise SettingsError from cause


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
    with pytest.raises(ServiceError, match="the reply of .* is not an Argilla response"), connect(home):
        pass
