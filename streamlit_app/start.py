"""The dashboard's options; pages read them: `streamlit run streamlit_app/app.py -- --study studies/demo.yaml`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn

from plumbline import interrupt
from plumbline.cli import add_study_options, port, study_of
from plumbline.errors import StudyError

if TYPE_CHECKING:
    from plumbline.study import Study

START = "streamlit run streamlit_app/app.py -- --study studies/demo.yaml"


class _AppParser(argparse.ArgumentParser):
    """A parser that shows its errors on the page instead of ending the server."""

    def error(self, message: str) -> NoReturn:
        raise StudyError(f"{message}; start the dashboard with `{START}`")


def dashboard(parser: argparse.ArgumentParser) -> None:
    """Add the options of `plumbline dashboard`."""
    parser.description = "Show a study in a browser: its stages, ratings, verdicts and scores. Runs until Ctrl-C."
    add_study_options(parser)
    parser.add_argument("--port", type=port, metavar="N", help="the port on this machine (default: 8501)")


def start(options: argparse.Namespace) -> int:
    """Run the server; an interrupt ends the process at once until Streamlit's server runs, which then ends in order."""
    interrupt.leave_at_once()
    from streamlit_app.server import serve  # noqa: PLC0415 (most of the time at the start is imports)

    return serve(options)


def opened() -> Study:
    """Return the dashboard's study. Raises StudyError if it cannot be read."""
    parser = _AppParser(prog="app.py", add_help=False)
    add_study_options(parser)
    return study_of(parser.parse_args(sys.argv[1:]))
