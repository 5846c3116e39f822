"""`python -m evaluation.build`: the name that `python -m evaluation.benchmarks` had before."""

from __future__ import annotations

from evaluation.benchmarks.__main__ import main
from plumbline import cli

if __name__ == "__main__":
    cli.run(main)
