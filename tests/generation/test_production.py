from __future__ import annotations

import asyncio
import errno
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from generation import production
from generation.jobs import Plan
from generation.unit import planned
from plumbline.journal import Journal
from plumbline.models import asking
from tests.generation.helpers import small_study


def test_a_disk_that_takes_no_more_ends_the_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And does not leave it running with nothing handed to the disk any more."""

    def full(journal: Journal) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device", str(journal.path))

    async def slow(*_: Any) -> None:
        await asyncio.sleep(60)

    async def run() -> None:
        with planned(Plan(small_study(tmp_path))) as units:
            await asyncio.wait_for(production.generate_units(Plan(small_study(tmp_path)), generator, units), 20)

    generator: Any = SimpleNamespace(concurrency=2)
    monkeypatch.setattr(asking, "SYNC_SECONDS", 0.01)
    monkeypatch.setattr(production, "make_output", slow)
    monkeypatch.setattr(Journal, "sync", full)
    began = time.monotonic()
    with pytest.raises(OSError, match="No space left") as error:
        asyncio.run(run())
    assert str(error.value.filename).endswith("1.journal")
    assert time.monotonic() - began < 15
