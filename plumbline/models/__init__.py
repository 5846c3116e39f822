"""Ask language models in process, over HTTP or on Ray, and keep their answers in a resumable table."""
