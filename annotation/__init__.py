"""Pairs out to people, ratings back, verdicts."""
