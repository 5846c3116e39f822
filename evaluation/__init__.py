"""Accepted transformations in, scores and statistics out."""
