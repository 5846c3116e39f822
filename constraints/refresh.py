"""Write `constraints/NAME.txt` (every version exact, every file's sha256) from `constraints/NAME.in`.

    python constraints/refresh.py argilla-server           # newest versions that the .in file allows
    python constraints/refresh.py argilla-server --keep    # the versions that the .txt has, hashes looked up again

The resolution is pip's own, with the user's own configuration, and happens for the running Python; the hashes
cover Python 3.11 to 3.13 on Linux (x86_64 and aarch64), wheels only. A line `# override: name==version` in the
.in file replaces what the resolution gave: that is how a fault is mended which another package's pin holds in.
The .txt file names no package index, so it is installed with `pip install --no-deps --require-hashes -r`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PYTHONS = ("3.11", "3.12", "3.13")
ARCHITECTURES = ("x86_64", "aarch64")
# Debian 12's glibc 2.36 loads all of these; pip takes only the tags that it is told.
TAGS = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_17", "manylinux2014",
        "manylinux_2_12", "manylinux2010", "manylinux_2_5", "manylinux1", "linux")  # fmt: skip
OVERRIDE = re.compile(r"^#\s*override:\s*(\S+==\S+)\s*$", re.MULTILINE)
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def canonical(name: str) -> str:
    """The name of a package as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def report(arguments: Sequence[str]) -> list[dict[str, Any]]:
    """The distributions that `pip install` would take, by its own dry run; raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "report.json")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed",
                   "--only-binary", ":all:", "--target", folder, "--report", str(out), *arguments]  # fmt: skip
        subprocess.run(command, check=True)
        installs: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))["install"]
    return installs


def resolve(source: Path) -> dict[str, str]:
    """Name to exact version: what pip resolves `source` to, with the overrides of the file put over it."""
    versions = {
        canonical(item["metadata"]["name"]): item["metadata"]["version"] for item in report(["-r", str(source)])
    }
    for pin in OVERRIDE.findall(source.read_text(encoding="utf-8")):
        name, _, version = pin.partition("==")
        versions[canonical(name)] = version
    return versions


def hashes(versions: dict[str, str]) -> dict[str, set[str]]:
    """Name to the sha256 sums of the wheels that the supported Pythons and architectures would install."""
    found: dict[str, set[str]] = {name: set() for name in versions}
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder, "pins.txt")
        pins.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()), encoding="utf-8")
        for python in PYTHONS:
            for architecture in ARCHITECTURES:
                platforms = [part for tag in TAGS for part in ("--platform", f"{tag}_{architecture}")]
                for item in report(["--no-deps", "--python-version", python, *platforms, "-r", str(pins)]):
                    digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
                    found[canonical(item["metadata"]["name"])].add(digest)
    return found


def write(target: Path, versions: dict[str, str], sums: dict[str, set[str]]) -> None:
    """Replace `target` in one step, so that an interrupted refresh leaves the old file."""
    lines = [
        f"# Written by `python constraints/refresh.py {target.stem}` from {target.stem}.in; do not edit.",
        f"# Python {PYTHONS[0]} to {PYTHONS[-1]}, Linux {' and '.join(ARCHITECTURES)}; complete: --no-deps.",
    ]
    for name in sorted(versions):
        marks = "".join(f" \\\n    --hash=sha256:{digest}" for digest in sorted(sums[name]))
        lines.append(f"{name}=={versions[name]}{marks}")
    new = target.with_suffix(".new")
    new.write_text("\n".join(lines) + "\n", encoding="utf-8")
    new.replace(target)


def main(argv: Sequence[str] | None = None) -> int:
    """Refresh one constraints file; 0 when it is written, 2 when pip cannot."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("name", help="argilla-server: reads constraints/NAME.in, writes constraints/NAME.txt")
    parser.add_argument("--keep", action="store_true", help="keep the versions of the present .txt, renew the hashes")
    arguments = parser.parse_args(argv)
    source, target = HERE / f"{arguments.name}.in", HERE / f"{arguments.name}.txt"
    needed = target if arguments.keep else source
    if not needed.is_file():
        print(f"error: {needed} is missing", file=sys.stderr)
        return 2
    try:
        if arguments.keep:
            text = target.read_text(encoding="utf-8")
            versions = {canonical(name): version for name, version in PIN.findall(text)}
        else:
            versions = resolve(source)
        write(target, versions, hashes(versions))
    except subprocess.CalledProcessError as failure:
        print(f"error: pip could not resolve {needed.name} (exit {failure.returncode}); its own message is above",
              file=sys.stderr)  # fmt: skip
        return 2
    print(f"{target}: {len(versions)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
