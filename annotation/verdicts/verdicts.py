"""Verdicts: which transformations people accept (HTEB, section 2.4: mean of at least 3 for quality and for fluency).

Pure functions from ratings, pairs and the study's rule to records; `acceptance` writes these.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from annotation.campaign.counting import PairCoverage, counting_ratings, coverage_of, stays
from annotation.questions.summary import Chance, MeanOfAnswers
from annotation.records import RuleResult, Supply, Verdict
from annotation.sampling.queues import SCOPES
from annotation.statistics.summaries import Design, coded, compact, summarise
from annotation.verdicts.counted import Basis, Place, answers, basis, with_facts
from annotation.verdicts.rules import decide, rules_for
from plumbline.frames import is_among
from plumbline.study.campaign import RuleSpec


def chances(ratings: pd.DataFrame, rules: Sequence[RuleSpec], design: Design) -> tuple[Chance, ...]:
    """Return P of each rule for one group's counting ratings, in the rules' order.

    It comes from the test that gives the interval's ends (`MeanOfAnswers`).
    """
    chances = []
    for rule in rules:
        of_question = ratings[ratings["question"] == rule.question]
        if of_question.empty:
            chances.append(Chance(probability=math.nan, reason="no ratings that a verdict can rest on"))
            continue
        answers = design.asked(rule.question).judged(of_question, rule.label)
        reached = MeanOfAnswers(answers, design.rule.interval).reached(rule.limit)
        at_most = Chance(probability=1 - reached.probability, reason=reached.reason)
        chances.append(reached if rule.at_least is not None else at_most)
    return tuple(chances)


def pair_means(ratings: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Return each rated pair's mean on each question, and whether it reaches the threshold: columns of `PairMean`.

    `ratings` are those that count. A pair with fewer than `min_raters` on any question is undecided. Texts have no
    rows. With own rules each row says whether the pair's ratings meet them all.
    """
    judged_ratings = ratings[
        ratings["question"].isin([name for name in design.questions if not design.asked(name).free_text])
    ]
    keys = ["pair_id", "transformation", "language", "question"]
    means = judged_ratings.groupby(keys, as_index=False).agg(n_ratings=("value", "size"), mean=("value", "mean"))
    means["mean"] = means["mean"].astype(float)
    if design.rule.rules:
        reached = means["pair_id"].map(_own_decisions(judged_ratings, design))
    else:
        reaches = (means["mean"] >= design.rule.threshold) | ~means["question"].isin(design.rated)
        reached = pd.Series(np.where(reaches, "accepted", "rejected"), index=means.index)
    enough = means["pair_id"].astype(str).map(answers(ratings, design)) >= design.rule.min_raters
    means["decision"] = np.where(enough, reached, "undecided")
    return means


def _own_decisions(ratings: pd.DataFrame, design: Design) -> pd.Series:
    """Return each pair's decision: whether its mean or share meets all rules of its pool."""
    pools = ratings["transformation"].astype(str).map(design.pool_of)
    decided: dict[str, str] = {}
    for pool, of_pool in ratings.groupby(pools):
        pairs = list(of_pool["pair_id"].unique())
        met = np.ones(len(pairs), np.bool_)
        for rule in rules_for(str(pool), design.rule):
            means = design.pair_means(of_pool, rule).reindex(pairs).to_numpy(np.float64)  # NaN meets no rule
            met &= means >= rule.limit if rule.at_least is not None else means <= rule.limit
        decided |= dict(zip(pairs, np.where(met, "accepted", "rejected"), strict=True))
    return pd.Series(decided)


def accepted_pairs(means: pd.DataFrame, questions: Collection[str]) -> frozenset[str]:
    """Return the ids of pairs accepted on every question asked of them; `means` are those of `pair_means`."""
    of_questions = means[means["question"].isin(questions)]
    return frozenset(of_questions["pair_id"]) - frozenset(
        of_questions.loc[of_questions["decision"] != "accepted", "pair_id"]
    )


_MAKER = ("model", "generator_hash", "prompt_hash", "generator_kind")  # of a text


def judged_sample(
    sample: pd.DataFrame, ratings: pd.DataFrame, design: Design, seed: int | None, withdrawn: Collection[str] = (),
    rests: Basis | None = None,
) -> list[Verdict]:  # fmt: skip
    """Return the verdicts on a sample and all of its ratings, with what exclusions and withdrawals change.

    `seed` is that of resampling pairs for intervals of agreement, on which no decision rests; None leaves these out.
    `withdrawn` are the pairs that people withdrew, as marked in the ratings. `rests` is their basis, if known.
    """
    ratings = coded(ratings)
    coverage = coverage_of(ratings, withdrawn) if design.blocks else None
    rests = rests or basis(sample, counting_ratings(ratings, design.per_pair), design, coverage)
    judged = _verdicts(sample, rests, design, seed)
    judged = with_exclusions(judged, sample, ratings, design, withdrawn)
    return with_withdrawals(judged, sample, ratings, design, withdrawn)


