"""Argilla's own tests, from the source distribution of argilla-server, against this server's application.

    pip install 'pytest<8' pytest-mock 'pytest-asyncio~=0.21.1' pytest-env 'factory-boy~=3.2.1' respx 'fakeredis[lua]'
    pip download --no-deps --no-binary :all: argilla-server==2.8.0 && tar xzf argilla_server-2.8.0.tar.gz
    cd argilla_server-2.8.0 && PYTHONPATH=/path/to/this/folder python -m pytest -p argilla_suite tests

ARGILLA_SUITE=plain runs them against Argilla as it is. In both cases Redis is fakeredis, and the client with which the
tests empty Elasticsearch is a stand-in. The tests keep all data in one transaction that they never commit, so what
works on connections of its own is not under test here: the recount of statuses, pools, background jobs at work.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import fakeredis
import opensearchpy
import redis

HOME = Path(tempfile.mkdtemp(prefix="argilla-suite-"))
os.environ.update(
    ARGILLA_HOME_PATH=str(HOME),
    ARGILLA_DATABASE_URL=f"sqlite+aiosqlite:///{HOME}/argilla.db?check_same_thread=False",
    ARGILLA_SEARCH_ENGINE="elasticsearch",  # else Argilla skips its tests of searches
    HF_HUB_DISABLE_TELEMETRY="1",
)
opensearchpy.OpenSearch = mock.MagicMock
redis.from_url = fakeredis.FakeRedis.from_url
PLAIN = os.environ.get("ARGILLA_SUITE") == "plain"

if not PLAIN:
    import argilla_server.search_engine

    from argilla_embedded import jobs, launch
    from argilla_embedded.engine import Queues, SqlSearchEngine
    from argilla_embedded.index import Cache
    from argilla_embedded.journal import Journal
    from argilla_embedded.recent import Recent
    from argilla_embedded.setup import Switches

    launch.assembled("secret", Recent(time.monotonic), Switches(), [])
    jobs.apply(Journal(HOME / "jobs.db"))

    class Engine(SqlSearchEngine):
        """The engine, with nothing but Argilla's own behaviour, on the connection of the tests' transaction."""

        def __init__(self, **_: Any) -> None:
            super().__init__(None, Cache(), Queues(None, None, False))
            self.client = self._bulk_op_request = mock.AsyncMock()  # the tests' own words with Elasticsearch

        @classmethod
        async def new_instance(cls) -> Engine:
            """As Argilla asks for one."""
            return cls()

        async def reading(self, work: Any) -> Any:
            """Do `work` on that connection."""
            from tests.database import TestSession

            return await (await TestSession().connection()).run_sync(work)

    argilla_server.search_engine.ElasticSearchEngine = Engine
