"""The generator `openai` against a real HTTP server; what the server does is scripted."""

from __future__ import annotations

import random
import socket
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generation.production import generate, read_transformed
from plumbline.errors import ServiceError
from plumbline.models import openai, servers
from plumbline.records import TransformedText
from plumbline.study import Study
from tests.commands import here
from tests.generation.helpers import LETTERS, server, small_study
from tests.stubs import Asked, ChatStub, Reply, Script, answers, last_line, refuses, says, upper


def for_bread(reply: Reply) -> Script:
    """Answer well, but give this to the text `bread`."""
    return lambda asked: reply if last_line(asked) == "bread" else upper(asked)


def rows(study: Study) -> dict[str, TransformedText]:
    return {row.text: row for row in read_transformed(study, study.transformations[0], 1)}


SOON = {"retry_after": "0.01"}
GOOD = says("BREAD")
HALF_JSON = Reply(GOOD.body[:40])
TRICKLE = replace(GOOD, trickle=0.1)  # 160 bytes: it would be there after 16 s
LENGTH = len(GOOD.body)
PASSING = {
    "429": refuses(429, "slow down", **SOON),
    "500": refuses(500, "oops", **SOON),
    "503": refuses(503, "loading", retry_after_ms="10"),
    "408": refuses(408),
    "409": refuses(409),
    "cut": Reply(b"", cut=True),
    "half the body": replace(GOOD, half=True),
    "half the JSON": HALF_JSON,
    "no body": Reply(b""),
    "length too small": replace(GOOD, headers={"content-length": str(LENGTH - 9)}),
    "length too large": replace(GOOD, headers={"content-length": str(LENGTH + 9)}),
    "length that is none": replace(GOOD, headers={"content-length": "many"}),
    "time-out": replace(GOOD, seconds=3.0),
    "trickle": TRICKLE,
}
SLOW = {"length too large", "time-out", "trickle"}


@pytest.fixture(autouse=True)
def _no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "FIRST_DELAY", 0.001)


