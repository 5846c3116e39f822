"""Ask a model over HTTP: any OpenAI-compatible chat server (vLLM's, Ollama's, llama.cpp's), through aiohttp.

A passing fault (429, 5xx, a time-out, a broken connection) is retried with backoff and jitter, or when the server says
(Retry-After). A text that the server refuses fails alone; the next run asks again for a text without an answer. A fault
that affects every text (a wrong key, an unknown model, a refused field of requests, no server, no chat server) ends the
run with one line.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import re
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import urlsplit

from plumbline.addresses import key_in, proxy_for
from plumbline.errors import ServiceError, StudyError, TextFailedError, TextRefusedError, TextUnansweredError
from plumbline.importing import aiohttp
from plumbline.models.chat import AS_TEXT, QUIET, Attempt, Chat, Completion
from plumbline.models.servers import (
    PASSING,
    RETRIES,
    TIMEOUT,
    allow_connections,
    complaint,
    error_status,
    hidden,
    one_line,
    pause,
)
from plumbline.study import Study
from plumbline.study.engines import LENGTHS, ServerSpec


def label_shares(choice: Mapping[str, Any], labels: Sequence[str]) -> dict[str, float] | None:
    """Return labels' probabilities among an answer's likeliest first tokens; None if the server reports none.

    A token with blanks around a label counts as that label: models have both.
    """
    try:
        top = choice["logprobs"]["content"][0]["top_logprobs"]
        tokens = [(str(token["token"]).strip(), math.exp(min(float(token["logprob"]), 0.0))) for token in top]
    except (TypeError, KeyError, IndexError, ValueError):
        return None
    shares = dict.fromkeys(labels, 0.0)
    for token, share in tokens:
        if token in shares:
            shares[token] += share
    return shares if tokens else None


def tokens(page: Any, *names: str) -> int | None:
    """Return a number of tokens from an answer's usage; None if the server does not report it."""
    for name in ("usage", *names):
        page = page.get(name) if isinstance(page, dict) else None
    return page if isinstance(page, int) else None


