"""What raters judge where it is not pairs of a transformation: the items that a study's subject gives."""
