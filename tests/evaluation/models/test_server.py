"""Models behind an embedding server, against a real HTTP server on this machine that can misbehave."""

from __future__ import annotations

import base64
import http.server
import json
import resource
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.models.encoder import Encoder, ModelHost, drift_of_texts
from evaluation.models.server import ServerModel
from plumbline.errors import DataError, ServiceError
from plumbline.models import servers
from plumbline.study import Study
from plumbline.study.evaluation import EmbeddingServerSpec
from tests.evaluation.conftest import vectors, write_study

Script = Callable[[dict[str, Any], int], tuple[int, Any, dict[str, str]]]


def rows(texts: list[str]) -> list[dict[str, Any]]:
    return [{"index": n, "embedding": vector.tolist()} for n, vector in enumerate(vectors(texts))]


def good(asked: dict[str, Any], _: int) -> tuple[int, Any, dict[str, str]]:
    return 200, {"data": rows(asked["input"])}, {}


class Stub:
    """`script` gets a request and how many there were before it; `asked` are all requests."""

    def __init__(self) -> None:
        self.script: Script = good
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.meeting: threading.Barrier | None = None
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                stub.keys.add(self.headers["authorization"])
                number = len(stub.asked)
                stub.asked.append({**asked, "path": self.path})
                if stub.meeting is not None:
                    stub.meeting.wait(20)
                status, answer, headers = stub.script(asked, number)
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = "content-length" in headers

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def model(self, **changes: Any) -> ServerModel:
        spec: dict[str, Any] = {"name": "served", "kind": "openai", "base_url": self.url}
        named = {name: changes.pop(name) for name in ("prompts", "revision") if name in changes}
        return ServerModel(EmbeddingServerSpec(**spec, **named, settings=changes))

    def encoder(self, **changes: Any) -> Encoder:
        return Encoder(self.model(**changes), "served", "1", batch_size=4)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(servers, "FIRST_DELAY", 0.0)
    made = Stub()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join(10)


def first_then(*answers: tuple[int, Any, dict[str, str]]) -> Script:
    """These answers to the first requests, and good ones afterwards."""
    return lambda asked, number: answers[number] if number < len(answers) else good(asked, number)


TEXTS = [f"a cat {n}" for n in range(10)]


def test_texts_go_in_batches_and_each_once(stub: Stub) -> None:
    encoder = stub.encoder()
    np.testing.assert_allclose(encoder.embed([*TEXTS, "a cat 3"]), vectors([*TEXTS, "a cat 3"]), rtol=1e-6)
    assert sorted(len(asked["input"]) for asked in stub.asked) == [2, 4, 4]
    assert {(asked["model"], asked["path"]) for asked in stub.asked} == {("served", "/v1/embeddings")}
    assert encoder.encoded == 10


def test_rows_are_ordered_by_their_index(stub: Stub) -> None:
    stub.script = lambda asked, _: (200, {"data": rows(asked["input"])[::-1]}, {})
    np.testing.assert_allclose(stub.encoder().embed(TEXTS), vectors(TEXTS), rtol=1e-6)


@pytest.mark.parametrize("named", [range(1, 10), ()])
def test_an_embedding_without_an_index_has_that_of_its_place(stub: Stub, named: Sequence[int]) -> None:
    def script(asked: dict[str, Any], _: int) -> tuple[int, Any, dict[str, str]]:
        data = [row if row["index"] in named else {"embedding": row["embedding"]} for row in rows(asked["input"])]
        return 200, {"data": data}, {}

    stub.script = script
    np.testing.assert_allclose(stub.encoder().embed(TEXTS), vectors(TEXTS), rtol=1e-6)


