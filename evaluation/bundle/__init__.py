"""Bundles: a study's validated outputs with their evidence in one file, exported, checked, scored and compared."""
