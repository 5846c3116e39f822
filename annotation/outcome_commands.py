"""`python -m annotation compare` and `export`: commands on campaigns that have ratings."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from annotation.comparison import comparison_text
from annotation.export import FOLDER, export
from plumbline import cli
from plumbline.study import load_study

Add = Callable[..., argparse.ArgumentParser]


def add_outcome_commands(add: Add) -> None:
    """Add both to the command line; `add` takes a name, what runs it, and its help."""
    comparing = add("compare", _compare, "hold waves side by side, or two campaigns on the same pairs", argilla=False)
    comparing.add_argument("--other", metavar="FILE", help="another study that rated the same pairs")
    comparing.add_argument("--other-exports", metavar="DIR", help="where that study's records are, if elsewhere")
    exporting = add("export", _export, f"write the ratings as CSV with a codebook, to {FOLDER}/", argilla=False)
    exporting.add_argument("--licence", metavar="TEXT", default="", help="the codebook's line on the licence")
    exporting.add_argument(
        "--words", action="store_true", help="also write what raters wrote in their own words, which may hold names"
    )


def _compare(options: argparse.Namespace) -> int:
    other = load_study(options.other, options.other_exports or options.exports) if options.other else None
    print(comparison_text(cli.study_of(options), other))
    return 0


def _export(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    folder = export(study, licence=options.licence, words=options.words)
    print(f"{study.name}: ratings -> {folder}; codebook.md says what is in it")
    return 0
