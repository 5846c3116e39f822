"""Compare people and models on the same items: the human ceiling of a task."""
