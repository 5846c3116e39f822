"""`python -m streamlit_app --study studies/demo.yaml`: the dashboard on this machine, until Ctrl-C."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

import click
from streamlit.web import cli

from generation import command

#: What the first page imports: done before anybody waits for it. Without `data`, whose caches want a server.
FIRST = ("streamlit_app.made", "streamlit_app.frames")


def main() -> int:
    """Run Streamlit on the pages; they read the same arguments (`streamlit_app.start`)."""
    parser = argparse.ArgumentParser(
        prog="python -m streamlit_app",
        description="Show a study: what is done and stale, ratings, verdicts, scores. Runs until Ctrl-C.",
        epilog="example: python -m streamlit_app --study studies/demo.yaml",
    )
    command.add_study_options(parser)
    parser.parse_args()
    for module in FIRST:
        import_module(module)
    app = Path(__file__).with_name("app.py")
    try:
        cli.main(["run", str(app), "--", *sys.argv[1:]], prog_name="streamlit", standalone_mode=False)
    except click.Abort:  # an interrupt before the server is there
        raise KeyboardInterrupt from None
    return 0


if __name__ == "__main__":
    command.run(main)
