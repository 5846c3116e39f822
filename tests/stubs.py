"""A chat server to test against: a real HTTP server on 127.0.0.1 that speaks `/v1/chat/completions`.

In a test it runs in a thread (`with ChatStub(script) as stub`), answers by a script, and the test sees what it was
asked. For measurements `python -m tests.stubs --seconds 0.5` prints the address of a `Clockwork`, which gives every
request the same answer after about this time, costs as little as it can, and says at `/v1/stats` what it has done.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, cast


@dataclass(frozen=True)
class Asked:
    """One request: the user's message, how often that message has been asked so far (from 1), and all of it."""

    message: str
    times: int
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass(frozen=True)
class Reply:
    """What the stub does: wait, then answer with these bytes.

    Or: cut the connection without an answer (`cut`); cut it after half the body (`half`); or send the headers, and
    then one byte each so many seconds (`trickle`).
    """

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cut: bool = False
    half: bool = False
    trickle: float = 0.0

    def head(self) -> bytes:
        """The status line and the headers; `headers` go before the usual ones."""
        headers = {"content-type": self.content_type, "content-length": str(len(self.body)), **self.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} -\r\n{lines}\r\n".encode()


Script = Callable[[Asked], Reply]


def says(content: object, *, seconds: float = 0.0, finish_reason: str = "stop") -> Reply:
    """A well-formed answer with one choice."""
    message = {"role": "assistant", "content": content}
    choices = [{"index": 0, "message": message, "finish_reason": finish_reason}]
    return answers({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}, seconds)


def answers(body: object, seconds: float = 0.0, status: int = 200) -> Reply:
    """Any JSON."""
    return Reply(json.dumps(body).encode(), status, seconds=seconds)


def refuses(status: int, message: str = "no", **headers: str) -> Reply:
    """An error as OpenAI-compatible servers give it; header names with _ for -."""
    body = json.dumps({"error": {"message": message}}).encode()
    return Reply(body, status, headers={name.replace("_", "-"): value for name, value in headers.items()})


def last_line(asked: Asked) -> str:
    """The text at the end of a message: what the prompt asks to transform."""
    return asked.message.split("\n")[-1]


def upper(asked: Asked) -> Reply:
    """The text in capitals."""
    return says(last_line(asked).upper())


class Server(Protocol):
    """What stands behind a connection."""

    def ask(self, head: bytes, body: bytes, transport: asyncio.Transport) -> None:
        """One whole request has arrived."""


async def listen(server: Server, tls: ssl.SSLContext | None = None) -> tuple[asyncio.AbstractServer, str]:
    """Open a free port on the running loop; returns what closes it, and the address for `base_url`."""
    loop = asyncio.get_running_loop()
    opened = await loop.create_server(lambda: _Connection(server), "127.0.0.1", 0, backlog=1024, ssl=tls)
    return opened, f"{'https' if tls else 'http'}://127.0.0.1:{opened.sockets[0].getsockname()[1]}/v1"


class ChatStub:
    """The server; `asked` are the requests as they came, `most_at_once` the most that were in flight together."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.script = script
        self._tls = tls
        self.asked: list[Asked] = []
        self.answered = 0
        self.most_at_once = 0
        self.url = ""
        self._open = 0
        self._connections: set[asyncio.Transport] = set()
        self._times: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._opened, self.url = asyncio.run_coroutine_threadsafe(listen(self, self._tls), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _close(self) -> None:
        self._opened.close()
        for transport in self._connections:
            transport.abort()
        await asyncio.sleep(0)  # the loop closes what was aborted in its next turn

    def ask(self, head: bytes, body: bytes, transport: asyncio.Transport) -> None:
        """Note the request, and answer as the script says."""
        self._connections.add(transport)
        lines = head.decode("latin-1").split("\r\n")
        if not lines[0].startswith("POST ") or not lines[0].endswith("/v1/chat/completions HTTP/1.1"):
            self._send(transport, refuses(404, "no such page"))
            return
        sent = json.loads(body)
        message = sent["messages"][-1]["content"]
        self._times[message] += 1
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        asked = Asked(message, self._times[message], sent, headers)
        self.asked.append(asked)
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        reply = self.script(asked)
        asyncio.get_running_loop().call_later(reply.seconds, self._finish, transport, reply)

    def _finish(self, transport: asyncio.Transport, reply: Reply) -> None:
        self._open -= 1
        if transport.is_closing():
            return
        self.answered += 1
        self._send(transport, reply)

    def _send(self, transport: asyncio.Transport, reply: Reply) -> None:
        if reply.cut:
            transport.abort()
        elif reply.half:
            transport.write(reply.head() + reply.body[: len(reply.body) // 2])
            transport.close()
        elif reply.trickle:
            transport.write(reply.head())
            self._trickle(transport, reply, 0)
        else:
            transport.write(reply.head() + reply.body)

    def _trickle(self, transport: asyncio.Transport, reply: Reply, sent: int) -> None:
        if sent < len(reply.body) and not transport.is_closing():
            transport.write(reply.body[sent : sent + 1])
            asyncio.get_running_loop().call_later(reply.trickle, self._trickle, transport, reply, sent + 1)


class Clockwork:
    """A server that gives every request the same answer after `seconds`, up to a third more or less.

    Of embeddings each text gets its own, made of its hash.
    Drawn, because answers of a model do not come in step: of those that do, the last waits for all others.
    """

    def __init__(self, seconds: float) -> None:
        reply = says("somebody waits for an answer to this")
        self._answer = reply.head() + reply.body
        self._seconds = seconds
        self._draw = random.Random(1)
        self._forget()

    def ask(self, head: bytes, body: bytes, transport: asyncio.Transport) -> None:
        """Answer a POST when it is due; a GET, of whatever page, gives what was done since the one before."""
        if not head.startswith(b"POST"):
            self._tell(transport)
            return
        self._first = self._first or time.perf_counter()
        due = self._seconds * self._draw.uniform(2 / 3, 4 / 3)
        answer = _embedded(json.loads(body)["input"]) if b"/embeddings" in head.partition(b"\r\n")[0] else self._answer
        asyncio.get_running_loop().call_later(due, self._send, transport, due, answer)

    def _send(self, transport: asyncio.Transport, due: float, answer: bytes) -> None:
        transport.write(answer)
        self._answered += 1
        self._worked += due
        self._last = time.perf_counter()

    def _tell(self, transport: asyncio.Transport) -> None:
        stats = {
            "answered": self._answered,
            "seconds": self._last - self._first,
            "cpu_seconds": time.process_time() - self._cpu,
            "worked": self._worked,
        }
        reply = answers(stats)
        transport.write(reply.head() + reply.body)
        self._forget()

    def _forget(self) -> None:
        self._answered = 0
        self._first = self._last = self._worked = 0.0
        self._cpu = time.process_time()


def _embedded(texts: list[str]) -> bytes:
    rows = [{"index": n, "embedding": list(hashlib.sha256(text.encode()).digest())} for n, text in enumerate(texts)]
    reply = answers({"data": rows})
    return reply.head() + reply.body


class _Connection(asyncio.Protocol):
    """One connection that is kept open; requests come one after the other."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, rest = self.received.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if len(rest) >= length:
            self.received = rest[length:]
            self.server.ask(head, rest[:length], self.transport)


async def _serve(seconds: float) -> None:
    _, url = await listen(Clockwork(seconds))
    print(url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True, help="how long each answer takes")
    uvloop.run(_serve(parser.parse_args().seconds))
