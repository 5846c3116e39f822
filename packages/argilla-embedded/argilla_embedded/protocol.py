"""Connections that end: uvicorn's own protocol waits for ever for a request that never comes or never ends."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 20.0  #: from a connection's beginning, or a request's first byte, to the end of the request's head
HEAD_BYTES = 64 * 1024
LINGER_SECONDS = 2.0
MOST_CONNECTIONS = 2000


class ImpatientProtocol(HttpToolsProtocol):
    """Disconnects clients that send no complete head in time, or go on sending after the answer."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Start waiting for the first request."""
        super().connection_made(transport)
        self.in_head, self.whole, self.head_bytes = True, True, 0
        self.head_timer: asyncio.TimerHandle | None = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self.stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Limit the size of a head, and the time until it is complete."""
        if self.in_head:
            self.head_bytes += len(data)
            if self.head_timer is None:
                self.head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)
        super().data_received(data)
        if self.in_head and self.head_bytes > HEAD_BYTES:
            self.send_400_response("The request's head is too large.")

    def on_headers_complete(self) -> None:
        """Stop waiting for the head."""
        self.stop_timer()
        self.in_head, self.whole = False, False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Expect the head of the next request."""
        self.in_head, self.whole, self.head_bytes = True, True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Disconnect a client that goes on sending a request after its answer."""
        super().on_response_complete()
        if not self.whole and not self.pipeline:
            # Not at once: with bytes still unread, the answer itself would be lost on its way.
            self.loop.call_later(LINGER_SECONDS, self.hang_up_unless_whole)

    def hang_up_unless_whole(self) -> None:
        """Close a connection on which an answered request still goes on."""
        if not self.whole:
            self.transport.close()

    def stop_timer(self) -> None:
        """Stop waiting for a head."""
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None


def settings() -> dict[str, Any]:
    """Return the settings for uvicorn: no websockets, no name of the server, an end to idle connections."""
    return {"http": ImpatientProtocol, "ws": "none", "server_header": False, "timeout_keep_alive": 5,
            "limit_concurrency": MOST_CONNECTIONS, "forwarded_allow_ips": "127.0.0.1,::1"}  # fmt: skip