def test_a_server_that_refuses_base64_is_asked_for_numbers(stub: Stub) -> None:
    """In the words of LiteLLM before Vertex and Bedrock."""
    refused = "litellm.UnsupportedParamsError: gemini does not support parameters: {'encoding_format': 'base64'}"

    def script(asked: dict[str, Any], number: int) -> tuple[int, Any, dict[str, str]]:
        return (400, {"error": {"message": refused}}, {}) if "encoding_format" in asked else good(asked, number)

    stub.script = script
    encoder = stub.encoder(concurrency=1)
    np.testing.assert_allclose(encoder.embed(TEXTS), vectors(TEXTS), rtol=1e-6)
    assert ["encoding_format" in asked for asked in stub.asked] == [True, False, False, False]


def test_a_nested_embedding_is_read_and_those_of_tokens_are_refused(stub: Stub) -> None:
    def nested(count: int) -> Script:
        return lambda asked, _: (
            200,
            {"data": [{**row, "embedding": count * [row["embedding"]]} for row in rows(asked["input"])]},
            {},
        )

    stub.script = nested(1)
    np.testing.assert_allclose(stub.encoder().embed(TEXTS), vectors(TEXTS), rtol=1e-6)
    stub.script = nested(2)
    with pytest.raises(ServiceError, match="not an embedding response"):
        stub.encoder().embed(TEXTS)


def packed(floats: str, *, always: bool = False) -> Script:
    """Base64 of a type of floats where it is asked for, or `always`."""

    def script(asked: dict[str, Any], number: int) -> tuple[int, Any, dict[str, str]]:
        if asked.get("encoding_format") != "base64" and not always:
            return good(asked, number)
        data = [
            {"index": n, "embedding": base64.b64encode(vector.astype(floats).tobytes()).decode()}
            for n, vector in enumerate(vectors(asked["input"]))
        ]
        return 200, {"data": data}, {}

    return script


def test_base64_and_numbers_are_the_same(stub: Stub) -> None:
    stub.script = packed("<f4")
    encoder = stub.encoder(concurrency=1)
    np.testing.assert_array_equal(encoder.embed(TEXTS), vectors(TEXTS))
    first, check, *others = stub.asked
    assert first["encoding_format"] == "base64" and {asked["encoding_format"] for asked in others} == {"base64"}
    assert (check["encoding_format"], check["input"]) == ("float", first["input"][:1])


