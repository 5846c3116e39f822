"""What models' names tell, and where the choice among them stands."""

from __future__ import annotations

import re

FOLDER = "judge_select"  # of what `judge select` writes


def family(model: str) -> str:
    """The family that a model's name begins with: qwen of Qwen/Qwen3-8B-AWQ. Other names may hide relatives.

    >>> family("Qwen/Qwen3-8B-AWQ"), family("gaunernst/gemma-3-27b-it-int4-awq")
    ('qwen', 'gemma')
    """
    name = model.rsplit("/", 1)[-1].lower()
    found = re.match(r"[^\W\d_]+", name)
    return found[0] if found else name
