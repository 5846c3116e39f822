"""Data sets, read into one form (`places.Dataset`) wherever they come from.

Which columns a local file needs for each task says docs/own_study.md. A task of mteb has all that in its own data
(`mteb_tasks`).
"""
