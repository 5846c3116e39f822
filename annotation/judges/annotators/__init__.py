"""Language models do the tasks of a study of the human ceiling, under the instructions that people have."""
