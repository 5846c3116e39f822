"""Install the newest version of every dependency, despite the pins here, run the tests, and report failures.

    python3 constraints/newest.py build/newest                        # an environment of its own, then every test
    python3 constraints/newest.py build/newest tests/plumbline        # these tests alone
    python3 constraints/newest.py build/newest --report report.md     # the report into a file as well

This changes no pin (`constraints/platform.txt`, `==` in pyproject.toml): a person decides about that. Python's
standard library alone, as `environment.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from refresh import EXTRAS, HERE, PIN  # noqa: E402

from plumbline.environments import clean, finish, make_venv  # noqa: E402
from plumbline.errors import PlumblineError  # noqa: E402

_OURS = "plumbline-embeddings"


def main(argv: Sequence[str] | None = None) -> int:
    """Install, test, report; 0 where nothing breaks, 1 where something does, 2 where pip cannot."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="folder of the new environment; an existing one is replaced")
    parser.add_argument("tests", nargs="*", default=["tests"], help="tests to run (default: all)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="append the report to a file, as Markdown")
    parser.add_argument("--cpu-index", metavar="URL", help="PyTorch's CPU index, where PyPI's build is too large")
    options = parser.parse_args(argv)
    index = ["--extra-index-url", options.cpu_index] if options.cpu_index else []
    python = options.folder.absolute() / "bin" / "python"
    try:
        make_venv(options.folder, "--clear")
        pip(python, "install", "--quiet", "--upgrade", "pip")  # an older one finds fewer sets that fit
        pip(python, "install", "--quiet", "--upgrade", *index, *unpinned())
        pip(python, "install", "--quiet", "--no-deps", "--editable", str(ROOT))
        pip(python, "install", "--quiet", "--no-deps", "-r", str(HERE / "no-deps.txt"))
        conflicts = subprocess.run(
            [str(python), "-m", "pip", "check"], env=clean(os.environ), capture_output=True, text=True, check=False
        )
        parts = {"Newer than the pinned version": moved(python), "Held back by another package": held_back(python)}
    except PlumblineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    status, failures = tested(python, options.tests)
    parts["Conflicts that pip check reports (our own `==` among them)"] = (
        conflicts.stdout.splitlines() if conflicts.returncode else []
    )
    parts["Tests that fail"] = failures
    report = "\n\n".join(f"## {title}\n\n" + ("\n".join(f"- {line}" for line in lines) or "nothing")
                         for title, lines in parts.items())  # fmt: skip
    print(report)
    if options.report:
        with options.report.open("a", encoding="utf-8") as file:
            file.write(report + "\n")
    return 1 if status else 0


def unpinned() -> list[str]:
    """All that pyproject.toml asks for with the extras of `make setup`, each from its lowest version on.

    Without a lowest version pip may find a set that fits by going back years.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in [*EXTRAS.split(","), "s3"] for line in extras[extra])]
    return sorted({line.replace("==", ">=").partition(",")[0] for line in lines if not line.startswith(_OURS)})


def pip(python: Path, *words: str) -> str:
    """Run the environment's pip and return what it prints. Raises ServiceError with its last word where it fails."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *words]
    return finish(command, clean(os.environ), f"pip {words[0]} failed")


def moved(python: Path) -> list[str]:
    """Each package that has another version than platform.txt pins."""
    pins = dict(PIN.findall((HERE / "platform.txt").read_text(encoding="utf-8")))
    installed = {item["name"].lower(): item["version"] for item in json.loads(pip(python, "list", "--format", "json"))}
    pairs = {name: (pins[name], installed[name].partition("+")[0]) for name in sorted(pins.keys() & installed.keys())}
    return [f"{name} {pinned} -> {newest}" for name, (pinned, newest) in pairs.items() if pinned != newest]


def held_back(python: Path) -> list[str]:
    """Each package with a newer published version, which the other packages do not allow."""
    outdated = json.loads(pip(python, "list", "--outdated", "--format", "json"))
    return [f"{item['name']} {item['version']}, newest {item['latest_version']}" for item in outdated]


def tested(python: Path, tests: Sequence[str]) -> tuple[int, list[str]]:
    """Pytest's status, and its line on each test that fails."""
    command = [str(python), "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", "-rfE", *tests]
    with subprocess.Popen(command, cwd=ROOT, env=clean(os.environ), stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None  # noqa: S101 (it is a pipe)
        lines = []
        for line in run.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    failures = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return run.returncode, failures or ([f"pytest ended with status {run.returncode}"] if run.returncode else [])


if __name__ == "__main__":
    sys.exit(main())