def verdicts(
    sample: pd.DataFrame, ratings: pd.DataFrame, design: Design, seed: int | None, coverage: PairCoverage | None = None
) -> list[Verdict]:
    """Return a verdict for each transformation and language of the sample (and task, with scope `task`), in its order.

    `sample` has rows of `Pair`, `ratings` are those that count. A transformation is judged on its pool's ratings
    (translation and cross_translation are rated as one): all of them, those in its language, or those of its language
    and task, as the rule's scope says. Only pairs that count (`verdicts.counted`) enter. `coverage` says which pairs
    need not be waited for (`annotation.campaign.counting.coverage_of`). `seed` is as for `judged_sample`.
    """
    return _verdicts(sample, basis(sample, ratings, design, coverage), design, seed)


def _verdicts(sample: pd.DataFrame, rests: Basis, design: Design, seed: int | None) -> list[Verdict]:
    key = SCOPES[design.rule.scope]
    sample = sample.assign(counted=is_among(sample["pair_id"], rests.ratings["pair_id"].unique()))
    judged, records = _judged(sample, rests, design, seed), []
    in_groups = sample.groupby([*key, "transformation"], sort=False)["counted"]
    groups = in_groups.agg(["sum", "size"]).groupby(key, sort=False)
    numbers = {group_key: rows.droplevel([*key]) for group_key, rows in groups}
    for row in sample.drop_duplicates(["transformation", "language", *key[2:]]).to_dict("records"):
        group_key = tuple(row[name] for name in key)
        result = _of_its_own(judged[group_key], numbers[group_key], row["transformation"], design)
        unit = {name: row[name] for name in ("transformation", "axis", "pool", "language")}
        records.append(
            Verdict.model_validate(
                {
                    **unit,
                    **result,
                    "task_type": row["task_type"] if "task_type" in key else "",
                    "origin": {name: row[name] for name in _MAKER},
                }
            )
        )
    return records


def _of_its_own(
    result: Mapping[str, object], pairs: pd.DataFrame, transformation: str, design: Design
) -> dict[str, object]:
    """Return a pool's result for one of its transformations: undecided if too few of the pairs are its own.

    `pairs` are the numbers of pairs that count (`sum`), and that were drawn (`size`), by transformation. With blocks
    the drawn ones must be enough, since a look stops the offers of the whole pool.
    """
    if len(pairs) == 1:
        return dict(result)
    number, least = int(pairs["size" if design.blocks else "sum"][transformation]), design.rule.min_pairs
    pooled = {"pooled": {str(name): int(number) for name, number in pairs["sum"].items()}}
    if number >= least or result["decision"] == "undecided":
        return {**result, **pooled}
    reason = f"pairs of {transformation} itself in the pool: {number}; at least {least} are needed"
    return {**result, **pooled, "decision": "undecided", "reasons": (reason,)}


def with_supply(
    verdicts: Sequence[Verdict], supplies: Sequence[Supply], sample: pd.DataFrame, ratings: pd.DataFrame
) -> list[Verdict]:
    """Add to the verdicts what the sample was drawn from, and the shares of outputs that could not be drawn.

    What a wave added is left out until one of its own pairs has a rating.
    """
    unit = ["transformation", "language"]
    seen = (sample["wave"] == 1) | is_among(sample["pair_id"], ratings["pair_id"].unique())
    pairs = sample[[*unit, "dataset", "seed", "wave"]].assign(seen=seen)
    drawn = pairs.groupby([*unit, "dataset", "seed"], observed=True)["seen"].any()
    newest = pairs[pairs["wave"] == pairs.groupby(unit, observed=True)["wave"].transform("max")]
    in_newest = newest.groupby(unit, observed=True)["seen"].any()
    facts = {}
    for supply in supplies:
        group, outputs = (supply.transformation, supply.language), defaultdict[str, dict[int, str]](dict)
        for dataset, seeds in supply.outputs.items():
            for seed, pool in seeds.items():
                if drawn.get((*group, dataset, seed), in_newest.get(group, True)):
                    outputs[dataset][seed] = pool
        facts[group] = supply.model_copy(update={"outputs": dict(outputs)})
    return [
        verdict.model_copy(update={"supply": facts.get((verdict.transformation, verdict.language))})
        for verdict in verdicts
    ]


