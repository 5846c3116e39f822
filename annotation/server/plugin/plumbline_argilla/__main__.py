"""`python -m plumbline_argilla --home FOLDER --host 127.0.0.1 --port 6900`; runs until its standard input closes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .imports import bring_async_timeout

bring_async_timeout()

from .launch import main  # noqa: E402

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="plumbline_argilla")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--address", action="append", default=[])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--migrate", action="store_true")
    arguments = parser.parse_args()
    where = arguments.home, arguments.host, arguments.port
    sys.exit(main(*where, addresses=arguments.address, workers=arguments.workers,
                  may_migrate=arguments.migrate))  # fmt: skip
