"""Whether a task is worth having: checks of its texts, its gold, and the scores that models reach on it."""