def _judged(sample: pd.DataFrame, rests: Basis, design: Design, seed: int | None) -> dict[Place, dict[str, object]]:
    """Return the fields of verdicts by the key of each group that the rule's scope judges apart."""
    rule, key, rated = design.rule, SCOPES[design.rule.scope], compact(rests.ratings)
    groups = {tuple(map(str, group_key)): group for group_key, group in rated.groupby(key, observed=True)}

    def judge(group: tuple[tuple[object, ...], pd.DataFrame]) -> tuple[Place, dict[str, object]]:
        names, pairs = group
        group_key, counting = tuple(map(str, names)), pairs[pairs["counted"]]
        of_group = groups.get(group_key, rated.iloc[:0])
        n_pairs = int(of_group["pair_id"].nunique())
        progress = rests.blocks.get(group_key)
        level = None if progress is None else progress.level
        summaries = tuple(
            summarise(of_group, name, design, seed, level=level)
            for name in design.questions
            if design.asked(name).asked_in(group_key[0])
        )
        if progress is not None:
            summaries = tuple(progress.corrected(summary, one_threshold=not rule.rules) for summary in summaries)
        rules = rules_for(group_key[0], rule)
        probabilities = (
            chances(of_group, rules, design) if progress is None else [sure for _, sure in progress.chances if rules]
        )
        decision, reasons = decide(summaries, n_pairs, rule, rules, by_blocks=bool(design.blocks))
        if progress is not None and progress.decision != decision:
            reasons = (
                f"the look did not decide when it was taken, and this stands, although ratings have changed:"
                f" {'; '.join(reasons)}",
            )
            decision = progress.decision
        return group_key, {
            "output_languages": tuple(sorted(pairs["output_language"].unique())),
            "decision": decision,
            "reasons": reasons,
            "result": RuleResult(
                rule=rule.rule,
                threshold=math.nan if rule.rules else rule.threshold,
                rules=tuple(rules),
                scope=rule.scope,
                probabilities=tuple(probabilities),
                **({"blocks": progress.ends, "looks": progress.looks} if progress else {}),
            ),
            "n_pairs": n_pairs,
            "waves": tuple(sorted(map(int, (counting if len(counting) else pairs)["wave"].unique()))),
            "questions": summaries,
            "simulated": bool(of_group["simulated"].any()),
        }

    return dict(judge(group) for group in sample.groupby(key, sort=False))


def with_exclusions(
    reached: Sequence[Verdict],
    sample: pd.DataFrame,
    ratings: pd.DataFrame,
    design: Design,
    withdrawn: Collection[str] = (),
) -> list[Verdict]:
    """Add to the verdicts the number of excluded ratings, and the decisions had they counted.

    `ratings` are all of the sample's; pairs that were `withdrawn` play no part. Where nothing was excluded, the
    verdicts are as they were.
    """
    excluded = (ratings["status"] == "submitted") & (ratings["excluded"] != "") & stays(ratings)
    if not excluded.any():
        return list(reached)
    every = counting_ratings(ratings, design.per_pair, with_excluded=True)
    alternatives = verdicts(sample, every, design, None, coverage_of(ratings, withdrawn))
    key = SCOPES[design.rule.scope]
    counts = Counter(with_facts(ratings[excluded], sample, key)[key].itertuples(index=False, name=None))
    return [
        verdict.reviewed(
            n_excluded=counts[tuple(getattr(verdict, name) for name in key)], with_excluded=alternative.decision
        )
        for verdict, alternative in zip(reached, alternatives, strict=True)
    ]


def with_withdrawals(
    reached: Sequence[Verdict], sample: pd.DataFrame, ratings: pd.DataFrame, design: Design, withdrawn: Collection[str]
) -> list[Verdict]:
    """Add to the verdicts the number of `withdrawn` pairs, and the decisions had the rated ones stayed.

    `ratings` are all of the sample's. A withdrawn pair that nobody rated plays no part: had it stayed, it would have
    been waited for. Where nothing was withdrawn, the verdicts are as they were.
    """
    if not is_among(sample["pair_id"], withdrawn).any():
        return list(reached)
    rated = set(ratings.loc[ratings["status"] == "submitted", "pair_id"]) & set(withdrawn)
    staying = ratings.assign(withdrawn="")
    counting = counting_ratings(staying, design.per_pair)
    raters = {**coverage_of(staying).raters, **dict.fromkeys(rated, design.per_pair)}  # nobody is asked for more
    alternatives = verdicts(sample, counting, design, None, PairCoverage(raters, set(withdrawn) - rated))
    key = SCOPES[design.rule.scope]
    counts, of_rated = (
        Counter(sample.loc[is_among(sample["pair_id"], some), key].itertuples(index=False, name=None))
        for some in (withdrawn, rated)
    )
    return [
        verdict.reviewed(
            n_withdrawn=counts[group_key], with_withdrawn=alternative.decision if of_rated[group_key] else None
        )
        for verdict, alternative in zip(reached, alternatives, strict=True)
        for group_key in [tuple(getattr(verdict, name) for name in key)]
    ]
