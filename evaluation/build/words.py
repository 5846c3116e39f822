"""What came out, in words: the terminal's lines, and the sentences of files and figure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from annotation.statistics.paired import Estimate
from evaluation.build.agreement import BEATS
from evaluation.build.matrix import Left
from evaluation.build.selection import METHODS, Selected, Selection
from evaluation.build.task_facts import amount
from plumbline import cli


def answer(selection: Selection) -> str:
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


def against_random(one: Selected) -> str:
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


def table(selection: Selection) -> str:
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


def notes(selection: Selection) -> list[str]:
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


def left_out(left: Sequence[Left]) -> list[str]:
    """A line for each reason, with all that were left out for it."""
    lines: dict[tuple[str, str], list[Left]] = {}
    for one in left:
        lines.setdefault((one.kind, one.reason), []).append(one)
    return [
        f"left out: {_counted(own)}, {reason}: {', '.join(one.name for one in own)}"
        for (_, reason), own in lines.items()
    ]


def _counted(left: Sequence[Left]) -> str:
    """How many of one kind: "1 model", "2 tasks"."""
    return f"{len(left)} {left[0].kind}{'' if len(left) == 1 else 's'}"


def _interval(one: Estimate) -> str:
    if math.isnan(one.value):
        return "–"
    return f"{one.value:.3f}" if math.isnan(one.low) else f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"
