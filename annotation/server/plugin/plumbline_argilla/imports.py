"""What Argilla imports, and what it shall find; to be settled before it is imported."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from types import ModuleType


def leave_out_the_hub() -> None:
    """Spare Argilla the libraries of its exchange with the Hugging Face hub, which this server refuses (`jobs`).

    datasets, pandas and pyarrow would take half a second of each start, and 100 MB.
    """
    name = "argilla_server.contexts.hub"
    sys.modules[name] = ModuleType(name)
    for imported in ("HubDataset", "HubDatasetExporter"):
        setattr(sys.modules[name], imported, None)


def bring_async_timeout() -> None:
    """Give redis, which Argilla imports, what it asks for before Python 3.11.3, as Debian 12's is.

    The constraints have been resolved for later ones, where it takes asyncio's own.
    """
    name = "async_timeout"
    if importlib.util.find_spec(name) is None:
        sys.modules[name] = ModuleType(name)
        setattr(sys.modules[name], "timeout", asyncio.timeout)  # noqa: B010 (a module of types has none)
