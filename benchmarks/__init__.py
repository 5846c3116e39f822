"""Measurements of the platform's speed and memory, each compared with a limit: `python -m benchmarks`."""

import plumbline  # noqa: F401 (Ctrl-C is heeded from here on: plumbline.interrupt)
