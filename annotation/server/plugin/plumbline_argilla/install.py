"""Plumbline's additions to the server: `argilla-embedded serve --plugin plumbline_argilla.install:install`."""

from __future__ import annotations

from pathlib import Path

from argilla_embedded.setup import Setup

from . import answers, crowd, entries, work_page
from .crowd_files import Rooms, addresses
from .links import Links
from .sessions import end_sessions


def install(setup: Setup) -> None:
    """Add the pages of the crowd and of annotators, orders drawn for each annotator, and limits of answers."""
    answers.apply()
    entries.apply(setup)
    entry = crowd.mount(setup.app, setup.secret, setup.recent)
    work_page.mount(setup)
    links = Links(Path("crowd", "entries.db"), setup.secret)
    links.mount(setup)
    end_sessions(
        lambda user, browser: (
            entry.is_released(user.username, browser)
            if user.username.startswith(crowd.WORKER)
            else links.is_released(user["identity"], browser)
        )
    )
    rooms = Rooms(Path("crowd", "rooms.json"))
    setup.host_names.append(lambda: addresses(rooms))
