"""Choose the build of torch for an environment: the CPU build if available, else the one of pip's own settings.

PyPI's torch for Linux is the CUDA build, which with its libraries brings gigabytes that a machine without a GPU never
uses; the CPU build is in PyTorch's own index. pip itself is asked, with its own settings (mirrors, proxies,
certificates, folders of wheels), and nothing is downloaded for the answer. Python's standard library alone: this
runs before any environment is complete.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.errors import ServiceError

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
WISHES = ("auto", "cpu", "cuda")
PIN = re.compile(r"^torch==(\S+)$", re.MULTILINE)
#: The time limit for PyTorch's index: nobody should wait for it behind a firewall that drops its packets.
QUICKLY = ("--retries", "0", "--timeout", "5")


@dataclass(frozen=True)
class Build:
    """A build of torch: its `kind`, the requirement and options for pip, and its origin in words."""

    kind: str  # "cpu" or "cuda"
    requirement: str
    options: tuple[str, ...]
    origin: str

    def arguments(self, constraints: Path) -> list[str]:
        """The arguments of `pip install` for it.

        The constraints pin everything that a CPU build needs; they lack a CUDA build's libraries, which are installed
        with it.
        """
        if self.kind == "cpu":
            return [*self.options, "--no-deps", self.requirement]
        return [*self.options, "--constraint", str(constraints), self.requirement]


def pinned(constraints: Path) -> str:
    """The version of torch that `constraints` ask for."""
    found = PIN.search(constraints.read_text(encoding="utf-8"))
    if not found:
        raise ServiceError(f"{constraints}: no line torch==...; restore it from the repository")
    return found[1]


def choose(wish: str, version: str, versions: Callable[[Sequence[str]], Sequence[str]], index: str) -> Build:
    """The build for this machine. `versions` gives all of torch that pip, with these options, could install.

    `wish` "cpu" takes no other build and raises ServiceError where there is none; "cuda" takes the one without a mark;
    "auto" prefers the CPU's. A CPU build that pip's own settings give goes before PyTorch's index: it is the same, and
    nothing outside those settings is asked. macOS has one build, without a mark and without CUDA.
    """
    marked = f"{version}+cpu"
    own = set(versions(()))
    if sys.platform == "darwin" and version in own and wish != "cuda":
        return Build("cpu", f"torch=={version}", (), "the only one for macOS")
    others = [name for name in own - {marked} if name.partition("+")[0] == version]
    if wish == "cuda":
        if others and sys.platform != "darwin":
            return Build("cuda", f"torch=={version},!={marked}", (), "as asked for")
    elif marked in own:
        return Build("cpu", f"torch=={marked}", (), "from pip's settings")
    elif marked in versions(("--extra-index-url", index, *QUICKLY)):
        return Build("cpu", f"torch=={marked}", ("--extra-index-url", index), f"from {index}")
    elif wish == "cpu":
        raise ServiceError(
            f"no CPU build of torch {version} for this Python was found in pip's sources or at {index}; name a "
            "folder that has one (PIP_FIND_LINKS=/path/to/wheels), or leave TORCH=cpu out"
        )
    elif others:
        return Build("cuda", f"torch=={version}", (), f"no CPU build was found in pip's sources or at {index}")
    raise ServiceError(
        f"pip finds no{' CUDA' if wish == 'cuda' else ''} build of torch {version} for this Python; check the "
        "network, or the index in pip's settings (pip config list)"
    )


def listed(answer: str) -> list[str]:
    """The versions in the answer of `pip index versions`."""
    _, _, found = answer.partition("Available versions: ")
    return [version.strip() for version in found.partition("\n")[0].split(",")]
