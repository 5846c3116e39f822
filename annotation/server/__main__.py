"""`python -m annotation.server`: create the server's own environment, if it is missing."""

from __future__ import annotations

from annotation.server import ensure_environment
from plumbline import cli


def main() -> int:
    """Create Argilla's environment; return 0."""
    ensure_environment()
    return 0


if __name__ == "__main__":
    cli.run(main)
