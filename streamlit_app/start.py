"""The dashboard's options; pages read them: `streamlit run streamlit_app/app.py -- --study studies/demo.yaml`."""

from __future__ import annotations

import sys

from cyclopts import App, CycloptsError

from plumbline import interrupt
from plumbline.cli import Port, StudyOptions
from plumbline.errors import StudyError
from plumbline.study import Study

START = "streamlit run streamlit_app/app.py -- --study studies/demo.yaml"


def start(*, options: StudyOptions, port: Port | None = None) -> None:
    """Show the study in a browser, until Ctrl-C.

    Pages show its stages, ratings, verdicts and scores.

    Example: plumbline dashboard --study studies/demo.yaml

    Args:
        options: The study.
        port: The port on this machine (default: 8501).
    """
    interrupt.leave_at_once()  # until Streamlit's server runs, which then ends in order
    from streamlit_app.server import serve  # noqa: PLC0415 (most of the time at the start is imports)

    serve(options, port)


def opened() -> Study:
    """Return the dashboard's study. Raises StudyError, which the page shows, if it cannot be read."""

    def load(*, options: StudyOptions) -> Study:
        return options.load()

    app = App(help_flags=(), version_flags=(), result_action="return_value", print_error=False, exit_on_error=False)
    app.default(load)
    try:
        study: Study = app(sys.argv[1:])
    except CycloptsError as error:
        raise StudyError(f"{str(error).rstrip('.')}; start the dashboard with `{START}`") from None
    return study
