"""Texts in, transformations out."""

import plumbline  # noqa: F401 (Ctrl-C is heeded from here on: plumbline.interrupt)
