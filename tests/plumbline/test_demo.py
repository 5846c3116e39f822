"""The demo's commands, by the study that it is given."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TextIO

import pytest

from plumbline import __main__, demo
from plumbline.study import ROOT, load_study

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


def test_what_was_accepted_and_why_the_rest_was_not_is_a_sentence(tmp_path: Path) -> None:
    study = load_study(ROOT / "studies" / "demo.yaml", tmp_path)
    study.folder.mkdir()
    verdicts = [
        {"transformation": "style_change", "language": "en", "decision": "accepted", "reasons": ["mean 4.5"]},
        {"transformation": "expansion", "language": "de", "decision": "rejected", "reasons": ["mean 2.21 is below 3"]},
    ]
    (study.folder / "verdicts.json").write_text(json.dumps(verdicts), encoding="utf-8")
    assert demo.outcome(study) == "Accepted: style change (en); expansion (de) is rejected: mean 2.21 is below 3."


def test_a_step_that_fails_is_one_line_and_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = load_study(ROOT / "studies" / "demo.yaml", tmp_path)
    code = "import sys, tqdm; list(tqdm.tqdm(range(3))); sys.exit(print('error: no room', file=sys.stderr) or 2)"
    command = [sys.executable, "-c", code, "plumbline", "accept"]
    assert demo._in_turn({"annotation": [command, command]}, study) == 2
    said = capsys.readouterr()
    log = study.scratch / "demo.log"
    assert said.err == f"\nerror: no room\nfull log: {log}\n"
    assert log.read_text(encoding="utf-8") == "error: no room\n"  # no debris of a progress bar in a file
