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
from generation.exceptions import DataError, StudyError
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
    """The sets of rules that were fixed, the oldest first; none before publishing. DataError for a damaged file."""
    path = study.folder / "rules.json"
    try:
        found = read_models(path, RuleSet, COMMAND) if path.exists() else []
        if path.exists() and not found:
            raise DataError("it holds no rules")
        return found
    except DataError:
        raise DataError(
            f"{path} is damaged; bring it back from a copy: without it nothing shows when the rules were fixed"
        ) from None


def first_rating(ratings: pd.DataFrame) -> datetime | None:
    """When the first submitted rating was given, of those that were collected; None before it."""
    times = ratings.loc[ratings["status"] == "submitted", "submitted_at"]
    return times.min().to_pydatetime() if len(times) else None


def binding(fixed: Sequence[RuleSet], first: datetime | None) -> RuleSet | None:
    """The rules that hold: those fixed last before the first rating, or the last ones that replaced them with a reason.

    What was fixed after it without a reason (published again while ratings stood on the server that nobody had
    collected yet) never held. Where all were fixed too late, the first ones hold.
    """
    held = [one for one in fixed[1:] if one.reason or first is None or one.fixed_at <= first]
    return held[-1] if held else next(iter(fixed), None)


def other_rules(study: Study, ratings: pd.DataFrame) -> list[str]:
    """What the study says otherwise than the rules that hold; `ratings` are all that were collected."""
    holds = binding(read_rules(study), first_rating(ratings))
    return changes(holds.rules, rules_of(study)) if holds else []


def refuse_other_rules(study: Study, ratings: pd.DataFrame) -> None:
    """Raise StudyError where the study's rules are not those that hold since the first rating."""
    what, first = other_rules(study, ratings), first_rating(ratings)
    if not what or first is None:
        return
    line = f"{study.file}: changed after the first rating ({first:%Y-%m-%d %H:%M} UTC): {'; '.join(what)}; undo it, or"
    if any(one.startswith("raters.per_pair ") for one in what):
        raise StudyError(f"{line} give the new study another name: so many ratings were asked for")
    raise StudyError(f'{line} run `python -m annotation accept --study ... --amend "reason"`, which every report shows')


def fix_rules(study: Study, amend: str | None = None) -> None:
    """See that the study's rules are the ones that hold, and fix them where they may be.

    Before the first collected rating they may be changed. After it `amend` must say why. Raises StudyError for a
    change without a reason, for a reason without a change, and for a number of ratings that is no longer the one that
    raters were asked for.
    """
    ratings, fixed = read_all_ratings(study), read_rules(study)
    reason = " ".join((amend or "").split())
    what = other_rules(study, ratings)
    if amend is not None and not (what and reason):
        why = "say why the rules changed" if what else "leave it out: the rules are those that were fixed"
        raise StudyError(f"{study.file}: --amend: {why}")
    if not reason or any(one.startswith("raters.per_pair ") for one in what):
        refuse_other_rules(study, ratings)
    if what or not fixed:
        late = reason if first_rating(ratings) is not None else ""
        added = RuleSet(fixed_at=datetime.now(UTC), rules=rules_of(study), reason=late)
        write_json(study.folder / "rules.json", [*fixed, added])


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What differs between two sets of rules: `acceptance.threshold 3.0, now 2.5`."""
    old, new = _flat(before), _flat(after)
    names = list(dict.fromkeys([*old, *new]))
    return [f"{name} {old.get(name)}, now {new.get(name)}" for name in names if old.get(name) != new.get(name)]


def amendments(fixed: Sequence[RuleSet], first: datetime | None) -> list[tuple[RuleSet, list[str]]]:
    """The sets of rules that replaced others after the first rating, each with what it changed."""
    found = []
    for place, one in enumerate(fixed):
        before = binding(fixed[:place], first)
        if one.reason and before is not None:
            found.append((one, changes(before.rules, one.rules)))
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
    held = binding([one for one in fixed if not one.reason], first) or fixed[0]
    at = f"The rules were fixed on {held.fixed_at:%Y-%m-%d at %H:%M} UTC"
    if first is None:
        return f"{at}; there is no rating yet."
    order = "before" if held.fixed_at < first else "AFTER"
    return f"{at}, {order} the first rating ({first:%Y-%m-%d, %H:%M} UTC)."


def _flat(rules: dict[str, Any]) -> dict[str, Any]:
    return {f"{part}.{name}": value for part, own in rules.items() for name, value in own.items()}
