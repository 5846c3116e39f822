"""Accepted transformations in, scores and statistics out."""

import plumbline  # noqa: F401 (Ctrl-C is heeded from here on: plumbline.interrupt)
