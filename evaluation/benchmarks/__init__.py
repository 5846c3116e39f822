"""Benchmarks: choose tasks, check them, make data sets smaller, and rank models."""
