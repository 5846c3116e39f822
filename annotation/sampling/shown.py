"""All that raters see of a study, read together."""

from __future__ import annotations

from annotation.sampling.controls import read_controls
from annotation.sampling.sample import read_pairs
from plumbline.records import Pair
from plumbline.study import Study


def shown(study: Study) -> list[Pair]:
    """All that raters see: the sample, and what tells about raters."""
    return [*read_pairs(study), *read_controls(study)]
