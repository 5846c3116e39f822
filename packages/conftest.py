"""In this repository the tests of `argilla-embedded` take the Argilla server's environment that Plumbline makes."""

import os

from annotation.server import ensure_environment


def pytest_configure() -> None:
    """Name its interpreter."""
    os.environ.setdefault("ARGILLA_EMBEDDED_PYTHON", str(ensure_environment()))
