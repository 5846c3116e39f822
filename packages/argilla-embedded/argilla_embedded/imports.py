"""Replacements for modules that Argilla imports; call these functions before importing it."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import warnings
from types import ModuleType

#: What Argilla imports and this server never calls, with the names that it imports of each: exchange with the hub,
#: search on other servers, telemetry. Their packages need not be there.
UNUSED = {
    "argilla_server.contexts.hub": ("HubDataset", "HubDatasetExporter"),  # `jobs` refuses it
    "elasticsearch8": ("AsyncElasticsearch", "helpers"),
    "huggingface_hub.utils": ("send_telemetry",),
    "opensearchpy": ("AsyncOpenSearch", "helpers"),
}


def leave_out_the_unused() -> None:
    """Replace the modules UNUSED by empty ones, whose calls do nothing.

    Their packages would take half a second of each start, 100 MB of memory, and whatever faults they have.
    """
    for name, imported in UNUSED.items():
        sys.modules[name] = ModuleType(name)
        for attribute in imported:
            setattr(sys.modules[name], attribute, nothing)


def nothing(*_: object, **__: object) -> None:
    """Stands for a function that this server never calls."""


def silence_deprecations() -> None:
    """Silence starlette's deprecation warnings, since Argilla is installed unchanged."""
    try:
        from starlette.exceptions import StarletteDeprecationWarning  # noqa: PLC0415 (here is what comes before imports)
    except ImportError:  # of a starlette that has no warnings of its own yet
        return
    warnings.filterwarnings("ignore", category=StarletteDeprecationWarning)


def bring_async_timeout() -> None:
    """Provide the module that redis, which Argilla imports, needs before Python 3.11.3 (as in Debian 12).

    The constraints have been resolved for later ones, where it takes asyncio's own.
    """
    name = "async_timeout"
    if importlib.util.find_spec(name) is None:
        sys.modules[name] = ModuleType(name)
        setattr(sys.modules[name], "timeout", asyncio.timeout)  # noqa: B010 (a module of types has none)
