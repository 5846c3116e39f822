"""In this repository the tests of `argilla-embedded` take the Argilla server's environment that Plumbline makes."""

import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from annotation.server import ensure_environment
from plumbline.study import ROOT
from tests import forks


def pytest_configure() -> None:
    """Name its interpreter."""
    os.environ.setdefault("ARGILLA_EMBEDDED_PYTHON", str(ensure_environment()))


@pytest.fixture(scope="session", autouse=True)
def forked_servers() -> Iterator[None]:
    """Servers of these files are forked (`tests.forks`), and hash passwords at the least cost; an installed one not."""

    def start(words: list[str], *, env: dict[str, str], **options: Any) -> subprocess.Popen[str]:
        if not {"-m", "-c"} & set(words):
            return subprocess.Popen(words, env=env, **options)
        paths = (env["PYTHONPATH"], str(ROOT / "tests" / "annotation" / "quick_passwords"))
        return forks.PopenArgilla(words, env=env | {"PYTHONPATH": os.pathsep.join(paths)}, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("servers.Popen", start)
        yield
