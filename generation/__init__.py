"""Transform the texts of data sets."""

import plumbline  # noqa: F401 (Ctrl-C is heeded from here on: plumbline.interrupt)
