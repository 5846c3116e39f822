"""What docs/cluster.md says of many workers and GPUs is what the simulation and the model give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.scheduler import simulated
from benchmarks.throughput import TEXTS, VARIANTS, Inputs, predict, table
from plumbline.study import ROOT


def test_the_scheduler_leaves_workers_idle_for_less_than_a_hundredth_of_their_time() -> None:
    overhead, processor = simulated(300)  # 10,000 are a benchmark: `python -m benchmarks scheduler`
    assert 0 < overhead < 0.01
    assert processor > 0


def test_the_documents_table_is_the_models() -> None:
    assert table(Inputs()) in (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")


def test_hours_follow_what_is_slowest() -> None:
    free = replace(Inputs(), plan_seconds=0.0, command_seconds=0.0, schedule_seconds=0.0, journal_bytes=0.0)
    hours = TEXTS * VARIANTS / (8 * free.gpu_rate) / 3600
    assert predict(free, 8).hours == pytest.approx(hours)
    assert predict(free, 16).hours == pytest.approx(hours / 2)
    slow = predict(replace(free, command_seconds=1.0), 8)  # one output a second, whatever the GPUs make
    assert (slow.first, slow.hours) == ("head node", pytest.approx(TEXTS * VARIANTS / 3600))
    assert slow.at_work == pytest.approx(1 / (8 * free.gpu_rate))
    full_disk = predict(replace(free, journal_bytes=2 * free.disk_bytes / (8 * free.gpu_rate)), 8)
    assert (full_disk.first, full_disk.hours) == ("journal", pytest.approx(2 * hours))
