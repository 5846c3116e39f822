"""Where things are: what comes with Plumbline, and the folder that a user's own files are in.

In a checkout both are its root, wherever one stands. In a wheel the former is in the package (`setup.py` puts it
there), and the latter is the folder that one stands in.
"""

from __future__ import annotations

import os
from pathlib import Path

from plumbline.errors import StudyError

ROOT = Path(__file__).resolve().parents[1]
_CARRIED = Path(__file__).resolve().parent / "data"
IN_CHECKOUT = not _CARRIED.is_dir()


def resource(name: str) -> Path:
    """A file or folder that comes with Plumbline: below `prompts`, `studies` or `constraints`. It is only read."""
    return (ROOT if IN_CHECKOUT else _CARRIED) / name


def working(name: str) -> Path:
    """A file or folder of the user's: `exports`, `prompts`, `.argilla`. Raises StudyError where one stands nowhere."""
    if IN_CHECKOUT:
        return ROOT / name
    try:
        return Path.cwd() / name
    except FileNotFoundError:
        raise StudyError("the folder that you stand in is gone; change to another, then run again") from None


def user_cache() -> Path:
    """The user's folder of what can be made again: the one that PLUMBLINE_CACHE names, or the usual place."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plumbline"
    return Path(os.environ.get("PLUMBLINE_CACHE") or usual)


def installing(extra: str) -> str:
    """The command that installs what a part of Plumbline needs."""
    return f"pip install '{'.' if IN_CHECKOUT else 'plumbline'}[{extra}]'"
