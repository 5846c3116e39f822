"""Statistics of samples, rankings and resamples: pure functions of arrays; the caller passes the random generator.

`import scipy` costs nothing: it loads `scipy.stats`, which takes half a second, when a function first needs it.
"""
