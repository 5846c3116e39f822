"""The files of a selection: what was chosen and why, tables, the curve, a benchmark for mteb, a study."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evaluation.benchmarks.agreement import BEATS
from evaluation.benchmarks.matrix import MatrixOmission
from evaluation.benchmarks.selection import METHODS, BenchmarkSelection, TaskSelection, predicted_by
from evaluation.benchmarks.task_facts import amount
from generation.datasets.mteb_registry import TYPES
from plumbline import cli
from plumbline.exhibits.files import csv_bytes, write_files
from plumbline.exhibits.page import Figure
from plumbline.exhibits.palette import COLOURS, NEUTRAL
from plumbline.identity import identity
from plumbline.statistics.estimates import Estimate
from plumbline.study import load_study

_NAMES = {"agreement": "Chosen for agreement", "backward": "MMTEB's backward", "random": "Random (median)"}
_COLOURS = [COLOURS["lexical_stylistic"], COLOURS["length"], NEUTRAL]
_SHAPES = ["circle", "square", "cross"]


def curve(table: pd.DataFrame, held: int) -> Figure:
    """Tau with all tasks on `held` held-out models by number of tasks; the band holds 95% of random selections.

    `table` is `evaluation.benchmarks.selection.Selection.curve`, or the file of it (`curve.csv`).
    """
    import altair as alt  # noqa: PLC0415 (who only asks for help goes without)

    shown = table.assign(way=table["method"].map(_NAMES))
    names = list(_NAMES.values())
    across = alt.X("tasks:Q", title="Tasks").scale(type="log", nice=False)
    up = alt.Y("tau:Q", title="Kendall's tau with all tasks").scale(zero=False)
    colour = alt.Color("way:N", title=None).scale(domain=names, range=_COLOURS).legend(orient="top")
    shape = alt.Shape("way:N", title=None).scale(domain=names, range=_SHAPES).legend(orient="top")
    band = (
        alt.Chart(shown[shown["method"] == "random"])
        .mark_area(color=NEUTRAL, opacity=0.25)
        .encode(x=across, y=alt.Y("tau_low:Q"), y2=alt.Y2("tau_high:Q"))
    )
    base = alt.Chart(shown).encode(x=across, y=up, color=colour)
    marks = base.mark_point(size=70, filled=True, opacity=1).encode(
        shape=shape,
        tooltip=[
            alt.Tooltip("way:N"),
            alt.Tooltip("tasks:Q"),
            alt.Tooltip("tau:Q", format=".3f"),
            alt.Tooltip("rho:Q", format=".3f"),
        ],
    )
    caption = (
        f"Kendall's tau with the ranking by all tasks, on {held} held-out models;"
        " the band holds 95% of random selections."
    )
    words = caption + " " + " ".join(_said(shown, way) for way in names)
    chart = alt.LayerChart(layer=[band, base.mark_line(), marks], description=words, width=560, height=320)
    return Figure(chart, caption, words)


def _said(shown: pd.DataFrame, way: str) -> str:
    own = shown[shown["way"] == way].drop_duplicates("tasks").sort_values("tasks")
    points = ", ".join(f"{row.tau:.2f} with {row.tasks}" for row in own.itertuples())
    return f"{way}: tau {points} tasks." if points else ""


def answer(selection: BenchmarkSelection) -> str:
    """The one sentence that a user wants."""
    main = selection.main
    n, n_all, held = int(main.chosen.sum()), len(main.chosen), int(selection.held.sum())
    tau = main.agreement.tau
    if n == n_all:
        needs, budget = selection.coverage, selection.asked.budget
        if budget and needs.within(float(needs.cost.sum()), budget):
            return f"All {n} tasks are within the budget: there is nothing to choose."
        return f"All {n} tasks are chosen: none may go by --cover, --keep, or MMTEB's thresholds."
    if math.isnan(tau.value):
        return f"{n} of {n_all} tasks were chosen; whether they keep the ranking is not known: {tau.reason}."
    return (
        f"{n} of {n_all} tasks rank {held} held-out models as all of them do with tau {_interval(tau)} and"
        f" rho {_interval(main.agreement.rho)}. {against_random(main)}"
    )


def against_random(one: TaskSelection) -> str:
    """Whether a selection beats random ones, in words."""
    shares, n = one.agreement.as_good, len(one.agreement.random_tau)
    if one.agreement.beats_random is None:
        return (
            "Whether it beats random selections is not known: none could be drawn within the budget, or none is ranked."
        )
    said = f"{shares['tau']:.1%} of {n:,} random selections are at least as good by tau, {shares['rho']:.1%} by rho"
    if one.agreement.beats_random:
        return f"It beats random: {said}."
    return f"IT DOES NOT BEAT RANDOM (fewer than {BEATS:.0%} by both would): {said}."


def table(selection: BenchmarkSelection) -> str:
    """Each way beside the others, for a terminal."""
    unit = selection.asked.unit
    header = [
        "way",
        "tasks",
        *([unit] if unit != "tasks" else []),
        "rho",
        "tau",
        "random as good (tau)",
        "beats random",
    ]
    rows = []
    for name, one in selection.ways.items():
        cost = [amount(one.cost)] if unit != "tasks" else []
        share, beats = one.agreement.as_good["tau"], one.agreement.beats_random
        rows.append(
            [
                METHODS[name],
                str(int(one.chosen.sum())),
                *cost,
                _interval(one.agreement.rho),
                _interval(one.agreement.tau),
                "–" if math.isnan(share) else f"{share:.1%}",
                {True: "yes", False: "no", None: "not known"}[beats],
            ]
        )
    return cli.columns(header, rows)


def notes(selection: BenchmarkSelection) -> list[str]:
    """What the numbers rest on."""
    scores, asked = selection.scores, selection.asked
    own = len(selection.held) - int(selection.held.sum())
    found = [
        f"chosen by {own} models, judged on {int(selection.held.sum())} of other families (seed {asked.seed});"
        " intervals are 95% percentile bootstraps over the held-out models",
        "models are ranked by Borda counts; random selections keep the same needs within the same budget",
        *scores.notes,
    ]
    if own - 1 <= selection.scores.frame.shape[1]:
        found.append("no more models than tasks: regressions are the solutions of the least norm, as MMTEB's own were")
    if not all(step.within for step in selection.trace):
        n = sum(step.within for step in selection.trace)
        found.append(
            f"MMTEB's thresholds (rho {asked.rho:g}, error {asked.mse:g}) let {n} tasks go; steps after that are ours"
        )
    if "backward" not in selection.ways:
        found.append("backward selection does not come down to this budget: what it has left must all be kept")
    for kind in ("model", "task"):
        own_left = [one for one in scores.left if one.kind == kind]
        if own_left:
            names = ", ".join([*(one.name for one in own_left[:5]), *(["..."] if len(own_left) > 5 else [])])
            found.append(f"left out: {_counted(own_left)} ({names}); left_out.csv")
    return found


def left_out(left: Sequence[MatrixOmission]) -> list[str]:
    """A line for each reason, with all that were left out for it."""
    lines: dict[tuple[str, str], list[MatrixOmission]] = {}
    for one in left:
        lines.setdefault((one.kind, one.reason), []).append(one)
    return [
        f"left out: {_counted(own)}, {reason}: {', '.join(one.name for one in own)}"
        for (_, reason), own in lines.items()
    ]


def _counted(left: Sequence[MatrixOmission]) -> str:
    """How many of one kind: "1 model", "2 tasks"."""
    return f"{len(left)} {left[0].kind}{'' if len(left) == 1 else 's'}"


def _interval(one: Estimate) -> str:
    if math.isnan(one.value):
        return "–"
    return f"{one.value:.3f}" if math.isnan(one.low) else f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"


PACKAGES = ("plumbline", "mteb", "numpy", "scipy")
STUDY, BENCHMARK = "study.yaml", "benchmark.py"


def write(folder: Path, selection: BenchmarkSelection, tasks: dict[str, Any], source: str) -> tuple[str, ...]:
    """Write all files, each atomically; what a selection before it wrote there goes. The notes that came up on the way.

    `tasks` are mteb's task objects by name, narrowed to what is scored; `source` is what --from named.
    """
    figure = curve(selection.curve, int(selection.held.sum()))
    files = {
        "tasks.csv": csv_bytes(_tasks(selection)),
        "removed.csv": csv_bytes(predicted_by(selection)),
        "trace.csv": csv_bytes(_trace(selection)),
        "agreement.csv": csv_bytes(_agreement(selection)),
        "random.csv": csv_bytes(_random(selection)),
        "curve.csv": csv_bytes(selection.curve),
        "models.csv": csv_bytes(_models(selection)),
        "left_out.csv": csv_bytes(
            pd.DataFrame([vars(one) for one in selection.scores.left], columns=["kind", "name", "reason"])
        ),
        "curve.svg": figure.svg.encode(),
        "curve.png": figure.png(),
        "curve.txt": f"{figure.alt}\n".encode(),
    }
    chosen = _names(selection)
    own = {name: tasks[name] for name in chosen if name in tasks}
    said: list[str] = []
    if len(own) < len(chosen):
        said.append(f"no {BENCHMARK}: mteb has no task {next(name for name in chosen if name not in own)!r}")
    else:
        files[BENCHMARK] = _benchmark(own, folder.name, selection).encode()
    fitting = {name: task for name, task in own.items() if task.metadata.type in TYPES}
    if fitting:
        files[STUDY] = _study(folder.name, fitting).encode()
        if lacking := [name for name in chosen if name not in fitting]:
            said.append(f"{STUDY} leaves out {len(lacking)} tasks of kinds that no study has: {', '.join(lacking[:5])}")
        if several := [name for name, task in fitting.items() if len(task.eval_splits) > 1]:
            said.append(f"{STUDY} takes the first split of {', '.join(several[:5])}, which mteb scores on several")
    else:
        said.append(f"no {STUDY}: none of the chosen tasks is one of mteb's that a study can have")
    files["selection.json"] = (
        json.dumps(_summary(selection, source, said), indent=2, ensure_ascii=False) + "\n"
    ).encode()
    if fitting:
        _check(files[STUDY])
    write_files(folder, files)
    return tuple(said)


def _names(selection: BenchmarkSelection) -> list[str]:
    return [str(name) for name, chosen in zip(selection.facts.index, selection.main.chosen, strict=True) if chosen]


def _tasks(selection: BenchmarkSelection) -> pd.DataFrame:
    facts = selection.facts.reset_index(names="task")
    facts["languages"] = facts["languages"].map(" ".join)
    facts["chosen"] = selection.main.chosen
    for name, one in selection.ways.items():
        facts[f"by_{name}"] = one.chosen
    return facts


def _trace(selection: BenchmarkSelection) -> pd.DataFrame:
    names = selection.facts.index
    rows = [(n, names[one.task], one.rho, one.mse, one.within) for n, one in enumerate(selection.trace, 1)]
    return pd.DataFrame(rows, columns=["step", "task", "rho", "mse", "within_thresholds"])


def _agreement(selection: BenchmarkSelection) -> pd.DataFrame:
    return pd.DataFrame([_measured(one) for one in selection.ways.values()])


def _measured(one: TaskSelection) -> dict[str, Any]:
    """One way's numbers; each undefined one has its reason."""
    found, shares = one.agreement, one.agreement.as_good
    made: dict[str, Any] = {
        "method": one.method,
        "tasks": int(one.chosen.sum()),
        "cost": one.cost,
        "budget": one.budget,
    }
    for name, estimate, random in (("rho", found.rho, found.random_rho), ("tau", found.tau, found.random_tau)):
        made |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        made |= {f"{name}_reason": estimate.reason, f"{name}_random_as_good": shares[name]}
        known = random[np.isfinite(random)]
        made[f"{name}_random_median"] = float(np.median(known)) if len(known) else math.nan
    beats = found.beats_random
    return made | {
        "random": len(found.random_tau),
        "beats_random": "not known" if beats is None else str(beats).lower(),
    }


