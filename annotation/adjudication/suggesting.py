"""What judges say of a pair, as an adjudicator reads it: a suggestion for each question, and who said what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from annotation.argilla.suggestions import Suggestion
from annotation.judges.effects import rounded
from annotation.judges.judgements import over_orders
from plumbline.identity import identity

Scales = Mapping[str, Sequence[int]]  # of the questions that judges answer


def suggestions_of(judgements: pd.DataFrame, scales: Scales) -> dict[str, tuple[Suggestion, ...]]:
    """By pair, for each question the mean of its judges' scores as the nearest point of its scale.

    A judge without a score in each of its orders says nothing. How sure is the mean of the label masses, as far as
    there are any.
    """
    scores = over_orders(judgements).dropna(subset=["score"])
    sure = judgements[judgements["status"] == "ok"].groupby(["pair_id", "question"])["label_mass"].mean()
    found: dict[str, tuple[Suggestion, ...]] = {}
    for (named, asked), own in scores[scores["question"].isin(list(scales))].groupby(["pair_id", "question"]):
        pair_id, question, names = str(named), str(asked), sorted(own["judge"])
        value = rounded(np.array([own["score"].mean()]), scales[question])[0]
        agent = f"mean of {' and '.join(names)}" if len(names) > 1 else names[0]
        one = Suggestion(question, int(value), agent, float(sure.get((pair_id, question), np.nan)))
        found[pair_id] = (*found.get(pair_id, ()), one)
    return found


def said_of(pair_id: str, ratings: pd.DataFrame, judgements: pd.DataFrame, questions: Iterable[str]) -> str:
    """Who said what of a pair to these questions, in lines: people, numbered anew for each pair, then judges.

    Nobody can be followed from pair to pair: who is Rater 1 is a hash's choice. Comments stay with the coordinator.
    """
    own, lines, names = ratings[ratings["pair_id"] == pair_id], ["People"], list(questions)
    raters = sorted(own["rater_id"].unique(), key=lambda rater: identity("adjudicated-v1", pair_id, rater))
    for number, rater in enumerate(raters, 1):
        given = own[own["rater_id"] == rater]
        made_up = " (simulated)" if given["simulated"].any() else ""
        lines.append(f"Rater {number}{made_up}: {_listed(given.set_index('question')['value'], names)}")
    judged = judgements[judgements["pair_id"] == pair_id]
    scores = over_orders(judged)
    recorded = set(judged.loc[judged["kind"] == "recorded", "judge"])
    lines += ["", "Judges: language models; their mean, rounded, is the suggestion"]
    for judge, given in scores.groupby("judge"):
        asked = " (recorded, nobody was asked)" if judge in recorded else ""
        lines.append(f"{judge}{asked}: {_listed(given.set_index('question')['score'], names)}")
    return "\n".join(lines)


def _listed(values: pd.Series, questions: Sequence[str]) -> str:
    said = {name: values[name] for name in questions if name in values.index}
    return ", ".join(f"{name} {'no score' if pd.isna(value) else f'{value:.3g}'}" for name, value in said.items())
