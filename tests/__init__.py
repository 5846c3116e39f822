"""The tests, which run side by side on all cores, so that each process of theirs computes with one thread.

With a thread for each core in every process, k-means and regressions on a few rows wait for cores that others hold.
Libraries read this when they are first imported, which is after this; a value that is set already stays.
"""

import gc
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
gc.set_threshold(100_000, 20, 20)  # as commands have it (`plumbline.cli.run`): imports are quicker by a fifth
