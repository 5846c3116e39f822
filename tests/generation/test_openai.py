"""The generator `openai` against a real HTTP server; what the server does is scripted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from generation.exceptions import ServiceError, StudyError
from generation.languages import language_name
from generation.records import TransformedText
from generation.run import generate, read_transformed
from generation.study import Study
from tests.generation.helpers import LETTERS, server, small_study
from tests.stubs import Asked, ChatStub, Reply, Script, answers, last_line, refuses, says


def upper(asked: Asked) -> Reply:
    return says(last_line(asked).upper())


def for_bread(reply: Reply, times: int = 99) -> Script:
    """Answer well, but give this to the text `bread` the first so many times."""
    return lambda asked: reply if last_line(asked) == "bread" and asked.times <= times else upper(asked)


def rows(study: Study) -> dict[str, TransformedText]:
    return {row.text: row for row in read_transformed(study, study.transformations[0], 1)}


SOON = {"retry_after": "0.01"}


@pytest.mark.parametrize(
    ("fault", "times"),
    [
        (refuses(429, "slow down", **SOON), 2),
        (refuses(500, "oops", **SOON), 2),
        (refuses(503, "loading", **SOON), 1),
        (Reply(b"", cut=True), 1),
        (says("too late", seconds=3), 1),
    ],
    ids=["429", "500", "503", "cut", "timeout"],
)
def test_a_passing_fault_is_tried_again_and_no_text_is_lost_or_doubled(
    tmp_path: Path, fault: Reply, times: int
) -> None:
    with ChatStub(for_bread(fault, times)) as stub:
        study = small_study(tmp_path, generator=server(stub.url, timeout_seconds=1.0 if fault.seconds else 30.0))
        assert generate(study)["ok"] == len(LETTERS)
    assert {text: row.output for text, row in rows(study).items()} == {text: text.upper() for text in LETTERS}
    assert Counter(last_line(asked) for asked in stub.asked) == {**dict.fromkeys(LETTERS, 1), "bread": times + 1}


@pytest.mark.parametrize(
    ("fault", "asked", "reason"),
    [
        (refuses(400, "context too long"), 1, "the server refused the text: Error code: 400"),
        (refuses(422, "bad content"), 1, "the server refused the text: Error code: 422"),
        (refuses(429, "slow down", **SOON), 3, "status 429, asked 3 times"),
        (refuses(500, "oops", **SOON), 3, "status 500, asked 3 times"),
        (says("", seconds=0), 1, "call 1 of paraphrasing came back empty"),
        (says("  \n"), 1, "call 1 of paraphrasing came back empty"),
        (says(None), 1, "call 1 of paraphrasing came back empty"),
        (says(["parts"]), 1, "content is not a text"),
        (says("half a", finish_reason="length"), 1, "cut off by max_tokens"),
        (says("\ud83d"), 1, "half a character"),
        (Reply(b"<html>hello</html>", content_type="text/html"), 1, "not one of a chat server"),
        (Reply(b'{"choices": [', content_type="application/json"), 1, "not one of a chat server"),
        (Reply(b'{"choices": "\xff"}'), 1, "whose choice has no message"),
        (answers([1]), 1, "not one of a chat server"),
        (answers({"object": "list"}), 1, "not one of a chat server"),
        (answers({"choices": []}), 1, "without choices"),
        (answers({"choices": None}), 1, "without choices"),
        (answers({"choices": [{"index": 0}]}), 1, "no message"),
    ],
)
def test_a_text_that_cannot_be_had_fails_alone_with_its_reason(
    tmp_path: Path, fault: Reply, asked: int, reason: str
) -> None:
    with ChatStub(for_bread(fault)) as stub:
        study = small_study(tmp_path, generator=server(stub.url))
        assert dict(generate(study)) == {"ok": 9, "failed": 1, "reused": 0}
    found = rows(study)
    assert (found["bread"].status, found["bread"].output) == ("failed", "")
    assert reason in found["bread"].reason
    assert [text for text, row in found.items() if row.output == text.upper()] == [t for t in LETTERS if t != "bread"]
    assert sum(last_line(one) == "bread" for one in stub.asked) == asked


def test_a_text_that_always_times_out_fails_alone(tmp_path: Path) -> None:
    with ChatStub(for_bread(says("too late", seconds=3))) as stub:
        study = small_study(tmp_path, generator=server(stub.url, timeout_seconds=0.3, retries=0))
        assert generate(study)["failed"] == 1
    assert rows(study)["bread"].reason == "no answer within 0.3 s, asked 1 times"


def test_failed_texts_are_asked_for_again_and_received_ones_are_not(tmp_path: Path) -> None:
    with ChatStub(for_bread(refuses(400, "no"), times=1)) as stub:
        study = small_study(tmp_path, generator=server(stub.url))
        assert dict(generate(study)) == {"ok": 9, "failed": 1, "reused": 0}
        assert dict(generate(study)) == {"ok": 1, "reused": 9}
        assert dict(generate(study)) == {"reused": 10}
    assert len(stub.asked) == 11
    assert rows(study)["bread"].output == "BREAD"


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (refuses(401, "bad key"), "the key is not accepted; set OPENAI_API_KEY"),
        (refuses(403, "not yours"), "the key is not accepted; set OPENAI_API_KEY"),
        (
            refuses(404, "The model `m` does not exist"),
            "no model 'm' there, or generator.base_url lacks its /v1: Error code: 404",
        ),
        (Reply(b"", cut=True), "does not answer, asked 1 times"),
    ],
    ids=["401", "403", "404", "cut"],
)
def test_a_server_that_no_text_can_succeed_with_ends_the_run_and_keeps_what_came(
    tmp_path: Path, reply: Reply, line: str
) -> None:
    with ChatStub(lambda asked: upper(asked) if last_line(asked) in LETTERS[:4] else reply) as stub:
        study = small_study(tmp_path, generator=server(stub.url, concurrency=1, retries=0))
        with pytest.raises(ServiceError) as error:
            generate(study)
        assert line in str(error.value)
        assert stub.url in str(error.value)
        assert len(stub.asked) == 5
        stub.script = upper
        assert dict(generate(study)) == {"ok": 6, "reused": 4}
    assert [last_line(asked) for asked in stub.asked] == [*LETTERS[:5], *LETTERS[4:]]


def test_no_server_at_all_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match=r"does not answer.*start the server or correct generator\.base_url"):
        generate(small_study(tmp_path, generator=server("http://127.0.0.1:1/v1", retries=0)))


@pytest.mark.parametrize("url", ["http://[bad/v1", "localhost:9/v1", ""])
def test_an_address_that_is_none_ends_the_run_with_one_line(tmp_path: Path, url: str) -> None:
    with pytest.raises((ServiceError, StudyError), match=r"base_url"):
        generate(small_study(tmp_path, generator=server(url, retries=0)))


def test_the_key_comes_from_the_environment_without_its_newline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret\n")
    with ChatStub(upper) as stub:
        generate(small_study(tmp_path, generator=server(stub.url, api_key_env="MY_KEY")))
    assert {asked.headers["authorization"] for asked in stub.asked} == {"bearer s3cret"}


@pytest.mark.parametrize("key", ["s3cret\nline", "s3cret\u00e9"])
def test_a_malformed_key_is_refused_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("MY_KEY", key)
    with ChatStub(upper) as stub, pytest.raises(StudyError, match="MY_KEY") as error:
        generate(small_study(tmp_path, generator=server(stub.url, api_key_env="MY_KEY")))
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize("concurrency", [1, 3, 10])
def test_never_more_requests_in_flight_than_the_study_allows(tmp_path: Path, concurrency: int) -> None:
    texts = tuple(f"text {number}" for number in range(30))
    with ChatStub(lambda asked: says("x", seconds=0.03)) as stub:
        generate(small_study(tmp_path, texts, generator=server(stub.url, concurrency=concurrency)))
    assert stub.most_at_once == concurrency
    assert len(stub.asked) == 30


def test_model_sampling_and_seed_are_what_the_study_says(tmp_path: Path) -> None:
    sampling = {"temperature": 0.25, "top_p": 0.5, "max_tokens": 7}
    with ChatStub(upper) as stub:
        generate(small_study(tmp_path, ("apple",), generator=server(stub.url, sampling=sampling)))
    sent = {name: value for name, value in stub.asked[0].body.items() if name != "messages"}
    assert sent == {"model": "m", "seed": 1, **sampling}


@pytest.mark.parametrize("name", ["backtranslation", "summarised_expansion"])
def test_the_second_call_gets_the_output_of_the_first(tmp_path: Path, name: str) -> None:
    with ChatStub(lambda asked: says(f"{last_line(asked)}+")) as stub:
        study = small_study(tmp_path, transformations=[name], generator=server(stub.url))
        generate(study)
    prompts = {last_line(asked): asked.message for asked in stub.asked}
    assert len(stub.asked) == len(prompts) == 2 * len(LETTERS)
    for row in rows(study).values():
        assert (row.intermediate, row.output) == (f"{row.text}+", f"{row.text}++")
        if row.language:
            assert f"text to {language_name(row.language)}." in prompts[row.text]
            assert "text to English." in prompts[f"{row.text}+"]
        else:
            assert prompts[row.text].startswith("Expand")
            assert prompts[f"{row.text}+"].startswith("Your task is to SUMMARIZE")
            assert "answer in English" in prompts[row.text]


def test_a_second_call_that_fails_fails_its_text(tmp_path: Path) -> None:
    with ChatStub(lambda asked: says("") if "+" in asked.message else says("+")) as stub:
        study = small_study(tmp_path, ("apple",), transformations=["backtranslation"], generator=server(stub.url))
        generate(study)
    assert rows(study)["apple"].reason == "call 2 of backtranslation came back empty"
