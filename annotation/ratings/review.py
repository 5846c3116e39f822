"""`python -m annotation review`: what a person looks at before deciding about a rater, and the decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from annotation.names import named
from annotation.ratings.collected import Collected
from annotation.ratings.exclusions import said
from annotation.ratings.notable import low_pairs
from annotation.ratings.ratings import read_ratings, stays
from annotation.ratings.signs import find_signs
from annotation.ratings.unlooked import not_looked_at
from annotation.records import Decision, Sign, Verdict
from annotation.rubric import Rubric, load_rubric
from plumbline.cli import columns
from plumbline.study import Study

SHOWN = 20  # pairs in the printed list


def signs_of(study: Study, collected: Collected | None = None, rubric: Rubric | None = None) -> list[Sign]:
    """The signs in what was collected so far, controls and repeats among it.

    `collected` and the study's `rubric` are for who has them at hand.
    """
    found = collected or Collected.read(study)
    asked = rubric or load_rubric(study)
    labelled = [one.name for one in asked.asked() if one.labels]
    staying = found.ratings[stays(found.ratings)]  # what is wrong with a withdrawn pair tells nothing about its raters
    return find_signs(staying, found.pairs, study.quality, asked.expected, labelled)


def unlooked_signs(study: Study, collected: Collected, rubric: Rubric) -> tuple[str, ...]:
    """By which rules raters could not be looked at, a line each, as `not_looked_at` says it."""
    staying = collected.ratings[stays(collected.ratings)]
    return not_looked_at(staying, collected.pairs, study.quality, rubric.expected) if len(staying) else ()


def review_text(
    study: Study,
    collected: Collected,
    decided: Sequence[Decision],
    signs: Sequence[Sign],
    unlooked: Sequence[str] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Signs by rater, pairs that people found bad, and what was `decided` so far about raters and pairs.

    `unlooked` says by which rules raters could not be looked at.

    Raises DataError before any rating.
    """
    if not (study.folder / "ratings.parquet").exists():
        read_ratings(study)  # its error names what is missing
    ratings = collected.of_sample[stays(collected.of_sample)]
    simulated = " (simulated ratings)" if ratings["simulated"].any() else ""
    found = [[named(sign.rater_id, names), sign.rule, sign.evidence] for sign in signs]
    low = low_pairs(ratings, study.quality)
    pairs = [
        [row["pair_id"][:12], row["transformation"], row["question"], f"{row['mean']:.2f}", str(row["n"])]
        for row in low.head(SHOWN).to_dict(orient="records")
    ]
    decisions = [
        [named(one.rater_id, names), said(one), f"{one.decided_at:%Y-%m-%d %H:%M}", one.reason]
        for one in decided
        if one.rater_id
    ]
    withdrawals = [
        [one.pair_id[:12], said(one), f"{one.decided_at:%Y-%m-%d %H:%M}", one.reason] for one in decided if one.pair_id
    ]
    more = f"\n... and {len(low) - SHOWN} more" if len(low) > SHOWN else ""
    rated = ratings.empty or bool(ratings["value"].notna().any())  # labels have no mean
    item = study.called.item
    to_read = [
        f"{item.capitalize()}s with a mean of {study.quality.low:g} or less, to be read",
        columns([item, study.called.judged, "question", "mean", "ratings"], pairs, empty="none") + more,
    ]
    return "\n\n".join(
        [
            f"Signs of careless answers in study {study.name}{simulated}; they decide nothing",
            columns(["rater", "rule", "evidence"], found, empty="no sign in any rater's answers"),
            *(["Signs that could not be looked at", "\n".join(unlooked)] if unlooked else []),
            *(to_read if rated else []),
            "Decisions",
            columns(["rater", "decision", "when", "reason"], decisions, empty="none so far"),
            *([] if not withdrawals else ["Pairs", columns(["pair", "decision", "when", "reason"], withdrawals)]),
        ]
    )


def waiting_text(verdicts: Sequence[Verdict], names: Mapping[str, str]) -> str:
    """Which verdicts wait for a look at which raters, and why; empty where none does."""
    rows = [
        [
            one.transformation,
            f"{one.language} {one.task_type}".strip(),
            ", ".join(named(rater, names) for rater in one.to_look_at),
            one.reasons[0],
        ]
        for one in verdicts
    ]
    if not rows:
        return ""
    title = "Verdicts that wait until these raters are excluded or kept, as they were reached last"
    return f"{title}\n\n{columns(['transformation', 'language', 'raters', 'why'], rows)}\n\n"