def valid_unicode(text: str) -> str:
    """Return the text if it is valid Unicode: JSON may hold a lone surrogate, which no file can store."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TextFailedError("the answer contains half a character (a lone surrogate)") from None
    return text


REFUSED = "the server refused the text: "
ANY_QUESTION = "Answer with the digit 1 and nothing else."
HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "plumbline"}
CONNECT = 30.0  # seconds to connect; a slower server counts as absent
IDLE = 4.0  # seconds to keep an unused connection: servers (uvicorn, so vLLM) close theirs after 5
TOP = 20  # number of most likely first tokens to ask for: the servers' maximum
LARGEST = 16 * 2**20  # largest answer in bytes
STRANGE = 10  # this many strange answers, before any good one, mean a wrong address
REFUSALS = 100  # this many equal refusals or unknown ends, before any good answer, do not concern single texts
FOR_ALL = {402, 405, 407, 410, 415}  # statuses about every text
# Words for the end of an answer, in small letters: OpenAI's, and makers' own that gateways pass on.
WHOLE = {"stop", "tool_calls", "function_call", "eos", "eos_token", "end_turn", "stop_sequence", "complete"}
CUT_OFF = {"length", "max_tokens", "model_length", "max_output_tokens"}
THOUGHTS = ("thinking", "redacted_thinking", "reasoning")  # types of parts of an answer that are not its text
FILTERED = {"content_filter", "safety", "recitation", "refusal", "prohibited_content", "blocklist", "spii"}


class StrangeAnswerError(TextUnansweredError):
    """A response that no chat server gives."""


@dataclass(eq=False)
class PassingError(Exception):
    """A fault that a retry may mend."""

    what: str
    details: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)  #: may state when to retry
    broken: bool = False  #: nobody answered
    once: bool = False  #: only the first retry may mend it


@dataclass
class ChatServer(Chat):
    """A chat server; the key is sent to it and shown nowhere."""

    spec: ServerSpec
    key: str = field(repr=False)
    url: str
    proxy: str = field(default="", repr=False)
    setting: str = "generator"  #: its key in the study
    extra: Mapping[str, Any] = field(default_factory=dict)  #: further fields of requests
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _session: aiohttp.ClientSession | None = None
    _good: int = 0  # number of good answers so far
    _checking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _checked: bool = False  # whether a first refusal that named a field was looked into
    _refuses: ServiceError | None = None  # what came of it, if it concerns every text
    _useless: Counter[str] = field(default_factory=Counter)  # answers of no use until there is a good one

    @classmethod
    def open(cls, spec: ServerSpec, study: Study, setting: str, template: Mapping[str, Any]) -> Self:
        """Return the server that a study names in `setting`; its key is from the environment, `EMPTY` if not set.

        Its chat template is the server's. Raises StudyError for a key or proxy that cannot be used.
        """
        try:
            address = urlsplit(spec.base_url)
            key = key_in(spec.settings.api_key_env) or "EMPTY"
            proxy = proxy_for(address.scheme, address.netloc)
        except ValueError as error:
            raise StudyError(f"{study.file}: {setting}: {error}") from None
        if proxy.startswith("https"):
            raise StudyError(
                f"the environment's {address.scheme}_proxy is not http://HOST:PORT; correct it, or set no_proxy"
            )
        return cls(spec, key, f"{spec.base_url.rstrip('/')}/chat/completions", proxy, setting)

    def __post_init__(self) -> None:
        self.concurrency = self.spec.in_flight

    async def ask(self, message: str, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """Return the server's answer to one user message, with probabilities of `labels` if it reports them.

        Raises TextFailedError, TextUnansweredError and ServiceError as `Chat.ask` says.
        """
        try:
            return await self._ask(message, attempt, labels)
        except TextRefusedError as refusal:
            await self._refuse_field(str(refusal), attempt, labels)
            raise

    async def _refuse_field(self, words: str, attempt: Attempt, labels: Sequence[str]) -> None:
        """Raise ServiceError if a refusal names a field of requests, nothing was answered, and any text is refused."""
        async with self._checking:
            if not self._good and not self._checked and self._fields_in(words):
                self._checked = True
                try:
                    await self._ask(ANY_QUESTION, attempt, labels)
                except TextRefusedError as refusal:
                    if fields := self._fields_in(str(refusal)):
                        self._refuses = self._refused(str(refusal), fields)
                except TextFailedError:
                    self._checked = False
            if self._refuses:
                raise self._refuses

    def _fields_in(self, words: str) -> list[str]:
        """Return the fields of requests that a server's words name, but for the schema, which callers do without."""
        sent = json.loads(self._body("", Attempt(1, 1, self.spec.sampling), ("1",)))
        names = [*sent, *(name for name in self.spec.settings.request if name not in sent)]
        return [
            name
            for name in names
            if name not in ("model", "messages", "response_format") and re.search(rf"\b{re.escape(name)}\b", words)
        ]

    def _refused(self, words: str, fields: Sequence[str]) -> ServiceError:
        line = f"{self.spec.base_url} refuses every request for {' and '.join(fields)}: {words.removeprefix(REFUSED)}"
        way = f"request: {{{fields[0]}: null}}, or with another name and value"
        return ServiceError(f"{line}; leave it out or rename it in the settings of {self.setting} ({way})")

    async def _ask(self, message: str, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """Return the answer, as `ask`; a refusal concerns this text."""
        body = self._body(message, attempt, labels)
        answered_before = self._good
        for number in itertools.count(1):
            try:
                answer = await self._try(body, labels)
                break
            except PassingError as fault:
                if number <= (min(1, RETRIES) if fault.once else RETRIES):
                    await self.sleep(pause(number, fault.headers))
                    continue
                times = "once" if number == 1 else f"{number} times"
                line = ": ".join(filter(None, (f"{fault.what}, asked {times}", fault.details)))
                if not fault.broken or self._good > answered_before:  # others are answered, so this text is the cause
                    raise TextUnansweredError(line) from None
                line = f"{self.spec.base_url} did not answer: asked {times} ({fault.what})"
                raise ServiceError(f"{line}; start the server or correct {self.setting}.base_url") from None
        self._good += 1
        return answer

    async def prepare_to_judge(self, name: str, labels: Sequence[str], first: Attempt) -> bool:
        """Ask once to see what the server can do: turn thinking off, and return probabilities.

        A label of several characters may be several tokens, which no server says: a 10 would then count as a 1.
        """
        if long := next((label for label in labels if len(label) > 1), ""):
            print(f"{name}: a server may write the point {long!r} in several tokens, so {AS_TEXT}")
            labels = ()
        extras: tuple[dict[str, Any], ...] = ({"chat_template_kwargs": QUIET}, {})
        refused = ""
        for wanted_labels, self.extra in itertools.product((labels, ()) if labels else ((),), extras):
            try:
                answer = await self._probe(first, wanted_labels)
            except TextRefusedError as error:
                refused = str(error)
                continue
            if wanted_labels and answer.labels is None:
                continue
            if labels and not wanted_labels:
                print(f"{name}: the server returns no probabilities, so {AS_TEXT}")
            if not self.extra:
                print(f"{name}: the server cannot turn thinking off, so thoughts are cut off from its answers")
            return bool(wanted_labels)
        if fields := self._fields_in(refused):
            raise self._refused(refused, fields)
        raise ServiceError(f"{self.spec.base_url}: {refused}; correct {name!r} in the study")

    async def _probe(self, attempt: Attempt, labels: Sequence[str]) -> Completion:
        """Return the answer to a first question; replies that are not chat answers are retried a few times."""
        for number in range(1, STRANGE + 1):
            try:
                answer = await self._ask(ANY_QUESTION, attempt, labels)
                break
            except TextRefusedError:
                raise
            except TextFailedError as error:
                if number == STRANGE or type(error) is TextUnansweredError:
                    raise ServiceError(f"{self.spec.base_url}: {error}; run again when it answers") from None
        return answer

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _body(self, message: str, attempt: Attempt, labels: Sequence[str] = ()) -> bytes:
        """Return a request's body in ASCII: texts may hold lone surrogates, which JSON can escape and UTF-8 cannot.

        The study's fields come last; that of the longest answer follows the attempt, under whatever name.
        """
        of_study = self.spec.settings.request
        length = 1 if labels else attempt.sampling.max_tokens
        schema = {"name": "answer", "strict": True, "schema": dict(self.schema or {})}
        request = {
            "model": self.spec.model,
            "messages": [{"role": "user", "content": message}],
            "temperature": attempt.sampling.temperature,
            "top_p": attempt.sampling.top_p,
            "max_tokens": length,
            "seed": attempt.seed,
            **({"logprobs": True, "top_logprobs": TOP} if labels else {}),
            **({"response_format": {"type": "json_schema", "json_schema": schema}} if self.schema else {}),
            **self.extra,
            **of_study,
            **{name: length for name in LENGTHS if of_study.get(name)},
        }
        return json.dumps({name: value for name, value in request.items() if value is not None}).encode()

    async def _try(self, body: bytes, labels: Sequence[str]) -> Completion:
        """Send one request and return its answer."""
        session = self._session or self._connect()
        try:
            async with session.post(self.url, data=body, proxy=self.proxy or None, allow_redirects=False) as page:
                content = await _whole_body(page)
        except aiohttp.ConnectionTimeoutError:
            raise PassingError(f"no connection within {CONNECT:g} s", broken=True) from None
        except TimeoutError:
            raise PassingError(f"no answer within {TIMEOUT:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise PassingError(hidden(_what_broke(error), self.key), broken=True) from None
        return self.read(page.status, content, labels, page.headers)

    def read(
        self, status: int, content: bytes, labels: Sequence[str], headers: Mapping[str, str] = MappingProxyType({})
    ) -> Completion:
        """Return the answer in a response; raise for one of another status, or without a whole answer."""
        if status == 200:
            return self._answer(content, labels)
        raise self._trouble(status, headers, content)

    def _connect(self) -> aiohttp.ClientSession:
        """Open the session; its connections belong to the running event loop."""
        allow_connections(self.concurrency)
        tls = ssl.create_default_context() if self.url.startswith("https") else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE, ssl=tls),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT, connect=CONNECT),
            headers={"Authorization": f"Bearer {self.key}", **HEADERS},
            skip_auto_headers=("Accept-Encoding",),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self._session

    def _answer(self, content: bytes, labels: Sequence[str]) -> Completion:
        """Return the answer in a response with status 200; raise for responses that are strange or cut off."""
        try:
            page: Any = json.loads(content)
            self._refuse_error(page)
            choices = page["choices"]
        except ValueError:
            if content.lstrip()[:1] in (b"{", b""):
                raise PassingError("the answer breaks off before its end") from None
            raise self._stranger("") from None
        except (TypeError, KeyError, AttributeError, RecursionError):
            raise self._stranger(complaint(content, self.key)) from None
        if not choices:
            raise TextFailedError("the answer has no choices")
        try:
            self._refuse_error(choices[0])
            ending, message = str(choices[0].get("finish_reason") or "stop"), choices[0]["message"]
            text, refusal = _joined(message.get("content")), message.get("refusal")
        except (TypeError, KeyError, AttributeError):
            raise TextFailedError("the answer's choice has no message") from None
        if not isinstance(text, str | None):
            raise TextFailedError("the answer's content is not text")
        if refusal and not text:
            raise TextFailedError(f"the model refuses: {hidden(str(refusal), self.key)}")
        if ending.lower() in FILTERED:
            raise TextFailedError("the server's content filter stopped the answer")
        if ending.lower() not in WHOLE | CUT_OFF:
            raise self._unknown_end(f"answer ends by {one_line(ending)!r}")
        shares = label_shares(choices[0], labels) if labels else None
        sent, cached = tokens(page, "prompt_tokens"), tokens(page, "prompt_tokens_details", "cached_tokens")
        return Completion(valid_unicode(text or ""), ending.lower() in CUT_OFF, shares, sent or 0, cached)

    def _refuse_error(self, part: Mapping[str, Any]) -> None:
        """Raise the error that an answer with status 200, or its choice, holds: so gateways pass on another server's.

        An answer that is only an error without a status may be of another kind of server.
        """
        if not part.get("error"):
            return
        content = json.dumps(part).encode()
        if status := error_status(part):
            raise self._trouble(status, {}, content)
        if "choices" in part or "message" in part:
            raise PassingError("an error for an answer", complaint(content, self.key))

    def _stranger(self, details: str) -> ServiceError | TextUnansweredError:
        """Record a strange response: this text's fault or, before any good answer, a wrong address."""
        line = f"the answer is not a chat response; check {self.setting}.base_url (it usually ends in /v1)"
        concerns_all = self._concerns_all(line, STRANGE)
        line = ": ".join(filter(None, (line, details)))
        return ServiceError(f"{self.spec.base_url}: {line}") if concerns_all else StrangeAnswerError(line)

    def _refusal(self, words: str) -> ServiceError | TextFailedError:
        """Record a refusal: of this text or, if all refusals are alike and no text is answered, of all texts."""
        if self._concerns_all(words):
            line = f"{self.spec.base_url} refused {REFUSALS} texts with the same message and answered none: {words}"
            return ServiceError(f"{line}; correct the setting that the message names, then run again with --again")
        return TextRefusedError(f"{REFUSED}{words}")

    def _unknown_end(self, words: str) -> ServiceError | PassingError:
        """Record a paid answer that may be half: asked for once more or, if all answers end so, a server's way."""
        if self._concerns_all(words):
            line = f"{self.spec.base_url}: every {words}, which does not tell whether it is whole"
            return ServiceError(f"{line}; use a server that ends answers by 'stop' or 'length'")
        return PassingError(f"the {words}", once=True)

    def _concerns_all(self, words: str, most: int = REFUSALS) -> bool:
        """Record an answer that cannot be used; return whether so many are alike and there is no good one."""
        self._useless[words] += not self._good
        return not self._good and self._useless[words] >= most

    def _trouble(self, status: int, headers: Mapping[str, str], content: bytes) -> Exception:
        """Raise the error for a status other than 200."""
        url, words = self.spec.base_url, complaint(content, self.key)
        if status in PASSING:
            return PassingError(f"status {status}", words, headers)
        if status in (401, 403):
            return ServiceError(f"{url}: the key is not accepted; set {self.spec.settings.api_key_env}")
        if status == 404:
            line = f"{url} has no model {self.spec.model!r}, or {self.setting}.base_url lacks its /v1"
            return ServiceError(": ".join(filter(None, (line, words))))
        if 300 <= status < 400:
            target = one_line(headers.get("location", "").partition("?")[0])
            return ServiceError(
                f"{url} redirects to {target!r}; Plumbline follows no redirect: correct {self.setting}.base_url"
            )
        if status in FOR_ALL:
            return ServiceError(": ".join(filter(None, (f"{url}: status {status}", words))))
        return self._refusal(words or f"status {status}")


def _joined(content: Any) -> Any:
    """Return the texts of a content in parts as one text, without its thoughts; other content or parts unchanged."""
    if not (isinstance(content, list) and all(isinstance(part, dict) for part in content)):
        return content
    parts = [part for part in content if part.get("type") not in THOUGHTS]
    return "".join(part["text"] for part in parts) if all(part.get("type") == "text" for part in parts) else content


async def _whole_body(page: aiohttp.ClientResponse) -> bytes:
    """Read a response to its end, up to the size limit."""
    content = bytearray()
    async for part in page.content.iter_any():
        content += part
        if len(content) > LARGEST:
            raise TextFailedError(f"the answer is larger than {LARGEST >> 20} MB")
    return bytes(content)


def _what_broke(error: Exception) -> str:
    """Say why a response is incomplete, without its URL: that may hold the proxy's password."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answers {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"not HTTP: {error.message}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return str(error)
    return "the connection was cut"
