"""A campaign: its questions, subjects and records, opened once; what counts, and what was offered to whom."""
