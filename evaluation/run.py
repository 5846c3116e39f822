"""`python -m evaluation.run` is `plumbline evaluate`."""

from plumbline.__main__ import main

if __name__ == "__main__":
    main("evaluate")
