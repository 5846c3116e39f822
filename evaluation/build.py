"""`python -m evaluation.build`: the former name of `python -m evaluation.benchmarks`."""

from __future__ import annotations

from evaluation.benchmarks.__main__ import main
from plumbline import cli

if __name__ == "__main__":
    cli.run(main)
