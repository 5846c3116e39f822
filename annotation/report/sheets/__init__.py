"""Sheets about an evaluation by people, filled from its records: HEDS, ARR's checklist D and a datasheet."""
