"""What only Linux has, and what stands in its place elsewhere: simulated here, by taking it away."""

from __future__ import annotations

import ast
import fcntl
import importlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock, patch

import pytest

from plumbline import store
from plumbline.errors import ServiceError
from plumbline.journal import Journal
from plumbline.records import Record
from plumbline.study import ROOT

#: Names of modules that macOS lacks, or that mean something else there, and the one place that may use each.
NOWHERE = (
    "mallopt", "malloc_trim", "sched_getaffinity", "sched_setaffinity", "process_cpu_count", "O_TMPFILE", "O_DIRECT",
    "posix_fadvise", "posix_fallocate", "memfd_create", "copy_file_range", "eventfd", "epoll", "pidfd_open", "pipe2",
    "prctl", "preexec_fn", "inotify", "getresuid", "sigtimedwait", "MAP_POPULATE", "SOCK_CLOEXEC", "TCP_KEEPIDLE",
    "RLIMIT_AS", "PIPE_BUF",
)  # fmt: skip
LINUX_ALONE = dict.fromkeys(NOWHERE, "") | {"fdatasync": "plumbline/store.py", "ru_maxrss": "benchmarks/memory.py"}
#: Files of Linux that are read, each where its absence is asked for first.
LINUX_FILES = {"benchmarks/memory.py"}


class Line(Record):
    """One of a journal."""

    number: int


def sources() -> Iterator[tuple[str, ast.Module]]:
    folders = ("plumbline", "generation", "annotation", "evaluation", "streamlit_app", "benchmarks", "constraints")
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield str(file.relative_to(ROOT)), ast.parse(file.read_text(encoding="utf-8"))


def test_what_linux_alone_has_is_used_in_one_place_that_has_another_way() -> None:
    used: dict[str, set[str]] = {name: set() for name in LINUX_ALONE}
    files = set()
    for name, tree in sources():
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = ""
            if isinstance(node, ast.Attribute):
                text = node.attr
            elif isinstance(node, ast.keyword):
                text = node.arg or ""
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
                text = node.value
                if text.startswith(("/proc", "/sys/", "/dev/shm")):  # noqa: S108 (looked for, not written)
                    files.add(name)
            if text in used:
                used[text].add(name)
    assert files == LINUX_FILES
    assert used == {name: {place} - {""} for name, place in LINUX_ALONE.items()}


def test_journals_and_files_reach_the_disk_without_fdatasync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(os, "fsync", synced.append)
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append(Line(number=1))
    journal.sync()
    assert len(synced) == 1
    store.write_json(tmp_path / "a.json", {})
    assert len(synced) == 3  # the file, and its folder


@pytest.mark.parametrize("supported", [True, False])
def test_on_macos_the_drive_itself_is_asked_where_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, supported: bool
) -> None:
    asked, synced = list[int](), list[int]()

    def control(descriptor: int, command: int) -> int:
        assert command == 51
        asked.append(descriptor)
        if not supported:  # as of volumes on a network
            raise OSError(45, "Operation not supported")
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", synced.append)
    with (tmp_path / "a").open("wb") as file:
        store.to_disk(file.fileno())
    assert len(asked) == 1 and len(synced) == (0 if supported else 1)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_processes_of_a_server_share_a_port(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    with patch.dict(sys.modules, {"rq": MagicMock(), "rq.job": MagicMock()}):  # of the server's own environment
        launch = importlib.import_module("argilla_embedded.launch")
    monkeypatch.setattr(sys, "platform", platform)
    listening = launch.listen("127.0.0.1", 0, 3)
    try:
        assert len({one.getsockname() for one in listening}) == 1 and len({one.fileno() for one in listening}) == 3
        if platform == "darwin":  # each process takes the next connection, also when the others have closed theirs
            for one in listening[:2]:
                one.close()
            with socket.create_connection(listening[2].getsockname()) as caller:
                accepted, address = listening[2].accept()
                accepted.close()
                assert address == caller.getsockname()
    finally:
        for one in listening:
            one.close()


def test_a_mac_gets_the_one_build_of_torch_and_never_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "constraints"))
    import torch_build

    monkeypatch.setattr(sys, "platform", "darwin")
    for wish in ("auto", "cpu"):
        build = torch_build.choose(wish, "2.13.0", lambda options: ["2.13.0", "2.12.0"], "https://example.invalid")
        assert (build.kind, build.requirement, build.options) == ("cpu", "torch==2.13.0", ())
    with pytest.raises(ServiceError, match="no CUDA build of torch 2.13.0"):
        torch_build.choose("cuda", "2.13.0", lambda options: ["2.13.0"], "https://example.invalid")
