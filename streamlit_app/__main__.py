"""`python -m streamlit_app --study studies/demo.yaml`: the dashboard on this machine, until Ctrl-C."""

from __future__ import annotations

import argparse
import socket
from importlib import import_module
from pathlib import Path

import click
from streamlit.web import cli as streamlit_cli

from plumbline import cli, interrupt
from plumbline.commands import as_called
from plumbline.errors import StudyError
from plumbline.study import load_study
from streamlit_app import warm
from streamlit_app.start import add_names_options


def main() -> int:
    """Run Streamlit on the pages; they read the study's options (`streamlit_app.start`)."""
    warm.collect_later()
    parser = cli.Parser(
        prog=as_called("python -m streamlit_app"),
        description="Show a study: what is done and stale, ratings, verdicts, scores. Runs until Ctrl-C.",
        epilog=as_called("example: python -m streamlit_app --study studies/demo.yaml"),
    )
    cli.add_study_options(parser)
    parser.add_argument("--port", type=_port, metavar="N", help="the port on this machine (default: 8501)")
    add_names_options(parser)
    options = parser.parse_args()
    names = [*(["--names"] if options.names else []), *(["--data", options.data] if options.data else [])]
    study = ["--study", options.study, *(["--exports", options.exports] if options.exports else [])]
    port = ["--server.port", str(options.port)] if options.port else []
    port += ["--runner.magicEnabled", "false"]  # or each page is parsed twice; none of them uses it
    load_study(options.study, options.exports)  # what is wrong with it is said here, not on each page
    if options.port:
        _refuse_taken(options.port)
    interrupt.leave_at_once()  # until Streamlit's server is there, which then ends in order
    import_module("streamlit_app.views.overview")  # the first page, before anybody waits for it
    warm.read_ahead(options.study, options.exports)
    app = Path(__file__).with_name("app.py")
    try:
        streamlit_cli.main(["run", str(app), *port, "--", *study, *names], prog_name="streamlit", standalone_mode=False)
    except click.Abort:  # an interrupt before the server is there
        raise KeyboardInterrupt from None
    return 0


def _refuse_taken(port: int) -> None:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError as error:
            raise StudyError(f"--port {port}: {error.strerror}; name another") from None


def _port(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and 0 < int(value) < 65536):
        raise argparse.ArgumentTypeError(f"{value!r} is no port (1 to 65535)")
    return int(value)


if __name__ == "__main__":
    cli.run(main)
