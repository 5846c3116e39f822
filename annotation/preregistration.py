"""The rules that ratings are judged by are fixed before the first rating (PTEB, appendix B), and this is the proof.

`rules.json` has each set of rules with the time when it was fixed: publishing fixes them. A change after the first
rating needs a reason, which every report shows; what was fixed when can be held against the ratings' own times.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from annotation.ratings import read_all_ratings
from annotation.records import RuleSet
from generation.exceptions import StudyError
from generation.store import read_models, write_json
from generation.study import Study

COMMAND = "python -m annotation publish --study ..."


def rules_of(study: Study) -> dict[str, Any]:
    """What the study says about judging ratings and raters."""
    return {
        "acceptance": study.acceptance.model_dump(mode="json"),
        "quality": study.quality.model_dump(mode="json"),
        "raters": {"per_pair": study.raters.per_pair},
    }


def read_rules(study: Study) -> list[RuleSet]:
    """The sets of rules that were fixed, the oldest first; none before publishing."""
    path = study.folder / "rules.json"
    return read_models(path, RuleSet, COMMAND) if path.exists() else []


def first_rating(ratings: pd.DataFrame) -> datetime | None:
    """When the first submitted rating was given, of those that were collected; None before it."""
    times = ratings.loc[ratings["status"] == "submitted", "submitted_at"]
    return times.min().to_pydatetime() if len(times) else None


def fix_rules(study: Study, amend: str = "") -> RuleSet:
    """See that the study's rules are the ones that are fixed, fix them where they may be, and return them.

    Before the first collected rating they may be changed. After it `amend` must say why. Raises StudyError for a
    change without a reason, and for a reason without a change.
    """
    fixed, now, first = read_rules(study), rules_of(study), first_rating(read_all_ratings(study))
    reason = " ".join(amend.split())
    changed = bool(fixed) and fixed[-1].rules != now
    # Changed and published again while ratings stood on the server that nobody had collected yet.
    since = next((place for place in range(len(fixed) - 1, 0, -1) if fixed[place].reason), 0)
    late = any(_late(one, first) for one in fixed[since + 1 :])
    if reason and not changed and not late:
        raise StudyError(f"{study.file}: the rules are those that were fixed; leave --amend out")
    if (late or (changed and first is not None)) and not reason:
        before = next((one for one in reversed(fixed) if one.reason or not _late(one, first)), fixed[0])
        what = "; ".join(changes(before.rules, now))
        raise StudyError(
            f"{study.file}: changed after the first rating ({first:%Y-%m-%d %H:%M} UTC): {what}; undo it, or run"
            ' `python -m annotation accept --study ... --amend "reason"`, which every report shows'
        )
    if fixed and not changed and not late:
        return fixed[-1]
    added = RuleSet(fixed_at=datetime.now(UTC), rules=now, reason=reason)
    write_json(study.folder / "rules.json", [*fixed, added])
    return added


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What differs between two sets of rules: `acceptance.threshold 3.0, now 2.5`."""
    old, new = _flat(before), _flat(after)
    names = list(dict.fromkeys([*old, *new]))
    return [f"{name} {old.get(name)}, now {new.get(name)}" for name in names if old.get(name) != new.get(name)]


def amendments(fixed: Sequence[RuleSet], first: datetime | None) -> list[tuple[RuleSet, list[str]]]:
    """The sets of rules that replaced others after the first rating, each with what it changed."""
    found, before = [], fixed[:1]
    for one in fixed[1:]:
        if one.reason:
            found.append((one, changes(before[0].rules, one.rules)))
        if one.reason or not _late(one, first):
            before = [one]
    return found


def amendment_lines(fixed: Sequence[RuleSet], first: datetime | None) -> list[str]:
    """A line for each change of the rules after the first rating."""
    return [
        f"Amended after the first rating, on {one.fixed_at:%Y-%m-%d at %H:%M} UTC: {one.reason} ({'; '.join(what)})."
        for one, what in amendments(fixed, first)
    ]


def fixed_text(fixed: Sequence[RuleSet], first: datetime | None) -> str:
    """When the rules were fixed and when the first rating was given, in one sentence that says which came first."""
    if not fixed:
        return "The rules were not fixed yet; publishing fixes them."
    at = f"The rules were fixed on {fixed[0].fixed_at:%Y-%m-%d at %H:%M} UTC"
    if first is None:
        return f"{at}; there is no rating yet."
    order = "before" if fixed[0].fixed_at < first else "AFTER"
    return f"{at}, {order} the first rating ({first:%Y-%m-%d, %H:%M} UTC)."


def _late(one: RuleSet, first: datetime | None) -> bool:
    """Whether rules were fixed without a reason when there was a rating already."""
    return first is not None and one.fixed_at > first and not one.reason


def _flat(rules: dict[str, Any]) -> dict[str, Any]:
    return {f"{part}.{name}": value for part, own in rules.items() for name, value in own.items()}
