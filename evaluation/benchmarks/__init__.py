"""Smaller benchmarks that keep the ranking of models: which tasks stay, and how far the ranking holds."""
