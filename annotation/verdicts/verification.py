"""Verification of computed records against the ratings, so that no manual edit replaces the raters' decision.

Verdicts, means of pairs and Table 2 are computed again, except resampled intervals of agreement, which decide nothing;
differences are named.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from annotation.campaign_records import AGREEMENT, PAIR_MEANS, VERDICTS, CampaignRecords
from annotation.records import Group, PairMean, Verdict
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.held import with_checks
from annotation.verdicts.rules import in_words, with_rules_fixed
from annotation.verdicts.verdicts import COMMAND, conclude, refuse_stale, with_supply
from plumbline.errors import DataError
from plumbline.languages import language_name

_NEAR = 1e-5  # relative difference between versions of numpy and scipy, and by rounding in irrCAC
_RESAMPLED = ("alpha", "kappa", "raw")  # their values or intervals take long and decide nothing
_REST = ("rests_on",)  # see `refuse_stale`


def refuse_edited(evidence: Evidence, verdicts: Sequence[Verdict]) -> None:
    """Raise DataError if verdicts, pairs' means or Table 2 do not follow from pairs, ratings and rules.

    `refuse_stale` must have accepted the `verdicts`. Raises StudyError for rules changed without a reason.
    """
    if not verdicts:
        return
    evidence.refuse_other_rules()
    means = evidence.pair_means if evidence.has(PAIR_MEANS) else None
    groups = evidence.agreement if evidence.has(AGREEMENT) else None
    for file, what in differences(evidence, verdicts, means, groups):
        raise DataError(
            f"{evidence.study.folder / file}: {what} (edited by hand); run `{evidence.study.command(COMMAND)}` again"
        )


def verified_verdicts(evidence: Evidence) -> list[Verdict]:
    """Return the verdicts reached last, after checking that they follow from the records on disk.

    Raises DataError before verdicts exist, or if ratings contradict them; StudyError for rules that changed without a
    note.
    """
    verdicts = evidence.verdicts
    if verdicts:
        evidence.read_all()
        refuse_stale(evidence, verdicts)
        refuse_edited(evidence, verdicts)
    return verdicts


def differences(
    evidence: Evidence, verdicts: Sequence[Verdict], means: pd.DataFrame | None, groups: Sequence[Group] | None
) -> Iterator[tuple[str, str]]:
    """Yield each file with its difference from the evidence's results; None stands for a missing record."""
    pairs, ratings = evidence.collected.sample_pairs, evidence.collected.coded_ratings
    withdrawn = evidence.collected.withdrawn
    due, follow, due_means = conclude(pairs, ratings, evidence.design, None, withdrawn)
    follow = with_supply(follow, evidence.supply, pairs, ratings)
    follow = with_rules_fixed(follow, evidence.rules_fixed[0])
    follow = with_checks(follow, evidence)
    yield from (("verdicts.json", line) for line in _other_verdicts(verdicts, follow))
    if means is not None:
        yield from (("pair_means.parquet", line) for line in _other_means(means, due_means))
    if groups is not None:
        yield from (("agreement.json", line) for line in _other_groups(groups, due))


def refuse_other_file(records: CampaignRecords) -> None:
    """Raise DataError if verdicts.json is not the file that `accept` wrote: a quick check, by the manifest alone.

    `refuse_edited` says what differs, and whether that matters.
    """
    was = records.manifest.get("stages", {}).get("accept", {}).get("outputs", {}).get(VERDICTS.name)
    if was is not None and records.sha256(VERDICTS) != was:
        line = f"{records.path(VERDICTS)} differs from what was written (edited by hand, or cut off)"
        raise DataError(f"{line}; run `{records.study.command(COMMAND)}` again")


def _other_verdicts(verdicts: Sequence[Verdict], follow: Sequence[Verdict]) -> Iterator[str]:
    """Yield the differences between verdicts and those that follow, the decisions first."""
    numbers, right = Counter(verdict.unit for verdict in verdicts), {verdict.unit: verdict for verdict in follow}
    for unit, number in numbers.items():
        if unit not in right:
            yield f"has a verdict on {_named(*unit)}, which has no pairs"
        if number > 1:
            yield f"has the verdict on {_named(*unit)} {number} times"
    for unit in right:
        if unit not in numbers:
            yield f"lacks the verdict on {_named(*unit)}"
    for fields in (("decision",), tuple(Verdict.model_fields)):
        for verdict in (verdict for verdict in verdicts if verdict.unit in right):
            written, due = _said(verdict), _said(right[verdict.unit])
            for name in (name for name in written if name.split(".")[0] in fields):
                yield from _difference(_named(*verdict.unit), name, written[name], due.get(name))


