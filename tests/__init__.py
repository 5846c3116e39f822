"""The tests, which run side by side on all cores, so that each process of theirs computes with one thread.

With a thread for each core in every process, k-means and regressions on a few rows wait for cores that others hold.
Libraries read this when they are first imported, which is after this; a value that is set already stays.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
