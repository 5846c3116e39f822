"""The Argilla server's own Python environment: made once, from exact versions with hashes.

It is separate because argilla-server 2.8.0 holds pydantic, httpx and SQLAlchemy at versions which the platform
cannot use. It is made by the interpreter that runs the platform, and nothing of the platform's environment leaks in.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from plumbline.environments import clean, finish, make_venv
from plumbline.errors import ServiceError
from plumbline.resources import IN_CHECKOUT, ROOT, resource, user_cache

CONSTRAINTS = resource("constraints/argilla-server.txt")
WITHOUT_NETWORK = (
    f"pip could not install {CONSTRAINTS}; check the network, or pip's configured index. Without a "
    "network: on a machine with one and the same Python, `pip download --no-deps --only-binary :all: -d wheels -r "
    f"{CONSTRAINTS}`, bring the folder, and start with PIP_NO_INDEX=1 PIP_FIND_LINKS=/path/to/wheels"
)
LOCATION_VARIABLE = "PLUMBLINE_ARGILLA_ENV"
STAMP = "plumbline-stamp"
SUPPORTED = ((3, 11), (3, 13))


def location() -> Path:
    """Where the environment is: PLUMBLINE_ARGILLA_ENV, else `.venv-argilla` in the checkout; homes share it.

    Installed from a wheel it is in the user's cache, and named after what it is made of: two versions of Plumbline
    on one machine do not replace each other's under a server that runs.
    """
    if folder := os.environ.get(LOCATION_VARIABLE):
        return Path(folder).absolute()
    if IN_CHECKOUT:
        return ROOT / ".venv-argilla"
    return user_cache().absolute() / f"argilla-{hashlib.sha256(stamp().encode()).hexdigest()[:12]}"


def ensure_environment(progress: Callable[[str], None] = print) -> Path:
    """The environment's interpreter; makes the environment when it is missing or the constraints have changed.

    `progress` gets a line when there is something to wait for. An environment counts only once its stamp is written,
    so one that an interrupt cut off is made anew. Raises ServiceError, one line, when it cannot be made.
    """
    folder = location()
    wanted = stamp()
    if is_made(folder, wanted):
        return folder / "bin" / "python"
    if not SUPPORTED[0] <= sys.version_info[:2] <= SUPPORTED[1]:
        raise ServiceError(
            f"the Argilla server needs Python 3.11 to 3.13 and this is {sys.version_info[0]}.{sys.version_info[1]}; "
            "run the platform with one of those, or set ARGILLA_API_URL to an Argilla that runs elsewhere"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_name(folder.name + ".lock").open("a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_made(folder, wanted):
                make(folder, wanted, progress)
    except OSError as error:
        raise ServiceError(
            f"{folder}: the Argilla server's environment cannot be made ({error.strerror}); "
            f"free the disk or set {LOCATION_VARIABLE} to another folder"
        ) from error
    return folder / "bin" / "python"


def stamp() -> str:
    """What an environment is made of: the constraints' hash and the Python that it was made for."""
    try:
        digest = hashlib.sha256(CONSTRAINTS.read_bytes()).hexdigest()
    except OSError as error:
        raise ServiceError(
            f"{CONSTRAINTS}: cannot be read ({error.strerror}); install Plumbline again or restore the file"
        ) from error
    return f"{digest} python-{sys.version_info[0]}.{sys.version_info[1]}\n"


def is_made(folder: Path, wanted: str) -> bool:
    """Whether `folder` holds a finished environment of this stamp whose interpreter is still there."""
    marker = folder / STAMP
    return marker.is_file() and marker.read_text(encoding="utf-8") == wanted and (folder / "bin" / "python").exists()


def make(folder: Path, wanted: str, progress: Callable[[str], None]) -> None:
    """Make the environment from nothing; the stamp comes last."""
    progress(f"Making the Argilla server's own environment in {folder} (once; about a minute) ...")
    if folder.exists():
        if not (folder / "pyvenv.cfg").exists() and any(folder.iterdir()):
            raise ServiceError(f"{folder}: not a Python environment, so it is not replaced; move it away or change "
                               f"{LOCATION_VARIABLE}")  # fmt: skip
        shutil.rmtree(folder)
    make_venv(folder)
    install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--no-input", "--no-deps", "--only-binary", ":all:",
               "--require-hashes", "-r", str(CONSTRAINTS)]  # fmt: skip
    finish(install, clean(os.environ), WITHOUT_NETWORK)
    marker = folder / (STAMP + ".new")
    marker.write_text(wanted, encoding="utf-8")
    marker.replace(folder / STAMP)
