"""From a study's records to what pages show: a module for each family of pages, a function for each thing shown.

Nothing is computed here: records are filtered by what a page asks for and handed to functions of `generation`,
`annotation` and `evaluation`. The first page needs `overview` and `ratings`, which import nothing that takes long.
"""
