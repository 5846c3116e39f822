"""Where a study stands: `python -m annotation status`."""
