"""The set-up on machines of all kinds, against an index of our own that stands for PyPI and for PyTorch's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from plumbline.environments import NO_VENV
from plumbline.study import ROOT
from tests.shared import environment_with_pip

NOWHERE = "http://127.0.0.1:9/simple"  # nothing listens there
#: As PyPI's torch: it cannot be imported without the libraries that it asks for.
CUDA = "import nvidia_library\n__version__ = '2.13.0'\nclass version:\n    cuda = '13.0'\n"
CPU = "__version__ = '2.13.0+cpu'\nclass version:\n    cuda = None\n"
#: A build backend that needs no package, for the project that is installed in place.
BACKEND = """
import zipfile

def get_requires_for_build_editable(config_settings=None):
    return []

def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(f"{folder}/plumbline-0-py3-none-any.whl", "w") as wheel:
        info = "plumbline-0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: plumbline\\nVersion: 0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return "plumbline-0-py3-none-any.whl"
"""
#: In the place of what makes an environment from nothing.
COPIED = """

def make_venv(folder, *options):
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree({environment!r}, folder, symlinks=True)
"""


def write_wheel(index: Path, name: str, version: str, code: str, needs: Sequence[str] = ()) -> None:
    """A wheel of one module in an index's folder."""
    folder = index / "simple" / name.replace("_", "-")
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {need}\n" for need in needs)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", code)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of two indexes: `pypi/simple` with the CUDA build alone, `pytorch/simple` with the CPU's."""
    folder = tmp_path_factory.mktemp("indexes")
    write_wheel(folder / "pypi", "torch", "2.13.0", CUDA, ["nvidia_library==1"])
    write_wheel(folder / "pypi", "nvidia_library", "1", "")
    write_wheel(folder / "pypi", "another", "1", "")
    write_wheel(folder / "pytorch", "torch", "2.13.0+cpu", CPU)

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A small repository that is set up by our scripts, in a folder with a blank in its name."""
    folder = tmp_path / "my work"
    for name in ("constraints/environment.py", "constraints/torch_build.py", "plumbline"):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile)(ROOT / name, target)
    for name in ("platform.txt", "vllm-cpu.txt"):
        (folder / "constraints" / name).write_text("another==1\ntorch==2.13.0\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n', encoding="utf-8"
    )
    (folder / "backend.py").write_text(BACKEND, encoding="utf-8")
    return folder


@pytest.fixture
def prepared(repository: Path) -> Path:
    """The same repository; it copies an environment with pip, which takes most of a set-up's time to make."""
    prepare(repository)
    return repository


def prepare(repository: Path) -> None:
    with (repository / "plumbline" / "environments.py").open("a", encoding="utf-8") as file:
        file.write(COPIED.format(environment=str(environment_with_pip())))


def set_up(
    repository: Path, *arguments: str, index: str, pytorch: str = NOWHERE, **more: str
) -> tuple[int, list[str], str]:
    """Status, lines and complaints of `environment.py` on a machine where pip knows this index and nothing else."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    environment = {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index, "PIP_NO_CACHE_DIR": "1", **more}
    command = [sys.executable, "constraints/environment.py", *arguments, "--cpu-index", pytorch]
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_pytorchs_cpu_build_is_taken_where_its_index_answers(repository: Path, indexes: str) -> None:
    status, lines, complaints = set_up(
        repository, "platform", index=f"{indexes}/pypi/simple", pytorch=f"{indexes}/pytorch/simple",
        # What a user's shell may hold, and would put packages elsewhere or refuse them.
        PIP_USER="1", PIP_TARGET="/nowhere", PIP_REQUIRE_VIRTUALENV="1", PIP_NO_DEPS="1", VIRTUAL_ENV="/nowhere",
    )  # fmt: skip
    assert (status, complaints) == (0, "")
    assert lines == [
        f"setting up .venv: torch's CPU build (from {indexes}/pytorch/simple), about 2.7 GB on disk "
        "and 0.3 GB for the Argilla server; it takes some minutes, once",
        ".venv is complete: torch 2.13.0+cpu, CPU build, 0.0 GB",
    ]
    assert (repository / ".venv" / ".complete").read_text(encoding="utf-8") == "cpu\n"


def test_pypis_cuda_build_comes_with_all_that_it_needs(prepared: Path, indexes: str) -> None:
    """Where PyTorch's index does not answer: without its libraries `import torch` ends with an ImportError."""
    status, lines, complaints = set_up(prepared, "engine", index=f"{indexes}/pypi/simple")
    assert (status, complaints) == (0, "")
    assert "torch's CUDA build (no CPU build was found in pip's sources or at " in lines[0]
    assert "about 6.4 GB on disk" in lines[0]
    assert "is complete: torch 2.13.0, CUDA build" in lines[-1]


