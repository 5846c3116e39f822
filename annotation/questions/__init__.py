"""Questions of a rubric. Each kind is a class with all that is special to it, in a module of its own.

An answer is stored as a point of the scale (`rating`), or as a line of text: the name of a label (`label`), of several
in the question's order (`multi_label`: `irrelevant, unnatural`), of all from the first to the last (`ranking`:
`b > a = c`), or what was written (`text`). Names of labels have no commas and no spaces, so that each line is one
answer alone.
"""

from annotation.questions import label, ranking, rating, text  # noqa: F401 (so that rubrics can name these kinds)
