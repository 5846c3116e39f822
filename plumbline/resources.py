"""Find Plumbline's own files, a user's files in the current folder, and the versions of installed packages.

The first are in the checkout, or in the package if Plumbline is installed from a wheel (`setup.py` puts them there).
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from plumbline.errors import StudyError

DISTRIBUTION = "plumbline-embeddings"  # `plumbline` on PyPI is another
ROOT = Path(__file__).resolve().parents[1]
_CARRIED = Path(__file__).resolve().parent / "data"
IN_CHECKOUT = not _CARRIED.is_dir()


def resource(name: str) -> Path:
    """Return a read-only file or folder of Plumbline below `prompts`, `studies`, `constraints` or `packages`."""
    return (ROOT if IN_CHECKOUT else _CARRIED) / name


def working(name: str) -> Path:
    """Return a user's file or folder: `exports`, `prompts`, `.argilla`. Raises StudyError without a current folder."""
    try:
        return Path.cwd() / name
    except FileNotFoundError:
        raise StudyError("the current folder was deleted; change to another one, then run again") from None


def private(path: str, flags: int) -> int:
    """Open a file for `open(opener=...)`; only its user can read a new one."""
    return os.open(path, flags, 0o600)


def user_cache() -> Path:
    """Return the user's cache folder: the one that PLUMBLINE_CACHE names, or the usual place."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plumbline"
    return Path(os.environ.get("PLUMBLINE_CACHE") or usual)


def installing(extras: str) -> str:
    """Return the command that installs these extras, of the version that is installed."""
    if IN_CHECKOUT:
        return shlex.join(["pip", "install", "-e", f"{'.' if working('.').resolve() == ROOT else ROOT}[{extras}]"])
    return shlex.join(["pip", "install", f"{DISTRIBUTION}[{extras}]=={version_of('plumbline')}"])


def missing_package(feature: str, error: ModuleNotFoundError, extras: str) -> StudyError:
    """Return the error for a feature that needs a package that is not installed."""
    return StudyError(f"{feature} needs {error.name}: {installing(extras)}")


@functools.cache
def version_of(package: str) -> str:
    """The version of a package, or of Plumbline by its own name. Raises PackageNotFoundError.

    Read once: it takes a file of thousands of lines, and a study may have thousands of units.
    """
    return importlib.metadata.version(DISTRIBUTION if package == "plumbline" else package)


def installed_versions(packages: Iterable[str], *, builds: bool = True) -> dict[str, str]:
    """Versions by package; those that are not installed are left out.

    Args:
        packages: names of distributions; `plumbline` is this one.
        builds: include the build (`+cpu`, `+cu128`), which differs between machines.

    Returns:
        The versions, in the order of `packages`.

    Example:
        >>> installed_versions(["no-such-package"])
        {}
    """
    versions = dict[str, str]()
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = version_of(package)
            versions[package] = version if builds else version.partition("+")[0]
    return versions
