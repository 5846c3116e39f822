"""What came out of people doing models' tasks, in a few sentences, and what is doubtful about it."""

from __future__ import annotations

from annotation.verdicts.tables import SIMULATED, count
from evaluation.human.cells import first_of
from evaluation.human.material import PEOPLE, Material
from evaluation.human.standing import rank

SIGNIFICANT = 0.05
_FEW_ITEMS, _FEW_RATERS = 30, 2


def headline(one: Material) -> tuple[str, ...]:
    """Where people stand, on which tasks they and the best model truly differ, and how far they agree."""
    return tuple(filter(None, (_stand(one), _differ(one), _agree(one))))


def _stand(one: Material) -> str:
    people = one.main[one.main["scorer_kind"] == PEOPLE].dropna(subset="score")
    if people.empty:
        return "No task has a score of people."
    asked = f"On {count(len(people), 'task')} people reach {100 * people['score'].mean():.1f} on average (raters' mean)"
    if one.gaps.empty:
        return f"{asked}; no embedding model was scored on the same items."
    place, of = rank(one.wide, PEOPLE)
    above = int((one.gaps["over_best"] > 0).sum())
    return (
        f"{asked}: rank {place} of {of} among {count(of - 1, 'embedding model')} on the same items; on {above} of"
        f" {len(one.gaps)} tasks they are above the best model."
    )


def _differ(one: Material) -> str:
    own = one.differences[one.differences["people"] == PEOPLE]
    known = own[own["p_holm"].notna()]
    if known.empty:
        return ""
    sure = known[known["p_holm"] < SIGNIFICANT]
    up, down = int((sure["difference"] > 0).sum()), int((sure["difference"] < 0).sum())
    return (
        f"Of {len(known)} differences between people and a model on a task, {up} are above and {down} below zero beyond"
        f" chance (paired bootstrap over items, Holm over tasks, p < {SIGNIFICANT:g})."
    )


def _agree(one: Material) -> str:
    first = [first_of(one.agreement, str(where)) for where in one.main["where"].unique()]
    flags = [str(row["flag"]) for row in first if row is not None]
    if not flags:
        return ""
    return (
        f"Raters agree reliably on {flags.count('reliable')} and too little on {flags.count('problematic')} of"
        f" {len(flags)} tasks, by HUME's bounds; a model far above people on the latter fits labels, not meaning."
    )


def doubts(one: Material) -> list[str]:
    """A line for each thing that is doubtful."""
    found = [SIMULATED.rstrip(".")] if one.simulated else []
    people = one.main[one.main["scorer_kind"] == PEOPLE]
    few = people[people["n_items"] < _FEW_ITEMS]
    if len(few):
        found.append(
            f"{len(few)} of {count(len(people), 'task')} rest on fewer than {_FEW_ITEMS} items, with wide intervals"
        )
    raters = one.main[one.main["scorer_kind"] == "rater"].groupby("where")["scorer"].nunique()
    if alone := [str(where) for where in one.main["where"].unique() if raters.get(where, 0) < _FEW_RATERS]:
        found.append(f"one rater alone, whose score is one person's: {', '.join(alone)}")
    below = [
        str(row["where"])
        for row in one.main[one.main["scorer_kind"] == "trivial"]
        .groupby("where")["score"]
        .max()
        .reset_index()
        .to_dict("records")
        if row["score"] >= float(people.loc[people["where"] == row["where"], "score"].max())
    ]
    if below:
        found.append(f"answers without reading score as much as people or more: {', '.join(below)}")
    for task in one.tasks.values():
        if task.n_cut:
            found.append(f"{task.task}: people saw {task.n_cut} texts cut to {task.cut} characters, models whole")
    return [*found, *one.notes]
