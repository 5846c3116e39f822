"""The distribution in an environment of its own, where nothing else is but what it asks for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from servers import PACKAGE, interpreter, serving

BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def test_the_command_serves_where_only_its_own_requirements_are(tmp_path: Path) -> None:
    tree, environment = tmp_path / "tree", tmp_path / "environment"
    shutil.copytree(PACKAGE, tree, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info", "tests"))
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=tree, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("argilla_embedded-*.whl")
    subprocess.run([interpreter(), "-m", "venv", "--without-pip", str(environment)], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(environment / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True, cwd=tmp_path)
    # Its place, without importing it: that environment may lack what talks to Elasticsearch.
    found = (
        "from importlib.util import find_spec as f; print(f('argilla_server').origin.rpartition('/argilla_server')[0])"
    )
    theirs = subprocess.run([interpreter(), "-c", found], check=True, capture_output=True, text=True).stdout
    (packages,) = (environment / "lib").glob("python3*/site-packages")
    (packages / "theirs.pth").write_text(theirs, encoding="utf-8")
    with serving(tmp_path / "home", program=str(environment / "bin" / "argilla-embedded")) as server:
        assert server.done("GET", "me")["role"] == "owner"
        assert server.done("GET", "version")["version"] == "2.8.0"
