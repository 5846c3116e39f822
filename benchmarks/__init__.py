"""Measurements of what limits the platform, each held against a limit: `python -m benchmarks`."""

import generation  # noqa: F401 (Ctrl-C is heeded from here on: generation.interrupt)
