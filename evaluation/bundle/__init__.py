"""Validated sets: a study's outputs with all that makes them believable in one file, checked, scored and compared."""
