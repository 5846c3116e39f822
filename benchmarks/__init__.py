"""Measurements of what limits the platform, each held against a limit: `python -m benchmarks`."""
