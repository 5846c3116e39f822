"""Pages that show and never compute."""

import generation  # noqa: F401 (Ctrl-C is heeded from here on: generation.interrupt)
