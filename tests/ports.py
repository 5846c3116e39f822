"""Ports for servers that tests start."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """A port that is free, and stays so until a server takes it: below those that the system gives to whoever asks."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")
