"""Data sets, read into one form (`dataset.Dataset`) from any source.

docs/own_study.md says which columns a local file needs for each task. A task of mteb brings its own (`mteb_tasks`).
"""
