"""Items that people and a task's best model see differently, down to what was said of them."""

from __future__ import annotations

import pandas as pd

from evaluation.human.cells import NONE
from evaluation.human.material import Material


def differing(one: Material, where: str, own: pd.DataFrame) -> pd.DataFrame:
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
