"""What came out of people doing models' tasks, in a few sentences, and what is doubtful about it."""

from __future__ import annotations

import pandas as pd

from annotation.verdicts.tables import SIMULATED, count
from evaluation.human.cells import NONE, first_of
from evaluation.human.material import PEOPLE, HumanMaterial
from evaluation.human.standing import rank

SIGNIFICANT = 0.05
_FEW_ITEMS, _FEW_RATERS = 30, 2


def headline(one: HumanMaterial) -> tuple[str, ...]:
    """Where people stand, on which tasks they and the best model truly differ, and how far they agree."""
    return tuple(filter(None, (_stand(one), _differ(one), _agree(one))))


def _stand(one: HumanMaterial) -> str:
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


def _differ(one: HumanMaterial) -> str:
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


def _agree(one: HumanMaterial) -> str:
    first = [first_of(one.agreement, str(where)) for where in one.main["where"].unique()]
    flags = [str(row["flag"]) for row in first if row is not None]
    if not flags:
        return ""
    return (
        f"Raters agree reliably on {flags.count('reliable')} and too little on {flags.count('problematic')} of"
        f" {len(flags)} tasks, by HUME's bounds; a model far above people on the latter fits labels, not meaning."
    )


def doubts(one: HumanMaterial) -> list[str]:
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


def differing(one: HumanMaterial, where: str, own: pd.DataFrame) -> pd.DataFrame:
    """A task's items by how far people's mean is above its best embedding model, those that are alike left out.

    Columns: where, item, text, right, said, best_model, people, model, apart.
    """
    shared = one.compared
    scores = shared[(shared["where"] == where) & (shared["scorer_kind"] == "model") & shared["score"].notna()]
    people = own[own["scorer_kind"] == "rater"]
    if scores.empty or people.empty:
        return pd.DataFrame()
    best = str(scores["scorer"].iloc[int(scores["score"].to_numpy().argmax())])
    model = own[(own["scorer_kind"] == "model") & (own["scorer"] == best)].set_index("item")["score"]
    gold = own[own["scorer_kind"] == "gold"].set_index("item")["answer"]
    task = str(own["task"].iloc[0])
    made = pd.DataFrame({"people": people.groupby("item")["score"].mean(), "model": model}).dropna()
    if made.empty:
        return made
    made["apart"] = made["people"] - made["model"]
    said = {item: _votes(answers["answer"]) for item, answers in people.groupby("item")}
    named = [{"where": where, "item": item, "text": one.texts.get((task, str(item)), "")} for item in made.index]
    table = pd.DataFrame(named, index=made.index).assign(
        right=gold.reindex(made.index), said=[said[item] for item in made.index], best_model=best
    )
    whole = (
        pd.concat([table, made], axis=1)
        .reset_index(drop=True)
        .sort_values(["apart", "item"], ascending=[False, True], kind="stable")
    )
    return whole[whole["apart"].abs() > 1e-9].reset_index(drop=True)


def _votes(answers: pd.Series) -> str:
    counts = answers[answers != ""].value_counts()
    return "; ".join(f"{answer} ({number})" if number > 1 else str(answer) for answer, number in counts.items()) or NONE
