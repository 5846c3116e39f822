"""What the generator `openai` sends, to whom, and when it sends it again."""

from __future__ import annotations

import asyncio
import re
import resource
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from generation.production import generate, read_transformed
from plumbline.errors import StudyError, TextUnansweredError
from plumbline.languages import language_name
from plumbline.models import openai
from plumbline.models.chat import Attempt, Completion
from plumbline.models.openai import ChatServer
from plumbline.records import TransformedText
from plumbline.study import Study
from plumbline.study.engines import Sampling
from tests.generation.helpers import LETTERS, server, small_study
from tests.stubs import ChatStub, Script, answers, last_line, refuses, says, upper


def rows(study: Study) -> dict[str, TransformedText]:
    return {row.text: row for row in read_transformed(study, study.transformations[0], 1)}


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


@pytest.mark.parametrize("concurrency", [1, 10])
def test_never_more_requests_in_flight_than_the_study_allows(tmp_path: Path, concurrency: int) -> None:
    texts = tuple(f"text {number}" for number in range(30))
    with ChatStub(lambda asked: says("x", seconds=0.03)) as stub:
        generate(small_study(tmp_path, texts, generator=server(stub.url, concurrency=concurrency)))
    assert stub.most_at_once == concurrency
    assert len(stub.asked) == 30


