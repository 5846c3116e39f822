"""The demo's commands, by the study that it is given."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

import pytest

from plumbline import __main__, demo
from plumbline.study import ROOT

PRINTED = {
    "accept": "Verdicts, study s\n\nT  Verdict\nA  accepted\n\nDoubtful:\n",
    "evaluate": "Scores by axis (x)\nm  1\n\n",
}


@pytest.mark.parametrize(
    ("study", "commands"),
    [
        ("demo", ["generate", "sample", "judge", "serve", "accept", "ratings-report", "evaluate", "scores-report"]),
        ("human", ["sample", "judge", "serve", "accept", "ratings-report", "evaluate", "human-report"]),
    ],
)
def test_what_a_study_needs_is_run_and_nothing_else(
    study: str, commands: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run: list[str] = []

    def wait_for(command: list[str], log: TextIO) -> int:
        name = command[command.index("plumbline") + 1]
        run.append(name)
        log.write(f"much of {name}\n\n{PRINTED.get(name, '')}more of it\n")
        return 0

    monkeypatch.setattr(demo, "_wait_for", wait_for)
    words = ["demo", "--study", str(ROOT / "studies" / f"{study}.yaml"), "--exports", str(tmp_path)]
    assert __main__.run(words) == 0
    assert run == commands
    shown = capsys.readouterr().out
    first = shown.splitlines()[0]
    assert first.startswith(f"Running the study {study}") and str(tmp_path / study) in first
    assert shown.count("much of") == shown.count("more of it") == 0  # that is in the log
    assert "\n".join(["Verdicts, study s", "", "T  Verdict", "A  accepted", "", "Scores by axis (x)", "m  1"]) in shown
    assert shown.count("== ") == (3 if study == "human" else 4) and "\r" not in shown
    happened, accepted, look = shown.splitlines()[-3:]
    assert happened.startswith("What happened: ") and "measure nothing" in happened
    assert accepted == "Accepted: nothing."
    assert f"{'report_human' if study == 'human' else 'report_evaluation'}/index.html" in look and "demo.log" in look
    assert "much of accept" in (tmp_path / study / "demo.log").read_text(encoding="utf-8")
    assert not [path for path in (tmp_path / study).rglob("*") if path.stat().st_mode & 0o077]
    assert not (tmp_path / study).stat().st_mode & 0o077
