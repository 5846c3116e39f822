"""Pairs out to people, ratings back, verdicts."""

import plumbline  # noqa: F401 (Ctrl-C is heeded from here on: plumbline.interrupt)
