"""Publishing and answering on a really started Argilla, and what happens when it is not there."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
import yaml

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.client import Argilla, connect
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.argilla.simulate import simulate, simulated_answer
from annotation.campaign.names import WORKER
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.judges.pool import draw_judged
from annotation.judges.run import judge
from annotation.sampling.sample import extend_sample
from plumbline.errors import ServiceError, StudyError
from plumbline.prompts import PROMPTS
from plumbline.store import only_one
from plumbline.study import ROOT, Study
from tests.annotation.campaigns import ALONE, answer, dataset, pending, published_study, rater, small

Make = Callable[..., Study]


def test_nothing_of_judges_reaches_raters(argilla: Argilla, variant: Make, tmp_path: Path) -> None:
    engine = {"kind": "recorded", "model": "seer", "path": str(tmp_path / "oracle.jsonl")}
    judges = [{"name": "oracle", "engine": engine, "score": "text"}]
    study = small(variant, "unseen", judges=judges, transformations=["paraphrasing"])
    lines = [
        {"original": pair.original, "transformed": pair.transformed, "answers": {"quality": "2", "fluency": "1"}}
        for pair in draw_judged(study, keep=False)
    ]
    (tmp_path / "oracle.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert judge(study)[0].counts["ok"] == 2 * 8  # questions, pairs
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
    study = published_study(argilla, variant, "wider", transformations=["paraphrasing"])
    user = rater(argilla, "wider-rater")
    publish(study, argilla)
    (first, *_) = pending(argilla, user, dataset(study, argilla))
    answer(argilla, user, first, "submitted", quality=4, fluency=5)
    sample = {"pairs": 7, **ALONE}
    grown = variant(name="wider", transformations=["paraphrasing"], raters={"per_pair": 3}, sample=sample)
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
    new = publish(study, argilla).new
    assert new["cutoff-paraphrasing-EN"] == 4 and sum(new.values()) == 4 + 4
    assert publish(study, argilla).new == dict.fromkeys(new, 0)  # again: nothing is added


def test_nothing_that_an_annotator_can_ask_for_tells_a_control_from_a_pair(argilla: Argilla, variant: Make) -> None:
    """Apart from texts: those of a repeat are shown twice."""
    user = rater(argilla, "grace")
    study = small(variant, "hidden", transformations=["paraphrasing"], sample={"pairs": 6, "controls": 2, "repeats": 2})
    shown = {pair.pair_id: pair for pair in CampaignRecords(study).shown}
    assert len(shown) == 6 + 2 + 2 + 2
    publish(study, argilla)
    dataset_id = dataset(study, argilla)
    ids = {record["id"]: record["external_id"] for record in argilla.records(dataset_id)}
    assert set(ids.values()) == set(shown)
    came = dict[str, str]()
    for record_id, pair_id in ids.items():
        record = argilla.request("GET", f"/records/{record_id}", api_key=user.api_key)
        pair, fields = shown[pair_id], record.pop("fields")
        assert (fields["original"], fields["transformed"]) == (pair.original, pair.transformed)
        assert sorted(fields) == ["answering", "asked", "original", "transformed"]
        came[pair_id] = record.pop("inserted_at")
        assert record.pop("updated_at") == came[pair_id] and UUID(record.pop("id")).version == 4
        assert record == {  # this end point hides no metadata
            "status": "pending", "metadata": {"language": "en", "output_language": "en"}, "external_id": None,
            "responses": [], "suggestions": [], "vectors": {}, "dataset_id": dataset_id,
        }  # fmt: skip
    assert sorted(came, key=came.__getitem__) != sorted(came)  # nor does the time follow ids that could be computed
    search = f"/me/datasets/{dataset_id}/records/search"
    found = argilla.request("POST", search, api_key=user.api_key, json={}, params={"limit": 100})["items"]
    assert {item["record"]["external_id"] for item in found} == {None}
    external_id = {"entity": "record", "property": "external_id"}
    for asked_for in (
        {"filters": {"type": "and", "and": [{"type": "terms", "scope": external_id, "values": [next(iter(shown))]}]}},
        {"sort": [{"scope": external_id, "order": "asc"}]},
    ):
        with pytest.raises(ServiceError, match="annotators can neither filter nor sort records by external_id"):
            argilla.request("POST", search, api_key=user.api_key, json=asked_for)
    visible = argilla.request("GET", f"/me/datasets/{dataset_id}/metadata-properties", api_key=user.api_key)["items"]
    assert {one["name"] for one in visible} == {"language", "output_language"}


def test_a_third_of_each_raters_queue_lies_between_a_pair_and_its_repeat(argilla: Argilla, variant: Make) -> None:
    """And each rater has an order of their own, which stays."""
    users = [rater(argilla, f"apart-{number}") for number in range(8)]
    sample = {"pairs": 8, "batch": 4, "repeats": 1}
    study = published_study(argilla, variant, "thirds", transformations=["paraphrasing"], sample=sample)
    place = dataset(study, argilla)

    def order(user: server.User) -> tuple[str, ...]:
        return tuple(record["external_id"] for record in pending(argilla, user, place))

    first_of = {pair.pair_id: pair.repeats for pair in CampaignRecords(study).controls if pair.repeats}
    orders = [order(user) for user in users]
    assert len(first_of) == 2 and len(set(orders)) == 8 and len({frozenset(one) for one in orders}) == 1
    for own in orders:
        places = [(own.index(again), own.index(first)) for again, first in first_of.items()]
        assert min(abs(again - first) - 1 for again, first in places) >= len(own) / 3
    answer(argilla, users[0], pending(argilla, users[0], place)[0], "submitted", quality=3, fluency=3)
    assert order(users[0]) == orders[0][1:]
    assert order(users[1]) == orders[1]  # others' answers change nothing


def test_only_those_who_read_the_languages_are_let_in(argilla: Argilla, variant: Make, home: server.Home) -> None:
    assert argilla.connection is not None
    study = small(variant, "readers")
    languages = {pair.output_language for pair in CampaignRecords(study).pairs if pair.pool == "translation"}
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


def test_a_simulated_answer_is_a_pure_function_near_the_truth(demo: Study) -> None:
    rubric = load_rubric(demo)
    strict = demo.raters.simulated[0]
    truth = {"quality": 4, "fluency": 5}
    answers, again = (
        [simulated_answer(demo.raters.simulation_seed, strict, f"pair{i}", truth, rubric) for i in range(400)]
        for _ in range(2)
    )
    assert answers == again
    quality = [given["quality"] for given in answers]
    # 4 - 0.3 with noise 0.5: the mean of 400 is within 0.1 of 3.7 (its standard error is 0.5/20 = 0.025)
    assert sum(quality) / 400 == pytest.approx(3.7, abs=0.1)
    assert max(given["fluency"] for given in answers) <= 5


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
    study = published_study(argilla, variant, "corrected", transformations=["paraphrasing"])
    dataset_id = dataset(study, argilla)
    words = reworded(study, rubric_name, word=" (mended)")
    (line,) = publish(words, argilla).lines()
    assert "meaning? (1 = another " in line and "meaning? (mended) (1 = another " in line
    assert not publish(words, argilla).lines()
    assert dataset(study, argilla) == dataset_id
    assert "(mended) (1 = another meaning" in asked(argilla, dataset_id)[0]
    seven = reworded(study, rubric_name, scale=7)
    assert sum(publish(seven, argilla).new.values()) == 4  # a scale cannot be changed: the dataset is made anew
    assert asked(argilla, dataset(study, argilla))[1] == 7
    assert [one.rules["rubric"]["scale"][-1] for one in CampaignRecords(study).rules] == [5, 5, 7]

    record = pending(argilla, user, dataset(study, argilla))[0]
    answer(argilla, user, record, "submitted", quality=7, fluency=5)
    with pytest.raises(StudyError, match=r"asks .*1, 2, 3, 4, 5, 6, 7.* raters have answered"):
        publish(study, argilla)
    with pytest.raises(StudyError, match=r"shows other words than the rubric .*!.*have answered"):
        publish(reworded(study, rubric_name, scale=7, word="!"), argilla)
    assert len(CampaignRecords(study).rules) == 3
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


def test_two_commands_at_once_on_one_campaign_are_refused(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "atonce", transformations=["paraphrasing"])
    with (
        only_one(study.folder / ".campaign.lock", "held"),
        pytest.raises(StudyError, match="another command is working on the campaign of 'atonce'"),
    ):
        publish(study, argilla)
    assert sum(publish(study, argilla).new.values()) == 4


def test_translations_have_a_dataset_for_each_pair_of_languages(argilla: Argilla, variant: Make) -> None:
    study = small(variant, "shared", transformations=["translation", "cross_translation"])
    pairs = CampaignRecords(study).pairs
    expected = Counter(f"shared-translation-EN-{pair.output_language.upper()}" for pair in pairs)
    assert {pair.transformation for pair in pairs} == {"translation", "cross_translation"} and len(expected) > 1
    assert publish(study, argilla).new == expected
