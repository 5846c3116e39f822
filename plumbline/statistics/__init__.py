"""Statistics of samples, rankings and resamples: pure functions of arrays; the caller passes the random generator."""
