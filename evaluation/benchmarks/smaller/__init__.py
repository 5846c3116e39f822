"""A smaller data set in the place of a large one, and whether models rank on it as before."""
