"""Prompt sensitivity: how an instruction embedder's score changes with the wording of its instruction."""
