"""Whether the outputs are still those that people rated: a verdict says nothing about others under the same names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from plumbline.records import Pair

Outputs = Mapping[str, tuple[str | None, frozenset[str]]]  # by key, with their error types


def replaced_outputs(pairs: Iterable[Pair], outputs: Callable[[str, int], Outputs]) -> dict[str, str]:
    """Why rated pairs do not stand for the outputs any more, by language of the originals; nothing where they do.

    `pairs` are those of one transformation's sample; `outputs` has, of a transformation and seed, each output by its
    key (None: it failed). One that is another text is refused. Single ones that failed or are missing are not scored,
    which is said elsewhere; where all are gone, what is there was not rated.
    """
    found: dict[str, list[tuple[Pair, str | None]]] = defaultdict(list)
    for pair in pairs:
        if there := outputs(pair.transformation, pair.seed):
            found[pair.language].append((pair, there.get(pair.key, (None,))[0]))
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
