"""Statistics of scores: paired samples, rankings, resampled verdicts."""
