"""Which verdicts a sample can still reach: what would count if every answer that raters are asked for came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.sampling.sample import COMMAND
from annotation.verdicts.counted import SCOPES, Place
from annotation.verdicts.tables import count, scoped
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec

_NAMED = 3  # verdicts that a line names


@dataclass(frozen=True)
class Ahead:
    """What one group that is judged apart can come to."""

    key: Place
    names: tuple[str, ...]  #: as people read them, with language and task
    units: tuple[tuple[str, str], ...]  #: the transformations and languages of its pairs
    pairs: int  #: that count, or still could
    ratings: int  #: on a question, likewise
    open: int  #: answers that raters are still asked for
    anew: int = 0  #: that could be asked for again, since their raters are excluded

    def lacks(self, rule: AcceptanceSpec) -> str:
        """What it will never have enough of; empty where it may."""
        if self.pairs < rule.min_pairs:
            return f"{self.pairs} of {rule.min_pairs}"
        if self.ratings < rule.min_ratings:
            return f"{count(self.ratings, 'rating')} of {rule.min_ratings}"
        return ""


def ahead(pairs: pd.DataFrame, rule: AcceptanceSpec) -> list[Ahead]:
    """What each group can come to; `pairs` has a row a pair of the sample.

    Its columns: transformation, pool, language, task_type, `counting` (answers), `open` (that raters are still asked
    for), `could` (whether enough count, or still could) and `most` (how many count, or could).
    """
    key, groups = SCOPES[rule.scope], []
    for names, group in pairs.groupby(key, sort=False, observed=True):
        could = group[group["could"].to_numpy()]
        units = group[["transformation", "language"]].drop_duplicates().astype(str)
        values = tuple(map(str, names))
        language = values[1] if len(key) > 1 else ", ".join(sorted(units["language"].unique()))
        task = values[2] if len(key) > 2 else ""
        groups.append(
            Ahead(
                key=values,
                names=tuple(scoped(name, language, task) for name in units["transformation"].unique()),
                units=tuple(units.itertuples(index=False, name=None)),
                pairs=len(could),
                ratings=int(could["most"].sum()),
                open=int(group["open"].sum()),
                anew=int((group["most"] - group["counting"] - group["open"]).clip(lower=0).sum()),
            )
        )
    return groups


def ahead_of_sample(study: Study, pairs: Sequence[Pair]) -> list[Ahead]:
    """What each group can come to, before anybody has answered."""
    names = ("transformation", "pool", "language", "task_type")
    frame = pd.DataFrame([[getattr(pair, name) for name in names] for pair in pairs], columns=list(names))
    raters = frame["transformation"].map(study.raters_of) if len(frame) else pd.Series(dtype=int)
    could = raters >= study.acceptance.min_raters
    return ahead(frame.assign(counting=0, open=raters, most=raters, could=could), study.acceptance)


def never_lines(study: Study, groups: Sequence[Ahead], *, offered: bool) -> list[str]:
    """That some groups will never have what a decision needs, and what to do; nothing where all may.

    `offered` is whether raters may have seen the sample.
    """
    rule, item = study.acceptance, study.called.item
    short = [(group, lacks) for group in groups if (lacks := group.lacks(rule))]
    if not short:
        return []
    named = [f"{' and '.join(group.names)} {lacks}" for group, lacks in short]
    more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED + 1 else ""
    again = f" (`{study.command('generation.run')} --again` asks for failed outputs again)"
    again = again if study.judging.transforms else ""
    draw = study.command(COMMAND) + ' --extend "reason"' * offered
    lower = study.command("annotation accept") + ' --amend "reason"' if offered else study.command(COMMAND)
    return [
        f"no answers can decide {'; '.join(named[:_NAMED] if more else named)}{more}: so many {item}s can count, of"
        f" those that a verdict needs (acceptance.min_pairs, min_ratings). Add texts, data sets or seeds{again} and"
        f" draw more with `{draw}`, or lower the number in the study, then `{lower}`"
    ]


def size_line(study: Study, groups: Sequence[Ahead]) -> str:
    """How many verdicts there will be, and on how many pairs each can rest; empty where there is no sample."""
    sizes = sorted(group.pairs for group in groups)
    if not sizes:
        return ""
    item, number = study.called.item, sum(len(group.names) for group in groups)
    pairs = count(sizes[0], item) if sizes[0] == sizes[-1] else f"{sizes[0]} to {count(sizes[-1], item)}"
    about = f"{count(number, 'verdict')} by acceptance.scope {study.acceptance.scope}"
    return f"{about}, on {pairs}{' each' if number > 1 else ''} ({study.acceptance.min_pairs} are needed)"
