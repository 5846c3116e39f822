"""Verdicts: which transformations people accept (HTEB, section 2.4: mean of at least 3 for quality and for fluency).

Pure functions from ratings, pairs and the study's rule to records; `accept` reads and writes the files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from annotation.agreement import counting_ratings, read_ratings, summarise, table_two
from annotation.records import Group, Summary, Verdict
from annotation.rubric import load_rubric
from annotation.sample import read_pairs
from generation.exceptions import DataError
from generation.records import Pair, identity
from generation.store import read_models, write_json
from generation.study import AcceptanceSpec, Study, file_hash

COMMAND = "python -m annotation accept --study ..."


def accept(study: Study) -> tuple[list[Group], list[Verdict]]:
    """Compute Table 2 and the verdicts from what was collected; writes `agreement.json` and `verdicts.json`."""
    rubric = load_rubric(study)
    pairs = read_pairs(study)
    ratings = read_ratings(study)
    _check_ratings(ratings, pairs, rubric.scale)
    counting = counting_ratings(ratings, study.raters.per_pair)
    groups = table_two(counting, rubric.question_names(), rubric.scale)
    hashes = {f"{name}_sha256": file_hash(study.folder / f"{name}.parquet") for name in ("pairs", "ratings")}
    hashes["rule_id"] = rule_id(study)
    found = verdicts(pairs, counting, study.acceptance, rubric.question_names(), rubric.scale, hashes)
    write_json(study.folder / "agreement.json", groups)
    write_json(study.folder / "verdicts.json", found)
    return groups, found


def read_verdicts(study: Study) -> list[Verdict]:
    """The verdicts reached last."""
    return read_models(study.folder / "verdicts.json", Verdict, COMMAND)


def refuse_stale(study: Study, found: Sequence[Verdict]) -> None:
    """Raise DataError where verdicts no longer follow from what is on disk: other ratings, sample or rule."""
    for verdict in found:
        changed = [
            f"{name}.parquet"
            for name, was in (("pairs", verdict.pairs_sha256), ("ratings", verdict.ratings_sha256))
            if (file := study.folder / f"{name}.parquet").exists() and file_hash(file) != was
        ]
        if verdict.rule_id != rule_id(study):
            changed.append("the study's rule (acceptance, raters.per_pair)")
        if changed:
            raise DataError(f"{' and '.join(changed)} changed after the verdicts were reached; run `{COMMAND}` again")


def rule_id(study: Study) -> str:
    """Identity of the rule that ratings are judged by: the acceptance, and how many ratings a pair count."""
    return identity("rule-v1", study.acceptance.model_dump(), study.raters.per_pair)


def read_agreement(study: Study) -> list[Group]:
    """Table 2 as computed last."""
    return read_models(study.folder / "agreement.json", Group, COMMAND)


def verdicts(
    pairs: Sequence[Pair],
    ratings: pd.DataFrame,
    rule: AcceptanceSpec,
    questions: Sequence[str],
    scale: Sequence[int],
    hashes: Mapping[str, str],
) -> list[Verdict]:
    """One verdict for each transformation and language of the sample, in the sample's order.

    `ratings` are those that count. A transformation is judged on its pool's ratings in that language
    (translation and cross_translation are rated as one). `hashes` are the verdicts' fields that
    name what they rest on: pairs_sha256, ratings_sha256, rule_id.
    """
    found = []
    pools = {pair.pair_id: pair.pool for pair in pairs}
    for transformation, language in dict.fromkeys((pair.transformation, pair.language) for pair in pairs):
        own = [pair for pair in pairs if (pair.transformation, pair.language) == (transformation, language)]
        pool = own[0].pool
        judged = [pair for pair in pairs if (pair.pool, pair.language) == (pool, language)]
        of_pool = ratings[(ratings["pair_id"].map(pools) == pool) & (ratings["language"] == language)]
        n_pairs = _rated_pairs(of_pool, questions, rule.min_raters)
        summaries = tuple(summarise(of_pool, question, scale) for question in questions)
        decision, reasons = decide(summaries, n_pairs, rule)
        found.append(
            Verdict.model_validate(
                {
                    "transformation": transformation,
                    "axis": own[0].axis,
                    "pool": pool,
                    "language": language,
                    "output_languages": tuple(sorted({pair.output_language for pair in judged})),
                    "decision": decision,
                    "reasons": reasons,
                    "n_pairs": n_pairs,
                    "n_ratings": len(of_pool),
                    "questions": summaries,
                    "threshold": rule.threshold,
                    "simulated": bool(of_pool["simulated"].any()),
                    "model": own[0].model,
                    "generator_hash": own[0].generator_hash,
                    "prompt_hash": own[0].prompt_hash,
                    **hashes,
                }
            )
        )
    return found


def decide(summaries: Sequence[Summary], n_pairs: int, rule: AcceptanceSpec) -> tuple[str, tuple[str, ...]]:
    """(decision, reasons) of one group of ratings: too few is undecided, whatever the means say.

    A mean that is not a number never passes.
    """
    if n_pairs < rule.min_pairs:
        return "undecided", (
            f"pairs with at least {rule.min_raters} raters: {n_pairs}, of at least {rule.min_pairs} that are needed",
        )
    unknown = [summary.question for summary in summaries if math.isnan(summary.mean)]
    if unknown:
        return "undecided", tuple(f"no mean {question}" for question in unknown)
    failed = [summary for summary in summaries if not summary.mean >= rule.threshold]
    if failed:
        return "rejected", tuple(f"mean {s.question} {s.mean:.2f} is below {rule.threshold:g}" for s in failed)
    means = ", ".join(f"{summary.question} {summary.mean:.2f}" for summary in summaries)
    return "accepted", (f"mean {means}: at least {rule.threshold:g}",)


def _rated_pairs(ratings: pd.DataFrame, questions: Sequence[str], min_raters: int) -> int:
    """Pairs that enough raters answered, on every question."""
    counts = ratings.groupby(["pair_id", "question"])["rater_id"].nunique().unstack("question")
    counts = counts.reindex(columns=list(questions)).fillna(0)
    return int((counts >= min_raters).all(axis=1).sum())


def _check_ratings(ratings: pd.DataFrame, pairs: Sequence[Pair], scale: Sequence[int]) -> None:
    """Refuse ratings that do not belong here: of other pairs, or off the scale."""
    strange = set(ratings["pair_id"]) - {pair.pair_id for pair in pairs}
    if strange:
        raise DataError(
            f"{len(strange)} rated pairs are not in the sample (first {min(strange)});"
            " run `python -m annotation collect --study ...` again"
        )
    values = ratings.loc[ratings["status"] == "submitted", "value"]
    if values.isna().any() or not values.isin(scale).all():
        raise DataError(f"ratings.parquet holds submitted values off the scale {scale[0]} to {scale[-1]}")
