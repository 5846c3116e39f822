"""What the dashboard was started with: `streamlit run streamlit_app/app.py -- --study studies/demo.yaml`."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from plumbline.cli import add_study_options, study_of
from plumbline.errors import StudyError
from plumbline.study import Study

START = "streamlit run streamlit_app/app.py -- --study studies/demo.yaml"


class _Parser(argparse.ArgumentParser):
    """A parser that complains on the page instead of ending the server."""

    def error(self, message: str) -> NoReturn:
        raise StudyError(f"{message}; start the dashboard with `{START}`")


def opened() -> Study:
    """The study that the dashboard was started for. Raises StudyError where it cannot be read."""
    parser = _Parser(prog="app.py", add_help=False)
    add_study_options(parser)
    return study_of(parser.parse_args(sys.argv[1:]))
