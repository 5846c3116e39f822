"""Whether the outputs are still those that people rated: a verdict says nothing about others under the same names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from evaluation.sources import Table
from plumbline.records import Pair


def replaced_outputs(pairs: Iterable[Pair], outputs: Callable[[str, int], Table]) -> dict[str, str]:
    """Why rated pairs do not stand for the outputs any more, by language of the originals; nothing where they do.

    `pairs` are those of one transformation's sample; `outputs` has the table of a transformation and seed. One that is
    another text is refused. Single ones that failed or are missing are not scored, which is said elsewhere; where all
    are gone, what is there was not rated.
    """
    found: dict[str, list[tuple[Pair, str | None]]] = defaultdict(list)
    units: dict[tuple[str, int], list[Pair]] = defaultdict(list)
    for pair in pairs:
        units[pair.transformation, pair.seed].append(pair)
    for unit, own in units.items():
        if there := outputs(*unit):
            for pair, now in zip(own, there.of([pair.key for pair in own]), strict=True):
                found[pair.language].append((pair, now[0] if now else None))
    reasons = {}
    for language, rated in found.items():
        other = [pair.pair_id for pair, now in rated if now is not None and now != pair.transformed]
        gone = all(now is None for _, now in rated)
        if other or gone:
            what = (
                f"{len(other)} of {len(rated)} rated texts are others now (first pair {min(other)[:12]})"
                if other
                else "none of the rated texts is among the outputs any more"
            )
            reasons[language] = f"{what}: bring the outputs back that were rated, or have these rated in a new study"
    return reasons
