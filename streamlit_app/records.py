"""What is made of a study's records for pages: made once, until a file changes that it rests on.

`cached` and `shared` are for the methods of readers (`streamlit_app.readers`). A result is kept for as long as the
files keep their times, size and inode.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import streamlit as st

from plumbline.errors import DataError
from plumbline.prompts import prompt_folders
from plumbline.store import is_remote
from plumbline.study import Study

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound="PageReader")
Stamp = tuple[str, int, int, int, int]
#: Files of a study's folder that several methods rest on.
CONTROLS = ("controls.parquet", "control_ratings.parquet")
RATED = ("pairs.parquet", "ratings.parquet")
COLLECTED = (*RATED, *CONTROLS, "decisions.json")
JUDGED = (*RATED, "control_ratings.parquet", "agreement.json", "verdicts.json")
SCORED = ("scores.parquet", "verdicts.json")
# A ledger that is being written has its last entries beside it.
RULES = ("rules.json", "decisions.json", "looks.json", *CONTROLS, "crowd.sqlite", "crowd.sqlite-wal")
PROMPTED = ("instructions/scores.parquet",)
OF_PEOPLE = (
    "human/scores.parquet",
    "human/agreement.parquet",
    "human/differences.parquet",
    "human/item_scores.parquet",
    "human/annotators.parquet",
    "human/difficulty.parquet",
)
_LISTED = 2.0  # seconds until a far folder is listed again


class NotYetError(DataError):
    """A record that no stage has written yet; the message names the command that does."""


class _Keep(Protocol):
    """Calls `make`, unless the result of an equal `name`, `stamps` and `options` is there."""

    def __call__(
        self, name: str, stamps: tuple[Stamp, ...], options: dict[str, object], _make: Callable[[], R]
    ) -> R: ...


class PageReader:
    """Reads the records of a study for pages."""

    def __init__(self, study: Study) -> None:
        self.study = study

    @property
    def name(self) -> str:
        """The study's name, with which names of downloaded files begin."""
        return self.study.name

    def __contains__(self, name: str) -> bool:
        """Whether the study's folder has this file."""
        return (self.study.folder / name).exists()


class _Decorator(Protocol):
    """Makes a method of a reader that remembers what it returned."""

    def __call__(self, make: Callable[Concatenate[T, P], R], /) -> Callable[Concatenate[T, P], R]: ...


def cached(*needs: str, watches: Sequence[str] = ()) -> _Decorator:
    """A method whose callers get a copy each, to do with as they like.

    It rests on these files of the study's folder: without those that it `needs` it raises NotYetError, those that it
    `watches` may be missing. `*` stands for all that the state of a study rests on; a name that ends in / for all below
    that folder. It raises DataError for damaged files, and StudyError where the study cannot say what is needed.
    """
    return _remembering(_copies, needs, watches)


def shared(*needs: str, watches: Sequence[str] = ()) -> _Decorator:
    """The same for what is large or asked for often: all callers get one object, which nobody may change."""
    return _remembering(_originals, needs, watches)


def _remembering(keep: Callable[[], _Keep], needs: Sequence[str], watches: Sequence[str]) -> _Decorator:
    def decorate(make: Callable[Concatenate[T, P], R], /) -> Callable[Concatenate[T, P], R]:
        name, signature = f"{make.__module__}.{make.__qualname__}", inspect.signature(make)

        @functools.wraps(make)
        def read(reader: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(reader, *args, **kwargs)
            bound.apply_defaults()
            options = {
                option: f"{value.__module__}.{value.__qualname__}" if callable(value) else value
                for option, value in list(bound.arguments.items())[1:]
            }
            stamps = _stamps(reader.study, (*needs, *watches))
            try:
                return keep()(name, stamps, options, lambda: make(reader, *args, **kwargs))
            except NotYetError:
                raise
            except DataError as error:
                if all(name in reader for name in needs):
                    raise
                raise NotYetError(str(error)) from None

        return read

    return decorate


def _made(name: str, stamps: tuple[Stamp, ...], options: dict[str, object], _make: Callable[[], R]) -> R:
    """Streamlit tells calls apart by the arguments whose names do not begin with _; the study's file is in `stamps`."""
    return _make()


# Streamlit's caches want a server, so they are made when one of them is first asked for, not at import.
@functools.cache
def _copies() -> _Keep:
    keep: Any = st.cache_data(show_spinner=False, max_entries=256)(_made)
    cache: _Keep = keep
    return cache


@functools.cache
def _originals() -> _Keep:
    keep: Any = st.cache_resource(show_spinner=False, max_entries=16)(_made)
    cache: _Keep = keep
    return cache


def _stamps(study: Study, names: Sequence[str]) -> tuple[Stamp, ...]:
    """The states of the study's file and of files of its folder, as `cached` names them."""
    if is_remote(study.folder):
        _list_again(study.folder, int(time.monotonic() / _LISTED))
    paths = [study.file]
    for name in names:
        if name == "*":
            paths += sorted(path for path in study.folder.glob("*") if path.is_file())
            paths += [*_below(study.outputs), *(path for data in study.data_files() for path in [data, *_below(data)])]
            paths += [path for folder in prompt_folders() for path in _below(folder)]
        elif name.endswith("/"):
            paths += _below(study.folder / name)
        else:
            paths.append(study.folder / name)
    return tuple(map(_stamp, paths))


@functools.lru_cache(maxsize=1)
def _list_again(folder: Path, _: int) -> None:
    """Ask a far folder what it holds now: its package remembers what was listed, whoever writes meanwhile."""
    files: Any = folder.fs  # type: ignore[attr-defined]  # UPath's
    files.invalidate_cache()
    with contextlib.suppress(FileNotFoundError):
        files.ls(folder.path, detail=True)  # type: ignore[attr-defined]  # all at once, so that no file is asked for alone


def _below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []


def _stamp(path: Path) -> Stamp:
    """What tells one state of a file from another: path, size (-1: not there), inode, and times in nanoseconds.

    The time of the last change of any kind is among these: a program can put the time of writing back, not that one.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return str(path), -1, 0, 0, 0
    if is_remote(path):
        return str(path), status.st_size, 0, int(1e9 * status.st_mtime), 0
    return str(path), status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
