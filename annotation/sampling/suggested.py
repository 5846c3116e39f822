"""The half of a sample that shows judges' scores in an experiment on anchoring (`raters.suggestions: half`).

It is drawn with the sample and stands among the controls: what tells about raters, and enters no number of a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.records import SUGGESTED, Pair
from plumbline.study import Study


def suggested_half(study: Study, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs that show judges' scores: of each transformation and language every second one by a hash of the seed.

    Where a number is odd, one more counts. None where the study makes no such experiment.
    """
    if study.raters.suggestions == "none":
        return []
    order = sorted(pairs, key=lambda pair: identity("suggested-v1", study.sample.seed, pair.pair_id))
    turns: dict[tuple[str, str], int] = {}
    found = []
    for pair in order:
        stratum = (pair.transformation, pair.language)
        turns[stratum] = turns.get(stratum, 0) + 1
        if turns[stratum] % 2 == 0:
            found.append(pair.model_copy(update={"control": SUGGESTED}))
    return sorted(found, key=lambda pair: pair.pair_id)


def refuse_other_half(study: Study, pairs: Iterable[Pair]) -> None:
    """Raise StudyError where `raters.suggestions` is not what the sample was drawn for."""
    there = any(pair.control == SUGGESTED for pair in pairs)
    if there == (study.raters.suggestions == "half"):
        return
    how = "has a half that shows judges' scores" if there else "was drawn to show none of judges' scores"
    raise StudyError(
        f"{study.file}: raters.suggestions is {study.raters.suggestions!r}, and the sample {how}; undo the change, run"
        f" `{study.command('annotation sample')}` again where nobody was asked yet, or give the new study another name"
    )
