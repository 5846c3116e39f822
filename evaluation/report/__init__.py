"""The report on an evaluated study: the papers' tables and figures, and one page."""
