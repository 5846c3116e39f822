"""Score data sets with mteb's task classes."""