@pytest.mark.parametrize("floats", ["<f8", "<f2", ">f4"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_base64_of_other_floats_is_found_out_and_numbers_are_asked_for(
    stub: Stub, floats: str, concurrency: int
) -> None:
    stub.script = packed(floats)
    np.testing.assert_array_equal(stub.encoder(concurrency=concurrency).embed(TEXTS), vectors(TEXTS))
    assert stub.asked[-1]["encoding_format"] == "float"
    stub.script = packed(floats, always=True)
    with pytest.raises(ServiceError, match="it sends base64 where numbers were asked for"):
        stub.encoder(concurrency=concurrency).embed(TEXTS)


def test_a_width_that_the_study_asks_for_says_what_floats_base64_holds(stub: Stub) -> None:
    width = vectors(["a"]).shape[1]
    stub.script = packed("<f4", always=True)
    np.testing.assert_array_equal(stub.encoder(request={"dimensions": width}).embed(TEXTS), vectors(TEXTS))
    assert {(asked["dimensions"], asked["encoding_format"]) for asked in stub.asked} == {(width, "base64")}


def test_base64_in_lines_is_read(stub: Stub) -> None:
    def in_lines(asked: dict[str, Any], number: int) -> tuple[int, Any, dict[str, str]]:
        if asked["encoding_format"] == "float":
            return good(asked, number)
        packed_rows = [
            base64.encodebytes(vector.astype("<f4").tobytes()).decode() for vector in vectors(asked["input"])
        ]
        return 200, {"data": [{"embedding": row} for row in packed_rows]}, {}

    stub.script = in_lines
    np.testing.assert_array_equal(stub.encoder().embed(TEXTS), vectors(TEXTS))


def typed(asked: dict[str, Any], number: int) -> tuple[int, Any, dict[str, str]]:
    """As NVIDIA's and Cohere's servers: a text is a query or a passage, which are embedded differently."""
    kinds = {"query": "q ", "passage": "p "}
    if asked.get("input_type") not in kinds:
        return 400, {"error": "'input_type' parameter is required for asymmetric models"}, {}
    return good({**asked, "input": [kinds[asked["input_type"]] + text for text in asked["input"]]}, number)


def test_fields_of_requests_by_the_role_of_texts(stub: Stub) -> None:
    stub.script = typed
    with pytest.raises(ServiceError, match=r"'input_type' parameter is required .*\(settings.request\)"):
        stub.encoder().embed(TEXTS)
    input_type = {"query": "query", "document": "passage"}
    encoder = stub.encoder(request={"input_type": input_type, "truncate": "END", "encoding_format": None})
    asked_before = len(stub.asked)
    for role, prefix in (("query", "q "), ("document", "p "), ("", "p ")):
        wanted = vectors([f"{prefix}{text}" for text in TEXTS])
        np.testing.assert_array_equal(encoder.embed(TEXTS, role=role), wanted)
    sent = stub.asked[asked_before:]
    assert all(asked["truncate"] == "END" and "encoding_format" not in asked for asked in sent)
    own = stub.encoder(request={"input_type": {**input_type, "text": "query"}})
    np.testing.assert_array_equal(own.embed(TEXTS[:1]), vectors([f"q {TEXTS[0]}"]))


def test_a_field_without_a_value_for_a_role_is_left_out(stub: Stub) -> None:
    encoder = stub.encoder(request={"task": {"query": "search"}})
    for role in ("query", "document", ""):
        encoder.embed(["a cat"], role=role)
    assert [asked.get("task") for asked in stub.asked] == ["search", None, None]


def test_passing_faults_are_asked_again_and_the_server_says_when(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("evaluation.models.server.time.sleep", waited.append)
    no, cut = {"error": {"message": "later"}}, (200, b'{"data": [', {"content-length": "5000"})
    stub.script = first_then((429, no, {"retry-after": "7"}), (500, no, {}), cut, (503, no, {"retry-after": "9000"}))
    np.testing.assert_allclose(stub.encoder().embed(TEXTS[:3]), vectors(TEXTS[:3]), rtol=1e-6)
    assert len(stub.asked) == 5
    (stated, longest) = [seconds for seconds in waited if seconds]
    assert 7 <= stated <= 8.75 and 120 <= longest <= 150  # an hour is not waited for


@pytest.mark.parametrize("code", [429, 503])
def test_a_gateways_passing_error_with_status_200_is_asked_again(stub: Stub, code: int) -> None:
    later = 200, {"error": {"code": code, "message": "later\non"}}, {}
    stub.script = first_then(later, (500, {}, {}), later)
    np.testing.assert_allclose(stub.encoder().embed(TEXTS[:3]), vectors(TEXTS[:3]), rtol=1e-6)
    assert len(stub.asked) == 4
    stub.script = lambda *_: later
    with pytest.raises(ServiceError, match=f"^model 'served' at http://.*: status {code}, asked 7 times: later on$"):
        stub.encoder().embed(["a cat"])
    assert len(stub.asked) == 4 + 7


def test_what_was_answered_before_a_failure_is_not_asked_and_paid_again(stub: Stub, tmp_path: Path) -> None:
    """Four requests fill a quota, three times over: each run goes on where the one before ended."""
    made = study(tmp_path, base_url=stub.url)
    paid: list[str] = []
    quota = 0

    def script(asked: dict[str, Any], number: int) -> tuple[int, Any, dict[str, str]]:
        if len(paid) >= quota:
            return 400, {"error": {"message": "quota exceeded"}}, {}
        paid.extend(asked["input"])
        return good(asked, number)

    def run() -> Any:
        encoder = Encoder(stub.model(concurrency=3), "served", "1", 1, ModelHost.of(made).store("m"))
        try:
            return encoder.embed(TEXTS)
        finally:
            encoder.close()

    stub.script = script
    for quota in (4, 8):  # noqa: B007 (the script reads it)
        with pytest.raises(ServiceError, match="quota exceeded"):
            run()
    quota = 12
    np.testing.assert_allclose(run(), vectors(TEXTS), rtol=1e-6)
    assert sorted(paid) == sorted(TEXTS)


@pytest.mark.parametrize("bad", [0.0, None])
def test_an_unusable_embedding_loses_no_paid_one(stub: Stub, tmp_path: Path, bad: float | None) -> None:
    made = study(tmp_path, base_url=stub.url)

    def script(asked: dict[str, Any], _: int) -> tuple[int, Any, dict[str, str]]:
        data = rows(asked["input"])
        for number, text in enumerate(asked["input"]):
            if text == "a cat 3":
                data[number]["embedding"] = [bad] * 16
        return 200, {"data": data}, {}

    stub.script = script
    for _ in range(3):
        encoder = Encoder(stub.model(concurrency=2), "served", "1", 2, ModelHost.of(made).store("m"))
        with pytest.raises(DataError, match="for 'a cat 3'"):
            encoder.embed(TEXTS)
        encoder.close()
    paid = Counter(text for asked in stub.asked for text in asked["input"])
    assert paid == {**dict.fromkeys(TEXTS, 1), "a cat 3": 3}


def test_an_unusable_embedding_ends_the_requests(stub: Stub) -> None:
    stub.script = lambda asked, _: (200, {"data": [{"index": 0, "embedding": [0.0, 0.0]}]}, {})
    with pytest.raises(DataError, match="of length 0"):
        Encoder(stub.model(concurrency=2), "served", "1", 1).embed([f"a cat {n}" for n in range(100)])
    assert len(stub.asked) < 20


def test_an_answer_does_not_wait_for_others(stub: Stub) -> None:
    stored = threading.Event()
    stub.script = lambda asked, number: good(asked, number) if not number or stored.wait(20) else (400, {}, {})
    arriving = stub.model(concurrency=2).arriving(TEXTS, prompt="", role="", batch_size=4, faults=[])
    next(arriving)
    assert not stored.is_set()
    stored.set()
    assert len(list(arriving)) == 2


NUMBERS = [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0, 2.0]}]


@pytest.mark.parametrize(
    ("status", "answer", "says"),
    [
        (200, {"data": NUMBERS[:1]}, r"1 embedding for 2 texts"),
        (200, {"data": [NUMBERS[0], NUMBERS[0]]}, r"2 embeddings for 2 texts, whose indexes begin \[0\]"),
        (200, {"data": [NUMBERS[0], {"index": 1, "embedding": [1.0]}]}, r"different lengths .*: \[1, 2\]"),
        (200, {"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}, r"different lengths"),
        (200, b"<html>hello</html>", "not an embedding response; check base_url"),
        (200, {"choices": []}, "not an embedding response"),
        (200, {"error": {"message": "quota exceeded", "code": 400}}, "status 400: quota exceeded"),
        (200, {"error": {"message": "quota exceeded", "code": 0}}, "not an embedding response.*: quota exceeded"),
        (200, {"error": {"message": "quota exceeded", "code": True}}, "not an embedding response.*: quota exceeded"),
        (200, {"error": {"message": "quota exceeded", "code": 200}}, "not an embedding response.*: quota exceeded"),
        (200, {"error": {"message": "quota exceeded"}}, "not an embedding response.*: quota exceeded"),
        (200, {"data": [{"index": 0, "embedding": "%%"}, NUMBERS[1]]}, "not an embedding response"),
        (400, {"error": {"message": "too long"}}, "status 400: too long; a text may be too long"),
        (401, {"error": "secret-key is wrong"}, "the key is not accepted; set OPENAI_API_KEY"),
        (404, {"detail": "no served"}, "the server has no such model, or base_url lacks its /v1: no served"),
        (302, b"", "status 302"),
        (418, {"message": "secret-key"}, r"status 418: \(the key\)"),
        (418, {"message": "x" * 297 + "secret-key"}, r"x\(th$"),
    ],
)
def test_what_a_server_does_wrong_is_one_line(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, status: int, answer: Any, says: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    stub.script = lambda *_: (status, answer, {"location": "/elsewhere"} if status == 302 else {})
    with pytest.raises(ServiceError, match=says) as caught:
        stub.encoder().embed(["a cat", "a dog"])
    assert "secret-key" not in str(caught.value) and "\n" not in str(caught.value)
    assert stub.keys == {"Bearer secret-key"}
    assert len(stub.asked) == 1


def test_a_server_that_changes_its_dimensions_is_found_out(stub: Stub) -> None:
    stub.script = lambda asked, number: (200, {"data": [{"index": 0, "embedding": [1.0] * (3 + number)}]}, {})
    encoder = stub.encoder()
    encoder.embed(["a cat"])
    with pytest.raises(ServiceError, match="an embedding has 4 dimensions, but an earlier one has 3"):
        encoder.embed(["a dog"])


def test_requests_are_in_flight_together(stub: Stub) -> None:
    stub.meeting = threading.Barrier(3)  # no request is answered before three have come
    np.testing.assert_allclose(stub.encoder(concurrency=3).embed(TEXTS[:9]), vectors(TEXTS[:9]), rtol=1e-6)


def test_as_many_files_may_be_open_as_requests_are_in_flight(stub: Stub) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        stub.encoder(concurrency=900)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(900 + servers.OTHER_FILES, hard), hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_proxy_of_the_environment_is_used(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "localhost")
    monkeypatch.setenv("http_proxy", stub.url.removesuffix("/v1"))
    spec = EmbeddingServerSpec(name="served", base_url="http://models.invalid/v1")
    np.testing.assert_allclose(
        Encoder(ServerModel(spec), "served", "1").embed(["a cat"]), vectors(["a cat"]), rtol=1e-6
    )
    assert stub.asked[0]["path"] == "http://models.invalid/v1/embeddings"


def test_prompts_are_put_before_texts(stub: Stub) -> None:
    encoder = stub.encoder(prompts={"query": "ask: "})
    drift_of_texts(encoder, ["a cat"], ["a dog"])
    assert {text for asked in stub.asked for text in asked["input"]} == {"a cat", "a dog"}
    np.testing.assert_allclose(encoder.embed(["a cat"], prompt="ask: "), vectors(["a cat"], "ask: "), rtol=1e-6)


def study(tmp_path: Path, **model: Any) -> Study:
    return write_study(tmp_path, evaluation={"models": [{"name": "served", "kind": "openai", **model}]})


def test_a_study_names_a_server_and_a_second_run_asks_it_nothing(stub: Stub, tmp_path: Path) -> None:
    made = study(tmp_path, base_url=stub.url, revision="7")
    for _ in range(2):
        encoder = ModelHost.of(made).load(made.evaluation.models[0])
        encoder.embed(["a cat", "a dog"])
        encoder.close()
    assert len(stub.asked) == 1
    assert (encoder.mteb_model_meta.name, encoder.mteb_model_meta.revision) == ("served", "7")


def test_the_address_is_no_part_of_the_identity_and_prompts_fields_and_kind_are(tmp_path: Path) -> None:
    one, other = (study(tmp_path, base_url=f"http://127.0.0.1:{port}/v1") for port in (1, 2))
    asked = study(tmp_path, base_url="http://127.0.0.1:1/v1", prompts={"query": "ask: "})
    plain = write_study(tmp_path, evaluation={"models": [{"name": "served"}]})
    short = study(tmp_path, base_url="http://127.0.0.1:1/v1", settings={"request": {"dimensions": 8}})
    ids = [ModelHost.of(made).model_id(made.evaluation.models[0]) for made in (one, other, asked, plain, short)]
    assert ids[0] == ids[1] and len(set(ids)) == 4
