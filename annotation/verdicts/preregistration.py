"""Rules fixed before the first rating (PTEB, appendix B), and the proof that they were.

`rules.json` has each set of rules with the time when it was fixed: publishing fixes them. A change after the first
rating needs a reason, which every report shows; the times can be compared with those of the ratings. The rules include
the words of what raters are asked (`changes` returns the differences between two sets).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from annotation.campaign.counting import imported, untimed
from annotation.campaign.records import RULES, CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.records import NO_REASON, Fixed, RuleSet
from annotation.verdicts.rules import in_words
from plumbline.errors import StudyError
from plumbline.manifest import Manifest
from plumbline.study.campaign import RuleSpec
from plumbline.words import count

_LONGEST = 80  # characters of a wording that are quoted
_BEFORE = 20  # of these, the characters before the first that differs


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the differences between rules: `acceptance.threshold 3.0, now 2.5`, `rubric.questions.quality is gone`."""
    return [line for part in old for line in _differences(part, _named(old[part]), _named(new.get(part, {})))]


def _named(value: Any) -> Any:
    """Return the value with lists of named things as mappings by name, in their order."""
    if isinstance(value, Mapping):
        return {str(key): _named(entry) for key, entry in value.items()}
    if isinstance(value, list) and value and all(isinstance(entry, dict) and "name" in entry for entry in value):
        return {str(entry["name"]): _named(entry) for entry in value}
    return value


def _differences(path: str, old: Any, new: Any) -> Iterator[str]:
    if path == "acceptance.rules":
        yield from _differing_rules(path, [RuleSpec(**rule) for rule in old], [RuleSpec(**rule) for rule in new])
        return
    if not (isinstance(old, dict) and isinstance(new, dict)):
        if old != new:
            yield f"{path} {from_to(old, new)}"
        return
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield f"{path}.{name} is gone"
        elif name not in old:
            yield f"{path}.{name} is new"
        else:
            yield from _differences(f"{path}.{name}", old[name], new[name])
    if path == "rubric.questions" and list(old) != list(new) and set(old) == set(new):
        yield f"{path} {from_to(list(old), list(new))}"


def _differing_rules(path: str, old: Sequence[RuleSpec], new: Sequence[RuleSpec]) -> Iterator[str]:
    """Yield the differences between lists of rules, each in words; a rule on the same number is the same one."""
    gone, added = ([rule for rule in rules if rule not in others] for rules, others in ((old, new), (new, old)))
    for rule in gone:
        of_same = (now for now in added if _subject(now) == _subject(rule))
        if (changed := next(of_same, None)) is None:
            yield f"{path}: {in_words(rule)} is gone"
        else:
            added.remove(changed)
            yield f"{path}: {in_words(rule)}, now {in_words(changed)}"
    yield from (f"{path}: {in_words(rule)} is new" for rule in added)
    if old != new and set(old) == set(new):
        yield f"{path} {from_to(list(map(in_words, old)), list(map(in_words, new)))}"


def _subject(rule: RuleSpec) -> tuple[object, ...]:
    return rule.question, rule.label, rule.pools, rule.at_least is None


def from_to(old: Any, new: Any) -> str:
    """Return both values in a line, `3.0, now 2.5`; of long wordings the part that differs."""
    old_text, new_text = _plain(old), _plain(new)
    start = 0
    if max(len(old_text), len(new_text)) > _LONGEST:
        pairs = itertools.takewhile(lambda both: both[0] == both[1], zip(old_text, new_text, strict=False))
        same = sum(1 for _ in pairs)
        start = old_text.rfind(" ", 0, max(0, same - _BEFORE)) + 1
    return f"{_part(old_text, start)}, now {_part(new_text, start)}"


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value).replace("\n", " ") or "none"


def _part(text: str, start: int) -> str:
    """Return the part of a long wording that begins at `start`."""
    end = start + _LONGEST
    return f"{'...' if start else ''}{text[start:end]}{'...' if len(text) > end else ''}"


def rules_now(records: CampaignRecords) -> dict[str, Any]:
    """Return the study's present rules on judging ratings and raters, with its rubric."""
    study = records.study
    return {
        "acceptance": study.acceptance.model_dump(mode="json"),
        "raters": {"per_pair": study.raters.per_pair, "blocks": list(study.raters.blocks)},
        "sample": {"seed": study.sample.seed, "together": study.sample.together},
        "rubric": records.rubric.model_dump(mode="json"),
    }