def test_more_requests_in_flight_than_a_process_may_open_files(tmp_path: Path) -> None:
    texts = tuple(f"text {number}" for number in range(120))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/dev/fd").iterdir()]) + 100, hard))
    try:
        with ChatStub(lambda asked: says("x", seconds=1.0)) as stub:
            generate(small_study(tmp_path, texts, generator=server(stub.url, concurrency=120)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (stub.most_at_once, len(stub.asked)) == (120, 120)


def test_model_sampling_and_seed_are_what_the_study_says(tmp_path: Path) -> None:
    sampling = {"temperature": 0.25, "top_p": 0.5, "max_tokens": 7}
    with ChatStub(upper) as stub:
        generate(small_study(tmp_path, ("apple",), generator=server(stub.url, sampling=sampling)))
    sent = {name: value for name, value in stub.asked[0].body.items() if name != "messages"}
    assert sent == {"model": "m", "seed": 1, **sampling}


def test_fields_of_requests_are_renamed_left_out_and_added(tmp_path: Path) -> None:
    more = {"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}, "logit_bias": {}}
    request = {
        "max_tokens": None,
        "max_completion_tokens": 300,
        "temperature": None,
        "seed": None,
        "top_p": 0.5,
        **more,
    }
    with ChatStub(lambda asked: says("half", finish_reason="length")) as stub:
        study = small_study(tmp_path, ("apple",), generator=server(stub.url, request=request))
        generate(study)
    sent = [{name: value for name, value in asked.body.items() if name != "messages"} for asked in stub.asked]
    rest = {"model": "m", "top_p": 0.5, **more}
    assert sent == [{**rest, "max_completion_tokens": length} for length in (300, 600, 1200)]
    reason = "cut off by max_tokens (1200) after 3 attempts; raise generator.settings.request.max_completion_tokens"
    assert rows(study)["apple"].reason == reason


def test_fields_of_requests_are_part_of_the_identity_of_outputs(tmp_path: Path) -> None:
    with ChatStub(upper) as stub:
        for number, request in enumerate([{}, {"seed": None}, {"reasoning_effort": "low"}]):
            made = generate(small_study(tmp_path, ("apple",), generator=server(stub.url, request=request)))
            assert made == Counter(ok=1) and len(stub.asked) == number + 1


@pytest.mark.parametrize(
    ("request_fields", "sampling", "why"),
    [
        ({"stream": True}, {}, "settings.request: stream cannot be set here"),
        ({"messages": []}, {}, "settings.request: messages cannot be set here"),
        ({"max_completion_tokens": 9}, {"max_tokens": 8}, "name different longest answers; keep one"),
        ({"max_completion_tokens": "many"}, {}, "sampling.max_tokens"),
        ({"max_completion_tokens": [9]}, {}, "sampling.max_tokens"),
        (
            {"API-Key": "sk-1"},
            {},
            "settings.request: a key is no field; put it into the variable that api_key_env names",
        ),
    ],
)
def test_fields_that_cannot_be_set_are_refused(
    tmp_path: Path, request_fields: dict[str, Any], sampling: dict[str, Any], why: str
) -> None:
    generator = server("http://127.0.0.1:9/v1", request=request_fields, sampling=sampling)
    with pytest.raises(StudyError, match=re.escape(why)):
        small_study(tmp_path, generator=generator)


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


def test_a_second_call_that_comes_back_empty_fails_its_text(tmp_path: Path) -> None:
    with ChatStub(lambda asked: says("") if "+" in asked.message else says("+")) as stub:
        generator = server(stub.url)
        study = small_study(tmp_path, ("apple",), transformations=["backtranslation"], generator=generator)
        generate(study)
    row = rows(study)["apple"]
    assert (row.status, row.reason, row.intermediate) == ("failed", "empty after 3 attempts", "+")


def test_the_environments_proxy_is_asked_unless_no_proxy_names_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ChatStub(upper) as proxy, ChatStub(upper) as stub:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1").replace("//", "//me:word@"))
        generate(small_study(tmp_path, ("apple",), generator=server("http://chat.invalid/v1")))
        (asked,) = proxy.asked
        assert asked.headers["host"] == "chat.invalid"
        assert asked.headers["proxy-authorization"] == "basic bwu6d29yza=="  # me:word, in the stub's small letters
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        generate(small_study(tmp_path, ("bread",), generator=server(stub.url)))
        assert (len(proxy.asked), len(stub.asked)) == (1, 1)


@pytest.mark.parametrize("proxy", ["socks5://me:s3cret@127.0.0.1:9", "http://", "http://[me:s3cret"])
def test_a_proxy_that_is_none_ends_the_run_and_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(StudyError, match="http_proxy is not http://HOST:PORT") as error:
        generate(small_study(tmp_path, generator=server("http://chat.invalid/v1")))
    assert "s3cret" not in str(error.value)


def ask(tmp_path: Path, script: Script, message: str) -> tuple[Completion | Exception, list[float]]:
    """What one message comes to, and the waits between its tries (which are not waited for)."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def asked(url: str) -> Completion | Exception:
        study = small_study(tmp_path, generator=server(url))
        assert study.generator.kind == "openai"
        made = ChatServer.open(study.generator, study, "generator", {})
        made.sleep = sleep
        try:
            return await made.ask(message, Attempt(1, 5, Sampling(max_tokens=9)))
        except TextUnansweredError as error:
            return error
        finally:
            await made.close()

    with ChatStub(script) as stub:
        return asyncio.run(asked(stub.url)), waits


def test_the_backoff_doubles_up_to_half_a_minute_and_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 0.5, 1, 2, 4, 8, 16, 30, 30 s. The chance that 8 drawn shares are all above 0.9 is 1e-8."""
    monkeypatch.setattr(openai, "RETRIES", 8)
    most = [0.5, 1, 2, 4, 8, 16, 30, 30]
    answer, waits = ask(tmp_path, lambda asked: refuses(503), "apple")
    assert str(answer) == "status 503, asked 9 times: no"
    assert len(waits) == 8 and all(0 <= wait <= limit for wait, limit in zip(waits, most, strict=True))
    assert min(wait / limit for wait, limit in zip(waits, most, strict=True)) < 0.9


@pytest.mark.parametrize(
    ("header", "value", "least", "most"),
    [
        ("retry_after", "7", 7, 8.75),
        ("retry_after", "0.2", 0.2, 0.25),
        ("retry_after_ms", "1500", 1.5, 1.875),
        ("retry_after", "86400", 120, 150),  # no day is waited for
        ("retry_after", "Sat, 21 Nov 2020 10:20:21 GMT", 0, 0.5),
        ("retry_after", "0", 0, 0.5),
        ("retry_after", "nan", 0, 0.5),
        ("retry_after", "soon", 0, 0.5),
        ("retry_after", "in a minute", 50, 75),
    ],
)
def test_the_server_says_how_long_to_wait(tmp_path: Path, header: str, value: str, least: float, most: float) -> None:
    """Up to a quarter more is waited, so that those who were sent away together do not come back together."""
    if value == "in a minute":
        value = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    _, (wait, *_) = ask(tmp_path, lambda asked: refuses(429, **{header: value}), "apple")
    assert least <= wait <= most


@pytest.mark.parametrize(
    "text", ["x" * 2**22, "\ud83d half", "größer \u2028 日本"], ids=["4 MB", "surrogate", "Unicode"]
)
def test_any_text_gets_there_whole(tmp_path: Path, text: str) -> None:
    answer, waits = ask(tmp_path, lambda asked: says(str(asked.message == text)), text)
    assert (answer, waits) == (Completion("True"), [])


def test_what_was_thought_is_not_the_answer_and_a_cut_one_is_told(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": None, "reasoning_content": "hm"}
    thought = answers({"choices": [{"message": message, "finish_reason": "length"}]})
    assert ask(tmp_path, lambda asked: thought, "apple")[0] == Completion("", cut_off=True)
