"""Raters' answers on disk: which count, what they tell about raters, and what people decided about these."""
