"""From a study's records to what pages show: a class for each family of pages, a method for each thing shown.

Nothing is computed here: records are filtered by what a page asks for and handed to functions of `generation`,
`annotation` and `evaluation`. The first page needs `overview`, which imports nothing that takes long.
"""
