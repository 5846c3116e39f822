"""A model's files are hashed whole, in pieces, once; what changed in the middle is seen whatever its time says."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from evaluation.models.encoder import folder_hash
from plumbline import file_hashes
from plumbline.file_hashes import LARGE, cache_file, sha256_of
from plumbline.study import places
from plumbline.study.evaluation import SentenceTransformersSpec


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("PLUMBLINE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read."""
    read, names = file_hashes._read, list[str]()

    def noting(path: Path, prefix: bytes) -> str:
        names.append(path.name)
        return read(path, prefix)

    monkeypatch.setattr(file_hashes, "_read", noting)
    return names


def written(path: Path, content: bytes) -> None:
    """Write a file, and its folder."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


def test_weights_that_changed_in_the_middle_are_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_hashes, "_SETTLED", 0.0)
    monkeypatch.setattr(places, "_TICK", -1.0)
    weights = tmp_path / "model" / "model.safetensors"
    written(weights, b"a" * 3_000_000)
    (weights.parent / "config.json").write_text("{}")
    status = weights.stat()
    spec = SentenceTransformersSpec(name="mine", revision="1", path="model")
    before = spec.fingerprint(tmp_path, folder_hash)
    assert spec.fingerprint(tmp_path, folder_hash) == before and cache_file().exists()
    time.sleep(0.05)  # a tick of the file system's clock
    with weights.open("r+b") as file:
        file.seek(1_500_000)
        file.write(b"b")
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))  # the time of writing put back
    assert spec.fingerprint(tmp_path, folder_hash) != before
    assert SentenceTransformersSpec(name="mine", path="elsewhere").fingerprint(tmp_path, folder_hash) == "missing"
    assert SentenceTransformersSpec(name="on/the-hub", revision="abc").fingerprint(tmp_path, folder_hash) == ""


def test_a_large_file_is_read_once(tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    weights = tmp_path / "weights.gguf"
    content = os.urandom(LARGE + 1)
    written(weights, content)
    assert sha256_of(weights) == hashlib.sha256(content).hexdigest() and not cache_file().exists()
    monkeypatch.setattr(file_hashes, "_SETTLED", -1.0)  # as though it had been written long ago
    monkeypatch.setattr(places, "_TICK", -1.0)
    for _ in range(3):
        assert sha256_of(weights) == hashlib.sha256(content).hexdigest()
    assert reads == ["weights.gguf"] * 2  # what was written just now is not remembered
    cache_file().write_text("[not ours", encoding="utf-8")
    assert sha256_of(weights) == hashlib.sha256(content).hexdigest()


def test_a_file_whose_name_is_no_text_is_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder from another system, named in Latin-1: the cache cannot name it, so it is read each time."""
    monkeypatch.setattr(file_hashes, "_SETTLED", -1.0)
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    written(folder / "texts.csv", b"a" * (LARGE + 1))
    assert sha256_of(folder / "texts.csv") == hashlib.sha256(b"a" * (LARGE + 1)).hexdigest()


def test_without_a_place_for_the_cache_files_are_read_again(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_hashes, "_SETTLED", -1.0)
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("PLUMBLINE_CACHE", str(tmp_path / "file"))
    weights = tmp_path / "weights.gguf"
    written(weights, b"a" * (LARGE + 1))
    assert sha256_of(weights) == sha256_of(weights)
    assert len(reads) == 2
