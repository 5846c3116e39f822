"""Ask a source of advisories about everything that constraints/*.txt pins, with pip-audit in an environment of its own.

    python3 constraints/audit.py

The source is the one of pip-audit's own settings (PIP_AUDIT_VULNERABILITY_SERVICE, PIP_AUDIT_OSV_URL), else PyPI, else
osv.dev. Each is first asked about a version with a known advisory; a source that does not report it is skipped, because
finding nothing there would prove nothing. If no source answers, the audit says so and ends with 0. `advisories.toml`
lists the advisories that are let pass, with reasons. Python's standard library alone: `make` needs no environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from plumbline.environments import clean, finish, make_venv  # noqa: E402
from plumbline.errors import PlumblineError, ServiceError  # noqa: E402

TOOL = "pip-audit==2.10.1"
FOLDER = ROOT / ".venv-audit"
CONSTRAINTS = ROOT / "constraints"
#: Has CVE-2026-54283 and others: a source that reports none of them is not usable.
AT_FAULT = "starlette==0.49.3"


@dataclass(frozen=True)
class Pin:
    """A package as one of the files pins it, and the source's advisories on it: None if it could not look it up."""

    file: str
    package: str
    version: str
    advisories: tuple[Advisory, ...] | None


@dataclass(frozen=True)
class Advisory:
    """A published advisory: all of its names, and the versions that fix it."""

    names: tuple[str, ...]
    mended: tuple[str, ...]


@dataclass(frozen=True)
class Pass:
    """An advisory that is let pass."""

    package: str
    advisory: str
    reason: str


def main() -> int:
    """Audit all files; 0 without a finding or without a source, 1 with one, 2 where the audit could not be done."""
    try:
        pip_audit = tool()
    except (PlumblineError, OSError) as error:
        print(f"audit: no pin was checked, because {TOOL} could not be installed ({error})")
        return 0
    source = next((name for name in sources() if knows(pip_audit, name)), None)
    if source is None:
        print(f"audit: no pin was checked, because no source of advisories answers ({', '.join(sources())})")
        return 0
    try:
        pins = [pin for file in sorted(CONSTRAINTS.glob("*.txt")) for pin in looked_up(pip_audit, source, file)]
        let_pass = passes()
    except PlumblineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    lines = findings(pins, let_pass)
    last = f"audit: {len(pins)} pins checked at {source}; findings: {len(lines)}"
    print("\n".join([*lines, *unneeded(pins, let_pass), last]))
    return 1 if lines else 0


def tool() -> list[str]:
    """Return the command of pip-audit; its environment is made if it is missing. Raises ServiceError."""
    python = FOLDER / "bin" / "python"
    stamp = FOLDER / ".complete"
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != TOOL:
        make_venv(FOLDER, "--clear")
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", TOOL]
        finish(install, clean(os.environ), "pip could not install it")
        stamp.write_text(TOOL, encoding="utf-8")
    return [str(python), "-m", "pip_audit", "--no-deps", "--disable-pip", "--progress-spinner", "off", "-f", "json"]


def sources() -> list[str]:
    """The services that are asked, in turn."""
    chosen = os.environ.get("PIP_AUDIT_VULNERABILITY_SERVICE")
    return [chosen] if chosen else ["pypi", "osv"]


def knows(pip_audit: Sequence[str], source: str) -> bool:
    """Whether `source` answers, and reports a known advisory."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "probe.txt")
        file.write_text(AT_FAULT + "\n", encoding="utf-8")
        try:
            [pin] = looked_up([*pip_audit, "--timeout", "5"], source, file)
        except ServiceError:
            return False
    return bool(pin.advisories)


def looked_up(pip_audit: Sequence[str], source: str, file: Path) -> Iterator[Pin]:
    """Yield each pin of `file` with the advisories of `source`. Raises ServiceError if it gives no answer."""
    command = [*pip_audit, "-s", source, "-r", str(file)]
    done = subprocess.run(command, env=clean(os.environ), capture_output=True, text=True, check=False)
    try:
        answers = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        raise ServiceError(f"{file.name}: {source} gave no answer; run it again. pip-audit said: {last}") from None
    for answer in answers:
        faults = answer.get("vulns")
        advisories = None if faults is None else tuple(
            Advisory((fault["id"], *fault["aliases"]), tuple(fault["fix_versions"])) for fault in faults
        )  # fmt: skip
        yield Pin(file.name, answer["name"], answer.get("version", ""), advisories)


def passes() -> list[Pass]:
    """The advisories that `advisories.toml` lets pass."""
    return [Pass(**entry) for entry in tomllib.loads((CONSTRAINTS / "advisories.toml").read_text("utf-8"))["pass"]]


def findings(pins: Sequence[Pin], let_pass: Sequence[Pass]) -> list[str]:
    """A line for each problem: an advisory that nothing lets pass, a pin that the source could not look up."""
    lines = []
    for pin in pins:
        if pin.advisories is None:
            lines.append(f"{pin.file}: {pin.package} could not be looked up; is this version still published?")
        for advisory in pin.advisories or ():
            if not any(fits(item, pin, advisory) for item in let_pass):
                mended = f"fixed in {', '.join(advisory.mended)}" if advisory.mended else "no version fixes it"
                lines.append(f"{pin.file}: {pin.package} {pin.version}: {', '.join(advisory.names)}; {mended}")
    return lines


def unneeded(pins: Sequence[Pin], let_pass: Sequence[Pass]) -> list[str]:
    """A line for each pass that no pin needs; sources differ, so a person decides about it."""
    return [
        f"advisories.toml: {item.package} {item.advisory} is not reported; take it out once no source reports it"
        for item in let_pass
        if not any(fits(item, pin, advisory) for pin in pins for advisory in pin.advisories or ())
    ]


def fits(item: Pass, pin: Pin, advisory: Advisory) -> bool:
    """Whether this pass is for this advisory on this package."""
    return item.package == pin.package and item.advisory in advisory.names


if __name__ == "__main__":
    sys.exit(main())