def first_rating(ratings: pd.DataFrame) -> datetime | None:
    """Return the time of the first submitted rating; None before it."""
    times = ratings.loc[ratings["status"] == "submitted", "submitted_at"]
    return times.min().to_pydatetime() if len(times) else None


def binding(fixed: Sequence[RuleSet], first: datetime | None) -> RuleSet | None:
    """Return the rules that hold: the last fixed before the first rating, or the last that replaced them with a reason.

    Rules fixed after it without a reason (published again while the server had ratings that nobody had collected yet)
    never held. If all were fixed too late, the first ones hold.
    """
    in_force = [rule_set for rule_set in fixed[1:] if rule_set.reason or first is None or rule_set.fixed_at <= first]
    return in_force[-1] if in_force else next(iter(fixed), None)


def rules_at_start(fixed: Sequence[RuleSet], first: datetime | None) -> RuleSet | None:
    """Return the rules as raters began, without later amendments."""
    return binding([rule_set for rule_set in fixed if not rule_set.reason], first)


def asked_rubric(records: CampaignRecords) -> Rubric:
    """Return the rubric as it was fixed before raters began.

    It is the study's rubric where none was fixed.
    """
    first = first_rating(records.all_ratings) if len(records.rules) > 1 else None
    rule_set = rules_at_start(records.rules, first)
    return records.rubric if rule_set is None else rubric_of(rule_set)


def rubric_to_ask(records: CampaignRecords) -> tuple[Rubric, bool]:
    """Return the rubric to ask raters by now (the study's until a rating is collected), and whether one is."""
    begun = first_rating(records.all_ratings) is not None
    return (asked_rubric(records) if begun else records.rubric), begun


def rubric_of(rules: RuleSet) -> Rubric:
    """Return the rubric in a set of rules."""
    return Rubric.model_validate(rules.rules["rubric"])


def other_rules(current: Mapping[str, Any], fixed: Sequence[RuleSet], ratings: pd.DataFrame) -> list[str]:
    """Return how a study's `current` rules differ from the `fixed` ones that hold; `ratings` are all collected ones."""
    holds = binding(fixed, first_rating(ratings))
    return changes(holds.rules, current) if holds else []


def refuse_other_rules(records: CampaignRecords, current: Mapping[str, Any], ratings: pd.DataFrame) -> None:
    """Raise StudyError if the study's `current` rules (`rules_now`) differ from those that hold since the first rating.

    `ratings` are all that were collected.
    """
    study = records.study
    changed, first = other_rules(current, records.rules, ratings), first_rating(ratings)
    if not changed or first is None:
        return
    line = f"{study.file}: changed after the first rating ({first:%Y-%m-%d %H:%M} UTC): {'; '.join(changed)}"
    line += "; undo this, or"
    if reason := lasting(changed, current):
        raise StudyError(f"{line} give the new study another name: {reason}")
    how = f"{study.command('accept')} --amend {NO_REASON}"
    raise StudyError(f"{line} run `{how}` (every report shows the reason)")


_OF_BLOCKS = ("raters.blocks ", "acceptance.scope ")


def lasting(changed: Sequence[str], current: Mapping[str, Any]) -> str:
    """Return why one of these changes of rules cannot be amended; empty if all can.

    >>> lasting(["acceptance.threshold 3.0, now 2.5"], {"raters": {"blocks": []}})
    ''
    """
    if any(change.startswith("raters.per_pair ") for change in changed):
        return "raters were asked for the earlier number of ratings"
    if any(change.startswith("sample.together ") for change in changed):
        return "raters saw the outputs otherwise"
    by_blocks = current["raters"]["blocks"] or any(change.startswith("raters.blocks ") for change in changed)
    if by_blocks and any(change.startswith(_OF_BLOCKS) for change in changed):
        return "the blocks determine which pairs raters got and what each look may decide"
    return ""


def fix_rules(records: CampaignRecords) -> None:
    """Fix the study's rules unless they hold already. Raises as `rules_due`."""
    write_rules(records, rules_due(records, rules_now(records), records.all_ratings))


def write_rules(records: CampaignRecords, rules: Sequence[RuleSet]) -> None:
    """Write the sets of rules that are due, if there are more than on disk."""
    if len(rules) > len(records.rules):
        Manifest.of(records.study).write_models(RULES.name, rules)


