"""The demo's commands, by the study that it is given."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from plumbline import demo
from plumbline.study import ROOT


@pytest.mark.parametrize(
    ("study", "commands"),
    [
        ("demo", ["generate", "sample", "judge", "serve", "accept", "campaign-report", "evaluate", "report"]),
        ("human", ["sample", "judge", "serve", "accept", "campaign-report", "evaluate", "human-report"]),
    ],
)
def test_what_a_study_needs_is_run_and_nothing_else(
    study: str, commands: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run: list[str] = []

    def wait_for(command: list[str]) -> int:
        run.append(command[command.index("plumbline") + 1])
        return 0

    monkeypatch.setattr(demo, "_wait_for", wait_for)
    monkeypatch.setattr(
        sys, "argv", ["demo", "--study", str(ROOT / "studies" / f"{study}.yaml"), "--exports", str(tmp_path)]
    )
    assert demo.main() == 0
    assert run == commands
    assert f"{'report_human' if study == 'human' else 'report_evaluation'}/index.html" in capsys.readouterr().out
