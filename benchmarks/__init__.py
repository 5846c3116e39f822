"""Measurements of what limits the platform, each held against a limit: `python -m benchmarks`."""

import plumbline  # noqa: F401 (Ctrl-C is heeded from here on: plumbline.interrupt)
