"""Where things are: what comes with Plumbline, and a user's own files, which are in the folder that the user stands in.

The former is in the checkout, or, where Plumbline is installed from a wheel, in the package (`setup.py` puts it there).
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from plumbline.errors import StudyError
from plumbline.versions import DISTRIBUTION, version_of

ROOT = Path(__file__).resolve().parents[1]
_CARRIED = Path(__file__).resolve().parent / "data"
IN_CHECKOUT = not _CARRIED.is_dir()


def resource(name: str) -> Path:
    """A file or folder that comes with Plumbline: below `prompts`, `studies` or `constraints`. It is only read."""
    return (ROOT if IN_CHECKOUT else _CARRIED) / name


def working(name: str) -> Path:
    """A file or folder of the user's: `exports`, `prompts`, `.argilla`. Raises StudyError where one stands nowhere."""
    try:
        return Path.cwd() / name
    except FileNotFoundError:
        raise StudyError("the folder that you stand in is gone; change to another, then run again") from None


def user_cache() -> Path:
    """The user's folder of what can be made again: the one that PLUMBLINE_CACHE names, or the usual place."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plumbline"
    return Path(os.environ.get("PLUMBLINE_CACHE") or usual)


def in_checkout_alone(name: str) -> bool:
    """Whether a file or folder of the user's is in the checkout's root and not where the user stands.

    Earlier versions wrote all records and the server's data into the checkout, wherever the user stood.
    """
    return IN_CHECKOUT and (ROOT / name).exists() and not working(name).exists()


def installing(extras: str) -> str:
    """The command that installs what parts of Plumbline need, and leaves the version that is there."""
    if IN_CHECKOUT:
        return shlex.join(["pip", "install", "-e", f"{'.' if working('.').resolve() == ROOT else ROOT}[{extras}]"])
    return shlex.join(["pip", "install", f"{DISTRIBUTION}[{extras}]=={version_of('plumbline')}"])


def missing(feature: str, error: ModuleNotFoundError, extras: str) -> StudyError:
    """What is said where something that was asked for needs a package that is not installed."""
    return StudyError(f"{feature} needs {error.name}: {installing(extras)}")
