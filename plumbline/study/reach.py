"""The number of pairs that each verdict of a study can rest on, and checks that it is enough for a decision."""

from __future__ import annotations

import bisect
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.errors import StudyError
from plumbline.study.campaign import AcceptanceSpec
from plumbline.study.datasets import Text, Texts
from plumbline.words import count

if TYPE_CHECKING:
    from plumbline.study import Study

#: The scopes of a verdict (`acceptance.scope`), from the widest to the narrowest.
SCOPES = ("transformation", "language", "task")
_MOST_PAIRS = 10**7  # that `sample.pairs` may be


@dataclass(frozen=True)
class VerdictSize:
    """The most pairs that one verdict can rest on, if every drawn pair is rated in full."""

    pool: str
    members: tuple[str, ...]  #: what is judged by these pairs together
    key: tuple[str, ...]  #: its language, and its task, as far as the scope tells them apart
    pairs: int
    raters: int

    def lacks(self, rule: AcceptanceSpec) -> bool:
        """Return whether this is less than any decision needs."""
        return self.pairs < rule.min_pairs


def verdict_sizes(study: Study, texts: Texts, pairs: int | None = None, scope: str = "") -> list[VerdictSize]:
    """The verdicts of a study whose texts are in these languages and tasks, each of the size that it has at most.

    `pairs` and `scope` stand in for the study's own. A transformation's pairs are split evenly over the languages,
    those of a language over its tasks (`annotation.sampling.candidates`); if they do not divide evenly, the smaller
    share counts. The members of a pool are judged by the pairs of all of them.
    """
    scope, number = scope or study.acceptance.scope, pairs or study.sample.pairs
    pools: dict[str, list[str]] = {}
    for name, kind in study.kinds.items():
        pools.setdefault(kind.pool, []).append(name)
    sizes_of_pools = []
    for pool, members in pools.items():
        sizes: dict[tuple[str, ...], int] = {}
        for name in members:
            of_task, _ = study.judging.sizes(name) or (None, None)
            for key, share in _shares(texts.get(name, ()), scope, number, of_task).items():
                sizes[key] = sizes.get(key, 0) + share
        raters = min(study.raters_of(name) for name in members)
        sizes_of_pools += [VerdictSize(pool, tuple(members), key, size, raters) for key, size in sizes.items()]
    return sizes_of_pools


def _shares(texts: Collection[Text], scope: str, pairs: int, of_task: int | None) -> dict[tuple[str, ...], int]:
    """The pairs of one transformation that count in each verdict; `of_task` are a task's items of each language."""
    tasks: dict[str, set[str]] = {}
    for language, task in sorted(texts) or [("", "")]:
        tasks.setdefault(language, set()).add(task)
    least = pairs // len(tasks) if of_task is None else of_task
    if scope == "transformation":
        return {(): pairs if of_task is None else of_task * len(tasks)}
    if scope == "language":
        return {(language,): least for language in tasks}
    return {
        (language, task): least // len(tasks_there)
        for language, tasks_there in tasks.items()
        for task in sorted(tasks_there)
    }


def known_texts(study: Study) -> Texts:
    """The languages and tasks of the units, as far as the study file states them; more texts only split further."""
    return study.judging.texts(study.kinds, study.datasets)


def refuse_unreachable(study: Study, texts: Texts, prefix: str = "") -> None:
    """Raise StudyError if a verdict has fewer pairs than any decision or its last block needs, with sufficient numbers.

    `prefix` begins the line.
    """
    rule, sizes, blocks = study.acceptance, verdict_sizes(study, texts), study.raters.blocks
    smallest = min((size.pairs for size in sizes), default=0)
    if blocks and sizes and blocks[-1] > smallest:
        raise StudyError(
            f"{prefix}raters.blocks end at {blocks[-1]} {study.called.item}s, but a verdict can have only {smallest}"
            f" (sample.pairs {study.sample.pairs}, split by acceptance.scope {rule.scope}); write raters.blocks:"
            f" {[*(end for end in blocks if end < smallest), smallest]}, or raise sample.pairs"
        )
    short = [size for size in sizes if size.lacks(rule)]
    if not short:
        return
    least = _drawn(study, texts, min(short, key=lambda need: (need.pairs, need.pairs * need.raters)))
    raise StudyError(
        f"{prefix}acceptance.min_pairs {rule.min_pairs} is more than {least}: the verdict would always be undecided;"
        f" {_mended(study, texts)}"
    )


def _drawn(study: Study, texts: Texts, least: VerdictSize) -> str:
    """Return why a verdict has so few pairs."""
    item, number = study.called.item, study.sample.pairs
    if study.judging.sizes(least.members[0]):
        return f"the {least.pairs} items of {least.pool!r} (subject.tasks)"
    languages = sorted({language for language, _ in texts.get(least.members[0], ())})
    places = {size.key for size in verdict_sizes(study, texts) if size.pool == least.pool}
    if len(places) < 2:
        return f"sample.pairs {number}"
    over = f"{len(languages)} languages ({', '.join([*languages[:8], *(['...'] if languages[8:] else [])])})"
    if least.key[1:]:
        over = f"{over} and their tasks" if languages[1:] else f"{len(places)} tasks"
    return f"the {count(least.pairs, item)} that a verdict can have (sample.pairs {number} are split over {over})"


def _mended(study: Study, texts: Texts) -> str:
    """Each change of one number of the study that makes all its verdicts large enough."""
    rule, sizes = study.acceptance, verdict_sizes(study, texts)
    changes: list[str] = []

    def enough(pairs: int, scope: str = "") -> bool:
        return not any(size.lacks(rule) for size in verdict_sizes(study, texts, pairs, scope))

    if not any(map(study.judging.sizes, study.kinds)) and enough(_MOST_PAIRS):
        least = bisect.bisect_left(range(1, _MOST_PAIRS), True, key=enough) + 1
        changes.append(f"sample.pairs: {least} (or more)")
    if pairs := min(size.pairs for size in sizes):
        changes.append(f"acceptance.min_pairs: {pairs}")
    wider = SCOPES[: SCOPES.index(rule.scope)][::-1]
    if scope := next((name for name in wider if enough(study.sample.pairs, name)), ""):
        changes.append(f"acceptance.scope: {scope}")
    return f"write {' or '.join([', '.join(changes[:-1]), changes[-1]] if changes[1:] else changes)}"
