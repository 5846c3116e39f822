"""People do the tasks that embedding models are scored on: the questions to them, and their answers."""
