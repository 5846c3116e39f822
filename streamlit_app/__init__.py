"""Pages that show and never compute."""

import plumbline  # noqa: F401 (Ctrl-C is heeded from here on: plumbline.interrupt)