def _random(selection: BenchmarkSelection) -> pd.DataFrame:
    parts = [
        pd.DataFrame({"method": name, "rho": one.agreement.random_rho, "tau": one.agreement.random_tau})
        for name, one in selection.ways.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _models(selection: BenchmarkSelection) -> pd.DataFrame:
    names = list(selection.scores.frame.index)
    families = [selection.scores.families[name] for name in names]
    return pd.DataFrame({"model": names, "family": families, "held_out": selection.held})


def _summary(selection: BenchmarkSelection, source: str, said: list[str]) -> dict[str, Any]:
    """What was chosen, why, and what it rests on; undefined numbers are null."""
    frame, asked = selection.scores.frame, selection.asked
    matrix = [[str(name), *map(float, row)] for name, row in zip(frame.index, frame.to_numpy(), strict=True)]
    removed = predicted_by(selection)
    made = {
        "answer": answer(selection),
        "method": f"{asked.method}: {METHODS[asked.method]}",
        "tasks": _names(selection),
        "removed": removed.to_dict(orient="records"),
        "asked": {**vars(asked), "from": source},
        "agreement": [_measured(one) for one in selection.ways.values()],
        "needs": list(selection.coverage.needs),
        "models": {"chosen_by": int((~selection.held).sum()), "held_out": int(selection.held.sum())},
        "notes": [*notes(selection), *said],
        "left_out": [vars(one) for one in selection.scores.left],
        "rests_on": {
            "files": selection.scores.files,
            "scores": identity("score-matrix-v1", list(map(str, frame.columns)), matrix),
            "task_list": identity("task-list-v1", _names(selection)),
        },
        "seed": asked.seed,
        "versions": {name: package_version(name) for name in PACKAGES},
    }
    summary: dict[str, Any] = plain(made)
    return summary


def plain(value: Any) -> Any:
    """What JSON can hold: undefined numbers are null."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def package_version(package: str) -> str | None:
    """The version of an installed package; None where it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _benchmark(tasks: dict[str, Any], name: str, selection: BenchmarkSelection) -> str:
    """A Python file that makes the `mteb.Benchmark`; what it names stands in it as strings."""
    lines = [
        '"""A selection of tasks as a benchmark of mteb, made by `python -m evaluation.benchmarks select`."""',
        "",
        "import mteb",
        "",
        "BENCHMARK = mteb.Benchmark(",
        f"    name={json.dumps(f'{name} ({len(tasks)} tasks)')},",
        "    tasks=[",
    ]
    for one, task in tasks.items():
        subsets = (
            "" if task.hf_subsets == task.metadata.hf_subsets else f", hf_subsets={json.dumps(list(task.hf_subsets))}"
        )
        lines.append(
            f"        mteb.get_task({json.dumps(one)}, eval_splits={json.dumps(list(task.eval_splits))}{subsets}),"
        )
    lines += [
        "    ],",
        f"    description={json.dumps(answer(selection))},",
        ")",
        "",
        'if __name__ == "__main__":  # python benchmark.py MODEL',
        "    import sys",
        "",
        "    results = mteb.evaluate(mteb.get_model(sys.argv[1]), BENCHMARK)",
        "    print(results.to_dataframe())",
        "",
    ]
    return "\n".join(lines)


def _check(content: bytes) -> None:
    """Read the study as every command will, before anything is written."""
    with tempfile.TemporaryDirectory(prefix="plumbline-") as here:
        made = Path(here) / STUDY
        made.write_bytes(content)
        load_study(made)


def _study(name: str, tasks: dict[str, Any]) -> str:
    """A study of the chosen tasks; the rest of it is as `plumbline init` begins one."""
    safe = (
        "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in name.lower()).strip("-") or "selection"
    )
    lines = [
        "# Made by `python -m evaluation.benchmarks select`. docs/own_study.md says what else can stand here.",
        f"name: {safe}",
        f"description: {json.dumps(f'The tasks that were selected in {safe}')}",
        "",
        "datasets:",
    ]
    for one, task in tasks.items():
        revision = task.metadata.dataset["revision"]
        parts = [
            f"mteb: {json.dumps(one)}",
            f"revision: {json.dumps(revision)}",
            f"split: {json.dumps(task.eval_splits[0])}",
        ]
        if task.metadata.is_multilingual:
            parts.append(f"subsets: {json.dumps(list(task.hf_subsets))}")
        lines.append(f"  - {{{', '.join(parts)}}}")
    lines += [
        "",
        "transformations: [paraphrasing]  # of HTEB's eight; see docs/transformations.md",
        "generator:  # any OpenAI-compatible server: this is where Ollama listens",
        "  kind: openai",
        "  model: gemma3:27b",
        '  base_url: "http://127.0.0.1:11434/v1"',
        "",
        "evaluation:",
        "  protocol: mteb  # as the scores that the selection rests on",
        "  models:",
        "    - {name: intfloat/multilingual-e5-small, kind: mteb}",
        "",
    ]
    return "\n".join(lines)
