"""Pairs out to people, ratings back, verdicts."""

import generation  # noqa: F401 (Ctrl-C is heeded from here on: generation.interrupt)
