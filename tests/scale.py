"""How much of a slow proof runs: a small number in `make test`, the full one in `make test-all`.

docs/promises.md has both numbers of each; `tests/test_layout.py` holds it to that.
"""

from __future__ import annotations

import os

FULL = os.environ.get("PLUMBLINE_TESTS") == "full"


def scaled(small: int, full: int) -> int:
    """The number for this run."""
    return full if FULL else small
