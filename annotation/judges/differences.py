"""Pairs on which people and judges differ most, for a person to read (PTEB, appendix B); the list decides nothing."""

from __future__ import annotations

import pandas as pd

from annotation.campaign.counting import counting_ratings
from annotation.judges.outcome import read_judging
from annotation.judges.people import far_ratings
from annotation.judges.records import checked
from annotation.verdicts.conclusion import refuse_unlooked
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.tables import SIMULATED, display
from plumbline.cli import columns

DOUBTFUL_MASS = 0.9  # with less probability on the points of the scale a judgement is flagged
COLUMNS = ["pair_id", "transformation", "question", "people", "judges", "apart", "spread", "raters", "far", "flags"]
SHOWN = 20  # pairs in the printed list


def disagreements(ratings: pd.DataFrame, judgements: pd.DataFrame, least: int) -> pd.DataFrame:
    """Return a row for each question on each pair that people and judges rated, pairs that are farthest apart first.

    `ratings` are those that count, on questions with a scale; pairs with fewer than `least` raters are left out, as
    they are of verdicts. Columns: pair_id, transformation, question, people (mean rating), judges (mean score
    of those that have one), apart (judges minus people), spread (between the judges' scores), raters, far (ratings more
    than 2 points from every judge; PTEB, appendix B), flags (in words: `far`, label mass below 0.9).
    """
    rated = ratings.groupby(["pair_id", "question"]).agg(
        transformation=("transformation", "first"), people=("value", "mean"), raters=("rater_id", "nunique")
    )
    scores = checked(judgements)
    by_question = scores.dropna(subset=["score"]).groupby(["pair_id", "question"])["score"]
    judges = pd.DataFrame({"judges": by_question.mean(), "spread": by_question.max() - by_question.min()})
    both = rated[rated["raters"] >= least].astype({"people": float}).join(judges, how="inner")
    far = far_ratings(ratings, scores).groupby(["pair_id", "question"]).size()
    both = both.assign(apart=both["judges"] - both["people"], far=far.reindex(both.index, fill_value=0))
    low = judgements[judgements["label_mass"] < DOUBTFUL_MASS]
    doubtful, both = set(zip(low["pair_id"], low["question"], strict=True)), both.reset_index()
    keys = zip(both["pair_id"], both["question"], both["far"], strict=True)
    flags = [["far"] * (far > 0) + ["label mass"] * (tuple(key) in doubtful) for *key, far in keys]
    both["flags"] = [", ".join(reasons) for reasons in flags]
    both["widest"] = both.groupby("pair_id")["apart"].transform(lambda gaps: gaps.abs().max())
    both["varied"] = both.groupby("pair_id")["spread"].transform("max")
    ordered: pd.DataFrame = both.sort_values(
        ["widest", "varied", "pair_id", "question"], ascending=[False, False, True, True], ignore_index=True
    )
    return ordered[COLUMNS]


def differences_text(evidence: Evidence) -> str:
    """Return the pairs on which people and judges differ most, for a terminal.

    Raises DataError before there are verdicts and judgements, and for stale verdicts: who saw the list before the
    verdicts could decide about raters by it, without a record.
    """
    refuse_unlooked(evidence.read_whole())
    design, study, judgements = evidence.design, evidence.study, read_judging(evidence).judgements
    counting = counting_ratings(evidence.collected.sample_ratings, design.per_pair)
    ratings = counting[counting["question"].isin(evidence.rubric.rating_names())]
    rows = disagreements(ratings, judgements, design.rule.min_raters)
    pairs = list(dict.fromkeys(rows["pair_id"]))
    cells = [
        [
            row["pair_id"][:12],
            display(row["transformation"], pooled=False),
            row["question"],
            f"{row['people']:.2f}",
            f"{row['judges']:.2f}",
            f"{row['apart']:+.2f}",
            row["flags"],
        ]
        for row in rows[rows["pair_id"].isin(pairs[:SHOWN])].to_dict("records")
    ]
    judged, item = study.called
    recorded = sorted(judgements.loc[judgements["kind"] == "recorded", "judge"].unique())
    parts = [f"Pairs on which people and judges differ most, study {study.name}; read them, as either may be wrong"]
    parts += [SIMULATED] if ratings["simulated"].any() else []
    parts += [f"Judges whose answers come from a file: {', '.join(recorded)}"] if recorded else []
    header = [item.capitalize(), judged.capitalize(), "Question", "People", "Judges", "Difference", "Flags"]
    parts.append(columns(header, cells, empty="none: no pair has both enough ratings and a judge's score"))
    parts += [f"... and {len(pairs) - SHOWN} more"] if len(pairs) > SHOWN else []
    return "\n\n".join(parts)
