"""Outputs that stand in files: our own recordings, and what HTEB's authors publish."""
