"""A server's additions to Argilla: three switches, and the plugins with their Setup.

    def install(setup: Setup) -> None:
        setup.app.router.routes.insert(0, Route("/hello", hello))

`argilla-embedded serve --plugin my_package.my_module:install` calls it once at each start, before the server's
processes part: Argilla is imported and set up, the database is not yet open, and the home is the working folder.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import StartError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from .recent import Recent

#: From a record's id (32 hexadecimal digits) and its metadata the name of its group, 32 hexadecimal digits as well.
GroupName = Callable[[str, Mapping[str, Any] | None], str]
#: From a dataset's metadata how the groups of its records are named; None where they come one by one.
Grouping = Callable[[Mapping[str, Any]], GroupName | None]


@dataclass(frozen=True)
class Switches:
    """Features that Argilla lacks; all are off by default."""

    hand_out: bool = False  #: no record goes to more annotators at once than it still wants answers (`handing`)
    private: bool = False  #: an annotator reads own answers and own progress, and nobody else's (`privacy`)
    hardened: bool = False  #: limits, slower and slower passwords, safe headers, closed descriptions (`hardening`)


@dataclass
class Setup:
    """The objects that a plugin receives, and those that it may set."""

    app: FastAPI  #: Argilla's application: its own routes, `/api/v1` mounted, its pages as the last route
    secret: str  #: what signs Argilla's sessions; derive keys of your own from it
    recent: Recent  #: numbers that all processes remember together until the server ends
    switches: Switches
    grouping: Grouping | None = None  #: which records come one after another in an annotator's own order
    #: More names under which the server may be reached, asked at each request that is not for another known one.
    host_names: list[Callable[[], Collection[str]]] = field(default_factory=list)

    @property
    def api(self) -> FastAPI:
        """Argilla's API, which is mounted in the application: routes without `/api/v1` before them."""
        return api_of(self.app)

    @property
    def pages(self) -> Path:
        """The copy that this start made of Argilla's pages, which may be changed; the next start has another."""
        return pages_of(self.app)


def api_of(app: FastAPI) -> FastAPI:
    """The API, which is mounted in the application."""
    return next(route.app for route in app.routes if getattr(route, "path", None) == "/api/v1")


def pages_of(app: FastAPI) -> Path:
    """Return the folder of this start's copy of Argilla's pages."""
    return next(Path(route.app.directory) for route in app.routes if getattr(route, "name", None) == "static")


def load(plugins: Sequence[str]) -> list[Callable[[Setup], object]]:
    """The functions that `module:function` name. Raises StartError."""
    functions = []
    for name in plugins:
        match = re.fullmatch(r"([\w.]+):(\w+)", name)
        if match is None:
            raise StartError(f"--plugin {name}: write it as module:function")
        try:
            functions.append(getattr(importlib.import_module(match[1]), match[2]))
        except (ImportError, AttributeError) as error:
            raise StartError(f"--plugin {name}: cannot be loaded ({error})") from error
    return functions
