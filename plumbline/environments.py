"""Make Python environments of the platform: a clean setting, venv, and a one-line error on failure.

Uses the standard library alone, since it runs before any package is installed (`constraints/environment.py`).
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from plumbline.errors import ServiceError

NO_VENV = "this Python cannot make environments; on Debian and Ubuntu: sudo apt install python3-venv"
#: Variables that would make pip or Python put files elsewhere, or read another environment. Everything else of the
#: user's pip configuration (index, proxy, certificates, cache) is the user's business and stays.
LEAKS = frozenset(
    {"VIRTUAL_ENV", "PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT", "PIP_REQUIREMENT", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT",
     "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PIP_PYTHON", "PIP_DRY_RUN", "PIP_EDITABLE", "PIP_NO_DEPS", "PIP_PRE",
     "PIP_IGNORE_INSTALLED", "PIP_UPGRADE", "PIP_REQUIRE_HASHES"}
)  # fmt: skip


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` without variables that leak another environment or the user's settings into a new one."""
    return {name: value for name, value in environment.items() if not name.startswith("PYTHON") and name not in LEAKS}


def make_venv(folder: Path, *options: str) -> None:
    """Make an environment that holds pip alone. Raises ServiceError if that fails."""
    if importlib.util.find_spec("ensurepip") is None:
        raise ServiceError(NO_VENV)
    finish([sys.executable, "-m", "venv", *options, str(folder)], clean(os.environ), f"{folder}: Python's venv failed")


def finish(command: list[str], environment: Mapping[str, str], advice: str) -> str:
    """Run `command` and return its output; raise ServiceError with its last line if it fails."""
    result = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if result.returncode != 0:
        output = [line.strip() for line in (result.stderr or result.stdout).splitlines() if line.strip()]
        errors = [line for line in output if line.startswith(("ERROR:", "Error:"))] or output[-1:]
        raise ServiceError(f"{advice}. Its output: {errors[0] if errors else f'none, exit {result.returncode}'}")
    return result.stdout