def _other_means(means: pd.DataFrame, follow: pd.DataFrame) -> Iterator[str]:
    """Yield the first difference in each column of the pairs' means."""
    key = list(PairMean.KEY)
    written, due = (frame.sort_values(key, ignore_index=True) for frame in (means, follow))
    keys, right = (list(zip(*(frame[name].tolist() for name in key), strict=True)) for frame in (written, due))
    if keys != right:
        pair_id, question = min(set(keys) ^ set(right), default=(keys or right)[0])
        lost = (pair_id, question) in set(right)
        yield f"pair {pair_id}, {question}, {'is missing' if lost else 'was not rated'}"
        return
    for name in ("transformation", "language", "n_ratings", "decision"):
        for row in np.flatnonzero(written[name].to_numpy(object) != due[name].to_numpy(object))[:1]:
            yield from _difference(f"pair {', '.join(keys[row])},", name, written[name][row], due[name][row])
    for row in np.flatnonzero(~np.isclose(written["mean"], due["mean"], rtol=_NEAR, atol=_NEAR, equal_nan=True))[:1]:
        yield from _difference(f"pair {', '.join(keys[row])},", "mean", written["mean"][row], due["mean"][row])


def _other_groups(groups: Sequence[Group], follow: Sequence[Group]) -> Iterator[str]:
    """Yield the differences between rows of Table 2."""
    right = {(group.level, group.name): group for group in follow}
    if [(group.level, group.name) for group in groups] != list(right):
        yield "its rows do not match the ratings"
        return
    for group in groups:
        written, due = _said(group), _said(right[group.level, group.name])
        for name, value in written.items():
            yield from _difference(group.name, name, value, due.get(name))


def _said(record: Verdict | Group) -> dict[str, Any]:
    """Return a record's facts about ratings by field name: `decision`, `questions.quality.mean`."""
    whole = record.model_dump(exclude={*_REST, "questions", "probabilities", "judged"})
    if isinstance(record, Verdict):
        sure = zip(map(in_words, record.rules), record.probabilities, strict=False)
        whole |= {f"probabilities.{rule}": chance.probability for rule, chance in sure}
    for summary in record.questions:
        values = summary.model_dump(exclude={"question", "shares", "ranks", "coefficients", *_RESAMPLED})
        values |= {f"share of {share.label}": share.share.model_dump() for share in summary.shares}
        values |= {f"rank of {rank.label}": rank.rank.model_dump() for rank in summary.ranks}
        values |= {
            f"{coefficient.name} {coefficient.label}".strip(): coefficient.estimate.model_dump()
            for coefficient in summary.coefficients
            if not coefficient.name.startswith("alpha")  # resampled
        }
        whole |= {f"questions.{summary.question}.{name}": value for name, value in _flat(values)}
    return whole | {"questions": tuple(summary.question for summary in record.questions)}


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", leaf) for inner, leaf in _flat(value))
        else:
            yield name, value


def _difference(about: str, name: str, written: Any, due: Any) -> Iterator[str]:
    if not same(written, due):
        what = name.removeprefix("questions.").replace(".", " ").replace("_", " ")
        yield f"{about} says {_words(what, written)}, but its ratings give {_words('', due)}"


def _words(what: str, value: Any) -> str:
    text = (
        ", ".join(map(str, value))
        if isinstance(value, tuple)
        else f"{value:.6g}"
        if _number(value)
        else str(value) or "nothing"
    )
    return text if what in ("", "decision") else f"{what} {text}"


def same(first: Any, second: Any) -> bool:
    """Return whether two values are equal, numbers within the differences between versions of libraries."""
    if _number(first) and _number(second):
        return math.isclose(first, second, rel_tol=_NEAR, abs_tol=_NEAR) or (math.isnan(first) and math.isnan(second))
    return bool(first == second)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _named(transformation: str, language: str, task_type: str) -> str:
    return f"{transformation} in {language_name(language)}" + (f" ({task_type})" if task_type else "")
