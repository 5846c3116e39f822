"""`plumbline dashboard --study studies/demo.yaml`: the dashboard on this machine, until Ctrl-C."""

from __future__ import annotations

import argparse

from plumbline import cli, interrupt
from streamlit_app.start import add_names_options


def main() -> int:
    """Parse the command line and start the server; pages read the study's options (`streamlit_app.start`)."""
    parser = cli.Parser(
        prog="plumbline dashboard",
        description="Show a study in a browser: its stages, ratings, verdicts and scores. Runs until Ctrl-C.",
        epilog="example: plumbline dashboard --study studies/demo.yaml",
    )
    cli.add_study_options(parser)
    parser.add_argument("--port", type=_port, metavar="N", help="the port on this machine (default: 8501)")
    add_names_options(parser)
    options = parser.parse_args()
    interrupt.leave_at_once()  # until Streamlit's server runs, which then ends in order
    return cli.handler("streamlit_app.server:serve")(options)


def _port(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and 0 < int(value) < 65536):
        raise argparse.ArgumentTypeError(f"{value!r} is not a port (1 to 65535)")
    return int(value)


if __name__ == "__main__":
    cli.run(main)
