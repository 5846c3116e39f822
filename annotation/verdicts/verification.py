"""Whether records that were computed still say what follows from the ratings: nobody's hand may decide for raters.

Verdicts, means of pairs and Table 2 are computed again, without what is resampled (intervals of agreement, which decide
nothing); what differs is named. Records of another version of the program may differ too: its advice is the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from annotation.records import Group, PairMean, Verdict
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.held import with_checks
from annotation.verdicts.judged import unit_of, with_judged
from annotation.verdicts.marks import with_rules_fixed
from annotation.verdicts.rules import in_words
from annotation.verdicts.verdicts import COMMAND, conclude, read_agreement, read_pair_means, with_supply
from plumbline.errors import DataError
from plumbline.languages import language_name
from plumbline.manifest import read_manifest
from plumbline.study import Study, file_hash

_NEAR = 1e-5  # relative; what other versions of numpy and scipy may differ by, and irrCAC rounds by
_RESAMPLED = ("alpha", "kappa", "raw")  # their intervals, or they themselves, take long and decide nothing
_UNSAID = (
    "n_withdrawn",
    "decision_with_withdrawn",
    "decision_people",
    "rules_fixed",
)  # written where they say anything
_REST = (
    "pairs_sha256",
    "ratings_sha256",
    "rule_id",
    "rubric_hash",
    "generator_kind",
    "withdrawn_hash",
    "kept_hash",
)  # see `refuse_stale`


def refuse_edited(study: Study, found: Sequence[Verdict], evidence: Evidence | None = None) -> None:
    """Raise DataError where verdicts, pairs' means or Table 2 do not say what pairs, ratings and rules say.

    `found` are the verdicts that `refuse_stale` has let through, `evidence` is for who has it at hand. Raises
    StudyError for rules that changed unsaid.
    """
    if not found:
        return
    rests = evidence or Evidence.read(study)
    rests.refuse_other_rules()
    means = read_pair_means(study) if (study.folder / "pair_means.parquet").exists() else None
    groups = read_agreement(study) if (study.folder / "agreement.json").exists() else None
    for file, what in differences(rests, found, means, groups):
        raise DataError(
            f"{study.folder / file}: {what} (edited by hand, or made by another version); run"
            f" `{study.command(COMMAND)}` again"
        )


def differences(
    evidence: Evidence, found: Sequence[Verdict], means: pd.DataFrame | None, groups: Sequence[Group] | None
) -> Iterator[tuple[str, str]]:
    """(file, what it says otherwise than what follows from the evidence); None where there is no such record."""
    pairs, ratings = evidence.collected.sample_pairs, evidence.collected.sample_ratings
    withdrawn = evidence.collected.withdrawn
    due, follow, own = conclude(pairs, ratings, evidence.design, dict.fromkeys(_REST[:3], ""), None, withdrawn)
    follow = with_rules_fixed(with_supply(follow, evidence.supply), evidence.rules_fixed[0])
    if evidence.study.acceptance.judges.use == "decide":  # whether judges said so, their records tell
        follow = with_judged(follow, {unit_of(one): one.judged for one in found}, evidence.design.rule)
    follow = with_checks(follow, evidence)
    yield from (("verdicts.json", one) for one in _other_verdicts(found, follow))
    if means is not None:
        yield from (("pair_means.parquet", one) for one in _other_means(means, own))
    if groups is not None:
        yield from (("agreement.json", one) for one in _other_groups(groups, due))


def refuse_other_file(study: Study) -> None:
    """Raise DataError where verdicts.json is not the file that `accept` wrote: a quick look, by the manifest alone.

    What differs, and whether that matters, is told by `refuse_edited`.
    """
    path = study.folder / "verdicts.json"
    was = read_manifest(study).get("stages", {}).get("accept", {}).get("outputs", {}).get(path.name)
    if was is not None and file_hash(path) != was:
        line = f"{path} is not what was written (edited by hand, or cut off)"
        raise DataError(f"{line}; run `{study.command(COMMAND)}` again")


def _other_verdicts(found: Sequence[Verdict], follow: Sequence[Verdict]) -> Iterator[str]:
    """What verdicts say otherwise than those that follow, the decisions first."""
    numbers, right = Counter(map(unit_of, found)), {unit_of(one): one for one in follow}
    for unit, number in numbers.items():
        if unit not in right:
            yield f"has a verdict on {_named(*unit)}, of which there are no pairs"
        if number > 1:
            yield f"the verdict on {_named(*unit)} stands there {number} times"
    for unit in right:
        if unit not in numbers:
            yield f"lacks the verdict on {_named(*unit)}"
    for fields in (("decision",), tuple(Verdict.model_fields)):
        for one in (one for one in found if unit_of(one) in right):
            own, due = _said(one), _said(right[unit_of(one)])
            for name in (name for name in own if name.split(".")[0] in fields):
                yield from _difference(_named(*unit_of(one)), name, own[name], due.get(name))


def _other_means(found: pd.DataFrame, follow: pd.DataFrame) -> Iterator[str]:
    """What pairs' means say otherwise: the first difference in each column."""
    key = list(PairMean.KEY)
    own, due = (frame.sort_values(key, ignore_index=True) for frame in (found, follow))
    keys, right = (list(zip(*(frame[name] for name in key), strict=True)) for frame in (own, due))
    if keys != right:
        pair_id, question = min(set(keys) ^ set(right), default=(keys or right)[0])
        lost = (pair_id, question) in set(right)
        yield f"pair {pair_id}, {question}, {'is missing' if lost else 'is not among those that were rated'}"
        return
    for name in ("transformation", "language", "n_ratings", "decision"):
        for place in np.flatnonzero(own[name].to_numpy(object) != due[name].to_numpy(object))[:1]:
            yield from _difference(f"pair {', '.join(keys[place])},", name, own[name][place], due[name][place])
    for place in np.flatnonzero(~np.isclose(own["mean"], due["mean"], rtol=_NEAR, atol=_NEAR, equal_nan=True))[:1]:
        yield from _difference(f"pair {', '.join(keys[place])},", "mean", own["mean"][place], due["mean"][place])


