"""Wordings of the instructions that embedding models read before a text, by a language model or by people."""