def test_a_cpu_build_in_pips_own_settings_is_taken_without_asking_elsewhere(
    prepared: Path, indexes: str, tmp_path: Path
) -> None:
    wheels = tmp_path / "wheels"
    write_wheel(wheels, "torch", "2.13.0+cpu", CPU)
    folder = str(wheels / "simple" / "torch")
    status, lines, _ = set_up(prepared, "engine", "--dry-run", index=f"{indexes}/pypi/simple", PIP_FIND_LINKS=folder)
    assert (status, lines) == (
        0,
        [".venv-vllm: torch's CPU build (from pip's settings), about 2.4 GB on disk; it takes some minutes, once"],
    )
    status, lines, _ = set_up(
        prepared, "engine", "--dry-run", "--torch", "cuda", index=f"{indexes}/pypi/simple", PIP_FIND_LINKS=folder
    )
    assert lines == [".venv-vllm: torch's CUDA build (as asked for), about 6.4 GB on disk; it takes some minutes, once"]


def test_the_cuda_build_that_is_asked_for_comes_beside_a_cpu_build(
    prepared: Path, indexes: str, tmp_path: Path
) -> None:
    write_wheel(tmp_path / "wheels", "torch", "2.13.0+cpu", CPU)
    status, lines, complaints = set_up(
        prepared, "platform", "--torch", "cuda", index=f"{indexes}/pypi/simple",
        PIP_FIND_LINKS=str(tmp_path / "wheels" / "simple" / "torch"),
        PIP_EXTRA_INDEX_URL="file:///no/such/folder",  # pip says so for each package: its noise is left out
    )  # fmt: skip
    assert (status, complaints) == (0, "")
    assert lines[-1].startswith(".venv is complete: torch 2.13.0, CUDA build")
    assert (prepared / ".venv" / ".complete").read_text(encoding="utf-8") == "cuda\n"


@pytest.mark.parametrize("wish", ["auto", "cuda"])
def test_a_machine_without_a_network_hears_it_in_one_line(prepared: Path, wish: str) -> None:
    status, lines, complaints = set_up(prepared, "platform", "--torch", wish, index=NOWHERE, PIP_RETRIES="0")
    assert (status, lines, len(complaints.splitlines())) == (2, [], 1)
    assert complaints.startswith("error: pip finds no ") and "check the network" in complaints


def test_pips_errors_are_not_left_out_as_its_noise_is(prepared: Path, indexes: str) -> None:
    with (prepared / "constraints" / "platform.txt").open("a", encoding="utf-8") as file:
        file.write("nothing-of-this-name==1\n")
    status, _, complaints = set_up(
        prepared, "platform", index=f"{indexes}/pypi/simple", PIP_EXTRA_INDEX_URL="file:///no/such/folder"
    )
    assert status == 2 and "is ignored" not in complaints
    assert "ERROR: No matching distribution found for nothing-of-this-name==1" in complaints
    assert complaints.splitlines()[-1].startswith("error: .venv: pip could not install ")
    assert not (prepared / ".venv" / ".complete").exists()


def test_a_machine_without_venv_or_room_hears_what_to_do(repository: Path, indexes: str) -> None:
    (repository / "sitecustomize.py").write_text("import sys; sys.modules['ensurepip'] = None", encoding="utf-8")
    status, _, complaints = set_up(repository, "platform", index=f"{indexes}/pypi/simple", PYTHONPATH=str(repository))
    assert (status, complaints) == (2, f"error: {NO_VENV}\n")
    (repository / ".venv").rmdir()
    (repository / ".venv").write_text("", encoding="utf-8")  # nothing can be written there
    status, _, complaints = set_up(repository, "platform", index=f"{indexes}/pypi/simple")
    assert (status, len(complaints.splitlines())) == (2, 1)
    assert complaints.startswith(f"error: {repository / '.venv'}: File exists")
    (repository / ".venv").unlink()
    prepare(repository)
    script = repository / "constraints" / "environment.py"
    code = script.read_text(encoding="utf-8")
    script.write_text(code.replace('{"cpu": 2.7, "cuda": 6.8}', '{"cpu": 1e9, "cuda": 1e9}'), encoding="utf-8")
    status, _, complaints = set_up(repository, "platform", index=f"{indexes}/pypi/simple")
    assert (status, len(complaints.splitlines())) == (2, 1)
    assert "GB are needed and" in complaints