def test_of_a_mix_of_all_faults_no_text_is_lost_or_doubled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 texts, 16 in flight; each has up to 3 faults of all 14 kinds before it is answered; 6 retries."""
    monkeypatch.setattr(openai, "TIMEOUT", 0.7)
    draw = random.Random(20261121)
    texts = [f"text number {number}" for number in range(300)]
    weights = [0.2 if name in SLOW else 1.0 for name in PASSING]
    faults = {text: draw.choices(list(PASSING), weights, k=draw.randrange(4)) for text in texts}

    def script(asked: Asked) -> Reply:
        ahead = faults[last_line(asked)]
        return PASSING[ahead[asked.times - 1]] if asked.times <= len(ahead) else upper(asked)

    with ChatStub(script) as stub:
        study = small_study(tmp_path, tuple(texts), generator=server(stub.url, concurrency=16))
        assert generate(study) == Counter(ok=300)
    table = read_transformed(study, "paraphrasing", 1)
    assert [(row.text, row.output) for row in table] == [(text, text.upper()) for text in texts]
    assert Counter(last_line(asked) for asked in stub.asked) == {text: len(faults[text]) + 1 for text in texts}
    assert {name for drawn in faults.values() for name in drawn} == set(PASSING)


ERROR = {"error": {"code": 503, "message": "overloaded"}}
BROKEN = {"message": {"content": "half"}, "finish_reason": "error", "error": {"code": 502, "message": "gone"}}
HALF = {"message": {"content": "half"}, "finish_reason": "stop"}
REFUSES = {"message": {"content": None, "refusal": "I cannot help"}, "finish_reason": "stop"}
NOT_A_CHAT_SERVERS = "the answer is not a chat response; check generator.base_url (it usually ends in /v1)"


@pytest.mark.parametrize(
    ("fault", "asked", "status", "reason"),
    [
        (refuses(400, "context\n too long"), 1, "failed", "the server refused the text: context too long"),
        (refuses(422, "bad content"), 1, "failed", "the server refused the text: bad content"),
        (Reply(b"", 413), 1, "failed", "the server refused the text: status 413"),
        (answers({"message": "in vain"}, status=400), 1, "failed", "the server refused the text: in vain"),
        (answers({"error": "in vain"}, status=400), 1, "failed", "the server refused the text: in vain"),
        (refuses(400, "x" * 999), 1, "failed", "the server refused the text: " + "x" * 300),
        (refuses(451, "not here"), 1, "failed", "the server refused the text: not here"),
        (refuses(429, "slow down", **SOON), 7, "unanswered", "status 429, asked 7 times: slow down"),
        (Reply(b"<b>oops</b>", 502), 7, "unanswered", "status 502, asked 7 times: <b>oops</b>"),
        (HALF_JSON, 7, "unanswered", "the answer breaks off before its end, asked 7 times"),
        (Reply(b'{"choices": "\xff"}'), 7, "unanswered", "the answer breaks off before its end, asked 7 times"),
        (Reply(b"", cut=True, seconds=0.05), 7, "unanswered", "the connection was cut, asked 7 times"),
        (Reply(b"<html>hello</html>", content_type="text/html"), 1, "unanswered", NOT_A_CHAT_SERVERS),
        (answers([1]), 1, "unanswered", NOT_A_CHAT_SERVERS + ": [1]"),
        (answers({"object": "list"}), 1, "unanswered", NOT_A_CHAT_SERVERS + ': {"object": "list"}'),
        (refuses(200, "overloaded"), 1, "unanswered", NOT_A_CHAT_SERVERS + ": overloaded"),
        (Reply(b'{"a":' * 100_000), 1, "unanswered", NOT_A_CHAT_SERVERS),
        (says(["parts"]), 1, "failed", "the answer's content is not text"),
        (says([{"type": "output_text", "text": "BREAD"}]), 1, "failed", "the answer's content is not text"),
        (says([{"type": "refusal", "refusal": "no"}]), 1, "failed", "the answer's content is not text"),
        (says("\ud83d"), 1, "failed", "the answer contains half a character (a lone surrogate)"),
        (says("half", finish_reason="content_filter"), 1, "failed", "the server's content filter stopped the answer"),
        (says("half", finish_reason="SAFETY"), 1, "failed", "the server's content filter stopped the answer"),
        (says("half", finish_reason="abort"), 2, "unanswered", "the answer ends by 'abort', asked 2 times"),
        (says("half", finish_reason="MAX_TOKENS"), 1, "failed", "cut off by max_tokens (1024) after 1 attempt"),
        (answers({"choices": [BROKEN]}), 7, "unanswered", "status 502, asked 7 times: gone"),
        (answers({"choices": None, **ERROR}), 7, "unanswered", "status 503, asked 7 times: overloaded"),
        (answers(ERROR), 7, "unanswered", "status 503, asked 7 times: overloaded"),
        (answers({"choices": [HALF], **ERROR}), 7, "unanswered", "status 503, asked 7 times: overloaded"),
        (answers({"choices": [HALF], "error": "oops"}), 7, "unanswered", "an error for an answer, asked 7 times: oops"),
        (answers({"choices": None, "error": "oops"}), 7, "unanswered", "an error for an answer, asked 7 times: oops"),
        (answers({"choices": [REFUSES]}), 1, "failed", "the model refuses: I cannot help"),
        (answers({"choices": []}), 1, "failed", "the answer has no choices"),
        (answers({"choices": None}), 1, "failed", "the answer has no choices"),
        (answers({"choices": "several"}), 1, "failed", "the answer's choice has no message"),
        (answers({"choices": [{"index": 0}]}), 1, "failed", "the answer's choice has no message"),
        (says(None), 1, "failed", "empty after 1 attempt"),
        (says("half a", finish_reason="length"), 1, "failed", "cut off by max_tokens (1024) after 1 attempt"),
    ],
)
def test_a_text_that_cannot_be_had_ends_alone_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Reply, asked: int, status: str, reason: str
) -> None:
    monkeypatch.setattr("plumbline.models.chat.ATTEMPTS", 1)  # what the run makes of a bad answer is tested elsewhere
    with ChatStub(for_bread(fault)) as stub:
        study = small_study(tmp_path, generator=server(stub.url))
        assert generate(study) == Counter({"ok": 9, status: 1})
    found = rows(study)
    assert (found["bread"].status, found["bread"].output) == (status, "")
    assert found["bread"].reason.startswith(reason)
    assert len(found["bread"].reason) <= 450
    assert [text for text, row in found.items() if row.output == text.upper()] == [t for t in LETTERS if t != "bread"]
    assert sum(last_line(one) == "bread" for one in stub.asked) == asked


@pytest.mark.parametrize(
    "reply",
    [
        *(says("BREAD", finish_reason=word) for word in ("STOP", "end_turn", "eos_token")),
        says([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "BREAD"}]),
        says([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "BR"}, {"type": "text", "text": "EAD"}]),
    ],
)
def test_a_whole_answer_in_other_words_is_taken(tmp_path: Path, reply: Reply) -> None:
    with ChatStub(for_bread(reply)) as stub:
        study = small_study(tmp_path, generator=server(stub.url))
        assert generate(study) == Counter(ok=10)
    assert rows(study)["bread"].output == "BREAD" and len(stub.asked) == 10


@pytest.mark.parametrize("fault", sorted(SLOW))
def test_a_text_that_always_times_out_ends_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr(openai, "TIMEOUT", 0.5)
    monkeypatch.setattr(openai, "RETRIES", 0)
    with ChatStub(for_bread(PASSING[fault])) as stub:
        study = small_study(tmp_path, generator=server(stub.url))
        assert generate(study)["unanswered"] == 1
    assert rows(study)["bread"].reason == "no answer within 0.5 s, asked once"


def test_an_answer_that_does_not_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "LARGEST", 2**20)
    with ChatStub(for_bread(says("x" * 2**21))) as stub:
        study = small_study(tmp_path, generator=server(stub.url))
        generate(study)
    assert rows(study)["bread"].reason == "the answer is larger than 1 MB"


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (refuses(401, "bad key s3cret"), ": the key is not accepted; set OPENAI_API_KEY"),
        (refuses(403, "not yours"), ": the key is not accepted; set OPENAI_API_KEY"),
        (refuses(402, "no money"), ": status 402: no money"),
        (
            refuses(404, "The model `m` does not exist"),
            " has no model 'm', or generator.base_url lacks its /v1: The model `m` does not exist",
        ),
        (
            refuses(307, location="https://elsewhere.org/v1?key=1"),
            " redirects to 'https://elsewhere.org/v1'; Plumbline follows no redirect: correct generator.base_url",
        ),
        (
            Reply(b"", cut=True),
            " did not answer: asked once (the connection was cut); start the server or correct generator.base_url",
        ),
    ],
    ids=["401", "403", "402", "404", "307", "cut"],
)
def test_a_server_that_no_text_can_succeed_with_ends_the_run_and_keeps_what_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply, line: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setattr(openai, "RETRIES", 0)
    with ChatStub(lambda asked: upper(asked) if last_line(asked) in LETTERS[:4] else reply) as stub:
        study = small_study(tmp_path, generator=server(stub.url, concurrency=1))
        with pytest.raises(ServiceError) as error:
            generate(study)
        assert str(error.value) == stub.url + line
        assert len(stub.asked) == 5
        stub.script = upper
        assert generate(study) == Counter(ok=6, reused=4)
    assert [last_line(asked) for asked in stub.asked] == [*LETTERS[:5], *LETTERS[4:]]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (refuses(400, "who is s3cret?"), "the server refused the text: who is (the key)?"),
        (refuses(400, "x" * 297 + "s3cret"), "the server refused the text: " + "x" * 297 + "(th"),
        (refuses(200, "who is s3cret?"), NOT_A_CHAT_SERVERS + ": who is (the key)?"),
    ],
)
def test_a_server_that_quotes_the_key_does_not_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply, reason: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    with ChatStub(for_bread(reply)) as stub:
        study = small_study(tmp_path, generator=server(stub.url))
        generate(study)
    assert rows(study)["bread"].reason == reason


def test_a_hundred_refusals_in_the_same_words_and_no_good_answer_end_the_run(tmp_path: Path) -> None:
    texts = tuple(f"text number {number}" for number in range(120))
    with ChatStub(lambda asked: refuses(400, "not on a Sunday")) as stub:
        study = small_study(tmp_path, texts, generator=server(stub.url, concurrency=4))
        with pytest.raises(ServiceError, match=r"refused 100 texts with the same message .*: not on a Sunday; correct"):
            generate(study)
        assert 100 <= len(stub.asked) <= 100 + 4
        stub.script = lambda asked: refuses(400, f"too long: {asked.message}")  # each text for a reason of its own
        assert generate(study)["failed"] >= 16
        stub.script = upper
        assert generate(study, again=True) == Counter(ok=120)


NO_SEED = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": 1}]
BOTH = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
RENAMED = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."


def strict(asked: Asked) -> Reply:
    """As a gateway before a model that takes no seed, one of two ways to sample, and another name for the length."""
    if "max_tokens" in asked.body:
        error = {"message": RENAMED, "type": "invalid_request_error", "param": "max_tokens"}
        return answers({"error": {**error, "code": "unsupported_parameter"}}, status=400)
    if "seed" in asked.body:
        return answers({"object": "error", "message": {"detail": NO_SEED}, "code": None}, status=422)
    if {"temperature", "top_p"} <= asked.body.keys():
        return refuses(400, BOTH)
    return upper(asked)


def test_a_field_that_every_request_is_refused_for_ends_the_run_and_is_named(tmp_path: Path) -> None:
    request: dict[str, Any] = {}
    with ChatStub(strict) as stub:
        for fields, words, more in [
            ("max_tokens", RENAMED, {"max_tokens": None, "max_completion_tokens": 1024}),
            ("seed", "Extra inputs are not permitted", {"seed": None}),
            ("temperature and top_p", BOTH, {"top_p": None}),
        ]:
            with pytest.raises(ServiceError) as error:
                generate(small_study(tmp_path, generator=server(stub.url, concurrency=4, request=request)))
            assert str(error.value).startswith(f"{stub.url} refuses every request for {fields}: ")
            assert words in str(error.value) and "(request: {" in str(error.value)
            request |= more
        assert len(stub.asked) <= 3 * 5  # those in flight, and one to see that it is not the text
        assert generate(small_study(tmp_path, generator=server(stub.url, request=request))) == Counter(ok=10)


def test_a_run_fails_if_no_text_has_an_output(tmp_path: Path) -> None:
    with ChatStub(lambda asked: refuses(400, "not on a Sunday")) as stub:
        study = small_study(tmp_path, ("bread", "apple"), generator=server(stub.url))

        def status_and_output(*options: str) -> tuple[int, str]:
            done = here("generate", "--study", str(study.file), "--exports", str(tmp_path / "exports"), *options)
            return done.returncode, done.stdout

        for _ in range(2):  # the second run asks nothing, and nothing is there
            status, output = status_and_output()
            assert status == 2 and "2: the server refused the text: not on a Sunday" in output
        assert status_and_output("--shard", "1/1", "--again")[0] == 2
        stub.script = lambda asked: upper(asked) if last_line(asked) == "bread" else refuses(400)
        assert [status_and_output(*again)[0] for again in (["--again"], [])] == [0, 0]


def test_a_refusal_that_names_a_field_for_one_text_fails_that_text(tmp_path: Path) -> None:
    long = "'max_tokens' is too large: 1024. This model's maximum context length is 1100 tokens"
    with ChatStub(for_bread(refuses(400, long))) as stub:
        texts = ("bread", "apple")
        assert generate(small_study(tmp_path, texts, generator=server(stub.url, concurrency=1))) == Counter(
            ok=1, failed=1
        )
    assert [last_line(asked) for asked in stub.asked].count("bread") == 1 and len(stub.asked) == 3


PAGE = Reply(b"<html>welcome</html>", content_type="text/html")


@pytest.mark.parametrize(
    ("reply", "times", "says_why"),
    [
        (says("half", finish_reason="done"), 100, "every answer ends by 'done'"),
        (PAGE, 10, r"not a chat response; check generator\.base_url"),
    ],
)
def test_as_many_answers_of_no_use_and_no_good_one_end_the_run(
    tmp_path: Path, reply: Reply, times: int, says_why: str
) -> None:
    texts = tuple(f"text number {number}" for number in range(120))
    with ChatStub(lambda asked: reply) as stub:
        study = small_study(tmp_path, texts, generator=server(stub.url, concurrency=4))
        with pytest.raises(ServiceError, match=says_why):
            generate(study)
    assert times <= len(stub.asked) <= times + 4


def test_pages_of_another_server_after_a_good_answer_are_those_texts_trouble(tmp_path: Path) -> None:
    texts = ("good", *(f"text number {number}" for number in range(30)))
    with ChatStub(lambda asked: upper(asked) if last_line(asked) == "good" else PAGE) as stub:
        study = small_study(tmp_path, texts, generator=server(stub.url, concurrency=1))
        assert generate(study) == Counter(ok=1, unanswered=30)


def test_a_server_that_takes_no_connections_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "CONNECT", 0.1)
    with socket.socket() as full, socket.socket() as first:
        full.bind(("127.0.0.1", 0))
        full.listen(0)  # one connection may wait; the next one hangs
        first.connect(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        with pytest.raises(ServiceError, match=r"did not answer: asked 7 times \(no connection within 0\.1 s\)"):
            generate(small_study(tmp_path, generator=server(url)))


def test_a_wording_without_a_language_is_sent_without_one(tmp_path: Path) -> None:
    """PTEB's default prompt names no language; HTEB's does."""
    with ChatStub(upper) as stub:
        generate(small_study(tmp_path, ("apple",), prompts="pteb", generator=server(stub.url)))
    (asked,) = stub.asked
    assert "English" not in asked.message
    assert asked.message.endswith("apple")
