"""`python -m annotation.judges`: `plumbline judge` without Argilla, as on a GPU host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from annotation.judges.commands import parser
from plumbline import cli


def main() -> int:
    """Run the command line."""
    options = parser().parse_args()
    run: Callable[[Any], int] = options.run
    return run(options)


if __name__ == "__main__":
    cli.run(main)
