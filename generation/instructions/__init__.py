"""Wordings of the instructions that embedding models read before a text: a language model's, or people's in a file."""
