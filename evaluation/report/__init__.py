"""The report of an evaluated study, for readers: tables and figures of the papers, and one page."""
