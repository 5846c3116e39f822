"""The dashboard's pages, which show results and compute none."""

import plumbline  # noqa: F401 (Ctrl-C is heeded from here on: plumbline.interrupt)
