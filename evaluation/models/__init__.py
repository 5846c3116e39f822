"""Run embedding models of all kinds, and store the embedding of each text."""
