"""Versions of installed packages, and the name under which Plumbline is distributed: `plumbline` on PyPI is another."""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Iterable

DISTRIBUTION = "plumbline-embeddings"


def version_of(package: str) -> str:
    """The version of a package, or of Plumbline by its own name. Raises PackageNotFoundError."""
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