def _other_groups(found: Sequence[Group], follow: Sequence[Group]) -> Iterator[str]:
    """What rows of Table 2 say otherwise."""
    right = {(one.level, one.name): one for one in follow}
    if [(one.level, one.name) for one in found] != list(right):
        yield "its rows are not those of the ratings"
        return
    for one in found:
        own, due = _said(one), _said(right[one.level, one.name])
        for name, value in own.items():
            yield from _difference(one.name, name, value, due.get(name))


def _said(record: Verdict | Group) -> dict[str, Any]:
    """What a record says of ratings, by the names of its fields: `decision`, `questions.quality.mean`."""
    whole = record.model_dump(exclude={*_REST, "questions", "probabilities", "judged"})
    if isinstance(record, Verdict):
        sure = zip(map(in_words, record.rules), record.probabilities, strict=False)
        whole |= {f"probabilities.{rule}": one.probability for rule, one in sure}
        whole |= {name: getattr(record, name) for name in _UNSAID}
    for summary in record.questions:
        own = summary.model_dump(exclude={"question", "shares", "ranks", "coefficients", *_RESAMPLED})
        own |= {f"share of {one.label}": one.share.model_dump() for one in summary.shares}
        own |= {f"rank of {one.label}": one.rank.model_dump() for one in summary.ranks}
        own |= {
            f"{one.name} {one.label}".strip(): one.estimate.model_dump()
            for one in summary.coefficients
            if not one.name.startswith("alpha")  # resampled
        }
        whole |= {f"questions.{summary.question}.{name}": value for name, value in _flat(own)}
    return whole | {"questions": tuple(summary.question for summary in record.questions)}


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", one) for inner, one in _flat(value))
        else:
            yield name, value


def _difference(place: str, name: str, said: Any, due: Any) -> Iterator[str]:
    if not same(said, due):
        what = name.removeprefix("questions.").replace(".", " ").replace("_", " ")
        yield f"{place} says {_words(what, said)}, its ratings say {_words('', due)}"


def _words(what: str, value: Any) -> str:
    text = (
        ", ".join(map(str, value))
        if isinstance(value, tuple)
        else f"{value:.6g}"
        if _number(value)
        else str(value) or "nothing"
    )
    return text if what in ("", "decision") else f"{what} {text}"


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, but for what other versions of libraries may make of a number."""
    if _number(one) and _number(other):
        return math.isclose(one, other, rel_tol=_NEAR, abs_tol=_NEAR) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _named(transformation: str, language: str, task_type: str) -> str:
    return f"{transformation} in {language_name(language)}" + (f" ({task_type})" if task_type else "")
