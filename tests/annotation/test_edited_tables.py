"""Tables that published numbers rest on, changed by hand: the next command says so, and nothing makes them true."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.errors import DataError
from plumbline.manifest import Manifest
from plumbline.records import DriftRecord
from plumbline.store import write_table
from plumbline.study import Study


def drift(number: float) -> DriftRecord:
    return DriftRecord(pair_id="a", model="m", drift=number, unit_id="u")


def test_a_table_that_was_edited_is_refused_and_named(generated: Study) -> None:
    Manifest.of(generated).write_table("drift.parquet", [drift(0.5)], DriftRecord)
    Manifest.of(generated).refuse_replaced("drift.parquet", "x")
    write_table(generated.folder / "drift.parquet", [drift(0.1)], DriftRecord)
    with pytest.raises(DataError, match=r"drift\.parquet differs from what was written .* run `x` again"):
        Manifest.of(generated).refuse_replaced("drift.parquet", "x")
    (generated.folder / "drift.parquet").unlink()
    Manifest.of(generated).refuse_replaced("drift.parquet", "x")
    Manifest.of(generated).write_table("drift.parquet", [drift(0.2)], DriftRecord)
    Manifest.of(generated).refuse_replaced("drift.parquet", "x")


def test_a_kill_while_a_table_is_written_accuses_nobody(generated: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    Manifest.of(generated).write_table("drift.parquet", [drift(0.5)], DriftRecord)

    replace = Path.replace

    def stop(file: Path, target: Path) -> Path:
        if target.suffix == ".parquet":
            raise KeyboardInterrupt
        return replace(file, target)

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        Manifest.of(generated).write_table("drift.parquet", [drift(0.1)], DriftRecord)
    Manifest.of(generated).refuse_replaced("drift.parquet", "x")
    assert not list(generated.folder.glob(".*.tmp"))
