"""Prompt sensitivity: what an instruction embedder's score is worth under other wordings of its instruction."""
