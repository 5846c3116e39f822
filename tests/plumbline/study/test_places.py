"""Local paths, addresses and names: what cannot be is one line, before anything is read or loaded."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.models.encoder import ModelHost
from generation.datasets.tables import read_frame
from plumbline.errors import DataError, StudyError
from plumbline.records import Score
from plumbline.store import read_table
from plumbline.study.evaluation import ModelSpec
from plumbline.study.places import exports_folder, file_hash
from tests.evaluation.conftest import write_study


@pytest.mark.parametrize("name", ["my model (v2)", "../../x", "a/b/c", "x y", "a//b", "name\n", "/", "ü", ".."])
def test_a_name_that_no_model_has_is_one_line_before_anything_is_loaded(tmp_path: Path, name: str) -> None:
    study = write_study(tmp_path)
    named = study.evaluation.model_copy(update={"models": (ModelSpec.model_construct(name=name),)})
    with pytest.raises(StudyError, match="is not a valid name on the hub; write OWNER/NAME, or give it a `path`"):
        ModelHost.of(study.model_copy(update={"evaluation": named})).chosen()
    with pytest.raises(StudyError, match="is not a valid name on the hub"):
        ModelSpec.model_construct(name=name).location(tmp_path)


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "BAAI/bge-m3", "org_x/model_1.5-b", "intfloat/e5-base"])
def test_names_of_models_pass(tmp_path: Path, name: str) -> None:
    assert ModelSpec(name=name).location(tmp_path) == name


def test_a_folder_without_a_model_is_one_line_before_its_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    for path in ("/", "link", "."):
        with pytest.raises(StudyError, match=r"contains no model \(no config.json or modules.json\)"):
            ModelSpec(name="m", path=path).location(tmp_path)


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


@pytest.mark.parametrize("named", ["s3://", "s3:///", "gs://", "sftp:///"])
def test_an_address_without_a_bucket_is_one_line(named: str) -> None:
    with pytest.raises(StudyError, match="has no bucket or host; write .*://bucket/folder"):
        exports_folder(named)


def twice(path: Path) -> Path:
    table = pa.table([["a"], ["b"]], names=["text", "text"])
    pq.write_table(table, path)
    return path


def test_two_columns_of_one_name_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="two columns are called 'text'; rename one"):
        read_frame(twice(tmp_path / "a.parquet"))
    (tmp_path / "a.csv").write_text("text,text\na,b\n")
    with pytest.raises(DataError, match="two columns are called 'text'; rename one"):
        read_frame(tmp_path / "a.csv")
    (tmp_path / "a.jsonl").write_text('{"text": "a", "text": "b"}\n')
    with pytest.raises(DataError, match="appears twice"):
        read_frame(tmp_path / "a.jsonl")
    with pytest.raises(DataError, match="has two columns with the same name"):
        read_table(twice(tmp_path / "b.parquet"), Score, "evaluate")
