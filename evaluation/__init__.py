"""Accepted transformations in, scores and statistics out."""

import generation  # noqa: F401 (Ctrl-C is heeded from here on: generation.interrupt)
