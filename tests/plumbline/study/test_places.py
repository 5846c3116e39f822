"""Local paths, addresses and names: what cannot be is one line, before anything is read or loaded."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from plumbline.errors import DataError
from plumbline.study.evaluation import SentenceTransformersSpec
from plumbline.study.places import file_hash


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "BAAI/bge-m3", "org_x/model_1.5-b", "intfloat/e5-base"])
def test_names_of_models_pass(tmp_path: Path, name: str) -> None:
    assert SentenceTransformersSpec(name=name).location(tmp_path) == name


def test_the_whole_file_system_and_folders_without_end_are_not_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("/")
    for path in (Path("/"), tmp_path / "link"):
        with pytest.raises(DataError, match="is the root of the file system; correct the path"):
            file_hash(path)
    monkeypatch.setattr(Path, "rglob", lambda *_: itertools.repeat(tmp_path))
    with pytest.raises(DataError, match="contains more than 20,000 files"):
        file_hash(tmp_path)
