"""Agreement, means and intervals: pure functions of ratings."""
