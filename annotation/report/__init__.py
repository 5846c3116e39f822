"""The report on a campaign: what it rests on (`material`), its tables, figures and words, and the page."""