def rules_due(
    records: CampaignRecords, current: Mapping[str, Any], ratings: pd.DataFrame, amend: str | None = None
) -> list[RuleSet]:
    """Return the sets of rules under which the study's `current` rules hold: those on disk, or one more.

    Rules may change before the first collected rating; after it `amend` must give the reason. Raises StudyError for a
    change without a reason, for a reason without a change, and for a changed number of ratings for each pair.
    """
    fixed = records.rules
    reason, first = " ".join((amend or "").split()), first_rating(ratings)
    changed = other_rules(current, fixed, ratings)
    if amend is not None and not (changed and reason):
        advice = "say why the rules changed" if changed else "leave it out: the rules have not changed"
        raise StudyError(f"{records.study.file}: --amend: {advice}")
    if not reason or lasting(changed, current):
        refuse_other_rules(records, current, ratings)
    if fixed and not changed:
        return list(fixed)
    return [*fixed, RuleSet(fixed_at=datetime.now(UTC), rules=dict(current), reason="" if first is None else reason)]


def amendments(fixed: Sequence[RuleSet], first: datetime | None) -> list[tuple[RuleSet, list[str]]]:
    """Return the sets of rules that replaced others after the first rating, each with its changes."""
    amended = []
    for index, rule_set in enumerate(fixed):
        previous = binding(fixed[:index], first)
        if rule_set.reason and previous is not None:
            amended.append((rule_set, changes(previous.rules, rule_set.rules)))
    return amended


def amendment_lines(fixed: Sequence[RuleSet], first: datetime | None) -> list[str]:
    """Return a line for each change of the rules after the first rating."""
    return [
        f"The rules were amended after the first rating, on {rule_set.fixed_at:%Y-%m-%d at %H:%M} UTC:"
        f" {rule_set.reason} ({'; '.join(changed) or 'nothing'})."
        for rule_set, changed in amendments(fixed, first)
    ]


def fixed_text(fixed: Sequence[RuleSet], ratings: pd.DataFrame) -> str:
    """Return a sentence on when the rules were fixed and the first of these ratings was given."""
    if not fixed:
        return f"The rules are not fixed yet; {'publishing' if ratings.empty else '`accept`'} fixes them."
    first = first_rating(ratings)
    rule_set = rules_at_start(fixed, first) or fixed[0]
    at = f"The rules were fixed on {rule_set.fixed_at:%Y-%m-%d at %H:%M} UTC"
    if first is None:
        return f"{at}; no rating was collected yet."
    bound = _bound(ratings)
    if rule_set.fixed_at < first:
        return (
            f"{at}; ratings from files without times may be older."
            if bound
            else f"{at}, before the first rating ({first:%Y-%m-%d, %H:%M} UTC)."
        )
    return f"{at}, AFTER the first rating ({bound}{first:%Y-%m-%d, %H:%M} UTC)."


def _bound(ratings: pd.DataFrame) -> str:
    """Return words before the time of the first rating if some ratings only have their file's time."""
    return "no later than " if untimed(ratings[ratings["status"] == "submitted"]).any() else ""


def rules_fixed(fixed: Sequence[RuleSet], ratings: pd.DataFrame, *, offered: bool) -> tuple[Fixed, str]:
    """Return whether the rules that hold were fixed after the first rating, and doubts about that in words.

    `ratings` are all that were collected, `offered` is whether this campaign offered the sample to raters: if not,
    imported ratings count as given before the rules. If a file has no times, nobody can know.
    """
    first = first_rating(ratings)
    rules, began = binding(fixed, first), rules_at_start(fixed, first)
    if rules is None or began is None or first is None:
        return "", ""
    amended = bool(changes(began.rules, rules.rules))
    since = rules.fixed_at if amended else began.fixed_at
    submitted = ratings[ratings["status"] == "submitted"]
    of_files = submitted[imported(submitted)]
    at = f"the rules were fixed on {began.fixed_at:%Y-%m-%d at %H:%M} UTC"
    at += f" and amended on {since:%Y-%m-%d at %H:%M} UTC" if amended else ""
    chosen = "the rules may have been chosen to fit the ratings"
    if first < since:
        return "late", f"{at}, after the first rating ({_bound(ratings)}{first:%Y-%m-%d, %H:%M} UTC): {chosen}"
    if len(of_files) and not offered:
        number = count(len(of_files), "rating was", "ratings were")
        elsewhere = f"{number} imported from files into a campaign that never offered the sample to raters"
        so = "it counts" if len(of_files) == 1 else "they count"
        return "late", f"{at}; {elsewhere}, so {so} as given earlier: {chosen}"
    if unknown := int(untimed(of_files).sum()):
        timeless = f"{count(unknown, 'rating was', 'ratings were')} imported later from a file without times"
        return "unknown", f"{at}; {timeless}, and may be older than the rules"
    return "", ""
