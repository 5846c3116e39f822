"""Data sets, read into one form (`places.Dataset`) wherever they come from.

docs/own_study.md says which columns a local file needs for each task. A task of mteb has all that in its own data
(`mteb_tasks`).
"""
