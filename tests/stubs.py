"""A chat server to test against: a real HTTP server on 127.0.0.1 that speaks `/v1/chat/completions` by a script.

In a test it runs in a thread (`with ChatStub(script) as stub`), and the test sees what it was asked. For
measurements it runs in a process of its own: `python -m tests.stubs --seconds 0.05` prints its address.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Asked:
    """One request: the user's message, how often that message has been asked so far (from 1), and all of it."""

    message: str
    times: int
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass(frozen=True)
class Reply:
    """What the stub does: wait, then answer with these bytes, or cut the connection without an answer."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cut: bool = False


Script = Callable[[Asked], Reply]


def says(content: object, *, seconds: float = 0.0, finish_reason: str = "stop") -> Reply:
    """A well-formed answer with one choice."""
    message = {"role": "assistant", "content": content}
    choices = [{"index": 0, "message": message, "finish_reason": finish_reason}]
    return answers({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}, seconds)


def answers(body: object, seconds: float = 0.0) -> Reply:
    """Status 200 with any JSON."""
    return Reply(json.dumps(body).encode(), seconds=seconds)


def refuses(status: int, message: str = "no", **headers: str) -> Reply:
    """An error as OpenAI-compatible servers give it; header names with _ for -."""
    body = json.dumps({"error": {"message": message}}).encode()
    return Reply(body, status, headers={name.replace("_", "-"): value for name, value in headers.items()})


def last_line(asked: Asked) -> str:
    """The text at the end of a message: what the prompt asks to transform."""
    return asked.message.split("\n")[-1]


class ChatStub:
    """The server; `asked` are the requests in order of arrival, `most_at_once` the most that were in hand together."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.answered = 0
        self.most_at_once = 0
        self.url = ""
        self._open = 0
        self._times: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self.listen(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def listen(self) -> str:
        """Open a free port on the running loop; returns the address for `base_url`."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=1024)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def ask(self, head: bytes, body: bytes, transport: asyncio.Transport) -> None:
        """One whole request has arrived: note it, and answer as the script says."""
        lines = head.decode("latin-1").split("\r\n")
        if lines[0] != "POST /v1/chat/completions HTTP/1.1":
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
            return
        headers = {"content-type": reply.content_type, "content-length": str(len(reply.body)), **reply.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        transport.write(f"HTTP/1.1 {reply.status} -\r\n{lines}\r\n".encode() + reply.body)


class _Connection(asyncio.Protocol):
    """One connection that is kept open; requests come one after the other."""

    def __init__(self, stub: ChatStub) -> None:
        self.stub = stub
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, rest = self.received.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if len(rest) >= length:
            self.received = rest[length:]
            self.stub.ask(head, rest[:length], self.transport)


async def _serve(seconds: float) -> None:
    print(await ChatStub(lambda _: says("done", seconds=seconds)).listen(), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True, help="how long each answer takes")
    asyncio.run(_serve(parser.parse_args().seconds))
